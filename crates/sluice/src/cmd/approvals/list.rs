//! `sluice approvals list`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::approvals::List;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_server::service::approvals;

pub(super) async fn run(args: &List, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let (open, unreadable) = approvals::open(&local).await?;
    for run in unreadable {
        out.note(&format!("{run} cannot be read and is left out"))?;
    }
    local.close().await;
    match args.json.reader() {
        Reader::Program => {
            let data: Vec<Value> =
                open.iter().map(|(run, id)| approvals::shown(run, *id)).collect();
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        }
        Reader::Person if open.is_empty() => out.note("nothing waits for an answer")?,
        Reader::Person => {
            let mut table = Table::new(&["APPROVAL", "WORKFLOW", "STEP", "ASKED", "ABOUT"]);
            for (run, id) in &open {
                let asked = &run.approvals[id];
                table.row([
                    id.to_string(),
                    run.started.workflow.clone(),
                    run.name(asked.at),
                    amount::moment(asked.requested_at_ms),
                    asked.summary.clone(),
                ]);
            }
            out.print(&table.draw())?;
        }
    }
    Ok(Exit::Done)
}
