//! The beginning of a run: new, or with the results of another.

use super::command::Given;
use super::decide::{Decided, Turn};
use super::definition::Definition;
use super::id::RunId;
use super::recovery::{failed_steps, with_dependents};
use super::state::{Approval, Run, StepState};
use super::status::StepStatus;
use crate::journal::event::{
    Completed, Provenance, Resolution, RunStarted, Skip, StepAt, StepEvent, StepOutcome,
};
use crate::port::adapter::Usage;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Results that a new run takes over from another.
#[derive(Debug, Clone, Default)]
pub struct Carried {
    events: Vec<(StepAt, StepEvent)>,
}

/// Whether a result is taken over as it is.
#[derive(Clone, Copy)]
enum Taken {
    Whole,
    Changed,
}

/// A run that begins.
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
    /// Everything of `source` but the steps `again` and what depends on them.
    /// Without steps, those that failed are done again.
    pub fn for_restart(source: &Run, again: BTreeSet<u32>) -> Carried {
        let again = if again.is_empty() { failed_steps(source) } else { again };
        Carried::from(source, &BTreeMap::new(), |step| !again.contains(&step))
    }

    /// Everything of `source`, a run as it was at a checkpoint, with some
    /// outputs changed.
    pub fn for_branch(source: &Run, changed: &BTreeMap<u32, Map<String, Value>>) -> Carried {
        Carried::from(source, changed, |_| true)
    }

    /// What failed or was not settled has no result to take over: it is done
    /// again, and so is everything that depends on it.
    fn from(
        source: &Run,
        changed: &BTreeMap<u32, Map<String, Value>>,
        keep: impl Fn(u32) -> bool,
    ) -> Carried {
        let done = |state: &StepState| {
            matches!(state.status(), StepStatus::Completed | StepStatus::Skipped)
        };
        let all = (0u32..).zip(&source.steps);
        let again = all.filter(|(step, state)| !keep(*step) || !done(state));
        let again = with_dependents(source, again.map(|(step, _)| step).collect());
        let keep = |step: u32| !again.contains(&step);
        let mut events = Vec::new();
        for step in source.writers.iter().copied().filter(|step| keep(*step)) {
            let state = &source.steps[step as usize];
            if let Some(outcome) = state.outcome() {
                let at = StepAt::whole(step);
                let changed = changed.get(&step);
                let how = if changed.is_some() { Taken::Changed } else { Taken::Whole };
                events.push((at, taken_over(source, step, how)));
                let outcome = with_changes(outcome, changed);
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

    /// What people last agreed to in a run, by step: a run made from it shows
    /// how what it asks differs.
    pub fn agreed(source: &Run) -> BTreeMap<String, Value> {
        let mut agreed: Vec<&Approval> = source.approvals.values().collect();
        agreed.retain(|one| one.resolution == Some(Resolution::Approved));
        agreed.sort_by_key(|one| one.resolved_at_ms);
        let pair = |one: &&Approval| {
            source.get(one.at)?;
            Some((source.name(one.at), one.action.as_ref()?.action.clone()))
        };
        let own = agreed.iter().filter_map(pair);
        source.started.agreed.clone().into_iter().chain(own).collect()
    }

    /// The steps that are done again: everything not taken over.
    pub fn repeats(&self, plan: &crate::plan::Plan) -> Vec<u32> {
        let kept: BTreeSet<u32> = self.events.iter().map(|(at, _)| at.step).collect();
        (0u32..).take(plan.steps.len()).filter(|step| !kept.contains(step)).collect()
    }
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

/// Where a result that is taken over comes from.
fn taken_over(source: &Run, step: u32, how: Taken) -> StepEvent {
    let transform = match how {
        Taken::Whole => "carried",
        Taken::Changed => "carried, changed",
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
        // What it cost was paid by the run it comes from.
        usage: Usage::default(),
        coercions: Vec::new(),
        session: state.session.clone(),
        conversation: Vec::new(),
        artefacts: Vec::new(),
        carried: Some(source),
    }))
}
