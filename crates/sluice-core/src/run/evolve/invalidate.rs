//! Invalidation: the results of a step are dropped, and it starts again as a new generation.

use super::add;
use crate::code::Code;
use crate::journal::event::{Assignee, StepAt};
use crate::run::state::{Past, Run, StepState};
use crate::run::transition::allowed;
use crate::status::StepStatus;
use std::sync::Arc;

impl Run {
    /// Resets a step to pending. Its counts and its cost continue from where they were.
    pub(super) fn invalidated(&mut self, at: StepAt) {
        let was = self.state(at).status();
        let settled = self.state(at).is_settled();
        debug_assert!(at.item.is_none(), "instances are invalidated with their step");
        self.retire_instances(at);
        self.unlist(at);
        let sources = std::mem::take(&mut self.state_mut(at).sources);
        self.uncount_values(&sources);
        let state = self.state_mut(at);
        // The assignment stays, unless the step failed because of it.
        let misassigned = matches!(state.assigned, Some(Assignee::Member(_)))
            && state
                .failure
                .as_ref()
                .is_some_and(|end| end.code == Code::LayerContradiction.as_str());
        debug_assert!(allowed(was, StepStatus::Pending), "{was} is invalidated");
        *state = StepState {
            generation: state.generation + 1,
            dispatch_no: state.dispatch_no,
            deltas: state.deltas,
            usage: std::mem::take(&mut state.usage),
            past: std::mem::take(&mut state.past),
            assigned: state.assigned.take().filter(|_| !misassigned),
            ..StepState::default()
        };
        if settled {
            self.unsettle(at.step, was);
        }
        if self.index.missing[at.step as usize] == 0 {
            self.index.ready.insert(self.definition.rank(at.step));
        }
        self.writers.retain(|step| *step != at.step);
        self.index.variables.clear();
        for step in self.writers.clone() {
            let names: Vec<String> = self.written_by(step).cloned().collect();
            self.index.variables.extend(names.into_iter().map(|name| (name, step)));
        }
    }

    /// Removes the instances of a step. The step keeps their counts and their cost.
    fn retire_instances(&mut self, at: StepAt) {
        let count = self.state(at).fan_out.as_ref().map_or(0, |one| one.instances.len());
        for item in (0u32..).take(count) {
            self.unlist(StepAt::instance(at.step, item));
        }
        let state = self.state_mut(at);
        let Some(fan_out) = state.fan_out.take() else { return };
        if state.past.len() < count {
            state.past.resize(count, Past::default());
        }
        for (past, one) in state.past.iter_mut().zip(&fan_out.instances) {
            *past = Past { dispatch_no: one.dispatch_no, deltas: one.deltas };
            add(&mut state.usage, &one.usage);
        }
        for one in &fan_out.instances {
            self.uncount_values(&one.sources);
        }
    }

    fn unsettle(&mut self, step: u32, was: StepStatus) {
        match was {
            StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked => {
                self.index.failed -= 1;
            }
            StepStatus::Cancelled => self.index.cancelled -= 1,
            _ => {}
        }
        self.index.unsettled += 1;
        let definition = Arc::clone(&self.definition);
        let graph = &definition.plan.graph;
        let layer = graph.layer_of(step as usize);
        self.index.layer_unsettled[layer as usize] += 1;
        self.index.open_layer = self.index.open_layer.min(layer);
        for dependent in graph.dependents(step as usize) {
            self.index.missing[*dependent as usize] += 1;
            self.index.ready.remove(&definition.rank(*dependent));
        }
    }
}
