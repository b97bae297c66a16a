//! Lenses in the registry: versions are added, and never changed or removed.

use crate::canonical;
use serde_json::{Map, Value};
use sluice_govern::registry::{Kind, Row};

/// The versions of a lens that a row would change: same id, different content.
pub fn changed_versions<'r>(written: &'r Row, before: Option<&Row>) -> Vec<&'r str> {
    let (Some(new), Some(old)) = (versions(written), before.and_then(versions)) else {
        return Vec::new();
    };
    let differs = |id: &str, version: &Value| {
        let there = old.get(id).map(canonical::to_string);
        there.is_some_and(|there| there != canonical::to_string(version))
    };
    let changed = new.iter().filter(|(id, version)| differs(id, version));
    changed.map(|(id, _)| id.as_str()).collect()
}

/// Puts the existing versions before the new ones, so that the newest is last.
pub(super) fn keep_versions(body: &mut Map<String, Value>, old: Option<&Map<String, Value>>) {
    let there = old.and_then(|old| old.get("versions")).and_then(Value::as_object);
    let (Some(there), Some(Value::Object(new))) = (there, body.get_mut("versions")) else {
        return;
    };
    let mut all = there.clone();
    for (id, version) in std::mem::take(new) {
        all.entry(id).or_insert(version);
    }
    *new = all;
}

fn versions(row: &Row) -> Option<&Map<String, Value>> {
    (row.kind == Kind::Lens).then(|| row.body.get("versions"))?.and_then(Value::as_object)
}
