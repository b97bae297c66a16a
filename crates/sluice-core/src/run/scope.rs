//! The values of names in expressions of a step, at the current state of the run.

use super::state::Run;
use crate::journal::event::StepAt;
use crate::plan::policy::OnParentFailure;
use crate::plan::step::Step;
use crate::scope::{Scope, StepView};
use crate::status::StepStatus;
use serde_json::{Map, Value};

/// The names that an expression of a run or of a step can use.
pub(crate) struct RunScope<'a> {
    run: &'a Run,
    /// Whether a failed step reads as a skipped one.
    lenient: bool,
    locals: Map<String, Value>,
}

impl<'a> RunScope<'a> {
    /// As the whole run sees them.
    pub(crate) fn of_run(run: &'a Run) -> RunScope<'a> {
        RunScope { run, lenient: false, locals: Map::new() }
    }

    /// As a step or instance sees them.
    pub(crate) fn of_step(run: &'a Run, at: StepAt) -> RunScope<'a> {
        let step: &Step = run.step(at);
        let lenient = step.on_parent_failure == OnParentFailure::SubstituteDefault;
        let mut locals = Map::new();
        if let (Some(item), Some(fan_out)) = (at.item, &run.steps[at.step as usize].fan_out) {
            locals.insert("item".to_owned(), fan_out.items[item as usize].clone());
            locals.insert("index".to_owned(), item.into());
        }
        RunScope { run, lenient, locals }
    }

    /// Adds names that are local to the step.
    pub(crate) fn with_locals(mut self, names: &Map<String, Value>) -> RunScope<'a> {
        self.locals.extend(names.iter().map(|(name, value)| (name.clone(), value.clone())));
        self
    }
}

impl Scope for RunScope<'_> {
    fn step(&self, id: &str) -> Option<StepView<'_>> {
        let position = self.run.definition.plan.graph.position(id)?;
        let state = &self.run.steps[position];
        Some(match state.status() {
            StepStatus::Completed => state.outcome().map_or(StepView::Pending, |outcome| {
                StepView::Done { outputs: &outcome.outputs, stdout: outcome.stdout.as_deref() }
            }),
            StepStatus::Skipped => StepView::Skipped,
            StepStatus::Failed
            | StepStatus::TimedOut
            | StepStatus::Cancelled
            | StepStatus::Blocked
                if self.lenient =>
            {
                StepView::Skipped
            }
            _ => StepView::Pending,
        })
    }

    fn local(&self, name: &str) -> Option<&Value> {
        self.locals.get(name)
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.run.variable(name)
    }

    fn args(&self) -> Option<&Value> {
        Some(&self.run.args)
    }
}
