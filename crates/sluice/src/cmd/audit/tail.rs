//! `sluice audit tail`: what happened, and what happens.
//!
//! Entries come from the audit, facts of runs from their journals: nothing is
//! written twice, and what is shown is what was sealed.

use super::fact::cells;
use crate::Exit;
use crate::cli::Reader;
use crate::cli::audit::Tail;
use crate::client::Client;
use crate::desk::Desk;
use crate::out::{Layout, Out};
use crate::table::Table;
use anyhow::Context as _;
use serde_json::Value;
use sluice_server::limits::PAGE_MAX;
use sluice_server::service::audit::fact::Fact;
use sluice_server::service::audit::{self, Cursor, Wanted};
use std::time::Duration;

/// How often is looked again.
const LOOK_MS: u64 = 300;

pub(super) async fn run(args: &Tail, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::read(&args.data).await?;
    let (facts, after) = match &desk {
        Desk::Here(local) => {
            let (facts, next) = audit::newest(local, &wanted(args), args.limit.into()).await?;
            (objects(&facts), next.to_string())
        }
        Desk::There(client) => {
            let limit = args.limit.min(PAGE_MAX).to_string();
            let query = vec![("newest", "true".to_owned()), ("limit", limit)];
            page(client, args, query).await?
        }
    };
    show(&facts, args, out)?;
    if args.follow {
        follow(&desk, args, after, out).await?;
    }
    desk.close().await;
    Ok(Exit::Done)
}

/// Goes on until interrupted.
async fn follow(desk: &Desk, args: &Tail, mut after: String, out: &mut Out) -> anyhow::Result<()> {
    loop {
        out.flush()?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
            () = tokio::time::sleep(Duration::from_millis(LOOK_MS)) => {}
        }
        let (facts, next) = more(desk, args, &after).await?;
        after = next;
        show(&facts, args, out)?;
    }
}

fn wanted(args: &Tail) -> Wanted {
    Wanted { categories: args.category.clone(), ..Wanted::default() }
}

fn objects(facts: &[Fact]) -> Vec<Value> {
    facts.iter().map(Fact::object).collect()
}

/// What happened after a place, and the next place.
async fn more(desk: &Desk, args: &Tail, after: &str) -> anyhow::Result<(Vec<Value>, String)> {
    match desk {
        Desk::Here(local) => {
            let after = Cursor::parse(after).context("a cursor is read back")?;
            let (facts, next) = audit::page(local, after, &wanted(args), 1).await?;
            Ok((objects(&facts), next.to_string()))
        }
        Desk::There(client) => page(client, args, vec![("cursor", after.to_owned())]).await,
    }
}

async fn page(
    client: &Client,
    args: &Tail,
    mut query: Vec<(&str, String)>,
) -> anyhow::Result<(Vec<Value>, String)> {
    if !args.category.is_empty() {
        query.push(("category", args.category.join(",")));
    }
    let answer = client.get(&["audit"], &query).await?;
    let next = answer.next_cursor.clone().context("the server says no cursor")?;
    Ok((answer.read()?, next))
}

fn show(facts: &[Value], args: &Tail, out: &mut Out) -> anyhow::Result<()> {
    match args.json.reader() {
        Reader::Program => {
            for fact in facts {
                out.json(Layout::Line, fact)?;
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
