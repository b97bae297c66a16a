//! `sluice runs erase`: payloads go, the proof that they were there stays.

use crate::Exit;
use crate::cli::runs::Erase;
use crate::find;
use crate::local::{self, Local};
use crate::out::Out;
use crate::refused::{EVENT_UNKNOWN, RUN_NOT_ENDED, RUN_UNREADABLE, Refused};
use sluice_core::evidence::erasure;
use sluice_core::journal::wire;
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Filter, Frame, Hash, RunRow, Store};
use sluice_core::run::id::RunId;
use sluice_engine::world::SystemClock;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of frames read at once.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Runs read at once.
const PAGE: usize = 1000;

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
    let blobs = unused(&*local.store, run, erased.blobs).await?;
    let node = local.engine.node();
    let erasure = Erasure { run, bodies: erased.bodies, blobs, node, entries };
    if local.store.erase(erasure).await? == Erased::NoFrame {
        let message = format!("{run} changed while it was read");
        return Err(Refused::new(RUN_UNREADABLE, message, "try again").into());
    }
    local.close().await;
    let s = if count == 1 { "" } else { "s" };
    out.print(&format!("{count} payload{s} of {run} erased; its hashes and figures stay\n"))?;
    Ok(Exit::Done)
}

fn not_ended(row: &RunRow) -> Refused {
    let (run, status) = (row.run, row.status);
    let message = format!("{run} has not ended; it is {status}");
    let remedy = format!("what it needs cannot be erased; `sluice runs cancel {run}` ends it");
    Refused::new(RUN_NOT_ENDED, message, remedy)
}

/// What is left of a run.
#[derive(Default)]
struct Left {
    bodies: Vec<(u64, Vec<u8>)>,
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
    for hash in wire::blobs(&frame.body)? {
        let blob = store.blob(hash).await?;
        blobs.extend(blob.map(|body| (hash, body)));
    }
    let erased = wire::erase(&frame.body, which, &blobs)?;
    used.extend(wire::blobs(&erased.body)?);
    if !erased.gone.is_empty() {
        left.gone.extend(erased.gone.iter().map(|(place, hash)| (id(*place), *hash)));
        left.blobs.extend(erased.blobs);
        left.bodies.push((frame.first, erased.body));
    }
    Ok(())
}

/// Those of some blobs that no other run refers to. The store keeps equal bytes
/// once, so every journal has to be looked at; there are seldom any.
async fn unused(
    store: &dyn Store,
    run: RunId,
    mut blobs: BTreeSet<Hash>,
) -> anyhow::Result<Vec<Hash>> {
    let mut filter = Filter { limit: PAGE, ..Filter::default() };
    while !blobs.is_empty() {
        let rows = store.list(filter.clone()).await?;
        let Some(last) = rows.last() else { break };
        filter.before = Some(last.run);
        for other in rows.iter().map(|row| row.run).filter(|other| *other != run) {
            let mut after = 0;
            loop {
                let frames = store.frames(other, after, PAGE_BYTES).await?;
                let Some(last) = frames.last() else { break };
                after = last.first + u64::from(last.count) - 1;
                for frame in &frames {
                    for hash in wire::blobs(&frame.body)? {
                        blobs.remove(&hash);
                    }
                }
            }
        }
    }
    Ok(blobs.into_iter().collect())
}
