//! Audit entries about changed rows.

use super::Difference;
use crate::canonical;
use crate::hash::Hash;
use crate::port::ledger::Entry;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sluice_govern::registry::Kind;

/// The longest text that an entry contains, in bytes. A longer one is replaced by its hash; the
/// row itself stays in the history of the registry.
const TEXT_BYTES_MAX: usize = 4096;

/// The key in an entry's detail for the digest of the old body: null if there was no row.
pub const BEFORE_DIGEST: &str = "before_sha256";
/// The key for the digest of the new body: null if the row was removed.
pub const AFTER_DIGEST: &str = "after_sha256";

/// SHA-256 over the canonical form of a row's body, as hexadecimal digits. With it, entries
/// chain the versions of a row: the digest in the newest entry must match the stored row.
pub fn digest(body: &Value) -> String {
    Hash::of(canonical::to_string(body).as_bytes()).to_string()
}

/// One entry for each changed row. Changes of deployments have a category of their own.
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
            "before": one.before.as_ref().map(without_long_texts),
            "after": one.after.as_ref().map(without_long_texts),
            BEFORE_DIGEST: one.before.as_ref().map(digest),
            AFTER_DIGEST: one.after.as_ref().map(digest),
        }),
    };
    differences.iter().map(entry).collect()
}

/// A row's body with long texts replaced by their hashes.
fn without_long_texts(body: &Value) -> Value {
    match body {
        Value::String(text) if text.len() > TEXT_BYTES_MAX => {
            let hash: String =
                Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "sha256": hash, "bytes": text.len() })
        }
        Value::Array(items) => items.iter().map(without_long_texts).collect(),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| (name.clone(), without_long_texts(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}
