//! `sluice audit tail`: prints audit entries and events of runs.
//!
//! Entries come from the audit log, events from the journals of runs, which seals cover.

use super::fact::cells;
use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::audit::Tail;
use crate::client::Client;
use crate::out::{Layout, Out};
use crate::table::Table;
use anyhow::Context as _;
use serde_json::Value;
use sluice_server::limits::PAGE_MAX;
use std::time::Duration;

const POLL_MS: u64 = 300;

pub(super) async fn run(args: &Tail, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let limit = args.limit.min(PAGE_MAX).to_string();
    let query = vec![("newest", "true".to_owned()), ("limit", limit)];
    let (facts, after) = page(&client, args, query).await?;
    show(&facts, args, out)?;
    if args.follow {
        follow(&client, args, after, out).await?;
    }
    client.close().await;
    Ok(Exit::Done)
}

/// Polls until interrupted.
async fn follow(
    client: &Client,
    args: &Tail,
    mut after: String,
    out: &mut Out,
) -> anyhow::Result<()> {
    loop {
        out.flush()?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
            () = tokio::time::sleep(Duration::from_millis(POLL_MS)) => {}
        }
        let (facts, next) = page(client, args, vec![("cursor", after)]).await?;
        after = next;
        show(&facts, args, out)?;
    }
}

/// A page of facts, and the cursor of the next one.
async fn page(
    client: &Client,
    args: &Tail,
    mut query: Vec<(&str, String)>,
) -> anyhow::Result<(Vec<Value>, String)> {
    if !args.category.is_empty() {
        query.push(("category", args.category.join(",")));
    }
    let answer = client.get(&["audit"], &query).await?;
    let next = answer.next_cursor.clone().context("the server sends no cursor")?;
    Ok((answer.read()?, next))
}

fn show(facts: &[Value], args: &Tail, out: &mut Out) -> anyhow::Result<()> {
    match args.target.output() {
        OutputFormat::Json => {
            for fact in facts {
                out.json(Layout::Line, fact)?;
            }
        }
        OutputFormat::Text if facts.is_empty() => {}
        OutputFormat::Text => {
            let mut table = Table::plain();
            for fact in facts {
                table.row(cells(fact));
            }
            out.print(&table.draw())?;
        }
    }
    Ok(())
}
