//! `sluice approvals list`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::approvals::List;
use crate::desk::Desk;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_server::service::approvals;

/// Most questions that a server is asked for.
const ROWS_MAX: usize = 10_000;

pub(super) async fn run(args: &List, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::read(&args.data).await?;
    let open: Vec<Value> = match &desk {
        Desk::Here(local) => {
            let (open, unreadable) = approvals::open(local).await?;
            for run in unreadable {
                out.note(&format!("{run} cannot be read and is left out"))?;
            }
            open.iter().map(|(run, id)| approvals::shown(run, *id)).collect()
        }
        Desk::There(client) => client.list(&["approvals"], ROWS_MAX).await?,
    };
    desk.close().await;
    match args.json.reader() {
        Reader::Program => {
            out.json(Layout::Line, &json!({"data": open, "meta": {"next_cursor": null}}))?;
        }
        Reader::Person if open.is_empty() => out.note("nothing waits for an answer")?,
        Reader::Person => {
            let mut table = Table::new(&["APPROVAL", "WORKFLOW", "STEP", "ASKED", "ABOUT"]);
            for asked in &open {
                let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
                let at = amount::ms(&text("requested_at")).map(amount::moment);
                let at = at.unwrap_or_default();
                let (id, workflow, step) = (text("approval_id"), text("workflow"), text("node_id"));
                table.row([id, workflow, step, at, text("summary")]);
            }
            out.print(&table.draw())?;
        }
    }
    Ok(Exit::Done)
}
