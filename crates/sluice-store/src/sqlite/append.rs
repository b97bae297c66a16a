//! Appends.

use super::cache::CachedRun;
use super::column::{int, node_bytes, run_bytes, run_id, uint};
use super::fault::Fault;
use super::recent_heads::WrittenFrame;
use super::writer::Work;
use super::{entry, lineage, mailbox, remembered_output};
use crate::authentic::AppendMacs;
use crate::limits::FRAMES_PER_MARK;
use rusqlite::params;
use sluice_core::evidence::mac::MacKey;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::{Append, Appended, Create, Head, Key, Ownership};
use sluice_core::status::RunStatus;

/// Checks everything before it writes anything, so that a refusal leaves nothing in the
/// transaction it shares with other writes.
pub(super) fn append(
    work: &mut Work<'_>,
    append: &Append,
    macs: &AppendMacs,
) -> Result<Appended, Fault> {
    let known = work.cache.find(work.connection, append.run)?;
    let refusal = match &append.create {
        Some(create) => refuse_create(work, append, create, known)?,
        None => refuse_append(append, known),
    };
    if let Some(refusal) = refusal {
        return Ok(refusal);
    }
    let counters = &mut work.cache.counters;
    let counts = match counters.guard(work.connection, &append.guards, work.now_ms)? {
        Ok(counts) => counts,
        Err(refused) => return Ok(refused),
    };
    let before = match (known, &append.create) {
        (Some(known), _) => known,
        (None, Some(create)) => insert_run(work, append, create, macs)?,
        (None, None) => return Ok(Appended::NotOwner),
    };
    write(work, append, before, macs)?;
    work.appends += 1;
    Ok(Appended::Done { counts })
}

/// An existing run has the same inputs if the fingerprints are equal. Without a key on
/// either side only a repeated call can name the same id.
fn refuse_create(
    work: &Work<'_>,
    append: &Append,
    create: &Create,
    known: Option<CachedRun>,
) -> Result<Option<Appended>, Fault> {
    let fingerprint = create.key.as_ref().map(|key| key.fingerprint.0);
    if known.is_some() {
        let sql = "SELECT fingerprint FROM run WHERE id = ?1";
        let mut statement = work.connection.prepare_cached(sql)?;
        let stored = statement.query_row([run_bytes(append.run)], |row| row.get(0))?;
        return Ok(Some(Appended::Exists { run: append.run, same: fingerprint == stored }));
    }
    if let Some(key) = &create.key
        && let Some((run, same)) = run_of_key(work, key)?
    {
        return Ok(Some(Appended::Exists { run, same }));
    }
    if append.epoch != 1 {
        return Ok(Some(Appended::NotOwner));
    }
    Ok((append.after != 0).then_some(Appended::Conflict))
}

/// The run of an unexpired idempotency key, and whether it has the same fingerprint.
fn run_of_key(work: &Work<'_>, key: &Key) -> Result<Option<(RunId, bool)>, Fault> {
    let sql = "SELECT run, fingerprint, expires_at, mac FROM key
               WHERE key = ?1 AND expires_at > ?2";
    let mut statement = work.connection.prepare_cached(sql)?;
    let mut find = |name: &str| {
        let mut rows = statement.query(params![name, int(work.now_ms)])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (run, stored) = (run_id(row.get(0)?), Hash(row.get(1)?));
        let mac = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        let expires_at_ms = uint(row.get(2)?);
        let is_own = |mackey: &MacKey| mackey.key(name, run, stored, expires_at_ms).is(mac);
        if !work.keys.get().is_none_or(is_own) {
            return Err(Fault::Corrupt(format!("the idempotency key {name:?} is not authentic")));
        }
        Ok(Some((run, stored == key.fingerprint)))
    };
    if let Some(used) = find(&key.key)? {
        return Ok(Some(used));
    }
    let Some(former) = &key.former else { return Ok(None) };
    Ok(find(former)?.filter(|(_, same)| *same))
}

fn refuse_append(append: &Append, known: Option<CachedRun>) -> Option<Appended> {
    let known = known.filter(|known| known.is_owned(append.node, append.epoch));
    match known {
        None => Some(Appended::NotOwner),
        Some(known) => (known.version != append.after).then_some(Appended::Conflict),
    }
}

fn insert_run(
    work: &mut Work<'_>,
    append: &Append,
    create: &Create,
    macs: &AppendMacs,
) -> Result<CachedRun, Fault> {
    if let Some(key) = &create.key {
        insert_key(work, append, key, macs.key())?;
    }
    let sql = "INSERT INTO run (id, workflow, version, status, started_at, parent, fingerprint,
                                owner, epoch, initiator)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9)";
    work.connection.prepare_cached(sql)?.execute(params![
        run_bytes(append.run),
        create.workflow,
        create.version.map(int),
        RunStatus::Queued.as_str(),
        int(create.started_at_ms),
        create.parent.map(run_bytes),
        create.key.as_ref().map(|key| key.fingerprint.0),
        node_bytes(append.node),
        create.initiator,
    ])?;
    let num = work.connection.last_insert_rowid();
    let sql = "INSERT INTO tip VALUES (?1, 0, 0, 0)";
    work.connection.prepare_cached(sql)?.execute([num])?;
    Ok(CachedRun { num, owner: Some(append.node), epoch: 1, version: 0, seq: 0, frames: 0 })
}

