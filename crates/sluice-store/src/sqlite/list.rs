//! Lists runs without reading their journals.

use super::claim::is_live;
use super::column::{int, node_id, run_bytes, run_id, status, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use crate::text;
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use sluice_core::id::RunId;
use sluice_core::port::store::{Filter, NodeId, RunRow};
use sluice_core::status::RunStatus;
use std::collections::BTreeSet;

/// The newest runs that match the filter.
pub(super) fn list(reader: &ReadConnection, filter: &Filter) -> Result<Vec<RunRow>, Fault> {
    let moment = reader.connection.unchecked_transaction()?;
    let limit = crate::page(filter.limit);
    let mut rows = Vec::new();
    if filter.statuses.is_empty() {
        rows = query(&moment, filter, None, limit)?;
    }
    // One query per status: each reads its own range of the index in order. A single
    // query would have to sort all runs.
    let mut statuses = filter.statuses.clone();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        rows.extend(query(&moment, filter, Some(status), limit)?);
    }
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.run));
    rows.truncate(limit);
    show_owners(reader, &mut rows)?;
    Ok(rows)
}

fn query(
    connection: &rusqlite::Connection,
    filter: &Filter,
    only: Option<RunStatus>,
    limit: usize,
) -> Result<Vec<RunRow>, Fault> {
    let mut sql = "SELECT id, workflow, version, status, started_at, ended_at, parent, owner,
                   due_at, initiator FROM run WHERE TRUE"
        .to_owned();
    let mut values: Vec<Value> = Vec::new();
    let mut condition = |clause: &str, value: Option<Value>| {
        if let Some(value) = value {
            sql.push_str(clause);
            values.push(value);
        }
    };
    let id = |run| Value::Blob(run_bytes(run).to_vec());
    condition(" AND id = ?", filter.run.map(id));
    condition(" AND id < ?", filter.before.map(id));
    condition(" AND parent = ?", filter.parent.map(id));
    condition(" AND workflow = ?", filter.workflow.clone().map(Value::Text));
    condition(" AND initiator = ?", filter.initiator.clone().map(Value::Text));
    condition(" AND started_at >= ?", filter.since_ms.map(|ms| Value::Integer(int(ms))));
    condition(" AND started_at < ?", filter.until_ms.map(|ms| Value::Integer(int(ms))));
    condition(" AND status = ?", only.map(|status| Value::Text(status.as_str().to_owned())));
    condition(" AND asks = ?", filter.asking.then_some(Value::Integer(1)));
    if let Some(text) = &filter.text {
        // Not LIKE: the text has no wildcards and no length limit.
        let lower = Value::Text(text.to_ascii_lowercase());
        condition(" AND (instr(lower(workflow), ?)", Some(lower.clone()));
        condition(" OR instr(lower(initiator), ?)", Some(lower));
        // An empty range matches if no id begins with the text.
        let (least, most) = text::ids_beginning(text).unwrap_or((RunId(1), RunId(0)));
        condition(" OR id BETWEEN ?", Some(id(least)));
        condition(" AND ?)", Some(id(most)));
    }
    condition(" ORDER BY id DESC LIMIT ?", Some(Value::Integer(int(limit as u64))));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<RunRow, Fault> {
    Ok(RunRow {
        run: run_id(row.get(0)?),
        workflow: row.get(1)?,
        version: row.get::<_, Option<i64>>(2)?.map(uint),
        status: status(row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?)?,
        started_at_ms: uint(row.get(4)?),
        ended_at_ms: row.get::<_, Option<i64>>(5)?.map(uint),
        parent: row.get::<_, Option<[u8; 16]>>(6)?.map(run_id),
        owner: row.get::<_, Option<[u8; 16]>>(7)?.map(node_id),
        due_at_ms: row.get::<_, Option<i64>>(8)?.map(uint),
        initiator: row.get(9)?,
    })
}

/// Hides owners that are no longer alive. Checks each owner once.
fn show_owners(reader: &ReadConnection, rows: &mut [RunRow]) -> Result<(), Fault> {
    let now_ms = reader.shared.clock.now_ms();
    let owners: BTreeSet<NodeId> = rows.iter().filter_map(|row| row.owner).collect();
    let mut dead = BTreeSet::new();
    for owner in owners {
        if !is_live(&reader.connection, &reader.shared.locks, owner, now_ms)? {
            dead.insert(owner);
        }
    }
    for row in rows {
        row.owner = row.owner.filter(|owner| !dead.contains(owner));
    }
    Ok(())
}
