//! Rows of the registry of a data directory: at rest, and what people are told of
//! changes.

use crate::Exit;
use crate::cli::Reader;
use crate::cli::run::Data;
use crate::cmd::{tell_people, tell_report};
use crate::local;
use crate::out::{Layout, Out};
use crate::refused::by_store;
use serde_json::{Value, json};
use sluice_core::rows::Difference;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use sluice_govern::registry::Row;
use sluice_server::service::registry::{Mode, Outcome};
use sluice_store::sqlite::SqliteStore;
use std::sync::Arc;

/// The rows of a data directory that nobody may have made yet.
pub(crate) async fn at_rest(data: &Data) -> anyhow::Result<Vec<Row>> {
    if local::existing(data).is_err() {
        return Ok(Vec::new());
    }
    let dir = local::directory(data);
    let opened = SqliteStore::open(&dir, Arc::new(SystemClock));
    let store = opened.map_err(|error| by_store(&dir, &error))?;
    Ok(sluice_core::port::ledger::Ledger::registry(&store, None).await?.rows)
}

/// Tells what became of a change.
pub(crate) fn tell(outcome: &Outcome, reader: Reader, out: &mut Out) -> anyhow::Result<Exit> {
    let (differences, epoch, mode) = match outcome {
        Outcome::Done { differences, epoch, mode } => (differences, epoch, mode),
        Outcome::Refused(findings) => {
            for found in findings {
                match reader {
                    Reader::Person => tell_people(&found.input, &found.diagnostics, out)?,
                    Reader::Program => tell_report(&found.input, &found.diagnostics, out)?,
                }
            }
            return Ok(Exit::Refused);
        }
    };
    if reader == Reader::Program {
        let changes: Vec<Value> = differences.iter().map(object).collect();
        let dry_run = *mode == Mode::Look;
        let answer = json!({"changes": changes, "epoch": epoch, "dry_run": dry_run});
        out.json(Layout::Line, &answer)?;
        return Ok(Exit::Done);
    }
    for one in differences {
        out.print(&format!("{}\n", visible::line(&one.to_string())))?;
    }
    match (differences.is_empty(), mode) {
        (true, _) => out.print("nothing to change\n")?,
        (false, Mode::Look) => out.note("nothing was written")?,
        (false, Mode::Write) => {}
    }
    Ok(Exit::Done)
}

fn object(one: &Difference) -> Value {
    json!({
        "change": one.word(),
        "kind": one.kind.as_str(),
        "name": one.name,
        "fields": one.fields(),
    })
}
