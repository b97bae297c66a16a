//! The operator's allow list of non-public destinations.
//!
//! An entry is a host (`hooks.internal`), an address (`127.0.0.1`, `::1`), either with a port
//! (`127.0.0.1:8080`, `[::1]:8080`), or a network (`10.0.0.0/8`). Public addresses need no
//! entry.

use super::address::ClosedReason;
use super::host::Host;
use crate::limits::ALLOWED_MAX;
use reqwest::Url;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// An invalid entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAllow {
    /// The entry has an unknown form.
    #[error(
        "`{0}` is not a host, address or network, such as `hooks.internal`, `127.0.0.1:8080` or `10.0.0.0/8`"
    )]
    NotOne(String),
    /// A network address with bits beyond the prefix length.
    #[error("`{0}` is not the address of a network: `{1}` is")]
    Ragged(String, String),
    /// The list is too long.
    #[error("the allow list has more than {ALLOWED_MAX} entries")]
    TooMany,
}

/// Hosts, addresses and networks that the outbound guard lets through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<AllowEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowEntry {
    what: AllowTarget,
    /// `None` for all ports.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowTarget {
    Host(String),
    Network(Network),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    length: u8,
}

impl AllowList {
    /// A list that allows nothing.
    pub fn none() -> AllowList {
        AllowList::default()
    }

    /// Parses entries.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<AllowList, BadAllow> {
        let mut entries = Vec::new();
        for word in words {
            if entries.len() == ALLOWED_MAX {
                return Err(BadAllow::TooMany);
            }
            entries.push(word.trim().parse()?);
        }
        Ok(AllowList { entries })
    }

    /// Adds a URL's host and port: what an operator configures may be called.
    #[must_use]
    pub fn and(mut self, url: &Url) -> AllowList {
        let what = match Host::of(url) {
            Some(Host::Address(address)) => AllowTarget::Network(Network::of(address)),
            Some(Host::Name(name)) => AllowTarget::Host(normalised(name)),
            None => return self,
        };
        self.entries.push(AllowEntry { what, port: url.port_or_known_default() });
        self
    }

    /// Whether an entry allows a closed address at a port, reached by its host's name if it
    /// has one.
    pub(super) fn opens(&self, host: Option<&str>, to: SocketAddr, why: ClosedReason) -> bool {
        self.entries.iter().filter(|entry| entry.port.is_none_or(|port| port == to.port())).any(
            |entry| match &entry.what {
                AllowTarget::Network(network) => network.contains(to.ip()),
                AllowTarget::Host(name) => {
                    why.opens_by_name() && host.is_some_and(|host| normalised(host) == *name)
                }
            },
        )
    }
}

impl FromStr for AllowEntry {
    type Err = BadAllow;

    fn from_str(word: &str) -> Result<AllowEntry, BadAllow> {
        if word.contains('/') {
            return Ok(AllowEntry { what: AllowTarget::Network(word.parse()?), port: None });
        }
        if let Ok(address) = word.parse::<IpAddr>() {
            return Ok(AllowEntry { what: AllowTarget::Network(Network::of(address)), port: None });
        }
        if let Ok(socket) = word.parse::<SocketAddr>() {
            let what = AllowTarget::Network(Network::of(socket.ip()));
            return Ok(AllowEntry { what, port: Some(socket.port()) });
        }
        let bad = || BadAllow::NotOne(word.to_owned());
        let (name, port) = match word.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| bad())?)),
            None => (word, None),
        };
        if name.is_empty() || !name.chars().all(is_of_name) {
            return Err(bad());
        }
        // Parsed as a URL would be: what a URL reads as an address is not a name.
        let url = Url::parse(&format!("http://{name}/")).map_err(|_| bad())?;
        match Host::of(&url) {
            Some(Host::Name(name)) => {
                Ok(AllowEntry { what: AllowTarget::Host(normalised(name)), port })
            }
            _ => Err(bad()),
        }
    }
}

impl Network {
    fn of(address: IpAddr) -> Network {
        let address = address.to_canonical();
        Network { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.length) == self.address
    }
}

impl FromStr for Network {
    type Err = BadAllow;

