//! `sluice audit tail`: what happened, and what happens.
//!
//! Entries come from the audit, facts of runs from their journals: nothing is
//! written twice, and what is shown is what was sealed.

use super::fact::Fact;
use crate::Exit;
use crate::cli::Reader;
use crate::cli::audit::Tail;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use sluice_core::port::store::{Filter, Store};
use sluice_core::run::id::RunId;
use std::collections::BTreeMap;
use std::time::Duration;

/// Runs that are looked at: the newest.
const RUNS_MAX: usize = 1000;
/// Entries read at once.
const PAGE: usize = 1000;
/// Bytes of frames read at once.
const PAGE_BYTES: usize = 1024 * 1024;
/// How often is looked again.
const LOOK_MS: u64 = 300;

pub(super) async fn run(args: &Tail, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let mut seen = Seen::default();
    let mut facts = seen.look(&*local.store).await?;
    facts.retain(|fact| fact.is_of(&args.category));
    let newest = facts.len().saturating_sub(usize::from(args.limit));
    show(&facts[newest..], args, out)?;
    if args.follow {
        follow(&*local.store, &mut seen, args, out).await?;
    }
    local.close().await;
    Ok(Exit::Done)
}

/// Goes on until interrupted.
async fn follow(
    store: &dyn Store,
    seen: &mut Seen,
    args: &Tail,
    out: &mut Out,
) -> anyhow::Result<()> {
    loop {
        out.flush()?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
            () = tokio::time::sleep(Duration::from_millis(LOOK_MS)) => {}
        }
        let mut facts = seen.look(store).await?;
        facts.retain(|fact| fact.is_of(&args.category));
        show(&facts, args, out)?;
    }
}

/// How far everything was read.
#[derive(Default)]
struct Seen {
    entries: u64,
    runs: BTreeMap<RunId, u64>,
}

impl Seen {
    /// What came since the last look, oldest first.
    async fn look(&mut self, store: &dyn Store) -> anyhow::Result<Vec<Fact>> {
        let mut facts = Vec::new();
        loop {
            let page = store.entries(self.entries, PAGE).await?;
            let Some(last) = page.last() else { break };
            self.entries = last.place;
            facts.extend(page.iter().filter_map(Fact::of_entry));
        }
        let filter = Filter { limit: RUNS_MAX, ..Filter::default() };
        for row in store.list(filter).await? {
            let after = self.runs.entry(row.run).or_default();
            loop {
                let frames = store.frames(row.run, *after, PAGE_BYTES).await?;
                let Some(last) = frames.last() else { break };
                let upto = last.first + u64::from(last.count) - 1;
                for frame in &frames {
                    facts.extend(Fact::of_frame(row.run, frame, *after));
                }
                *after = upto;
            }
        }
        facts.sort_by_key(|fact| fact.at_ms);
        Ok(facts)
    }
}

fn show(facts: &[Fact], args: &Tail, out: &mut Out) -> anyhow::Result<()> {
    match args.json.reader() {
        Reader::Program => {
            for fact in facts {
                out.json(Layout::Line, &fact.object())?;
            }
        }
        Reader::Person if facts.is_empty() => {}
        Reader::Person => {
            let mut table = Table::plain();
            for fact in facts {
                table.row(fact.cells());
            }
            out.print(&table.draw())?;
        }
    }
    Ok(())
}
