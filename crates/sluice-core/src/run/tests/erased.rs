//! A run whose payloads were all erased has the same state.

use super::super::phase::{StepEnd, StepPhase};
use super::super::state::{GateWait, LastDispatch, Run, StepState, ToolCall};
use super::world::{Seeded, World};
use crate::journal::chain::{Chain, Link, START};
use crate::journal::event::{Ruling, Skip};
use crate::journal::wire;
use crate::port::store::Frame;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Encodes the journal, erases every payload, folds the rest and compares the state with the
/// run.
pub(super) fn verify(world: &World) {
    let live = &world.run;
    let plan = &live.definition.plan;
    let mut link = Link { run: live.id, next: 1, tip: START };
    let mut check = link;
    let mut hashes = Chain::new(&mut check);
    let mut folded: Option<Run> = None;
    for (at_ms, event) in &world.journal {
        let one = std::slice::from_ref(event);
        let encoded = wire::encode(one, *at_ms, plan, &mut link, &mut Seeded(3));
        let wire::Encoded { body, beside, blobs, chain } = encoded;
        let blobs: BTreeMap<_, _> = blobs.into_iter().map(|blob| (blob.hash, blob.body)).collect();
        let mut frame = Frame { first: link.next - 1, count: 1, body, beside, chain };
        let erased = wire::erase(&frame, |_| true, &blobs).expect("it can be erased");
        (frame.body, frame.beside) = (erased.body, erased.beside);
        let raw = wire::whole(&frame).expect("what is left is a frame");
        let left = &raw.events[0];
        let committed = left.commitment().expect("it is committed to");
        assert_eq!(hashes.add(left.kind, raw.at_ms, committed).0, *frame.chain);
        let body = &frame.body;
        let none = BTreeMap::new();
        let run = folded.get_or_insert_with(|| {
            let started = wire::started(body, &none).expect("the first event starts the run");
            Run::new(live.id, Arc::clone(&live.definition), Arc::new(started))
        });
        let decoded = wire::decode(body, Some(plan), &none).expect("what is left can be read");
        run.evolve(&decoded.events[0], decoded.at_ms);
    }
    let run = folded.expect("a run has events");
    assert_eq!((run.version, run.status, run.pause), (live.version, live.status, live.pause));
    assert_eq!((run.started_at_ms, run.ended_at_ms), (live.started_at_ms, live.ended_at_ms));
    assert_eq!((run.halted_by, run.reopened), (live.halted_by, live.reopened));
    assert_eq!((run.checkpoints, &run.writers), (live.checkpoints, &live.writers));
    assert_eq!((run.provenance, run.clock), (live.provenance, live.clock));
    assert_eq!(run.next_due_ms(), live.next_due_ms());
    assert_eq!(run.started.definition_hash, live.started.definition_hash);
    let closed = |run: &Run| -> Vec<_> {
        let one = |(id, approval): (&_, &super::super::state::Approval)| {
            (*id, approval.at, approval.source, approval.resolution, approval.reminders)
        };
        run.approvals.iter().map(one).collect()
    };
    assert_eq!(closed(&run), closed(live));
    let steps = |run: &Run| run.all().map(|(at, state)| (at, stands(state))).collect::<Vec<_>>();
    assert_eq!(steps(&run), steps(live));
}

fn bare(call: &ToolCall) -> ToolCall {
    let ruling = match &call.ruling {
        Ruling::Denied(_) => Ruling::Denied(String::new()),
        other => other.clone(),
    };
    ToolCall { input: None, ruling, ..call.clone() }
}

/// The state of a step without texts of people and models: what erasure must leave.
fn stands(state: &StepState) -> StepState {
    let phase = match state.phase.clone() {
        StepPhase::Settled { end, at_ms } => {
            let end = match end {
                StepEnd::Completed(_) => StepEnd::Completed(Arc::default()),
                StepEnd::Skipped(skip) => {
                    StepEnd::Skipped(Box::new(Skip::new(skip.cause, String::new())))
                }
                StepEnd::Blocked { .. } => StepEnd::Blocked { placeholder: None },
                other => other,
            };
            StepPhase::Settled { end, at_ms }
        }
        other => other,
    };
    let dispatch = state
        .dispatch
        .clone()
        .map(|dispatch| Box::new(LastDispatch { session: None, ..*dispatch }));
    StepState {
        phase,
        dispatch,
        prepared: None,
        failure: None,
        session: None,
        fan_out: None,
        calls: state.calls.iter().map(|(id, call)| (id.clone(), bare(call))).collect(),
        // The hint is a text, which erasure removes.
        gate: state.gate.clone().map(|gate| Box::new(GateWait { hint: None, ..*gate })),
        ..state.clone()
    }
}
