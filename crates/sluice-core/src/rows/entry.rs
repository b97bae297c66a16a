//! What the audit is told when rows change.

use super::Difference;
use crate::canonical;
use crate::port::ledger::Entry;
use crate::port::store::Hash;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sluice_govern::registry::Kind;

/// Longest text that is told whole, in bytes. Of a longer one the hash is told;
/// the row itself stays in the history of the registry.
const TEXT_BYTES_MAX: usize = 4096;

/// The digest of the row's body before the change, in an entry's detail: null where
/// there was no row.
pub const BEFORE_DIGEST: &str = "before_sha256";
/// The same after the change: null where the row is gone.
pub const AFTER_DIGEST: &str = "after_sha256";

/// SHA-256 over the canonical form of a row's body, as hexadecimal digits. Entries
/// chain the versions of a row with it: what the newest entry says came after is
/// the row there is.
pub fn digest(body: &Value) -> String {
    Hash::of(canonical::to_string(body).as_bytes()).to_string()
}

/// An entry for each row that changes. What runs where, and who does it, is a
/// category of its own.
pub fn entries(differences: &[Difference], actor: &str, at_ms: u64) -> Vec<Entry> {
    let entry = |one: &Difference| Entry {
        at_ms,
        category: if one.kind == Kind::Deployment { "deploy" } else { "configuration" },
        what: format!("{}_changed", one.kind.as_str()),
        actor: actor.to_owned(),
        resource_type: one.kind.as_str().to_owned(),
        resource_id: one.name.clone(),
        event: None,
        detail: json!({
            "before": one.before.as_ref().map(told),
            "after": one.after.as_ref().map(told),
            BEFORE_DIGEST: one.before.as_ref().map(digest),
            AFTER_DIGEST: one.after.as_ref().map(digest),
        }),
    };
    differences.iter().map(entry).collect()
}

/// A row's body without texts that are longer than anyone reads in an audit.
fn told(body: &Value) -> Value {
    match body {
        Value::String(text) if text.len() > TEXT_BYTES_MAX => {
            let hash: String =
                Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "sha256": hash, "bytes": text.len() })
        }
        Value::Array(items) => items.iter().map(told).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), told(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}
