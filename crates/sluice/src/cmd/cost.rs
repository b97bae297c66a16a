//! `sluice cost`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::cost::Cost;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::json;
use sluice_core::cost::{Bucket, By, Row};
use sluice_server::service::cost::{self, Asked, CostShown};
use sluice_server::service::registry::now_ms;

pub(super) async fn run(args: &Cost, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let until_ms = now_ms().saturating_add(1);
    let since_ms = until_ms.saturating_sub(args.since);
    let asked = Asked { bucket: args.bucket, by: args.by.clone(), since_ms, until_ms };
    let rows = cost::rows(&local, &asked).await;
    local.close().await;
    let rows = rows?;
    match args.json.reader() {
        Reader::Program => {
            let data: Vec<CostShown> = rows.iter().map(CostShown::from).collect();
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        }
        Reader::Person if rows.is_empty() => out.note("nothing has cost anything")?,
        Reader::Person => out.print(&table(args, &rows))?,
    }
    Ok(Exit::Done)
}

fn table(args: &Cost, rows: &[Row]) -> String {
    let by = [
        (By::Agent, "AGENT", (|row| row.agent.clone()) as fn(&Row) -> Option<String>),
        (By::Workflow, "WORKFLOW", |row| row.workflow.clone()),
        (By::Model, "MODEL", |row| row.model.clone()),
    ];
    let by = by.into_iter().filter(|(one, ..)| args.by.contains(one)).collect::<Vec<_>>();
    let mut headings = vec!["FROM"];
    headings.extend(by.iter().map(|(_, heading, _)| heading));
    headings.extend(["COST", "TOKENS IN", "TOKENS OUT", "STEPS"]);
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells = vec![from(args.bucket, row.start_ms)];
        let word = |word: Option<String>| word.filter(|word| !word.is_empty());
        cells.extend(by.iter().map(|(.., of)| word(of(row)).unwrap_or_else(|| "-".to_owned())));
        cells.push(format!("${}", row.cost));
        cells.extend([row.input_tokens, row.output_tokens, row.steps].map(|one| one.to_string()));
        table.row(cells);
    }
    table.draw()
}

/// When a row's time began, as exactly as it matters.
fn from(bucket: Bucket, start_ms: u64) -> String {
    let moment = amount::moment(start_ms);
    let length = match bucket {
        Bucket::Hour => 16,
        Bucket::Day | Bucket::Week => 10,
        Bucket::Month => 7,
    };
    moment[..length].to_owned()
}
