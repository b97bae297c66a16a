//! `sluice runs list`.

use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::runs::RunsList;
use crate::client::Client;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::json;
use sluice_server::limits::PAGE_MAX;
use sluice_server::service::runs::RunShown;

pub(super) async fn run(args: &RunsList, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let (rows, next) = list(&client, args).await?;
    client.close().await;
    match args.target.output() {
        OutputFormat::Json => {
            out.json(Layout::Line, &json!({"data": rows, "meta": {"next_cursor": next}}))?;
        }
        OutputFormat::Text if rows.is_empty() => out.note("no runs")?,
        OutputFormat::Text => {
            out.print(&table(&rows))?;
            if let Some(next) = next {
                out.note(&format!("there may be more: --before {next}"))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The runs, and the cursor of the next page.
async fn list(client: &Client, args: &RunsList) -> anyhow::Result<(Vec<RunShown>, Option<String>)> {
    let mut cursor = match &args.before {
        Some(text) => Some(super::id(client, text).await?),
        None => None,
    };
    let mut rows: Vec<RunShown> = Vec::new();
    loop {
        let left = usize::from(args.limit) - rows.len();
        let limit = left.min(usize::from(PAGE_MAX));
        let words: Vec<&str> = args.status.iter().map(|status| status.as_str()).collect();
        let mut query = vec![("limit", limit.to_string())];
        if !words.is_empty() {
            query.push(("status", words.join(",")));
        }
        query.extend(args.workflow.iter().map(|name| ("workflow", name.clone())));
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page = client.get(&["runs"], &query).await?;
        cursor.clone_from(&page.next_cursor);
        rows.extend(page.read::<Vec<RunShown>>()?);
        if cursor.is_none() || rows.len() >= usize::from(args.limit) {
            return Ok((rows, cursor));
        }
    }
}

fn table(rows: &[RunShown]) -> String {
    let mut table = Table::new(&["RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK", ""]);
    for row in rows {
        let ended = row.completed_at.as_deref().and_then(amount::ms);
        let started = amount::ms(&row.started_at).unwrap_or(0);
        let took = ended.map(|end| amount::time(end.saturating_sub(started)));
        let note = match (&row.parent_run_id, &row.owner) {
            (Some(_), _) => "child",
            (None, Some(_)) => "at work",
            (None, None) => "",
        };
        let version = row.version.map(|version| format!("@{version}")).unwrap_or_default();
        table.row([
            row.run_id.clone(),
            format!("{}{version}", row.workflow),
            row.status.clone(),
            amount::moment(started),
            took.unwrap_or_default(),
            note.to_owned(),
        ]);
    }
    table.draw()
}
