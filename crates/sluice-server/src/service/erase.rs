//! Erases payloads of journals; their hashes stay as evidence.

use super::{Service, unused};
use crate::refused::{
    DATA_UNUSABLE, EVENT_UNKNOWN, Failure, RUN_NOT_ENDED, RUN_UNREADABLE, Refused, ServiceResult,
};
use sluice_core::evidence::erasure;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::wire::{self, WireError};
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Frame, RunRow, Store};
use sluice_engine::world::SystemClock;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of frames per query.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Erases the inputs and outputs of a run that ended: of some events, or of all.
/// Returns the number of erased payloads.
pub async fn erase(
    service: &Service,
    row: &RunRow,
    events: &[u64],
    actor: &str,
    reason: &str,
) -> ServiceResult<usize> {
    if !row.status.is_terminal() {
        return Err(not_ended(row).into());
    }
    let run = row.run;
    if let Some(workspaces) = service.workspaces.as_ref().filter(|_| events.is_empty()) {
        workspaces.remove(run).await.map_err(|error| workspace_stays(run, &error))?;
    }
    let erased = gather(&*service.store, run, events).await?;
    let count = erased.gone.len();
    if count == 0 {
        return Ok(0);
    }
    let entries = erasure::entries(run, SystemClock.now_ms(), actor, reason, &erased.gone);
    let blobs = unused::unreferenced(&*service.store, run, erased.blobs).await?;
    let node = service.engine.node();
    let Residue { bodies, besides, .. } = erased;
    let erasure = Erasure { run, bodies, besides, blobs, node, entries };
    if service.store.erase(erasure).await? == Erased::NoFrame {
        return Err(changed(run).into());
    }
    Ok(count)
}

fn workspace_stays(run: RunId, error: &std::io::Error) -> Refused {
    let message = format!("the workspace of {run} cannot be removed: {error}");
    Refused::new(DATA_UNUSABLE, message, "correct its permissions, then erase again")
}

/// A concurrent change came first.
pub(super) fn changed(run: RunId) -> Refused {
    let message = format!("{run} changed while it was read");
    Refused::new(RUN_UNREADABLE, message, "try again")
}

/// A frame that cannot be decoded.
pub(super) fn unreadable(run: RunId) -> impl Fn(WireError) -> Failure {
    move |error| {
        let message = format!("the journal of {run} cannot be read: {error}");
        Refused::new(
            RUN_UNREADABLE,
            message,
            "nothing was changed; `sluice audit verify` checks the journal",
        )
        .into()
    }
}

pub(super) fn not_ended(row: &RunRow) -> Refused {
    let (run, status) = (row.run, row.status);
    let message = format!("{run} has not ended; it is {status}");
    let remedy = format!("only runs that ended can be erased; `sluice runs cancel {run}` ends it");
    Refused::new(RUN_NOT_ENDED, message, remedy)
}

/// What remains of the frames of a run after erasing.
#[derive(Default)]
struct Residue {
    bodies: Vec<(u64, Vec<u8>)>,
    besides: Vec<(u64, Vec<u8>)>,
    gone: Vec<(u64, Hash)>,
    /// Blobs of erased payloads to which nothing else of the run refers.
    blobs: BTreeSet<Hash>,
}

/// Removes payloads from the frames of a run: of some events, or of all.
async fn gather(store: &dyn Store, run: RunId, events: &[u64]) -> ServiceResult<Residue> {
    let mut left = Residue::default();
    let mut used = BTreeSet::new();
    let mut after = 0;
    loop {
        let frames = store.frames(run, after, PAGE_BYTES).await?;
        let Some(last) = frames.last() else { break };
        after = last.first + u64::from(last.count) - 1;
        for frame in frames {
            erase_frame(store, (run, &frame), events, &mut left, &mut used).await?;
        }
    }
    if let Some(event) = events.iter().find(|event| **event == 0 || **event > after) {
        let message = format!("{run} has no event {event}; it has {after}");
        let remedy = format!("`sluice runs export {run}` lists them");
        return Err(Refused::new(EVENT_UNKNOWN, message, remedy).into());
    }
    left.blobs.retain(|hash| !used.contains(hash));
    Ok(left)
}

async fn erase_frame(
    store: &dyn Store,
    (run, frame): (RunId, &Frame),
    events: &[u64],
    left: &mut Residue,
    used: &mut BTreeSet<Hash>,
) -> ServiceResult<()> {
    let id = |place: usize| frame.first + place as u64;
    let which = |place: usize| events.is_empty() || events.contains(&id(place));
    let mut blobs = BTreeMap::new();
    for hash in wire::blobs_of(frame).map_err(unreadable(run))? {
        let blob = store.blob(hash).await?;
        blobs.extend(blob.map(|body| (hash, body)));
    }
    let erased = wire::erase(frame, which, &blobs).map_err(unreadable(run))?;
    let after = Frame { body: erased.body, beside: erased.beside, ..frame.clone() };
    used.extend(wire::blobs_of(&after).map_err(unreadable(run))?);
    if !erased.gone.is_empty() {
        left.gone.extend(erased.gone.iter().map(|(place, hash)| (id(*place), *hash)));
        left.blobs.extend(erased.blobs);
        if after.beside != frame.beside {
            left.besides.push((frame.first, after.beside));
        }
        left.bodies.push((frame.first, after.body));
    }
    Ok(())
}
