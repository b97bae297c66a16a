//! `sluice approvals list`.

use super::show::object;
use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::approvals::List;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::run::id::ApprovalId;
use sluice_core::run::state::Run;
use sluice_server::service::find;

pub(super) async fn run(args: &List, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let mut open: Vec<(Run, ApprovalId)> = Vec::new();
    for row in find::unfinished(&local).await? {
        let Some(run) = find::load_if_readable(&local, row.run).await? else {
            out.note(&format!("{} cannot be read and is left out", row.run))?;
            continue;
        };
        let asked = run.approvals.iter().filter(|(_, asked)| asked.resolution.is_none());
        let ids: Vec<ApprovalId> = asked.map(|(id, _)| *id).collect();
        open.extend(ids.into_iter().map(|id| (run.clone(), id)));
    }
    local.close().await;
    open.sort_by_key(|(_, id)| *id);
    match args.json.reader() {
        Reader::Program => {
            let data: Vec<Value> = open.iter().map(|(run, id)| object(run, *id)).collect();
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
