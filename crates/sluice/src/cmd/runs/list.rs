//! `sluice runs list`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::runs::List;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::port::store::{Filter, RunRow};
use sluice_server::service::find;
use sluice_server::service::runs::RunShown;

pub(super) async fn run(args: &List, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let before = match &args.before {
        Some(text) => Some(find::run(&local, text).await?.run),
        None => None,
    };
    let filter = Filter {
        statuses: args.status.clone(),
        workflow: args.workflow.clone(),
        before,
        limit: usize::from(args.limit),
        ..Filter::default()
    };
    let rows = local.store.list(filter).await?;
    local.close().await;
    let full = rows.len() == usize::from(args.limit);
    let next = rows.last().filter(|_| full).map(|row| row.run.to_string());
    match args.json.reader() {
        Reader::Program => {
            let data: Vec<Value> = rows.iter().map(|row| json!(RunShown::from(row))).collect();
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": next}}))?;
        }
        Reader::Person if rows.is_empty() => out.note("no runs")?,
        Reader::Person => {
            out.print(&table(&rows))?;
            if let Some(next) = next {
                out.note(&format!("there may be more: --before {next}"))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn table(rows: &[RunRow]) -> String {
    let mut table = Table::new(&["RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK", ""]);
    for row in rows {
        let took = row.ended_at_ms.map(|end| amount::time(end.saturating_sub(row.started_at_ms)));
        let note = match (row.parent, row.owner) {
            (Some(_), _) => "child",
            (None, Some(_)) => "at work",
            (None, None) => "",
        };
        let version = row.version.map(|version| format!("@{version}")).unwrap_or_default();
        table.row([
            row.run.to_string(),
            format!("{}{version}", row.workflow),
            row.status.to_string(),
            amount::moment(row.started_at_ms),
            took.unwrap_or_default(),
            note.to_owned(),
        ]);
    }
    table.draw()
}