/// Stores the key, and deletes a few expired ones so that they do not accumulate.
fn insert_key(work: &Work<'_>, append: &Append, key: &Key, mac: &[u8]) -> Result<(), Fault> {
    let sql = "DELETE FROM key WHERE key IN
               (SELECT key FROM key WHERE expires_at <= ?1 ORDER BY expires_at LIMIT 4)";
    work.connection.prepare_cached(sql)?.execute([int(work.now_ms)])?;
    let sql = "INSERT OR REPLACE INTO key VALUES (?1, ?2, ?3, ?4, ?5)";
    work.connection.prepare_cached(sql)?.execute(params![
        key.key,
        run_bytes(append.run),
        key.fingerprint.0,
        int(key.expires_at_ms),
        mac,
    ])?;
    Ok(())
}

fn write(
    work: &mut Work<'_>,
    append: &Append,
    before: CachedRun,
    macs: &AppendMacs,
) -> Result<(), Fault> {
    for blob in &append.blobs {
        let sql = "INSERT OR IGNORE INTO blob VALUES (?1, ?2)";
        work.connection.prepare_cached(sql)?.execute(params![blob.hash.0, blob.body])?;
    }
    let mut after = match append.count {
        0 => before,
        _ => write_frame(work, append, before, macs.frame())?,
    };
    if let Some(state) = &append.snapshot {
        let sql = "INSERT OR REPLACE INTO snapshot VALUES (?1, ?2, ?3, ?4)";
        let values = params![after.num, int(after.version), macs.snapshot(), state];
        work.connection.prepare_cached(sql)?.execute(values)?;
    }
    for (at, read) in append.read.iter().enumerate() {
        let sql = "UPDATE letter SET body = NULL, mac = ?3 WHERE id = ?1 AND run = ?2";
        let values = params![int(read.id), after.num, macs.read_message(at)];
        work.connection.prepare_cached(sql)?.execute(values)?;
    }
    if let Some(head) = &append.head {
        write_head(work, &mut after, head)?;
    }
    work.cache.remember(append.run, after);
    for (at, message) in append.messages.iter().enumerate() {
        mailbox::post(work, message, macs.message(at))?;
    }
    lineage::store_edges(work, append)?;
    remembered_output::store(work, after.num, &append.remembered_outputs, macs)?;
    entry::record(work, append.node, &append.entries)
}

/// Appends the frame to the run's chain.
fn write_frame(
    work: &mut Work<'_>,
    append: &Append,
    before: CachedRun,
    mac: &[u8],
) -> Result<CachedRun, Fault> {
    let first = int(append.after) + 1;
    let sql = "INSERT INTO frame (run, prev, first, count, chain, mac, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let Append { count, chain, body, .. } = append;
    let values = params![before.num, before.seq, first, count, chain, mac, body];
    work.connection.prepare_cached(sql)?.execute(values)?;
    let seq = work.connection.last_insert_rowid();
    if !append.beside.is_empty() {
        let sql = "INSERT INTO beside VALUES (?1, ?2)";
        work.connection.prepare_cached(sql)?.execute(params![seq, append.beside])?;
    }
    let version = append.after + u64::from(append.count);
    if let Some(hash) = append.chain.last_chunk::<32>() {
        let hash = Hash(*hash);
        work.written.push(WrittenFrame { seq, run: append.run, version, hash });
    }
    let after = CachedRun { version, seq, frames: before.frames + 1, ..before };
    // The database compares the version again, in case the cache is wrong.
    let sql = "UPDATE tip SET version = ?1, seq = ?2, frames = ?3 WHERE run = ?4 AND version = ?5";
    let values = [int(version), seq, int(after.frames), after.num, int(append.after)];
    if work.connection.prepare_cached(sql)?.execute(values)? != 1 {
        return Err(Fault::Statement(format!("{} changed within a transaction", append.run)));
    }
    if after.frames.is_multiple_of(FRAMES_PER_MARK) {
        let sql = "INSERT INTO mark VALUES (?1, ?2, ?3)";
        work.connection.prepare_cached(sql)?.execute([after.num, first, seq])?;
    }
    Ok(after)
}

fn write_head(work: &Work<'_>, after: &mut CachedRun, head: &Head) -> Result<(), Fault> {
    if head.ownership == Ownership::Release {
        after.owner = None;
    }
    let sql = "UPDATE run SET status = ?1, ended_at = ?2, due_at = ?3, owner = ?4, asks = ?5
               WHERE num = ?6";
    work.connection.prepare_cached(sql)?.execute(params![
        head.status.as_str(),
        head.ended_at_ms.map(int),
        head.due_at_ms.map(int),
        after.owner.map(node_bytes),
        head.asks,
        after.num,
    ])?;
    // A message that arrived before this release must make the run due, or it would
    // wait until another event wakes the run.
    if after.owner.is_none() && mailbox::is_waiting(work, after.num)? {
        mailbox::wake(work, after.num)?;
    }
    Ok(())
}
