//! Mailboxes of runs.

use super::column::{int, node_bytes, run_bytes, run_id, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use super::writer::Work;
use crate::authentic::Keys;
use crate::limits::MESSAGES_MAX;
use rusqlite::{Row, params};
use sluice_core::port::store::{MailboxMessage, Mailboxes, Posted, Received};

/// Puts a message into the mailbox of a run, once per key.
pub(super) fn post(
    work: &mut Work<'_>,
    message: &MailboxMessage,
    mac: &[u8],
) -> Result<Posted, Fault> {
    let Some(known) = work.cache.find(work.connection, message.run)? else {
        return Ok(Posted::NoRun);
    };
    let sql = "INSERT OR IGNORE INTO letter (run, key, body, mac) VALUES (?1, ?2, ?3, ?4)";
    let values = params![known.num, message.key, message.body, mac];
    if work.connection.prepare_cached(sql)?.execute(values)? == 0 {
        return Ok(Posted::Duplicate);
    }
    if known.owner.is_none() {
        wake(work, known.num)?;
    }
    Ok(Posted::Done)
}

/// Makes a run without an owner due at once.
pub(super) fn wake(work: &Work<'_>, num: i64) -> Result<(), Fault> {
    let sql = "UPDATE run SET due_at = ?1 WHERE num = ?2 AND (due_at IS NULL OR due_at > ?1)";
    work.connection.prepare_cached(sql)?.execute([int(work.now_ms), num])?;
    Ok(())
}

/// Whether a run has unread messages.
pub(super) fn is_waiting(work: &Work<'_>, num: i64) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM letter WHERE run = ?1 AND body IS NOT NULL";
    Ok(work.connection.prepare_cached(sql)?.exists([num])?)
}

/// Unread messages, oldest first.
pub(super) fn unread(reader: &ReadConnection, of: Mailboxes) -> Result<Vec<Received>, Fault> {
    // Few messages are unread at any time, so both queries start with them.
    let (sql, mailbox_id) = match of {
        Mailboxes::Run(run) => (
            "SELECT letter.id, run.id, key, body, mac FROM run JOIN letter ON letter.run = run.num
             WHERE run.id = ?1 AND body IS NOT NULL ORDER BY letter.id LIMIT ?2",
            run_bytes(run),
        ),
        Mailboxes::Owner(node) => (
            "SELECT letter.id, run.id, key, body, mac FROM letter INDEXED BY letter_unread
             CROSS JOIN run ON run.num = letter.run
             WHERE body IS NOT NULL AND owner = ?1 ORDER BY letter.id LIMIT ?2",
            node_bytes(node),
        ),
    };
    let mut statement = reader.connection.prepare_cached(sql)?;
    let limit = int(MESSAGES_MAX as u64);
    let rows =
        statement.query_map(params![mailbox_id, limit], |row| read(&reader.shared.keys, row))?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?)
}

fn read(keys: &Keys, row: &Row<'_>) -> rusqlite::Result<Received> {
    let message = MailboxMessage { run: run_id(row.get(1)?), key: row.get(2)?, body: row.get(3)? };
    let is_authentic = keys.is_message(&message, row.get_ref(4)?.as_blob()?);
    Ok(Received { id: uint(row.get(0)?), message, is_authentic })
}
