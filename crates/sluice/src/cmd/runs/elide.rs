//! `sluice runs elide`: what steps said on the way to their answers goes.

use super::erase::not_ended;
use super::unused;
use crate::Exit;
use crate::cli::runs::Elide;
use crate::local::{self, Local};
use crate::out::Out;
use sluice_core::evidence::elision::{self, Left};
use sluice_core::journal::wire;
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Filter, Hash, RunRow};
use sluice_core::run::id::RunId;
use sluice_engine::world::SystemClock;
use sluice_server::refused::{RUN_UNREADABLE, Refused};
use sluice_server::service::find;
use std::collections::BTreeSet;

/// Bytes of frames read at once.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Runs read at once.
const PAGE: usize = 1000;
/// Bytes that one write leaves beside frames, about; each has an entry of its own.
const LEFT_BYTES: usize = 8 * 1024 * 1024;

pub(super) async fn run(args: &Elide, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let ended_by_ms = args.older_than.map(|age_ms| SystemClock.now_ms().saturating_sub(age_ms));
    let (mut runs, mut parts) = (0, 0);
    if let Some(text) = &args.run {
        let row = find::run(&local, text).await?;
        if !row.status.is_terminal() {
            return Err(not_ended(&row).into());
        }
        if is_old(&row, ended_by_ms) {
            parts = elide(&local, row.run, args).await?;
            runs = u64::from(parts > 0);
        }
    } else {
        let mut filter = Filter { limit: PAGE, ..Filter::default() };
        loop {
            let rows = local.store.list(filter.clone()).await?;
            let Some(last) = rows.last() else { break };
            filter.before = Some(last.run);
            for row in rows.iter().filter(|row| is_old(row, ended_by_ms)) {
                let gone = elide(&local, row.run, args).await?;
                runs += u64::from(gone > 0);
                parts += gone;
            }
        }
    }
    local.close().await;
    let text = match (parts, runs) {
        (0, _) => "nothing was left to elide\n".to_owned(),
        (1, _) => "1 part of an answer elided; the answer stays\n".to_owned(),
        (_, 1) => format!("{parts} parts of answers of 1 run elided; the answers stay\n"),
        _ => format!("{parts} parts of answers of {runs} runs elided; the answers stay\n"),
    };
    out.print(&text)?;
    Ok(Exit::Done)
}

/// Whether a run has ended, and long enough ago.
fn is_old(row: &RunRow, ended_by_ms: Option<u64>) -> bool {
    let old = |ended_ms: u64| ended_by_ms.is_none_or(|by_ms| ended_ms <= by_ms);
    row.status.is_terminal() && row.ended_at_ms.is_some_and(old)
}

/// Frames whose parts go in one write.
#[derive(Default)]
struct Batch {
    besides: Vec<(u64, Vec<u8>)>,
    left: Left,
    bytes: usize,
}

/// Elides all there is of a run. Answers how many parts went.
async fn elide(local: &Local, run: RunId, args: &Elide) -> anyhow::Result<u64> {
    let store = &*local.store;
    let (mut batch, mut count, mut after) = (Batch::default(), 0, 0);
    let (mut dropped, mut used) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let frames = store.frames(run, after, PAGE_BYTES).await?;
        let Some(last) = frames.last() else { break };
        after = last.first + u64::from(last.count) - 1;
        for frame in &frames {
            let Some(elided) = wire::elide(frame)? else {
                used.extend(wire::blobs_of(frame)?);
                continue;
            };
            if batch.bytes > LEFT_BYTES {
                write(local, run, args, std::mem::take(&mut batch), Vec::new()).await?;
            }
            used.extend(wire::blobs(&frame.body)?);
            dropped.extend(elided.blobs);
            count += elided.gone.len() as u64;
            elided.gone.iter().for_each(|(id, stand_in)| batch.left.add(*id, stand_in));
            batch.bytes += elided.beside.len();
            batch.besides.push((frame.first, elided.beside));
        }
    }
    let blobs: BTreeSet<Hash> = dropped.difference(&used).copied().collect();
    let blobs = unused::of(store, run, blobs).await?;
    write(local, run, args, batch, blobs).await?;
    Ok(count)
}

async fn write(
    local: &Local,
    run: RunId,
    args: &Elide,
    batch: Batch,
    blobs: Vec<Hash>,
) -> anyhow::Result<()> {
    let Some(elision) = batch.left.end() else { return Ok(()) };
    let (now_ms, actor) = (SystemClock.now_ms(), local::who(&args.name));
    let entries = vec![elision::entry(run, now_ms, &actor, &args.reason, &elision)];
    let (bodies, node) = (Vec::new(), local.engine.node());
    let erasure = Erasure { run, bodies, besides: batch.besides, blobs, node, entries };
    if local.store.erase(erasure).await? == Erased::NoFrame {
        let message = format!("{run} changed while it was read");
        return Err(Refused::new(RUN_UNREADABLE, message, "try again").into());
    }
    Ok(())
}