    fn from_str(word: &str) -> Result<Network, BadAllow> {
        let bad = || BadAllow::NotOne(word.to_owned());
        let (address, length) = word.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let length: u8 = length.parse().map_err(|_| bad())?;
        if length > if address.is_ipv4() { 32 } else { 128 } {
            return Err(bad());
        }
        let network = Network { address: masked(address, length), length };
        if network.address == address {
            Ok(network)
        } else {
            Err(BadAllow::Ragged(word.to_owned(), network.to_string()))
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The first `length` bits of an address.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

/// Normalises a host name for comparison.
fn normalised(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opens(entry: &str, host: Option<&str>, to: &str) -> bool {
        let list = AllowList::parse([entry]).expect("the entry is one");
        list.opens(host, to.parse().expect("it is an address"), ClosedReason::Private)
    }

    #[test]
    fn an_entry_opens_what_it_names_and_nothing_else() {
        assert!(opens("10.0.0.0/8", None, "10.1.2.3:80"));
        assert!(opens("10.0.0.0/8", None, "[::ffff:10.1.2.3]:80"));
        assert!(!opens("10.0.0.0/8", None, "11.1.2.3:80"));
        assert!(!opens("10.0.0.0/8", None, "[64:ff9b::a00:1]:80"));
        assert!(opens("0.0.0.0/0", None, "10.1.2.3:80"));
        assert!(!opens("0.0.0.0/0", None, "[fd00::1]:80"));
        assert!(opens("fd00::/8", None, "[fd12::1]:80"));
        assert!(opens("127.0.0.1", None, "127.0.0.1:9"));
        assert!(!opens("127.0.0.1", None, "127.0.0.2:9"));
        assert!(opens("127.0.0.1:8080", None, "127.0.0.1:8080"));
        assert!(!opens("127.0.0.1:8080", None, "127.0.0.1:8081"));
        assert!(opens("[::1]:8080", None, "[::1]:8080"));
        assert!(opens("hooks.internal", Some("Hooks.Internal."), "10.0.0.1:80"));
        assert!(opens("hooks.internal:443", Some("hooks.internal"), "10.0.0.1:443"));
        assert!(!opens("hooks.internal:443", Some("hooks.internal"), "10.0.0.1:80"));
        assert!(!opens("hooks.internal", Some("evil.hooks.internal"), "10.0.0.1:80"));
        assert!(!opens("hooks.internal", None, "10.0.0.1:80"));
    }

    #[test]
    fn a_name_never_allows_a_metadata_service() {
        let list = AllowList::parse(["hooks.internal"]).expect("the entry is one");
        let to = "169.254.169.254:80".parse().expect("it is an address");
        assert!(!list.opens(Some("hooks.internal"), to, ClosedReason::Metadata));
        let list = AllowList::parse(["169.254.169.254"]).expect("the entry is one");
        assert!(list.opens(Some("hooks.internal"), to, ClosedReason::Metadata));
    }

    #[test]
    fn a_malformed_entry_is_rejected() {
        for word in [
            "",
            " ",
            "*",
            "10.0.0.0/33",
            "10/8",
            "a b",
            "http://x",
            "x:70000",
            "x:",
            "1:2:3",
            "a%00",
            "2130706433",
            "0x7f.1",
            "::/129",
            "10.0.0.0/-1",
        ] {
            assert!(AllowList::parse([word]).is_err(), "{word}");
        }
        let ragged = AllowList::parse(["10.0.0.1/8"]).unwrap_err().to_string();
        assert_eq!(ragged, "`10.0.0.1/8` is not the address of a network: `10.0.0.0/8` is");
    }

    #[test]
    fn a_configured_url_is_allowed_only_at_its_port() {
        let url = Url::parse("http://127.0.0.1:9000/x").expect("it is a URL");
        let list = AllowList::none().and(&url);
        let opens = |to: &str| {
            list.opens(None, to.parse().expect("it is an address"), ClosedReason::Loopback)
        };
        assert!(opens("127.0.0.1:9000"));
        assert!(!opens("127.0.0.1:9001"));
    }
}
