//! Steps that are done once for each item.

use super::Turn;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{Completed, Dispatch, Ending, Path, StepAt, StepEvent, StepOutcome};
use crate::limits::ANSWER_BYTES_MAX;
use crate::plan::step::{Items, Step};
use crate::port::adapter::Usage;
use crate::run::label::Labels;
use crate::run::scope::RunScope;
use crate::run::state::StepState;
use crate::scope::{Found, resolve};
use crate::status::StepStatus;
use crate::value::type_name;
use crate::violation::a;
use serde_json::{Value, json};
use std::sync::Arc;

impl Turn<'_> {
    /// Queues a step with its instances.
    pub(super) fn fan_out(&mut self, at: StepAt) {
        let items = match self.items(at) {
            Ok(items) => Arc::new(items),
            Err(failure) => return self.fail(at, failure),
        };
        let count = u32::try_from(items.len()).expect("items are bounded");
        self.node(at, StepEvent::Queued { items: Some(items) });
        let dispatch = Dispatch {
            attempt: 1,
            dispatch_no: self.run.state(at).dispatch_no + 1,
            wave: self.run.definition.plan.graph.layer_of(at.step as usize),
            agent: None,
            gateway: self.run.started.gateway.clone(),
            path: Path::FanOut,
            deadline_ms: None,
            prepared: None,
            digest: None,
            terms: Arc::default(),
            session: None,
        };
        self.node(at, StepEvent::Started(Box::new(dispatch)));
        for item in 0..count {
            self.node(StepAt::instance(at.step, item), StepEvent::Queued { items: None });
        }
        self.fan_outs.push(at.step);
    }

    fn items(&self, at: StepAt) -> Result<Vec<Value>, Failure> {
        let each = self.run.step(at).for_each.as_ref().expect("a fan-out has items");
        let items = match &each.items {
            Items::List(items) => items.clone(),
            Items::From(path) => {
                let scope = RunScope::of_step(self.run, &self.args, at);
                match resolve(path, &scope) {
                    Found::Value(value) => match value.into_owned() {
                        Value::Array(items) => items,
                        other => {
                            let kind = a(type_name(&other));
                            let message = format!("`{path}` is {kind}, not a list");
                            return Err(Failure::new(Code::ItemsNotAList, message));
                        }
                    },
                    Found::Skipped => Vec::new(),
                    Found::Missing => {
                        let message = format!("`{path}` has no value");
                        return Err(Failure::new(Code::UnresolvedVariable, message));
                    }
                }
            }
        };
        if items.len() > each.max_items as usize {
            let message = format!("{} items, over the {} allowed", items.len(), each.max_items);
            return Err(Failure::new(Code::TooManyItems, message));
        }
        Ok(items)
    }

    /// Settles every fan-out whose instances are all settled.
    pub(super) fn gather_fan_outs(&mut self) {
        for step in std::mem::take(&mut self.fan_outs) {
            let at = StepAt::whole(step);
            let state = self.run.state(at);
            let done = state.fan_out.as_ref().is_some_and(|fan_out| fan_out.unsettled == 0);
            if done && !state.is_settled() {
                self.gather(at);
            }
        }
    }

    fn gather(&mut self, at: StepAt) {
        let state = self.run.state(at);
        let fan_out = state.fan_out.as_ref().expect("a fan-out is gathered");
        let bad = |status| {
            matches!(status, StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked)
        };
        let stopped = fan_out.instances.iter().find(|one| one.status() == StepStatus::Cancelled);
        let failed = (0u32..).zip(&fan_out.instances).find(|(_, one)| bad(one.status()));
        if let Some((item, one)) = failed {
            let name = self.run.name(StepAt::instance(at.step, item));
            let cause = one.failure.as_deref();
            let message = cause.map_or("", |ending| ending.message.as_str());
            let ending = Ending {
                code: cause.map_or_else(String::new, |ending| ending.code.clone()),
                message: format!("{name}: {message}"),
                violations: cause.map(|ending| Arc::clone(&ending.violations)).unwrap_or_default(),
                attempts: 1,
                usage: Usage::default(),
                answer: None,
            };
            let timed_out = one.status() == StepStatus::TimedOut;
            let ending = Box::new(ending);
            let event =
                if timed_out { StepEvent::TimedOut(ending) } else { StepEvent::Failed(ending) };
            self.node(at, event);
            return self.cut_off_rest(at);
        }
        if let Some(one) = stopped {
            let (code, reason) = one.failure.as_ref().map_or_else(
                || (Code::Cancelled.to_string(), String::new()),
                |ending| (ending.code.clone(), ending.message.clone()),
            );
            return self.node(at, StepEvent::Cancelled { code, reason, usage: Usage::default() });
        }
        let step = self.run.step(at);
        let items: Vec<Value> = fan_out.instances.iter().map(|one| item(step, one)).collect();
        let labels = fan_out.instances.iter().filter_map(|one| one.outcome());
        let labels = labels.fold(Labels::default(), |all, one| all.with(one.labels));
        let begun = state.started_at_ms.unwrap_or(self.given.now_ms);
        let completed = Completed {
            outcome: Arc::new(StepOutcome {
                outputs: json!({ "items": items }),
                stdout: texts(step, &fan_out.instances),
                envelope: None,
                labels,
            }),
            attempts: 1,
            duration_ms: self.given.now_ms.saturating_sub(begun),
            usage: Usage::default(),
            coercions: Vec::new(),
            session: None,
            conversation: Vec::new(),
            artefacts: Vec::new(),
            carried: None,
        };
        self.node(at, StepEvent::Completed(Box::new(completed)));
    }
}

/// What is collected of one instance: its outputs. One that answered in words
/// alone would be lost that way: then they are its `text`.
fn item(step: &Step, one: &StepState) -> Value {
    let Some(outcome) = one.outcome() else { return Value::Null };
    let own = |name: &String| !step.inputs.contains_key(name);
    match (&outcome.outputs, &outcome.stdout) {
        (Value::Object(outputs), Some(text))
            if step.outputs.is_empty() && !outputs.keys().any(own) =>
        {
            let mut item = outputs.clone();
            item.insert("text".to_owned(), text.as_str().into());
            Value::Object(item)
        }
        (outputs, _) => outputs.clone(),
    }
}

/// What the instances of a step without declared outputs wrote, in the order of
/// the items, each from the beginning of a line; nothing if that is too long.
fn texts(step: &Step, instances: &[StepState]) -> Option<String> {
    if !step.outputs.is_empty() {
        return None;
    }
    let outcomes = instances.iter().filter_map(|one| one.outcome());
    let texts = || outcomes.clone().filter_map(|outcome| outcome.stdout.as_deref());
    let bytes: usize = texts().map(|text| text.len() + 1).sum();
    if bytes == 0 || bytes > ANSWER_BYTES_MAX {
        return None;
    }
    let mut all = String::with_capacity(bytes);
    for text in texts() {
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(text);
    }
    Some(all)
}
