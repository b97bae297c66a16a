//! Snapshots: the encoded state of a run, so that loading it need not fold its whole journal.
//!
//! A snapshot is a cache. If it is unreadable, or of another version or definition, `decode`
//! returns `None` and the caller folds the journal instead. A snapshot is MessagePack in three
//! pieces: what the run was started with, the state of the run, and the states of its steps.
//! The first piece can be read alone, because the caller finds the definition through it. The
//! index is not written; [`Run::reindex`] builds it again.
//!
//! INVARIANT: `decode` returns the state that `encode` was called with, or `None`.

#[cfg(test)]
mod tests;

use super::definition::Definition;
use super::history::RunHistory;
use super::index::Index;
use super::seen::WrittenSeen;
use super::state::{Approval, End, Open, Pause, Run, RunClock, StepState, args_of};
use crate::hash::Hash;
use crate::id::{ApprovalId, RunId};
use crate::journal::event::{RunStarted, StepAt};
use crate::origin::FlowLabels;
use crate::status::RunStatus;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Version of the format. Every change of the format needs a new one. A snapshot of another
/// version is never read: the journal has everything.
const VERSION: u32 = 9;

/// Latest time that `decode` accepts, so that sums of times do not overflow.
const TIME_MS_MAX: u64 = 1 << 60;

/// What a run was started with.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    id: RunId,
    started: Arc<RunStarted>,
}

/// The state of a run, apart from its steps.
#[derive(Serialize, Deserialize)]
struct Body {
    version: u64,
    tip: Hash,
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
    history: RunHistory,
    clock: RunClock,
    seen: WrittenSeen,
    answers: BTreeMap<String, FlowLabels>,
}

/// Encodes the state of a run.
pub fn encode(run: &Run) -> Vec<u8> {
    // All fields are named, so that the compiler reports a new one.
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
        history,
        clock,
        seen,
        answers,
        args: _,
        index: _,
    } = run;
    let head = Head { version: VERSION, id: *id, started: Arc::clone(started) };
    let body = Body {
        version: *version,
        tip: *tip,
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
        history: history.clone(),
        clock: *clock,
        seen: WrittenSeen::new(seen, steps),
        answers: answers.clone(),
    };
    let mut out = Vec::with_capacity(1024 + 64 * steps.len());
    write(&mut out, &head);
    write(&mut out, &body);
    write(&mut out, steps);
    out
}

/// Decodes the state of a run; `None` unless this version wrote it for this definition.
pub fn decode(mut bytes: &[u8], definition: Arc<Definition>) -> Option<Run> {
    let head: Head = read(&mut bytes)?;
    if head.version != VERSION || head.started.definition_hash != definition.hash {
        return None;
    }
    let body: Body = read(&mut bytes)?;
    let steps: Vec<StepState> = read(&mut bytes)?;
    let seen = body.seen.read(&steps)?;
    let mut run = Run {
        args: args_of(&head.started),
        id: head.id,
        definition,
        started: head.started,
        version: body.version,
        tip: body.tip,
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
        history: body.history,
        clock: body.clock,
        seen,
        answers: body.answers,
        index: Index::default(),
    };
    if !bytes.is_empty() || !is_consistent(&run) {
        return None;
    }
    for fan_out in run.steps.iter_mut().filter_map(|state| state.fan_out.as_deref_mut()) {
        fan_out.recount();
    }
    run.index = run.reindex();
    Some(run)
}

/// The id of the run of a snapshot, and what the run was started with: enough to find the
/// definition that [`decode`] needs.
pub fn started(mut bytes: &[u8]) -> Option<(RunId, Arc<RunStarted>)> {
    let head: Head = read(&mut bytes)?;
    (head.version == VERSION).then_some((head.id, head.started))
}

fn write(out: &mut Vec<u8>, piece: &impl Serialize) {
    rmp_serde::encode::write(out, piece).expect("plain data is always written to memory");
}

/// Reads one piece and advances to the next.
fn read<T: DeserializeOwned>(bytes: &mut &[u8]) -> Option<T> {
    rmp_serde::decode::from_read(bytes).ok()
}

/// Whether every step, instance and approval that the state refers to exists.
fn is_consistent(run: &Run) -> bool {
    let count = run.definition.plan.steps.len();
    let is_step = |step: u32| (step as usize) < count;
    let requested = |id: ApprovalId| run.approvals.contains_key(&id);
    run.steps.len() == count
        && run.writers.iter().all(|step| is_step(*step))
        && run.halted_by.is_none_or(|at| run.get(at).is_some())
        && run.clock.since_ms.is_none_or(|since_ms| since_ms <= TIME_MS_MAX)
        && run.steps.iter().all(has_plain_instances)
        && run.all().all(|(_, state)| state.phase.approval().is_none_or(requested))
        && run.all().all(|(_, state)| state.granted.is_none_or(requested))
        && run.open.keys().all(|(at, _)| is_step(at.step))
        && run.approvals.values().all(|approval| {
            // A closed approval may refer to an instance that was invalidated.
            let open = approval.resolution.is_none();
            is_step(approval.at.step)
                && (!open || run.get(approval.at).is_some())
                && approval.requested_at_ms <= TIME_MS_MAX
        })
}

/// Whether a fan-out has one instance for each item, without fan-outs of their own.
fn has_plain_instances(state: &StepState) -> bool {
    state.fan_out.as_ref().is_none_or(|fan_out| {
        fan_out.items.len() == fan_out.instances.len()
            && fan_out.instances.iter().all(|one| one.fan_out.is_none())
    })
}
