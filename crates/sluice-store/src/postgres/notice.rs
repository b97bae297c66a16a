//! Notifications between nodes that something has changed.
//!
//! They are only a hint. A caller that waits for changes also polls after its patience,
//! so a lost notification costs that delay, and a database without notifications always
//! costs it.

use super::Shared;
use super::address::DatabaseAddress;
use super::column::get;
use super::fault::Fault;
use super::migrate::quoted;
use super::session::Session;
use crate::limits::{NOTICES_MAX, POLL_MS, RECONNECT_MS};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Sends notifications of local changes and receives those of other nodes, while
/// polled.
pub(super) async fn exchange(address: Arc<DatabaseAddress>, shared: Arc<Shared>) {
    loop {
        let (heard, mut notices) = mpsc::channel(NOTICES_MAX);
        if let Ok((session, channel)) = listen(&address, heard).await {
            // Notifications may have been missed meanwhile, so cause one read.
            shared.foreign.send_modify(|changes| *changes += 1);
            let _ = serve(&session, &channel, &mut notices, &shared).await;
        }
        tokio::time::sleep(Duration::from_millis(RECONNECT_MS)).await;
    }
}

/// A connection that listens, and the name of its channel.
async fn listen(
    address: &DatabaseAddress,
    heard: mpsc::Sender<String>,
) -> Result<(Session, String), Fault> {
    let session = Session::connect(address, Some(heard)).await?;
    // The schema distinguishes the stores of one database.
    let rows = session.query("SELECT coalesce(current_schema()::text, '')", &[]).await?;
    let schema: String = get(&rows[0], 0)?;
    let channel = format!("sluice_{schema}");
    session.script(&format!("LISTEN {}", quoted(&channel))).await?;
    Ok((session, channel))
}

/// Ends with the connection.
async fn serve(
    session: &Session,
    channel: &str,
    notices: &mut mpsc::Receiver<String>,
    shared: &Shared,
) -> Result<(), Fault> {
    loop {
        tokio::select! {
            heard = notices.recv() => match heard {
                // A store also receives its own notifications.
                Some(from) if from != shared.name => {
                    shared.foreign.send_modify(|changes| *changes += 1);
                }
                Some(_) => {}
                None => return Ok(()),
            },
            () = shared.changed.notified() => {
                session.query("SELECT pg_notify($1, $2)", &[&channel, &shared.name]).await?;
                // One notification per interval is enough, however much is written.
                tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
            }
        }
    }
}
