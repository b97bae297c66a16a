//! Labels that the events of a journal imply, computed without the code that assigns them.
//!
//! What a step has read is in its `node.provenance` events and in the rulings on its tool
//! calls. Its result must have all of these labels, except origins that an endorsement event
//! before it names.

use super::super::state::Run;
use crate::expr::Expr;
use crate::journal::event::{Endorsed, Event, LogLine, Prepared, Provenance, StepAt, StepEvent};
use crate::journal::event::{Ruling, RunStarted, StepOutcome};
use crate::origin::{FlowLabels, PassedLabels};
use crate::plan::step::{Items, Work};
use std::collections::{BTreeMap, BTreeSet};

/// Names of labels; `+` marks secrecy and `!` control.
type Names = BTreeSet<String>;

/// What is known of a step or instance.
#[derive(Debug, Default)]
struct Known {
    /// By target: `inputs.x`, `command`.
    read: BTreeMap<String, Names>,
    tools: Names,
    /// Names that earlier attempts had read, for a repair attempt.
    repaired: Names,
    endorsed: BTreeMap<String, BTreeSet<String>>,
    /// What the result has at least, by output; `""` is the whole.
    result: Option<BTreeMap<String, Names>>,
}

impl Known {
    fn all(&self) -> Names {
        let read = self.read.values().chain([&self.tools, &self.repaired]);
        read.flatten().cloned().collect()
    }
}

/// The labels that a journal implies so far.
#[derive(Debug, Default)]
pub(super) struct LabelOracle {
    steps: BTreeMap<StepAt, Known>,
    passed: PassedLabels,
}

fn names(labels: &FlowLabels) -> Names {
    let origins = labels.origins().map(str::to_owned);
    let secrecy = labels.secrecy().map(|name| format!("+{name}"));
    origins.chain(secrecy).chain(labels.is_controlled().then(|| "!".to_owned())).collect()
}

/// The first name of a path, without `outputs`.
fn first(path: &str) -> &str {
    let path = path.strip_prefix("outputs.").unwrap_or(path);
    path.split(['.', '[']).next().unwrap_or_default()
}

fn assert_has(actual: &FlowLabels, expected: &Names, what: &str) {
    let actual = names(actual);
    let lost: Vec<&String> = expected.difference(&actual).collect();
    assert!(lost.is_empty(), "{what} has lost {lost:?}: it has {actual:?}");
}

impl LabelOracle {
    /// Checks an event before it is folded into `run`.
    pub(super) fn check(&mut self, run: &Run, event: &Event) {
        match event {
            Event::RunStarted(started) => self.started(started),
            Event::Step(at, event) => self.check_step(run, *at, event),
            _ => {}
        }
    }

    fn started(&mut self, started: &RunStarted) {
        self.passed = started.passed.clone();
    }

    fn check_step(&mut self, run: &Run, at: StepAt, event: &StepEvent) {
        match event {
            StepEvent::Provenance(from) => self.read(run, at, from),
            StepEvent::Started(dispatch) => {
                let is_resent = run.state(at).attempt == dispatch.attempt;
                let known = self.steps.entry(at).or_default();
                if !is_resent {
                    known.tools.clear();
                }
                if let Some(prepared) = &dispatch.prepared {
                    self.check_prepared(run, at, prepared);
                }
            }
            StepEvent::ApprovalRequested(request) => {
                if let Some(prepared) = &request.prepared {
                    self.check_prepared(run, at, prepared);
                }
            }
            StepEvent::Log { line: LogLine::Tool(request), .. } => {
                if matches!(request.ruling, Ruling::Allowed(_)) {
                    let known = self.steps.entry(at).or_default();
                    known.tools.extend(names(&request.labels));
                }
            }
            StepEvent::Retried(retried) => {
                let known = self.steps.entry(at).or_default();
                known.repaired = if retried.reask { known.all() } else { Names::new() };
            }
            StepEvent::Endorsed(endorsed) => {
                let Endorsed { output, origins, .. } = &**endorsed;
                let known = self.steps.entry(at).or_default();
                known.endorsed.entry(output.clone()).or_default().extend(origins.iter().cloned());
            }
            StepEvent::Completed(completed) => {
                self.check_result(run, at, &completed.outcome, completed.carried.is_some());
            }
            StepEvent::Invalidated => self.steps.retain(|one, _| one.step != at.step),
            _ => {}
        }
    }

    /// A step reads a value.
    fn read(&mut self, run: &Run, at: StepAt, from: &Provenance) {
        let value = match &from.source_run {
            None => {
                let source = run.find(&from.source_node).expect("the source exists");
                self.output(source, first(&from.source_output_path))
            }
            Some(_) if from.source_output_path.starts_with("args") => {
                let name = from.source_output_path.strip_prefix("args.").unwrap_or_default();
                let own = self.passed.field_labels.get(first(name));
                names(own.unwrap_or(&self.passed.labels.flow))
            }
            // The result of another run, which reports its labels itself.
            Some(_) => Names::new(),
        };
        let known = self.steps.entry(at).or_default();
        known.read.entry(from.target_input_path.clone()).or_default().extend(value);
    }

