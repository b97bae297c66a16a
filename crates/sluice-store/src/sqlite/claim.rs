//! Leases and ownership of runs.

use super::column::{int, node_bytes, node_id, run_bytes, run_id, uint};
use super::fault::Fault;
use super::node_locks::NodeLocks;
use super::writer::Work;
use crate::limits::CLAIM_MAX;
use rusqlite::{Connection, OptionalExtension as _, params};
use sluice_core::id::RunId;
use sluice_core::port::store::{Claim, NodeId, Taken};

pub(super) fn renew(work: &mut Work<'_>, node: NodeId, ttl_ms: u64) -> Result<(), Fault> {
    // Locked before the lease is visible to other nodes.
    work.locks
        .lock_node(node)
        .map_err(|e| Fault::Environment(format!("the node's lock file: {e}")))?;
    let sql = "DELETE FROM node WHERE ends_at <= ?1";
    work.connection.prepare_cached(sql)?.execute([int(work.now_ms)])?;
    let sql = "INSERT OR REPLACE INTO node VALUES (?1, ?2)";
    let ends_at = int(work.now_ms.saturating_add(ttl_ms));
    work.connection.prepare_cached(sql)?.execute(params![node_bytes(node), ends_at])?;
    Ok(())
}

pub(super) fn leave(work: &mut Work<'_>, node: NodeId) -> Result<(), Fault> {
    let sql = "DELETE FROM node WHERE id = ?1";
    work.connection.prepare_cached(sql)?.execute([node_bytes(node)])?;
    work.locks.release(node);
    Ok(())
}

/// Whether a node has a lease and a running process.
pub(super) fn is_live(
    connection: &Connection,
    locks: &NodeLocks,
    node: NodeId,
    now_ms: u64,
) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM node WHERE id = ?1 AND ends_at > ?2";
    let leased = connection.prepare_cached(sql)?.exists(params![node_bytes(node), int(now_ms)])?;
    Ok(leased && locks.is_held(node))
}

/// Claims the runs of dead nodes first, then due runs, oldest first.
pub(super) fn claim(
    work: &mut Work<'_>,
    node: NodeId,
    due_by_ms: u64,
    limit: usize,
) -> Result<Vec<Claim>, Fault> {
    let limit = limit.min(CLAIM_MAX);
    let mut runs = Vec::new();
    let mut last = Vec::new();
    while let Some(owner) = next_owner(work.connection, &last)? {
        last = node_bytes(owner).to_vec();
        if owner != node && !is_live(work.connection, work.locks, owner, work.now_ms)? {
            orphans(work.connection, owner, limit - runs.len(), &mut runs)?;
        }
    }
    dues(work.connection, due_by_ms, limit - runs.len(), &mut runs)?;
    runs.into_iter().map(|free| assign(work, &free, node)).collect()
}

pub(super) fn take(work: &mut Work<'_>, run: RunId, node: NodeId) -> Result<Taken, Fault> {
    let Some(known) = work.cache.find(work.connection, run)? else {
        return Ok(Taken::NoRun);
    };
    match known.owner {
        Some(owner) if owner == node => return Ok(Taken::Already(known.epoch)),
        Some(owner) if is_live(work.connection, work.locks, owner, work.now_ms)? => {
            return Ok(Taken::Held(owner));
        }
        Some(_) | None => {}
    }
    let free = ClaimableRun { run, epoch: known.epoch, former_owner: known.owner };
    Ok(Taken::Done(assign(work, &free, node)?))
}

struct ClaimableRun {
    run: RunId,
    epoch: u64,
    former_owner: Option<NodeId>,
}

/// The next node that owns runs. One index lookup per node, however many runs it owns.
fn next_owner(connection: &Connection, after: &[u8]) -> Result<Option<NodeId>, Fault> {
    let sql = "SELECT owner FROM run WHERE owner > ?1 ORDER BY owner LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([after], |row| row.get(0)).optional()?.map(node_id))
}

fn orphans(
    connection: &Connection,
    owner: NodeId,
    limit: usize,
    runs: &mut Vec<ClaimableRun>,
) -> Result<(), Fault> {
    let sql = "SELECT id, epoch FROM run WHERE owner = ?1 ORDER BY id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![node_bytes(owner), int(limit as u64)])?;
    while let Some(row) = rows.next()? {
        let (run, epoch) = (run_id(row.get(0)?), uint(row.get(1)?));
        runs.push(ClaimableRun { run, epoch, former_owner: Some(owner) });
    }
    Ok(())
}

fn dues(
    connection: &Connection,
    due_by_ms: u64,
    limit: usize,
    runs: &mut Vec<ClaimableRun>,
) -> Result<(), Fault> {
    let sql = "SELECT id, epoch FROM run WHERE owner IS NULL AND due_at IS NOT NULL
               AND due_at <= ?1 ORDER BY due_at, id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([int(due_by_ms), int(limit as u64)])?;
    while let Some(row) = rows.next()? {
        let (run, epoch) = (run_id(row.get(0)?), uint(row.get(1)?));
        runs.push(ClaimableRun { run, epoch, former_owner: None });
    }
    Ok(())
}

fn assign(work: &mut Work<'_>, free: &ClaimableRun, node: NodeId) -> Result<Claim, Fault> {
    let (run, epoch) = (free.run, free.epoch + 1);
    let sql = "UPDATE run SET owner = ?1, epoch = ?2 WHERE id = ?3";
    let values = params![node_bytes(node), int(epoch), run_bytes(run)];
    work.connection.prepare_cached(sql)?.execute(values)?;
    work.cache.forget_run(run);
    Ok(Claim { run, epoch, from: free.former_owner })
}
