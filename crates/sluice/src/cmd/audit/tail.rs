//! `sluice audit tail`: what happened, and what happens.
//!
//! Entries come from the audit, facts of runs from their journals: nothing is
//! written twice, and what is shown is what was sealed.

use super::fact::cells;
use crate::Exit;
use crate::cli::Reader;
use crate::cli::audit::Tail;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use sluice_server::service::audit::fact::Fact;
use sluice_server::service::audit::{self, Cursor, Wanted};
use std::time::Duration;

/// How often is looked again.
const LOOK_MS: u64 = 300;

pub(super) async fn run(args: &Tail, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let wanted = Wanted { categories: args.category.clone(), ..Wanted::default() };
    let (facts, after) = audit::newest(&local, &wanted, usize::from(args.limit)).await?;
    show(&facts, args, out)?;
    if args.follow {
        follow(&local, &wanted, after, args, out).await?;
    }
    local.close().await;
    Ok(Exit::Done)
}

/// Goes on until interrupted.
async fn follow(
    local: &Local,
    wanted: &Wanted,
    mut after: Cursor,
    args: &Tail,
    out: &mut Out,
) -> anyhow::Result<()> {
    loop {
        out.flush()?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
            () = tokio::time::sleep(Duration::from_millis(LOOK_MS)) => {}
        }
        let (facts, next) = audit::page(local, after, wanted, 1).await?;
        after = next;
        show(&facts, args, out)?;
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
                table.row(cells(fact));
            }
            out.print(&table.draw())?;
        }
    }
    Ok(())
}