    fn output(&self, source: StepAt, output: &str) -> Names {
        let result = self.steps.get(&source).and_then(|known| known.result.as_ref());
        let own = result.and_then(|result| result.get(output).or_else(|| result.get("")));
        own.cloned().unwrap_or_default()
    }

    fn check_prepared(&self, run: &Run, at: StepAt, prepared: &Prepared) {
        let Some(known) = self.steps.get(&at) else { return };
        let name = run.name(at);
        let read: Names = known.read.values().chain([&known.repaired]).flatten().cloned().collect();
        assert_has(&prepared.labels.flow, &read, &format!("what {name} is sent"));
        for input in prepared.inputs.keys() {
            let own = prepared.field_labels.get(input).unwrap_or(&prepared.labels.flow);
            for prefix in ["inputs", "args"] {
                if let Some(expected) = known.read.get(&format!("{prefix}.{input}")) {
                    assert_has(own, expected, &format!("input {input} of {name}"));
                }
            }
        }
    }

    fn check_result(&mut self, run: &Run, at: StepAt, outcome: &StepOutcome, is_carried: bool) {
        let step = run.step(at);
        let name = run.name(at);
        let instances = self.steps.iter().filter(|(one, _)| one.step == at.step && **one != at);
        let instances = instances.filter_map(|(_, known)| known.result.as_ref()?.get(""));
        let instances: Names = instances.flatten().cloned().collect();
        let known = self.steps.entry(at).or_default();
        let mut result = BTreeMap::new();
        // Another run has checked what is carried over, and a child run what it returns.
        if is_carried || matches!(step.work, Work::Workflow(_)) {
            result.insert(String::new(), names(&outcome.labels.flow));
            let own = outcome.field_labels.iter();
            result.extend(own.map(|(output, own)| (output.clone(), names(own))));
            known.result = Some(result);
            return;
        }
        let whole: Names = known.all().union(&instances).cloned().collect();
        assert_has(&outcome.labels.flow, &whole, &format!("the result of {name}"));
        for output in outcome.outputs.as_object().into_iter().flat_map(|outputs| outputs.keys()) {
            let passes = step.inputs.contains_key(output) && !step.outputs.contains_key(output);
            // Without a source there is nothing to pass on.
            let read = known.read.get(&format!("inputs.{output}")).cloned();
            let read = passes.then(|| read.unwrap_or_default());
            let added = ["approved", "by", "at"].contains(&output.as_str());
            let mut own = read.unwrap_or_else(|| whole.clone());
            // A person decided these, whatever the inputs of the step were.
            if added && matches!(step.work, Work::Approval) {
                own.clear();
            }
            for origin in known.endorsed.get(output).into_iter().flatten() {
                own.remove(origin);
            }
            if let Some(actual) = outcome.field_labels.get(output) {
                assert_has(actual, &own, &format!("output {output} of {name}"));
            }
            result.insert(output.clone(), own);
        }
        result.insert(String::new(), whole);
        let known = self.steps.entry(at).or_default();
        known.result = Some(result);
    }

    /// Checks the state after the last event: what is read from it has the same labels.
    pub(super) fn end(&self, run: &Run) {
        for (at, known) in self.steps.iter().filter(|(at, _)| at.item.is_none()) {
            for (output, expected) in known.result.iter().flatten() {
                let name = run.name(*at);
                let output = Some(output.as_str()).filter(|output| !output.is_empty());
                let labels = run.output_labels(at.step, output);
                assert_has(&labels.flow, expected, &format!("{output:?} of {name} in the fold"));
            }
        }
        for (step, plan) in (0u32..).zip(&run.definition.plan.steps) {
            self.check_control(run, step, plan.condition.iter().flat_map(Expr::references));
            if let Some(Items::From(path)) = plan.for_each.as_ref().map(|each| &each.items) {
                self.check_guard(run, step, path.head());
            }
        }
    }

    fn check_control<'r>(
        &self,
        run: &Run,
        step: u32,
        reads: impl Iterator<Item = &'r crate::path::Reference>,
    ) {
        for one in reads.filter(|one| one.path.rest().len() == 1) {
            self.check_guard_of(run, step, one.path.head(), one.path.as_str());
        }
    }

    fn check_guard(&self, run: &Run, step: u32, head: &str) {
        self.check_guard_of(run, step, head, head);
    }

    /// Whether a step that settled is under control, if it reads an untrusted output.
    fn check_guard_of(&self, run: &Run, step: u32, head: &str, path: &str) {
        let Some(source) = run.find(head) else { return };
        let below = path.strip_prefix(head).unwrap_or_default().trim_start_matches('.');
        let read = self.output(source, first(below));
        let is_trusted = |name: &String| matches!(name.as_str(), "caller" | "operator");
        let is_untrusted = |name: &String| !is_trusted(name) && !name.starts_with('+');
        if !read.iter().any(is_untrusted) {
            return;
        }
        let state = &run.steps[step as usize];
        let name = run.name(StepAt::whole(step));
        if let Some(outcome) = state.outcome() {
            // Carried results have the labels of their own run.
            let known = self.steps.get(&StepAt::whole(step));
            if known.is_some_and(|known| !known.read.contains_key("outputs")) {
                assert!(outcome.labels.flow.is_controlled(), "{name} is not under control");
            }
        }
    }
}
