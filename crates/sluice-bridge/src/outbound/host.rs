//! The host of a URL: an address, or a name to resolve.

use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The host of a URL.
///
/// INVARIANT: the URL is parsed first, so that every notation of an address (`2130706433`,
/// `0x7f.1`, `0177.0.0.1`) becomes an address here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host<'u> {
    Address(IpAddr),
    Name(&'u str),
}

impl Host<'_> {
    /// The host of a URL, if it has one.
    pub(crate) fn of(url: &Url) -> Option<Host<'_>> {
        let host = url.host_str().filter(|host| !host.is_empty())?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(bare) = bare {
            return bare.parse::<Ipv6Addr>().ok().map(|address| Host::Address(address.into()));
        }
        let address = host.parse::<Ipv4Addr>().ok().map(|address| Host::Address(address.into()));
        Some(address.unwrap_or(Host::Name(host)))
    }
}
