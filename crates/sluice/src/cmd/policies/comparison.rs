//! Compares past decisions under two policy sets.

use super::explain;
use crate::cli::OutputFormat;
use crate::cli::registry::Past;
use crate::client::{Client, fields};
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_server::service::policies::Files;

/// Compares a set with another, or with the set that was in force then.
pub(super) async fn request(
    client: &Client,
    files: &Files,
    before: Option<&Files>,
    past: &Past,
) -> anyhow::Result<Value> {
    let set = |files: &Files| -> Value {
        files.iter().map(|(name, text)| (name.clone(), Value::from(text.clone()))).collect()
    };
    let body = fields([
        ("files", set(files)),
        ("before", before.map(set).unwrap_or_default()),
        // The API counts in seconds: rounded up, so that no decision is left out.
        ("since_s", json!(past.since.map(|ms| ms.div_ceil(1000)))),
        ("run", json!(past.run)),
    ]);
    Ok(client.post(&["policies", "test"], &body).await?.data)
}

pub(super) fn print(compared: &Value, output: OutputFormat, out: &mut Out) -> anyhow::Result<()> {
    if output == OutputFormat::Json {
        return out.json(Layout::Line, compared);
    }
    let differ = compared["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !differ.is_empty() {
        let heading =
            ["RUN", "STEP", "EVENT", "AT", "ACTION", "WAS", "WOULD BE", "BECAUSE", "VALUES"];
        let mut table = Table::new(&heading);
        for one in differ {
            let word = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            let because = one["because"].as_array().into_iter().flatten();
            let because: Vec<&str> = because.filter_map(Value::as_str).collect();
            table.row([
                word("run_id"),
                word("node_id"),
                one["event_id"].to_string(),
                word("at"),
                format!("{} {}", word("verb"), word("resource")),
                word("was"),
                word("would_be"),
                because.join(", "),
                explain::brief_values(one),
            ]);
        }
        out.print(&table.draw())?;
    }
    let (different, all) = (&compared["differ"], &compared["decisions"]);
    let decisions = if *all == 1 { "decision" } else { "decisions" };
    out.print(&format!("{different} of {all} {decisions} would differ\n"))?;
    if compared["unknown"] != 0 {
        let unknown = &compared["unknown"];
        out.note(&format!("{unknown} more decisions did not record their facts"))?;
    }
    Ok(())
}
