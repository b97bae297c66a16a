//! `sluice cost`.

use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::cost::Cost;
use crate::out::{Layout, Out};
use crate::table::Table;
use jiff::tz::TimeZone;
use serde_json::json;
use sluice_core::cost::{Bucket, By};
use sluice_core::money::Money;
use sluice_server::service::cost::CostShown;
use sluice_server::service::registry::now_ms;

pub(super) async fn run(args: &Cost, out: &mut Out) -> anyhow::Result<Exit> {
    let until_ms = now_ms().saturating_add(1);
    let since_ms = until_ms.saturating_sub(args.since);
    let by: Vec<&str> = args.by.iter().map(|one| one.as_str()).collect();
    let mut query = vec![
        ("bucket", args.bucket.to_string()),
        ("since_ms", since_ms.to_string()),
        ("until_ms", until_ms.to_string()),
    ];
    if !by.is_empty() {
        query.push(("by", by.join(",")));
    }
    let client = backend::read(&args.target.data).await?;
    let rows: Vec<CostShown> = client.get(&["cost"], &query).await?.read()?;
    client.close().await;
    match args.target.output() {
        OutputFormat::Json => {
            out.json(Layout::Line, &json!({"data": rows, "meta": {"next_cursor": null}}))?;
        }
        OutputFormat::Text if rows.is_empty() => out.note("nothing has cost anything")?,
        OutputFormat::Text => out.print(&table(args, &rows))?,
    }
    Ok(Exit::Done)
}

fn table(args: &Cost, rows: &[CostShown]) -> String {
    let by = [
        (By::Agent, "AGENT", (|row| row.agent.clone()) as fn(&CostShown) -> Option<String>),
        (By::Workflow, "WORKFLOW", |row| row.workflow.clone()),
        (By::Model, "MODEL", |row| row.model.clone()),
    ];
    let by = by.into_iter().filter(|(one, ..)| args.by.contains(one)).collect::<Vec<_>>();
    let mut headings = vec!["FROM (UTC)"];
    headings.extend(by.iter().map(|(_, heading, _)| heading));
    headings.extend(["COST", "TOKENS IN", "TOKENS OUT", "STEPS"]);
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells = vec![from(args.bucket, amount::ms(&row.start).unwrap_or(0))];
        let word = |word: Option<String>| word.filter(|word| !word.is_empty());
        cells.extend(by.iter().map(|(.., of)| word(of(row)).unwrap_or_else(|| "-".to_owned())));
        let cost = Money::from_usd(&row.cost).unwrap_or(Money::ZERO);
        cells.push(format!("${cost}"));
        cells.extend([row.input_tokens, row.output_tokens, row.steps].map(|one| one.to_string()));
        table.row(cells);
    }
    table.draw()
}

/// The start of a bucket, as precisely as its length requires, in UTC.
fn from(bucket: Bucket, start_ms: u64) -> String {
    let moment = amount::moment_in(start_ms, &TimeZone::UTC);
    let length = match bucket {
        Bucket::Hour => 16,
        Bucket::Day | Bucket::Week => 10,
        Bucket::Month => 7,
    };
    moment[..length].to_owned()
}
