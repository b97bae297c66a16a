//! The start of a run: new, or with results that are carried over from another run.

use super::command::Given;
use super::decide::{Decided, Turn};
use super::definition::Definition;
use super::recovery::{failed_steps, with_dependents};
use super::state::{Approval, Run, StepState, agreed_tool};
use crate::id::RunId;
use crate::journal::event::{
    Completed, Provenance, Resolution, RunStarted, Skip, StepAt, StepEvent, StepOutcome,
};
use crate::port::adapter::Usage;
use crate::status::StepStatus;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Results that a new run carries over from another run.
#[derive(Debug, Clone, Default)]
pub struct Carried {
    events: Vec<(StepAt, StepEvent)>,
}

/// Whether a result is carried over unchanged.
#[derive(Clone, Copy)]
enum CarriedResult {
    Unchanged,
    Changed,
}

/// Starts a run and decides its first turn.
pub fn start(
    id: RunId,
    definition: Arc<Definition>,
    started: RunStarted,
    carried: Carried,
    given: Given<'_>,
) -> (Run, Decided) {
    let mut run = Run::new(id, definition, Arc::new(started.clone()));
    let mut turn = Turn::new(&mut run, given);
    turn.start(started, carried.events);
    let decided = turn.finish();
    (run, decided)
}

impl Carried {
    /// All results of `source` except those of the steps `again` and of steps that depend on
    /// them. If `again` is empty, the failed steps are executed again.
    pub fn for_restart(source: &Run, again: BTreeSet<u32>) -> Carried {
        let again = if again.is_empty() { failed_steps(source) } else { again };
        Carried::from(source, &BTreeMap::new(), |step| !again.contains(&step))
    }

    /// All results of `source`, the state of a run at a checkpoint, with some outputs changed.
    pub fn for_branch(source: &Run, changed: &BTreeMap<u32, Map<String, Value>>) -> Carried {
        Carried::from(source, changed, |_| true)
    }

    /// Steps without a result are executed again, and so are all steps that depend on them.
    fn from(
        source: &Run,
        changed: &BTreeMap<u32, Map<String, Value>>,
        keep: impl Fn(u32) -> bool,
    ) -> Carried {
        let has_result = |state: &StepState| {
            matches!(state.status(), StepStatus::Completed | StepStatus::Skipped)
        };
        let all = (0u32..).zip(&source.steps);
        let again = all.filter(|(step, state)| !keep(*step) || !has_result(state));
        let again = with_dependents(source, again.map(|(step, _)| step).collect());
        let keep = |step: u32| !again.contains(&step);
        let mut events = Vec::new();
        for step in source.writers.iter().copied().filter(|step| keep(*step)) {
            let state = &source.steps[step as usize];
            if let Some(outcome) = state.outcome() {
                let at = StepAt::whole(step);
                let changed = changed.get(&step);
                let how = match changed {
                    Some(_) => CarriedResult::Changed,
                    None => CarriedResult::Unchanged,
                };
                events.push((at, provenance(source, step, how)));
                let outcome = with_labels(source, step, outcome);
                let outcome = with_changes(&outcome, changed);
                events.push((at, completed(source.id, state, outcome)));
            }
        }
        for (step, state) in (0u32..).zip(&source.steps).filter(|(step, _)| keep(*step)) {
            if let (StepStatus::Skipped, Some(skip)) = (state.status(), state.phase.skip()) {
                let usage = Usage::default();
                let skip = Skip { carried: Some(source.id), usage, ..skip.clone() };
                events.push((StepAt::whole(step), StepEvent::Skipped(skip)));
            }
        }
        Carried { events }
    }

    /// The actions that were last approved in a run, by step: a run that is made from it shows
    /// how its own approval requests differ.
    pub fn agreed(source: &Run) -> BTreeMap<String, Value> {
        let mut agreed: Vec<&Approval> = source.approvals.values().collect();
        agreed.retain(|one| one.resolution == Some(Resolution::Approved));
        agreed.sort_by_key(|one| one.resolved_at_ms);
        let pair = |one: &&Approval| {
            source.get(one.at)?;
            let name = one.tool().map_or_else(|| source.name(one.at), agreed_tool);
            Some((name, one.action.as_ref()?.action.clone()))
        };
        let own = agreed.iter().filter_map(pair);
        source.started.agreed.clone().into_iter().chain(own).collect()
    }

    /// The steps that are executed again: all whose results are not carried over.
    pub fn repeats(&self, plan: &crate::plan::Plan) -> Vec<u32> {
        let carried: BTreeSet<u32> = self.events.iter().map(|(at, _)| at.step).collect();
        (0u32..).take(plan.steps.len()).filter(|step| !carried.contains(step)).collect()
    }
}

/// The result with the labels of inputs that pass through, which the new run does not bind.
fn with_labels(source: &Run, step: u32, outcome: &Arc<StepOutcome>) -> Arc<StepOutcome> {
    let field_labels = source.carried_labels(step, outcome);
    if field_labels == outcome.field_labels {
        return Arc::clone(outcome);
    }
    Arc::new(StepOutcome { field_labels, ..(**outcome).clone() })
}

fn with_changes(
    outcome: &Arc<StepOutcome>,
    changed: Option<&Map<String, Value>>,
) -> Arc<StepOutcome> {
    let Some(changed) = changed else { return Arc::clone(outcome) };
    let mut outcome = (**outcome).clone();
    if let Value::Object(outputs) = &mut outcome.outputs {
        outputs.extend(changed.clone());
    }
    if let Some(envelope) = &mut outcome.envelope {
        if let Some(output) = changed.get("output") {
            envelope.output = output.clone();
        }
        let data = envelope.data.get_or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(data) = data {
            let fields = changed.iter().filter(|(name, _)| *name != "output");
            data.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    Arc::new(outcome)
}

/// The provenance of a result that is carried over.
fn provenance(source: &Run, step: u32, how: CarriedResult) -> StepEvent {
    let transform = match how {
        CarriedResult::Unchanged => "carried",
        CarriedResult::Changed => "carried, changed",
    };
    StepEvent::Provenance(Box::new(Provenance {
        source_run: Some(source.id),
        source_node: source.name(StepAt::whole(step)),
        source_output_path: "outputs".to_owned(),
        target_input_path: "outputs".to_owned(),
        transform: Some(transform.to_owned()),
    }))
}

fn completed(source: RunId, state: &StepState, outcome: Arc<StepOutcome>) -> StepEvent {
    StepEvent::Completed(Box::new(Completed {
        outcome,
        attempts: state.attempt,
        duration_ms: 0,
        // The source run has paid for it.
        usage: Usage::default(),
        coercions: Vec::new(),
        session: state.session.clone(),
        conversation: Vec::new(),
        artefacts: Vec::new(),
        carried: Some(source),
    }))
}
