//! What `audit verify` says after an attack, and whether it names the place.

use super::act::{Attack, Replaced};
use super::fixture::SEALS;
use super::rows::{Cell, Row, Table};
use crate::world::{World, shown};
use serde_json::Value;
use std::process::Output;

/// What came of an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is reported, with its place.
    Found,
    /// The store is not opened.
    Refused,
    /// The server has written the row again, as the journal says.
    Mended,
    /// The schema does not take such a row, or it would change nothing.
    Impossible,
    /// Why not.
    Missed(String),
}

/// Why a store may be refused.
const REFUSALS: [&str; 4] =
    ["store_not_authentic", "store_rolled_back", "seal_unusable", "data_unusable"];

/// Verifies a store with the real binary.
pub(super) fn verify(world: &World) -> Output {
    world.output(&["audit", "verify", "--seal", SEALS, "--json"])
}

/// Verifies an unchanged store.
pub(super) fn is_clean(world: &World) {
    let output = verify(world);
    assert_eq!(output.status.code(), Some(0), "an untouched store: {}", shown(&output));
}

/// What a verification says of an attack on these rows.
pub(super) fn judge(attack: &Attack, ids: &[String], output: &Output) -> Outcome {
    match output.status.code() {
        Some(1) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let report: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
            if findings.iter().any(|finding| names(attack, ids, finding)) {
                Outcome::Found
            } else {
                Outcome::Missed(format!("it is found at other places: {text}"))
            }
        }
        Some(0) => Outcome::Missed("nothing is found".to_owned()),
        _ => {
            let error: Value = serde_json::from_slice(&output.stderr).unwrap_or(Value::Null);
            match REFUSALS.iter().any(|refusal| error["code"] == *refusal) {
                true => Outcome::Refused,
                false => Outcome::Missed(shown(output)),
            }
        }
    }
}

/// Whether a finding names what was attacked: the row by its key, or for evidence the event,
/// the entry or the seal, or for a run its id or what belongs to no run.
fn names(attack: &Attack, ids: &[String], finding: &Value) -> bool {
    let place = &finding["place"];
    // Compared as texts: JSON would escape the separators within a key.
    let texts = place.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    let texts: Vec<&str> = texts.collect();
    let is_named = || ids.iter().any(|id| texts.iter().any(|text| text.contains(id)));
    if place["table"] == attack.table.as_str() && (!has_names(&attack.table) || is_named()) {
        return true;
    }
    match attack.table.as_str() {
        "frame" | "tip" | "mark" | "beside" | "blob" | "snapshot" => place["event_id"].is_u64(),
        "entry" | "chain" => place["seq"].is_u64(),
        "seal" => place["seal"].is_u64(),
        "run" => finding["detail"] == "its run has no row" || is_named(),
        _ => false,
    }
}

/// Whether findings name rows of a table by words of the row itself. Other tables are found by
/// positions: where one is missing, the finding is at the next.
fn has_names(table: &str) -> bool {
    matches!(table, "registry" | "counter" | "key" | "slot" | "run")
}

/// The names by which findings may name the rows that an attack replaces.
pub(super) fn ids(table: &Table, (old, new): &Replaced) -> Vec<String> {
    let text = |row: &Row, name: &str| match table.column(name).map(|at| &row[at]) {
        Some(Cell::Text(text)) => text.clone(),
        Some(Cell::Bytes(bytes)) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Some(Cell::Id(id)) => id.replace('-', ""),
        other => panic!("{}.{name} is {other:?}", table.name),
    };
    let ids = |row: &Row| match table.name.as_str() {
        "run" => vec![text(row, "id")],
        "registry" => vec![format!("{}/{}", text(row, "kind"), text(row, "name"))],
        "counter" => vec![text(row, "name")],
        // A key that is missing is named by the run that was started with it.
        "key" => vec![text(row, "key"), text(row, "run")],
        "slot" => vec![text(row, "schedule")],
        _ => Vec::new(),
    };
    old.iter().chain(new).flat_map(ids).collect()
}
