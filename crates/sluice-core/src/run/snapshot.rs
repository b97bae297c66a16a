//! A run's state written down, so that loading it need not fold its whole journal.
//!
//! A snapshot is a cache: whatever is unreadable, of another version or of
//! another definition reads as none, and the caller folds the journal instead.
//! It is three pieces of JSON, one after the other: what the run was started
//! with, what became of it, and its steps. The first can be read without the
//! others, since the definition is found through it. What follows from the
//! steps is not written; [`Run::reindex`] makes it anew.
//!
//! INVARIANT: `decode` gives back what `encode` was given, or none. (A value
//! that nests deeper than about 120 levels can be written but not read.)

mod part;
mod state;
#[cfg(test)]
mod tests;

use super::definition::Definition;
use super::id::{ApprovalId, RunId};
use super::index::Index;
use super::state::{Approval, End, Open, Pause, Run, RunClock, StepState, args_of};
use super::status::RunStatus;
use crate::journal::chain::START;
use crate::journal::event::{RunStarted, StepAt};
use crate::port::store::Hash;
use part::{Own, Part, Ref, parts};
use serde::Deserialize as _;
use serde_json::Deserializer;
use serde_json::de::SliceRead;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of the format. Any change of what is written is a new one: no
/// two are ever read, since the journal has everything.
const VERSION: u32 = 4;

/// Latest time that is believed, so that sums of times stay small enough.
const TIME_MS_MAX: u64 = 1 << 60;

/// What a run was started with.
struct Head {
    v: u32,
    id: RunId,
    started: Arc<RunStarted>,
}

parts! { Head { v = "v", id = "id", started = "started", } }

/// What became of it, apart from its steps.
struct Body {
    version: u64,
    tip: Option<Hash>,
    status: RunStatus,
    pause: Option<Pause>,
    started_at_ms: u64,
    ended_at_ms: Option<u64>,
    end: Option<End>,
    cancel_reason: Option<String>,
    halted_by: Option<StepAt>,
    reopened: u32,
    recoveries: u32,
    checkpoints: u64,
    writers: Vec<u32>,
    approvals: BTreeMap<ApprovalId, Approval>,
    provenance: (u64, u64),
    taken: BTreeMap<RunId, u64>,
    open: BTreeMap<(StepAt, u32), Open>,
    clock: RunClock,
}

parts! { Body {
    version = "version",
    tip = "tip",
    status = "status",
    pause = "pause",
    started_at_ms = "started_at",
    ended_at_ms = "ended_at",
    end = "end",
    cancel_reason = "cancel_reason",
    halted_by = "halted_by",
    reopened = "reopened",
    recoveries = "recoveries",
    checkpoints = "checkpoints",
    writers = "writers",
    approvals = "approvals",
    provenance = "provenance",
    taken = "taken",
    open = "open",
    clock = "clock",
} }

/// Writes a run's state down.
pub fn encode(run: &Run) -> Vec<u8> {
    // Named one by one, so that a new field is not forgotten.
    let Run {
        id,
        definition: _,
        started,
        version,
        tip,
        status,
        pause,
        started_at_ms,
        ended_at_ms,
        end,
        cancel_reason,
        halted_by,
        reopened,
        recoveries,
        checkpoints,
        writers,
        steps,
        approvals,
        provenance,
        taken,
        open,
        clock,
        args: _,
        index: _,
    } = run;
    let head = Head { v: VERSION, id: *id, started: Arc::clone(started) };
    let body = Body {
        version: *version,
        tip: (*tip != START).then_some(*tip),
        status: *status,
        pause: *pause,
        started_at_ms: *started_at_ms,
        ended_at_ms: *ended_at_ms,
        end: end.clone(),
        cancel_reason: cancel_reason.clone(),
        halted_by: *halted_by,
        reopened: *reopened,
        recoveries: *recoveries,
        checkpoints: *checkpoints,
        writers: writers.clone(),
        approvals: approvals.clone(),
        provenance: *provenance,
        taken: taken.clone(),
        open: open.clone(),
        clock: *clock,
    };
    let mut out = Vec::with_capacity(1024 + 4 * steps.len());
    write(&mut out, &head);
    write(&mut out, &body);
    write(&mut out, steps);
    out
}

/// Reads a run's state; none if it is not one that this version wrote for this definition.
pub fn decode(bytes: &[u8], definition: Arc<Definition>) -> Option<Run> {
    let mut pieces = Deserializer::from_slice(bytes);
    let head: Head = read(&mut pieces)?;
    if head.v != VERSION || head.started.definition_hash != definition.hash {
        return None;
    }
    let body: Body = read(&mut pieces)?;
    let steps: Vec<StepState> = read(&mut pieces)?;
    pieces.end().ok()?;
    let mut run = Run {
        args: args_of(&head.started),
        id: head.id,
        definition,
        started: head.started,
        version: body.version,
        tip: body.tip.unwrap_or(START),
        status: body.status,
        pause: body.pause,
        started_at_ms: body.started_at_ms,
        ended_at_ms: body.ended_at_ms,
        end: body.end,
        cancel_reason: body.cancel_reason,
        halted_by: body.halted_by,
        reopened: body.reopened,
        recoveries: body.recoveries,
        checkpoints: body.checkpoints,
        writers: body.writers,
        steps,
        approvals: body.approvals,
        provenance: body.provenance,
        taken: body.taken,
        open: body.open,
        clock: body.clock,
        index: Index::default(),
    };
    if !holds_together(&run) {
        return None;
    }
    run.index = run.reindex();
    Some(run)
}

/// Which run a snapshot is of, and what it was started with: enough to find
/// the definition that [`decode`] needs.
pub fn started(bytes: &[u8]) -> Option<(RunId, Arc<RunStarted>)> {
    let head: Head = read(&mut Deserializer::from_slice(bytes))?;
    (head.v == VERSION).then_some((head.id, head.started))
}

fn write(out: &mut Vec<u8>, part: &impl Part) {
    serde_json::to_writer(&mut *out, &Ref(part)).expect("state is JSON, and memory takes it");
    out.push(b'\n');
}

fn read<'b, T: Part>(pieces: &mut Deserializer<SliceRead<'b>>) -> Option<T> {
    Own::deserialize(pieces).ok().map(|part| part.0)
}

/// Whether everything the state refers to is there.
fn holds_together(run: &Run) -> bool {
    let count = run.definition.plan.steps.len();
    let is_step = |step: u32| (step as usize) < count;
    let asked = |id: ApprovalId| run.approvals.contains_key(&id);
    run.steps.len() == count
        && run.writers.iter().all(|step| is_step(*step))
        && run.halted_by.is_none_or(|at| run.get(at).is_some())
        && run.clock.since_ms.is_none_or(|since_ms| since_ms <= TIME_MS_MAX)
        && run.all().all(|(_, state)| state.approval.is_none_or(asked))
        && run.all().all(|(_, state)| state.granted.is_none_or(asked))
        && run.open.keys().all(|(at, _)| is_step(at.step))
        && run.approvals.values().all(|approval| {
            // An instance may be gone; the question about it is closed by then.
            let open = approval.resolution.is_none();
            is_step(approval.at.step)
                && (!open || run.get(approval.at).is_some())
                && approval.requested_at_ms <= TIME_MS_MAX
        })
}
