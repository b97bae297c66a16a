//! Who a URL points to: an address, or a name that is still to be looked up.

use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The host of a URL.
///
/// INVARIANT: a URL is parsed before it is asked, so that every other way to write
/// an address (`2130706433`, `0x7f.1`, `0177.0.0.1`) stands here as an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host<'u> {
    /// It is written out.
    Address(IpAddr),
    /// It is to be looked up.
    Name(&'u str),
}

impl Host<'_> {
    /// The host of a URL that has one.
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
