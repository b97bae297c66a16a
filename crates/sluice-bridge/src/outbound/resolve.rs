//! Resolves names to the addresses that are connected to.
//!
//! INVARIANT: the checked addresses are the ones that are connected to. The client has no other
//! resolver, so a DNS answer that changes between check and connection has no effect (DNS
//! rebinding).

use super::address::{ClosedReason, closed_reason};
use super::allow::AllowList;
use super::error::{OutboundError, OutboundRefusal};
use crate::limits::ADDRESSES_MAX;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sluice_core::port::Later;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Finds the addresses of a host. Tests replace the resolver of the system.
pub trait NameResolver: fmt::Debug + Send + Sync {
    /// Resolves a name.
    fn addresses<'a>(&'a self, name: &'a str) -> Later<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn addresses<'a>(&'a self, name: &'a str) -> Later<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|socket| socket.ip()).take(ADDRESSES_MAX).collect())
        })
    }
}

/// Checks addresses for connections to one port.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) allow: Arc<AllowList>,
    pub(super) names: Arc<dyn NameResolver>,
    pub(super) port: u16,
}

impl Guard {
    /// Why an address must not be called, if so.
    pub(super) fn closed(&self, host: Option<&str>, address: IpAddr) -> Option<ClosedReason> {
        let to = SocketAddr::new(address, self.port);
        closed_reason(address).filter(|why| !self.allow.opens(host, to, *why))
    }

    /// Resolves a name to its allowed addresses.
    pub(super) async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, OutboundError> {
        let found = self.names.addresses(name).await;
        let found = found.map_err(|error| OutboundError::Unreachable(error.to_string()))?;
        let mut first = None;
        let mut open = Vec::new();
        for address in found.into_iter().take(ADDRESSES_MAX) {
            match self.closed(Some(name), address) {
                None => open.push(SocketAddr::new(address, self.port)),
                Some(why) => first = first.or(Some((address, why))),
            }
        }
        match first {
            Some((address, why)) if open.is_empty() => {
                Err(OutboundRefusal::closed(name, SocketAddr::new(address, self.port), why).into())
            }
            _ if open.is_empty() => {
                Err(OutboundError::Unreachable(format!("`{name}` has no address")))
            }
            _ => Ok(open),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let open = guard.look_up(name.as_str()).await?;
            Ok::<Addrs, _>(Box::new(open.into_iter()))
        })
    }
}
