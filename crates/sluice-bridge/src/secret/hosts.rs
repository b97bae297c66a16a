//! Hosts that may receive a secret.
//!
//! An entry is a host (`api.openai.com`), all hosts below one (`*.example.com`) or an address
//! (`127.0.0.1`, `[::1]`), each with a port or for all ports.

use crate::outbound::host::Host;
use reqwest::Url;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An invalid entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host, such as `api.example.com`, `*.example.com` or `127.0.0.1:8080`")]
pub struct BadHost(String);

/// A list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts(Vec<HostEntry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostEntry {
    what: HostPattern,
    /// `None` for all ports.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Name(String),
    /// Names that end with a dot and this one.
    Below(String),
    Address(IpAddr),
}

impl Hosts {
    /// Parses entries.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Hosts, BadHost> {
        words.into_iter().map(|word| word.trim().parse()).collect::<Result<_, _>>().map(Hosts)
    }

    /// Whether an entry matches the URL's host and port.
    pub fn contains(&self, url: &Url) -> bool {
        let (Some(host), port) = (Host::of(url), url.port_or_known_default()) else { return false };
        let fits = |entry: &HostEntry| match (&entry.what, host) {
            (HostPattern::Address(address), Host::Address(to)) => *address == to.to_canonical(),
            (HostPattern::Name(name), Host::Name(to)) => *name == normalised(to),
            (HostPattern::Below(name), Host::Name(to)) => normalised(to)
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            _ => false,
        };
        self.0.iter().any(|entry| entry.port.is_none_or(|one| Some(one) == port) && fits(entry))
    }
}

/// Normalises a host name for comparison.
fn normalised(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

impl FromStr for HostEntry {
    type Err = BadHost;

    fn from_str(word: &str) -> Result<HostEntry, BadHost> {
        let bad = || BadHost(sluice_core::visible::brief(word).into_owned());
        // An IPv6 address may be written without brackets.
        if let Ok(address) = word.parse::<IpAddr>() {
            return Ok(HostEntry {
                what: HostPattern::Address(address.to_canonical()),
                port: None,
            });
        }
        let (below, rest) = match word.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let fits = |c: char| c.is_alphanumeric() || "-._:[]".contains(c);
        if rest.is_empty() || !rest.chars().all(fits) {
            return Err(bad());
        }
        // Parsed as a URL would be, including Unicode names and other notations of
        // addresses.
        let url = Url::parse(&format!("http://{rest}/")).map_err(|_| bad())?;
        // The URL omits a default port, so the port is parsed from the text.
        let port = match rest.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                Some(port.parse().map_err(|_| bad())?)
            }
            _ => None,
        };
        let what = match (Host::of(&url), below) {
            (Some(Host::Name(name)), false) => HostPattern::Name(normalised(name)),
            (Some(Host::Name(name)), true) => HostPattern::Below(normalised(name)),
            (Some(Host::Address(address)), false) => HostPattern::Address(address.to_canonical()),
            _ => return Err(bad()),
        };
        Ok(HostEntry { what, port })
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, HostEntry { what, port }) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            match what {
                HostPattern::Name(name) => f.write_str(name)?,
                HostPattern::Below(name) => write!(f, "*.{name}")?,
                HostPattern::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
                HostPattern::Address(address) => write!(f, "{address}")?,
            }
            port.iter().try_for_each(|port| write!(f, ":{port}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_host_matches() {
        let hosts = [
            "api.openai.com",
            "*.example.com",
            "127.0.0.1:8080",
            "[::1]:9000",
            "hooks.internal:443",
            "Bücher.example",
        ];
        let hosts = Hosts::parse(hosts).unwrap();
        for url in [
            "https://api.openai.com/v1",
            "https://API.OpenAI.com./v1",
            "http://api.openai.com:8443/",
            "https://eu.example.com/",
            "https://a.b.example.com/",
            "http://127.0.0.1:8080/x",
            "http://2130706433:8080/x",
            "http://[::1]:9000/",
            "https://hooks.internal/",
            "https://xn--bcher-kva.example/",
        ] {
            assert!(hosts.contains(&Url::parse(url).unwrap()), "{url}");
        }
        for url in [
            "https://openai.com/",
            "https://api.openai.com.evil.net/",
            "https://api-openai.com/",
            "https://evilapi.openai.com/",
            "https://example.com/",
            "https://evilexample.com/",
            "https://.example.com/",
            "http://127.0.0.1:8081/",
            "http://127.0.0.1/",
            "http://localhost:8080/",
            "http://hooks.internal/",
            "https://evil.net/api.openai.com",
        ] {
            let listed = Url::parse(url).is_ok_and(|url| hosts.contains(&url));
            assert!(!listed, "{url}");
        }
        assert!(!Hosts::default().contains(&Url::parse("https://api.openai.com").unwrap()));
    }

    #[test]
    fn an_invalid_host_is_rejected() {
        for word in [
            "",
            "*",
            "*.",
            "a b",
            "https://x.example",
            "x.example/path",
            "me@x.example",
            "*.127.0.0.1",
            "x.example:port",
            "x.example:99999",
            "10.0.0.0/8",
            "a.*.example",
        ] {
            assert!(Hosts::parse([word]).is_err(), "{word}");
        }
        let hosts = Hosts::parse(["*.Example.com", "::1", "127.0.0.1:80", "x:80"]).unwrap();
        assert_eq!(hosts.to_string(), "*.example.com, [::1], 127.0.0.1:80, x:80");
    }
}
