//! Removes streamed parts of answers from journals; the complete answers stay.

use super::erase::{changed, not_ended, unreadable};
use super::{Service, find, unused};
use crate::refused::ServiceResult;
use sluice_core::evidence::elision::{self, Left};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::wire;
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Filter, RunRow};
use sluice_engine::world::SystemClock;
use std::collections::BTreeSet;

/// Bytes of frames per query.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Runs per query.
const PAGE: usize = 1000;
/// Approximate size of stream deltas that one write replaces; each write has an audit entry.
const LEFT_BYTES: usize = 8 * 1024 * 1024;

/// Selects the runs whose parts are removed.
#[derive(Debug, Clone, Default)]
pub struct ElideRequest {
    /// One run, by a prefix of its id; without it, all runs that are old enough.
    pub run: Option<String>,
    /// Only runs that ended at least this long ago.
    pub older_than_ms: Option<u64>,
    /// The principal that requests it.
    pub actor: String,
    /// The reason, for the audit.
    pub reason: String,
}

/// How much was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ElidedCounts {
    /// Number of parts.
    pub parts: u64,
    /// Number of runs they belonged to.
    pub runs: u64,
}

/// Removes the parts of the selected runs.
pub async fn elide(service: &Service, request: &ElideRequest) -> ServiceResult<ElidedCounts> {
    let ended_by_ms =
        request.older_than_ms.map(|age_ms| SystemClock.now_ms().saturating_sub(age_ms));
    let mut gone = ElidedCounts::default();
    if let Some(text) = &request.run {
        let row = find::run(service, text).await?;
        if !row.status.is_terminal() {
            return Err(not_ended(&row).into());
        }
        if is_old(&row, ended_by_ms) {
            gone.parts = elide_run(service, row.run, request).await?;
            gone.runs = u64::from(gone.parts > 0);
        }
        return Ok(gone);
    }
    let mut filter = Filter { limit: PAGE, ..Filter::default() };
    loop {
        let rows = service.store.list(filter.clone()).await?;
        let Some(last) = rows.last() else { return Ok(gone) };
        filter.before = Some(last.run);
        for row in rows.iter().filter(|row| is_old(row, ended_by_ms)) {
            let parts = elide_run(service, row.run, request).await?;
            gone.runs += u64::from(parts > 0);
            gone.parts += parts;
        }
    }
}

/// Whether a run ended, and long enough ago.
fn is_old(row: &RunRow, ended_by_ms: Option<u64>) -> bool {
    let old = |ended_ms: u64| ended_by_ms.is_none_or(|by_ms| ended_ms <= by_ms);
    row.status.is_terminal() && row.ended_at_ms.is_some_and(old)
}

/// Frames whose parts are removed in one write.
#[derive(Default)]
struct Batch {
    besides: Vec<(u64, Vec<u8>)>,
    left: Left,
    bytes: usize,
}

/// Removes all parts of a run. Returns their number.
async fn elide_run(service: &Service, run: RunId, request: &ElideRequest) -> ServiceResult<u64> {
    let store = &*service.store;
    let (mut batch, mut count, mut after) = (Batch::default(), 0, 0);
    let (mut dropped, mut used) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let frames = store.frames(run, after, PAGE_BYTES).await?;
        let Some(last) = frames.last() else { break };
        after = last.first + u64::from(last.count) - 1;
        for frame in &frames {
            let Some(elided) = wire::elide(frame).map_err(unreadable(run))? else {
                used.extend(wire::blobs_of(frame).map_err(unreadable(run))?);
                continue;
            };
            if batch.bytes > LEFT_BYTES {
                write(service, run, request, std::mem::take(&mut batch), Vec::new()).await?;
            }
            used.extend(wire::blobs(&frame.body).map_err(unreadable(run))?);
            dropped.extend(elided.blobs);
            count += elided.gone.len() as u64;
            elided.gone.iter().for_each(|(id, stand_in)| batch.left.add(*id, stand_in));
            batch.bytes += elided.beside.len();
            batch.besides.push((frame.first, elided.beside));
        }
    }
    let blobs: BTreeSet<Hash> = dropped.difference(&used).copied().collect();
    let blobs = unused::unreferenced(store, run, blobs).await?;
    write(service, run, request, batch, blobs).await?;
    Ok(count)
}

async fn write(
    service: &Service,
    run: RunId,
    request: &ElideRequest,
    batch: Batch,
    blobs: Vec<Hash>,
) -> ServiceResult<()> {
    let Some(elision) = batch.left.end() else { return Ok(()) };
    let now_ms = SystemClock.now_ms();
    let entries = vec![elision::entry(run, now_ms, &request.actor, &request.reason, &elision)];
    let (bodies, node) = (Vec::new(), service.engine.node());
    let erasure = Erasure { run, bodies, besides: batch.besides, blobs, node, entries };
    if service.store.erase(erasure).await? == Erased::NoFrame {
        return Err(changed(run).into());
    }
    Ok(())
}
