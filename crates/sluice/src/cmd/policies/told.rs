//! Decisions that another set would make otherwise, for people and programs.

use crate::cli::Reader;
use crate::cli::registry::Past;
use crate::client::{Client, fields};
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_server::service::policies::Files;

/// Lets a server compare: a set with another, or with what was in force then.
pub(super) async fn ask(
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
        // Counted in seconds there; what is cut off would be left out.
        ("since_s", json!(past.since.map(|ms| ms.div_ceil(1000)))),
        ("run", json!(past.run)),
    ]);
    Ok(client.post(&["policies", "test"], &body).await?.data)
}

/// Tells what came of a comparison, by its answer for programs.
pub(super) fn tell(compared: &Value, reader: Reader, out: &mut Out) -> anyhow::Result<()> {
    if reader == Reader::Program {
        return out.json(Layout::Line, compared);
    }
    let differ = compared["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !differ.is_empty() {
        let mut table = Table::new(&["RUN", "STEP", "EVENT", "AT", "WAS", "WOULD BE", "BECAUSE"]);
        for one in differ {
            let word = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            let because = one["because"].as_array().into_iter().flatten();
            let because: Vec<&str> = because.filter_map(Value::as_str).collect();
            table.row([
                word("run_id"),
                word("node_id"),
                one["event_id"].to_string(),
                word("at"),
                word("was"),
                word("would_be"),
                because.join(", "),
            ]);
        }
        out.print(&table.draw())?;
    }
    let (different, all) = (&compared["differ"], &compared["decisions"]);
    let decisions = if *all == 1 { "decision" } else { "decisions" };
    out.print(&format!("{different} of {all} {decisions} would differ\n"))?;
    if compared["unknown"] != 0 {
        let unknown = &compared["unknown"];
        out.note(&format!("of {unknown} more nobody knows what policies saw"))?;
    }
    Ok(())
}
