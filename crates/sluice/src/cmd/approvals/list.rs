//! `sluice approvals list`.

use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::approvals::ApprovalsList;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::json;

/// Most approvals that are listed.
const ROWS_MAX: usize = 10_000;

pub(super) async fn run(args: &ApprovalsList, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let open = client.list(&["approvals"], ROWS_MAX).await?;
    client.close().await;
    match args.target.output() {
        OutputFormat::Json => {
            out.json(Layout::Line, &json!({"data": open, "meta": {"next_cursor": null}}))?;
        }
        OutputFormat::Text if open.is_empty() => out.note("no approval is pending")?,
        OutputFormat::Text => {
            let mut table = Table::new(&["APPROVAL", "WORKFLOW", "STEP", "REQUESTED", "ABOUT"]);
            for approval in &open {
                let text = |name: &str| approval[name].as_str().unwrap_or_default().to_owned();
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
