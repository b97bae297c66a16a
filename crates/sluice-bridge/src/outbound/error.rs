//! Why nothing came of a call.
//!
//! No message holds a whole URL: its query may hold a secret, and its path a
//! private name. Scheme, host and port are enough to know which one it
//! was: `origin` has them.

use super::address::Closed;
use super::host::Host;
use crate::limits::{CONNECT_MS, REDIRECTS_MAX, REQUEST_BYTES_MAX};
use reqwest::Url;
use std::net::SocketAddr;

/// What went wrong. One variant per thing the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// It is not done here, now or later.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody is there, or not now: ask later.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The answer takes too long: ask later, or wait longer.
    #[error("does not answer in time")]
    Late,
    /// What came was no answer, or half of one: ask later.
    #[error("broke off")]
    Broken,
    /// The answer is longer than the caller takes.
    #[error("answers with more than {0} bytes")]
    TooLong(usize),
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no address.
    #[error("is no URL with a host")]
    NoUrl,
    /// Only HTTP is spoken.
    #[error("`{0}:` is not spoken; URLs begin with `http://` or `https://`")]
    Scheme(String),
    /// A user or password stands in the URL, where it would be shown.
    #[error("has a user or password in its URL")]
    UserInfo,
    /// The host is none that strangers may name.
    #[error(
        "has a {why} address (`{host}`), which is not called unless the operator allows it: add \
         `{allow}` to `allow` of `[outbound]` in sluice.toml, or to SLUICE_OUTBOUND_ALLOW"
    )]
    Closed {
        /// The host, as it was written.
        host: String,
        /// What kind of address it has.
        why: Closed,
        /// The entry of the allow-list that would open it.
        allow: String,
    },
    /// From one to the next, without end.
    #[error("redirects more than {REDIRECTS_MAX} times")]
    Redirects,
    /// What was secure is sent on to where it would not be.
    #[error("redirects from https to http")]
    Downgrade,
    /// There is too much to send.
    #[error("is to be sent more than {REQUEST_BYTES_MAX} bytes")]
    LongRequest,
    /// Only a recording is asked, and it has something else.
    #[error("{0}")]
    Diverged(String),
    /// It was not done when it was recorded.
    #[error("{0}")]
    Recorded(String),
    /// No client can be made here.
    #[error("cannot be called from here: {0}")]
    NoClient(String),
}

impl Refusal {
    /// Of a host that is closed, with the entry that would open it: its name where a
    /// name opens it, else its address.
    pub(super) fn closed(host: &str, to: SocketAddr, why: Closed) -> Refusal {
        let by_name = host.parse::<std::net::IpAddr>().is_err() && why.opens_by_name();
        let allow = if by_name { format!("{host}:{}", to.port()) } else { to.to_string() };
        Refusal::Closed { host: host.to_owned(), why, allow }
    }
}

/// Scheme, host and port of a URL: enough to know which one is meant, and never a
/// secret. None if it is not a URL that could be called.
pub fn origin(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Host::of(&url)?;
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    Some(format!("{}://{}{port}", url.scheme(), url.host_str()?))
}

/// A component as errors name it, with where it was asked: `the provider at
/// https://api.example`.
pub(crate) fn asked_at(who: &str, url: &str) -> String {
    match origin(url) {
        Some(origin) => format!("{who} at {origin}"),
        None => who.to_owned(),
    }
}

/// What the client says went wrong, in our words. A judgement on addresses comes
/// back wrapped in the client's own errors.
#[expect(clippy::needless_pass_by_value, reason = "it stands where errors are mapped")]
pub(super) fn told(error: reqwest::Error) -> OutboundError {
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        if let Some(ours) = inner.downcast_ref::<OutboundError>() {
            return ours.clone();
        }
        source = inner.source();
    }
    if error.is_connect() {
        // Nothing was sent, so no work can have begun.
        let late = || format!("no connection within {CONNECT_MS} ms");
        let cause = if error.is_timeout() { late() } else { innermost(&error) };
        OutboundError::Unreachable(cause)
    } else if error.is_timeout() {
        OutboundError::Late
    } else {
        OutboundError::Broken
    }
}

/// The first cause of an error: what the operating system or TLS said.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
