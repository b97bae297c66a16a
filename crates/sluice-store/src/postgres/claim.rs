//! Leases and ownership of runs.

use super::column::{Id, get, int, number, sql_limit};
use super::fault::Fault;
use super::session::Session;
use crate::limits::{CLAIM_MAX, PURGED_MAX};
use sluice_core::id::RunId;
use sluice_core::port::store::{Claim, NodeId, Taken};

/// Uses the database's clock if no time is given.
const RENEW: &str = "INSERT INTO node (id, ends_at)
    VALUES ($1, coalesce($2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $3)
    ON CONFLICT (id) DO UPDATE SET ends_at = excluded.ends_at";
/// Deletes leases that expired more than an hour ago.
const PURGE_NODES: &str = "DELETE FROM node WHERE id IN (SELECT id FROM node
    WHERE ends_at + 3600000 <= coalesce($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)";
const PURGE_KEYS: &str = "DELETE FROM key WHERE key IN (SELECT key FROM key
    WHERE expires_at <= coalesce($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
/// Claims the runs of dead nodes first, then due runs, oldest first. Needs one index
/// lookup per node that owns runs. Skips rows that another transaction has locked, so
/// it never waits.
const CLAIM: &str = "
    WITH RECURSIVE owners (owner) AS (
        (SELECT owner FROM run WHERE owner IS NOT NULL ORDER BY owner LIMIT 1)
        UNION ALL
        SELECT (SELECT next.owner FROM run AS next WHERE next.owner > owners.owner
                ORDER BY next.owner LIMIT 1)
        FROM owners WHERE owners.owner IS NOT NULL
    ), dead (owner) AS (
        SELECT owner FROM owners WHERE owner IS NOT NULL AND owner <> $1
        AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = owners.owner AND node.ends_at
            > coalesce($2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    ), orphan AS (
        SELECT id, owner FROM run WHERE owner IN (SELECT owner FROM dead)
        ORDER BY owner, id LIMIT $4 FOR UPDATE OF run SKIP LOCKED
    ), due AS (
        SELECT id, due_at FROM run WHERE owner IS NULL AND due_at IS NOT NULL AND due_at <= $3
        ORDER BY due_at, id LIMIT $4 FOR UPDATE OF run SKIP LOCKED
    ), free AS (
        SELECT * FROM (SELECT id, owner, NULL::bigint AS due_at FROM orphan
                       UNION ALL SELECT id, NULL, due_at FROM due) AS both_kinds
        ORDER BY due_at NULLS FIRST, owner, id LIMIT $4
    )
    UPDATE run SET owner = $1, epoch = run.epoch + 1 FROM free WHERE run.id = free.id
    RETURNING run.id, run.epoch, free.owner, free.due_at";

pub(super) async fn renew(
    session: &Session,
    node: NodeId,
    ttl_ms: u64,
    now: Option<i64>,
) -> Result<(), Fault> {
    let ttl = int(ttl_ms).min(i64::MAX / 4);
    session.execute(RENEW, &[&Id::from(node), &now, &ttl]).await?;
    Ok(())
}

/// Deletes a limited number of expired leases and keys. Returns the larger of both
/// counts.
pub(super) async fn purge_expired(session: &Session, now: Option<i64>) -> Result<u64, Fault> {
    let nodes = session.execute(PURGE_NODES, &[&now, &sql_limit(PURGED_MAX)]).await?;
    let keys = session.execute(PURGE_KEYS, &[&now, &sql_limit(PURGED_MAX)]).await?;
    Ok(nodes.max(keys))
}

pub(super) async fn leave(session: &Session, node: NodeId) -> Result<(), Fault> {
    session.execute("DELETE FROM node WHERE id = $1", &[&Id::from(node)]).await?;
    Ok(())
}

/// Claims runs without a live owner.
pub(super) async fn claim(
    session: &Session,
    node: NodeId,
    due_by_ms: u64,
    limit: usize,
    now: Option<i64>,
) -> Result<Vec<Claim>, Fault> {
    let limit = sql_limit(limit.min(CLAIM_MAX));
    let rows = session.query(CLAIM, &[&Id::from(node), &now, &int(due_by_ms), &limit]).await?;
    let mut claims = Vec::with_capacity(rows.len());
    for row in &rows {
        let run = get::<Id>(row, 0)?.run();
        let from = get::<Option<Id>>(row, 2)?.map(Id::node);
        let due: Option<i64> = get(row, 3)?;
        claims.push((due, Claim { run, epoch: number(row, 1)?, from }));
    }
    claims.sort_unstable_by_key(|(due, claim)| (*due, claim.from, claim.run));
    Ok(claims.into_iter().map(|(_, claim)| claim).collect())
}

/// Claims one run, in a transaction.
pub(super) async fn take(
    session: &Session,
    run: RunId,
    node: NodeId,
    now_ms: u64,
) -> Result<Taken, Fault> {
    let sql = "SELECT owner, epoch, EXISTS (SELECT 1 FROM node
                   WHERE node.id = run.owner AND node.ends_at > $2)
               FROM run WHERE id = $1 FOR UPDATE OF run";
    let rows = session.query(sql, &[&Id::from(run), &int(now_ms)]).await?;
    let Some(row) = rows.first() else {
        return Ok(Taken::NoRun);
    };
    let owner = get::<Option<Id>>(row, 0)?.map(Id::node);
    let epoch = number(row, 1)?;
    match owner {
        Some(owner) if owner == node => return Ok(Taken::Already(epoch)),
        Some(owner) if get(row, 2)? => return Ok(Taken::Held(owner)),
        Some(_) | None => {}
    }
    let epoch = epoch + 1;
    let sql = "UPDATE run SET owner = $2, epoch = $3 WHERE id = $1";
    session.execute(sql, &[&Id::from(run), &Id::from(node), &int(epoch)]).await?;
    Ok(Taken::Done(Claim { run, epoch, from: owner }))
}
