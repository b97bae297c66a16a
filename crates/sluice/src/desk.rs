//! Whom a command asks: the data directory here, or a server.
//!
//! Both give the same JSON, and one piece of code draws it. What the two can do
//! for each noun is in the commands of that noun.

use crate::cli::rows::BreakGlass;
use crate::cli::run::{Data, Name};
use crate::client::{Client, only_here};
use crate::config;
use crate::local::Local;
use sluice_server::refused::Refused;

/// Whom a command asks.
pub(crate) enum Desk {
    Here(Local),
    There(Client),
}

impl Desk {
    /// The server, if one is named; else a data directory that is there, only to look.
    pub(crate) async fn read(data: &Data) -> anyhow::Result<Desk> {
        match server()? {
            Some(client) => Ok(Desk::There(client)),
            None => Ok(Desk::Here(Local::read(data).await?)),
        }
    }

    /// The same for a command that writes.
    pub(crate) async fn write(data: &Data) -> anyhow::Result<Desk> {
        match server_for(data)? {
            Some(client) => Ok(Desk::There(client)),
            None => Ok(Desk::Here(Local::look(data).await?)),
        }
    }

    pub(crate) async fn close(self) {
        if let Desk::Here(local) = self {
            local.close().await;
        }
    }
}

/// The server that commands talk to, if one is named.
pub(crate) fn server() -> Result<Option<Client>, Refused> {
    config::get().server().map(Client::new).transpose()
}

/// The same for a command that writes: a server compares its own store with its seals.
pub(crate) fn server_for(data: &Data) -> Result<Option<Client>, Refused> {
    match server()? {
        Some(_) if data.accept_rollback.is_some() => Err(only_here("`--accept-rollback`")),
        found => Ok(found),
    }
}

/// Refuses what is about a data directory while a server is named: whoever named it
/// would think that it was done there.
pub(crate) fn here(what: &str) -> Result<(), Refused> {
    match server()? {
        Some(_) => Err(only_here(what)),
        None => Ok(()),
    }
}

/// A server knows who asks by their token.
pub(crate) fn by_token(name: &Name) -> Result<(), Refused> {
    match name.who {
        Some(_) => Err(only_here("`--as`")),
        None => Ok(()),
    }
}

/// Policies of a server are asked whatever the client says.
pub(crate) fn without_glass(glass: &BreakGlass) -> Result<(), Refused> {
    match glass.reason {
        Some(_) => Err(only_here("`--break-glass`")),
        None => Ok(()),
    }
}
