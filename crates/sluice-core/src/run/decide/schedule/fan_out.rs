//! Steps that are executed once for each item.

use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{Completed, Dispatch, Ending, Path, StepAt, StepEvent, StepOutcome};
use crate::limits::ANSWER_BYTES_MAX;
use crate::origin::{FieldLabels, FlowLabels};
use crate::plan::step::{Items, Step};
use crate::port::adapter::Usage;
use crate::run::decide::draft::Draft;
use crate::run::decide::settle::fail::fail;
use crate::run::decide::settle::halt::cut_off_rest;
use crate::run::scope::RunScope;
use crate::run::state::{Run, StepState};
use crate::scope::{Found, resolve};
use crate::status::StepStatus;
use crate::value::type_name;
use crate::violation::a;
use serde_json::{Value, json};
use std::sync::Arc;

/// Queues a step with its instances.
pub(super) fn fan_out(draft: &mut Draft<'_>, at: StepAt) {
    let items = match items(draft.run, at) {
        Ok(items) => Arc::new(items),
        Err(failure) => return fail(draft, at, failure),
    };
    let count = u32::try_from(items.len()).expect("items are bounded");
    draft.record(at, StepEvent::Queued { items: Some(items) });
    let dispatch = Dispatch {
        attempt: 1,
        dispatch_no: draft.run.state(at).dispatch_no + 1,
        wave: draft.run.definition.plan.graph.layer_of(at.step as usize),
        agent: None,
        gateway: draft.run.started.gateway.clone(),
        path: Path::FanOut,
        deadline_ms: None,
        prepared: None,
        digest: None,
        terms: Arc::default(),
        session: None,
    };
    draft.record(at, StepEvent::Started(Box::new(dispatch)));
    for item in 0..count {
        draft.record(StepAt::instance(at.step, item), StepEvent::Queued { items: None });
    }
    draft.fan_outs.push(at.step);
}

fn items(run: &Run, at: StepAt) -> Result<Vec<Value>, Failure> {
    let each = run.step(at).for_each.as_ref().expect("a fan-out has items");
    let items = match &each.items {
        Items::List(items) => items.clone(),
        Items::From(path) => {
            let scope = RunScope::of_step(run, at);
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
pub(super) fn gather_fan_outs(draft: &mut Draft<'_>) {
    for step in std::mem::take(&mut draft.fan_outs) {
        let at = StepAt::whole(step);
        let state = draft.run.state(at);
        let done = state.fan_out.as_ref().is_some_and(|fan_out| fan_out.unsettled == 0);
        if done && !state.is_settled() {
            gather(draft, at);
        }
    }
}

fn gather(draft: &mut Draft<'_>, at: StepAt) {
    let state = draft.run.state(at);
    let fan_out = state.fan_out.as_ref().expect("a fan-out is gathered");
    let bad =
        |status| matches!(status, StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked);
    let stopped = fan_out.instances.iter().find(|one| one.status() == StepStatus::Cancelled);
    let failed = (0u32..).zip(&fan_out.instances).find(|(_, one)| bad(one.status()));
    if let Some((item, one)) = failed {
        let name = draft.run.name(StepAt::instance(at.step, item));
        let cause = one.failure.as_deref();
        let message = cause.map_or("", |ending| ending.message.as_str());
        let ending = Ending {
            code: cause.map_or_else(String::new, |ending| ending.code.clone()),
            message: format!("{name}: {message}"),
            violations: cause.map(|ending| Arc::clone(&ending.violations)).unwrap_or_default(),
            attempts: 1,
            ..Ending::default()
        };
        let timed_out = one.status() == StepStatus::TimedOut;
        let ending = Box::new(ending);
        let event = if timed_out { StepEvent::TimedOut(ending) } else { StepEvent::Failed(ending) };
        draft.record(at, event);
        return cut_off_rest(draft, at);
    }
    if let Some(one) = stopped {
        let (code, reason) = one.failure.as_ref().map_or_else(
            || (Code::Cancelled.to_string(), String::new()),
            |ending| (ending.code.clone(), ending.message.clone()),
        );
        return draft.record(at, StepEvent::Cancelled { code, reason, usage: Usage::default() });
    }
    let step = draft.run.step(at);
    let items: Vec<Value> = fan_out.instances.iter().map(|one| item(step, one)).collect();
    let labels = fan_out.instances.iter().filter_map(|one| one.outcome());
    // Even an empty list was decided by the source of the items.
    let begin = draft.run.items_labels(at.step);
    let mut labels = labels.fold(begin, |all, one| all.with(&one.labels));
    if draft.run.is_guarded(at.step) {
        labels.flow.join(&FlowLabels::controlled());
    }
    let begun = state.started_at_ms.unwrap_or(draft.given.now_ms);
    let completed = Completed {
        outcome: Arc::new(StepOutcome {
            outputs: json!({ "items": items }),
            stdout: texts(step, &fan_out.instances),
            envelope: None,
            labels,
            field_labels: FieldLabels::default(),
        }),
        attempts: 1,
        duration_ms: draft.given.now_ms.saturating_sub(begun),
        usage: Usage::default(),
        coercions: Vec::new(),
        session: None,
        conversation: Vec::new(),
        artefacts: Vec::new(),
        carried: None,
    };
    draft.record(at, StepEvent::Completed(Box::new(completed)));
}

/// The collected value of one instance: its outputs, or its text if it has no outputs of
/// its own.
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

/// The texts of all instances of a step without declared outputs, in the order of the
/// items, each from the beginning of a line; none if that is too long.
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
