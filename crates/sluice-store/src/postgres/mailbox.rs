//! Reads the mailboxes of runs.

use super::column::{Id, get, number, sql_limit, text};
use super::fault::Fault;
use super::session::Session;
use crate::authentic::Keys;
use crate::limits::MESSAGES_MAX;
use sluice_core::port::store::{MailboxMessage, Mailboxes, Received};

/// Unread messages, oldest first.
pub(super) async fn unread(
    session: &Session,
    keys: &Keys,
    of: Mailboxes,
) -> Result<Vec<Received>, Fault> {
    // Few messages are unread at any time, so both queries start with them.
    let (sql, mailbox_id) = match of {
        Mailboxes::Run(run) => (
            "SELECT id, run, key, body, mac FROM letter WHERE run = $1 AND body IS NOT NULL
             ORDER BY id LIMIT $2",
            Id::from(run),
        ),
        Mailboxes::Owner(node) => (
            "SELECT letter.id, letter.run, letter.key, letter.body, letter.mac
             FROM letter JOIN run ON run.id = letter.run
             WHERE letter.body IS NOT NULL AND run.owner = $1 ORDER BY letter.id LIMIT $2",
            Id::from(node),
        ),
    };
    let rows = session.query(sql, &[&mailbox_id, &sql_limit(MESSAGES_MAX)]).await?;
    let read = |row: &tokio_postgres::Row| {
        let run = get::<Id>(row, 1)?.run();
        let message = MailboxMessage { run, key: text(row, 2)?.into_owned(), body: get(row, 3)? };
        let is_authentic = keys.is_message(&message, get(row, 4)?);
        Ok(Received { id: number(row, 0)?, message, is_authentic })
    };
    rows.iter().map(read).collect()
}
