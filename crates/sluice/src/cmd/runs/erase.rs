//! `sluice runs erase`: payloads go, the proof that they were there stays.

use super::unused;
use crate::Exit;
use crate::cli::runs::Erase;
use crate::local::{self, Local};
use crate::out::Out;
use sluice_core::evidence::erasure;
use sluice_core::journal::wire;
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Frame, Hash, RunRow, Store};
use sluice_core::run::id::RunId;
use sluice_engine::world::SystemClock;
use sluice_server::refused::{EVENT_UNKNOWN, RUN_NOT_ENDED, RUN_UNREADABLE, Refused};
use sluice_server::service::find;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of frames read at once.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

pub(super) async fn run(args: &Erase, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.told.data).await?;
    let row = find::run(&local, &args.told.run.id).await?;
    if !row.status.is_terminal() {
        return Err(not_ended(&row).into());
    }
    let run = row.run;
    let erased = erase(&*local.store, run, &args.event).await?;
    let count = erased.gone.len();
    if count == 0 {
        out.print(&format!("nothing of {run} was left to erase\n"))?;
        local.close().await;
        return Ok(Exit::Done);
    }
    let actor = local::who(&args.told.name);
    let now_ms = SystemClock.now_ms();
    let entries = erasure::entries(run, now_ms, &actor, &args.reason, &erased.gone);
    let blobs = unused::of(&*local.store, run, erased.blobs).await?;
    let node = local.engine.node();
    let Left { bodies, besides, .. } = erased;
    let erasure = Erasure { run, bodies, besides, blobs, node, entries };
    if local.store.erase(erasure).await? == Erased::NoFrame {
        let message = format!("{run} changed while it was read");
        return Err(Refused::new(RUN_UNREADABLE, message, "try again").into());
    }
    local.close().await;
    let s = if count == 1 { "" } else { "s" };
    out.print(&format!("{count} payload{s} of {run} erased; its hashes and figures stay\n"))?;
    Ok(Exit::Done)
}

pub(super) fn not_ended(row: &RunRow) -> Refused {
    let (run, status) = (row.run, row.status);
    let message = format!("{run} has not ended; it is {status}");
    let remedy = format!("what it needs cannot be erased; `sluice runs cancel {run}` ends it");
    Refused::new(RUN_NOT_ENDED, message, remedy)
}

/// What is left of a run.
#[derive(Default)]
struct Left {
    bodies: Vec<(u64, Vec<u8>)>,
    besides: Vec<(u64, Vec<u8>)>,
    gone: Vec<(u64, Hash)>,
    /// What went with the payloads and nothing else of the run refers to.
    blobs: BTreeSet<Hash>,
}

/// Takes payloads out of a run's frames: of some events, or of all.
async fn erase(store: &dyn Store, run: RunId, events: &[u64]) -> anyhow::Result<Left> {
    let mut left = Left::default();
    let mut used = BTreeSet::new();
    let mut after = 0;
    loop {
        let frames = store.frames(run, after, PAGE_BYTES).await?;
        let Some(last) = frames.last() else { break };
        after = last.first + u64::from(last.count) - 1;
        for frame in frames {
            one(store, &frame, events, &mut left, &mut used).await?;
        }
    }
    if let Some(event) = events.iter().find(|event| **event == 0 || **event > after) {
        let message = format!("{run} has no event {event}; it has {after}");
        let remedy = format!("`sluice runs export {run}` shows them");
        return Err(Refused::new(EVENT_UNKNOWN, message, remedy).into());
    }
    left.blobs.retain(|hash| !used.contains(hash));
    Ok(left)
}

async fn one(
    store: &dyn Store,
    frame: &Frame,
    events: &[u64],
    left: &mut Left,
    used: &mut BTreeSet<Hash>,
) -> anyhow::Result<()> {
    let id = |place: usize| frame.first + place as u64;
    let which = |place: usize| events.is_empty() || events.contains(&id(place));
    let mut blobs = BTreeMap::new();
    for hash in wire::blobs_of(frame)? {
        let blob = store.blob(hash).await?;
        blobs.extend(blob.map(|body| (hash, body)));
    }
    let erased = wire::erase(frame, which, &blobs)?;
    let after = Frame { body: erased.body, beside: erased.beside, ..frame.clone() };
    used.extend(wire::blobs_of(&after)?);
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
