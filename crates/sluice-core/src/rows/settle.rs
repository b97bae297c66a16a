//! Completes a written row.

use super::lens::keep_versions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sluice_govern::registry::{
    Agent, Budget, Deployment, Gateway, Hook, Instruction, Kind, MemoryProfile, Note, PolicyFile,
    Price, Role, Row, Schedule, Token, Webhook, WorkflowVersion,
};

/// Fields that commands and the engine maintain. A file without such a field leaves it
/// unchanged: applying a file must not resume a paused agent.
pub fn kept(kind: Kind) -> impl Iterator<Item = &'static str> {
    let fields = kind.form().into_iter().flat_map(|form| form.fields);
    fields.filter(|field| field.need.is_kept()).map(|field| field.key)
}

/// The row to store: the written fields, the maintained fields of the previous row, and the
/// time at which an agent entered its phase.
pub fn settle(written: Row, before: Option<&Row>, now_ms: u64) -> Result<Row, String> {
    let Row { kind, name, body } = written;
    let Value::Object(mut body) = body else { return Err("a row is a map".to_owned()) };
    let old = before.and_then(|row| row.body.as_object());
    for field in kept(kind) {
        if let Some(value) = old.and_then(|old| old.get(field))
            && !body.contains_key(field)
        {
            body.insert(field.to_owned(), value.clone());
        }
    }
    match kind {
        Kind::Agent => record_phase_start(&mut body, old, now_ms)?,
        // A written deployment is active by default.
        Kind::Deployment => {
            body.entry("active").or_insert(Value::Bool(true));
        }
        Kind::Lens => keep_versions(&mut body, old),
        Kind::Schedule => record_schedule_start(&mut body, old, now_ms),
        _ => {}
    }
    let body = canonical(kind, Value::Object(body))?;
    Ok(Row { kind, name, body })
}

/// Fields with the creator of a row and its last author.
const AUTHORS: [&str; 2] = ["created_by", "changed_by"];

/// Records the author of a row that starts runs, who becomes the initiator of those runs.
/// Values in the written row are dropped.
pub fn sign(row: &mut Row, before: Option<&Row>, who: &str) {
    let Value::Object(body) = &mut row.body else { return };
    if !matches!(row.kind, Kind::Hook | Kind::Schedule) {
        return;
    }
    let old = before.and_then(|row| row.body.as_object());
    let was = |field: &str| old.and_then(|old| old.get(field).cloned());
    let without = |body: &Map<String, Value>| {
        let mut rest = body.clone();
        rest.retain(|field, _| !AUTHORS.contains(&field.as_str()));
        rest
    };
    *body = without(body);
    let (created_by, changed_by) = match old {
        None => (Some(who.into()), None),
        Some(old) if without(old) == *body => (was(AUTHORS[0]), was(AUTHORS[1])),
        Some(_) => (was(AUTHORS[0]), Some(who.into())),
    };
    for (field, value) in AUTHORS.into_iter().zip([created_by, changed_by]) {
        body.extend(value.map(|value| (field.to_owned(), value)));
    }
    // Fields have one order, so that equal rows have equal texts.
    if let Ok(body) = canonical(row.kind, row.body.clone()) {
        row.body = body;
    }
}

/// Records when an agent entered its phase. A new phase ends the extension of a trial.
fn record_phase_start(
    body: &mut Map<String, Value>,
    old: Option<&Map<String, Value>>,
    now_ms: u64,
) -> Result<(), String> {
    let phase = |body: &Map<String, Value>| -> Result<_, String> {
        Ok(reserialise::<Agent>(Value::Object(body.clone()))?.get("phase").cloned())
    };
    let was = old.and_then(|old| old.get("phase").cloned());
    if phase(body)? != was {
        body.insert("phase_since_ms".to_owned(), now_ms.into());
        body.shift_remove("poc_until_ms");
    }
    Ok(())
}

/// Records the time from which a schedule's slots are due: not those before its times were set,
/// or while it was disabled.
fn record_schedule_start(
    body: &mut Map<String, Value>,
    old: Option<&Map<String, Value>>,
    now_ms: u64,
) {
    let was_off = old.is_none_or(|old| old.get("enabled") == Some(&Value::Bool(false)));
    let is_on = body.get("enabled") != Some(&Value::Bool(false));
    let same = |field: &&str| {
        let of = |row: &Map<String, Value>| row.get(*field).cloned().unwrap_or_default();
        old.is_some_and(|old| of(old) == of(body))
    };
    let zone = |row: &Map<String, Value>| row.get("time_zone").cloned();
    let moved = !["cron", "every"].iter().all(same)
        || old.and_then(zone).unwrap_or("UTC".into()) != zone(body).unwrap_or("UTC".into());
    if moved || (was_off && is_on) {
        body.insert("since_ms".to_owned(), now_ms.into());
    }
}

/// The canonical form of a row's body.
pub(super) fn canonical(kind: Kind, body: Value) -> Result<Value, String> {
    match kind {
        Kind::Agent => reserialise::<Agent>(body),
        Kind::Gateway => reserialise::<Gateway>(body),
        Kind::Role => reserialise::<Role>(body),
        Kind::Deployment => reserialise::<Deployment>(body),
        Kind::Budget => reserialise::<Budget>(body),
        Kind::Price => reserialise::<Price>(body),
        Kind::Note => reserialise::<Note>(body),
        Kind::Memory => reserialise::<MemoryProfile>(body),
        Kind::Instruction => reserialise::<Instruction>(body),
        Kind::Policy => reserialise::<PolicyFile>(body),
        Kind::Workflow => reserialise::<WorkflowVersion>(body),
        Kind::Schedule => reserialise::<Schedule>(body),
        Kind::Webhook => reserialise::<Webhook>(body),
        Kind::Hook => reserialise::<Hook>(body),
        Kind::Token => reserialise::<Token>(body),
        Kind::Library | Kind::Lens | Kind::Team | Kind::Switch => Ok(body),
    }
}

fn reserialise<T: DeserializeOwned + Serialize>(body: Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(body).map_err(|error| error.to_string())?;
    serde_json::to_value(read).map_err(|error| error.to_string())
}
