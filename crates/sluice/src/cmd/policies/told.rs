//! Decisions that another set would make otherwise, for people and programs.

use crate::cli::Reader;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::Value;

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
