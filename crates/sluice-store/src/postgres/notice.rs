//! Notices between nodes: that something has changed.
//!
//! A hint and nothing more. Who waits for changes looks again after its patience
//! in any case, so a notice that is lost costs that long, and a database that
//! knows no notices costs it always.

use super::Shared;
use super::address::Address;
use super::column::get;
use super::fault::Fault;
use super::migrate::quoted;
use super::session::Session;
use crate::limits::{LOOK_MS, NOTICES_MAX, RECONNECT_MS};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Tells other nodes of changes here, and hears of theirs, as long as it is polled.
pub(super) async fn exchange(address: Arc<Address>, shared: Arc<Shared>) {
    loop {
        let (heard, mut notices) = mpsc::channel(NOTICES_MAX);
        if let Ok((session, channel)) = listen(&address, heard).await {
            // What was missed meanwhile is made up for by a look.
            shared.foreign.send_modify(|changes| *changes += 1);
            let _ = converse(&session, &channel, &mut notices, &shared).await;
        }
        tokio::time::sleep(Duration::from_millis(RECONNECT_MS)).await;
    }
}

/// A connection that hears, and the name of what it hears.
async fn listen(
    address: &Address,
    heard: mpsc::Sender<String>,
) -> Result<(Session, String), Fault> {
    let session = Session::connect(address, Some(heard)).await?;
    // Stores of one database are told apart by their schemas.
    let rows = session.query("SELECT coalesce(current_schema()::text, '')", &[]).await?;
    let schema: String = get(&rows[0], 0)?;
    let channel = format!("sluice_{schema}");
    session.script(&format!("LISTEN {}", quoted(&channel))).await?;
    Ok((session, channel))
}

/// Ends with the connection.
async fn converse(
    session: &Session,
    channel: &str,
    notices: &mut mpsc::Receiver<String>,
    shared: &Shared,
) -> Result<(), Fault> {
    loop {
        tokio::select! {
            heard = notices.recv() => match heard {
                // One's own come back too.
                Some(from) if from != shared.name => {
                    shared.foreign.send_modify(|changes| *changes += 1);
                }
                Some(_) => {}
                None => return Ok(()),
            },
            () = shared.changed.notified() => {
                session.query("SELECT pg_notify($1, $2)", &[&channel, &shared.name]).await?;
                // However much is written, one notice in so long is enough.
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
        }
    }
}
