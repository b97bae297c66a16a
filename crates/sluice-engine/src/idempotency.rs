//! Idempotency keys of starts: the same key means the same run.
//!
//! A key is scoped to a workflow, its version and the principal that sent it, and is
//! valid for a day. A start with the same key but different inputs is refused, with a
//! list of the differences. The key of another principal is a different key, so that a
//! caller never receives the run of another principal.

use crate::start::Start;
use serde_json::{Map, Value};
use sluice_core::canonical;
use sluice_core::hash::Hash;
use sluice_core::journal::event::RunStarted;
use sluice_core::limits::KEY_MS;
use sluice_core::port::store::Key;
use std::collections::BTreeSet;

/// The scoped key of a start.
pub(crate) fn key(request: &Start, now_ms: u64) -> Option<Key> {
    let key = request.key.as_ref()?;
    let definition = &request.stored.definition;
    let version = request.version.or(definition.plan.version);
    let inputs = canonical::to_string(&(&definition.hash, &request.args));
    Some(Key {
        key: Key::scoped(&request.workflow(), version, &request.initiator, key),
        former: Some(Key::without_principal(&definition.plan.name, version, key)),
        fingerprint: Hash::of(inputs.as_bytes()),
        expires_at_ms: now_ms.saturating_add(KEY_MS),
    })
}

/// What differs between a start and the run that has its key. Values are not shown:
/// they may be confidential.
pub(crate) fn differences(
    before: &RunStarted,
    request: &Start,
    args: &Map<String, Value>,
) -> Vec<String> {
    let mut differs = Vec::new();
    // Only keys stored without a principal can match another principal.
    if before.initiator != request.initiator {
        differs.push("the principal that started it".to_owned());
    }
    if before.definition_hash != request.stored.definition.hash {
        differs.push(match request.version {
            // A registered version is immutable: something it refers to has changed.
            Some(_) => "a lens or library step that the workflow uses".to_owned(),
            None => "the document".to_owned(),
        });
    }
    let names: BTreeSet<&String> = before.args.keys().chain(args.keys()).collect();
    let other = names.into_iter().filter(|name| before.args.get(*name) != args.get(*name));
    differs.extend(other.map(|name| format!("the argument `{name}`")));
    differs
}
