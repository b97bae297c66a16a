//! Listens for connections, beyond this machine only if that is allowed.

use crate::config::{self, setting::Name};
use sluice_server::limits::BACKLOG;
use sluice_server::refused::Refused;
use tokio::net::{TcpListener, TcpSocket};

pub(crate) const LISTEN_REFUSED: &str = "listen_refused";

/// Listens at an address. One that is not loopback must be allowed, because `secrets`
/// would be sent unencrypted.
pub(super) async fn listen(address: &str, secrets: &str) -> anyhow::Result<TcpListener> {
    let bound = bind(address).await.map_err(|error| {
        let message = format!("cannot listen at {address}: {error}");
        let remedy =
            "choose another address with `--listen ADDR`, or stop the process that uses it";
        Refused::new(LISTEN_REFUSED, message, remedy)
    })?;
    if !bound.local_addr()?.ip().is_loopback() && !config::get().is_on(Name::AllowRemote) {
        let message =
            format!("{address} is not a loopback address, so {secrets} would be sent unencrypted");
        let remedy = "listen at 127.0.0.1, or put a TLS proxy in front and add `--allow-remote`";
        return Err(Refused::new(LISTEN_REFUSED, message, remedy).into());
    }
    Ok(bound)
}

/// Binds to the first address of a name that is available. The backlog is long, so that bursts
/// of connections are queued instead of dropped.
async fn bind(address: &str) -> std::io::Result<TcpListener> {
    let mut failed = None;
    for found in tokio::net::lookup_host(address).await? {
        let socket = if found.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        match socket.bind(found).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into()))
}
