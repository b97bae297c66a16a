//! Errors of outgoing requests.
//!
//! No message contains a whole URL: its query may contain a secret, and its path a private
//! name. `origin` returns scheme, host and port.

use super::address::ClosedReason;
use super::host::Host;
use crate::limits::{CONNECT_MS, REDIRECTS_MAX, REQUEST_BYTES_MAX};
use reqwest::Url;
use std::net::SocketAddr;

/// One variant per thing the caller does next. Messages continue a sentence that begins with
/// the peer's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// Refused before sending; a retry does not help.
    #[error(transparent)]
    Refused(#[from] OutboundRefusal),
    /// The peer could not be reached: retry later.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The response took too long: retry later, or wait longer.
    #[error("did not answer in time")]
    Late,
    /// The response was malformed or incomplete: retry later.
    #[error("closed the connection early")]
    Broken,
    /// The response exceeds the caller's limit.
    #[error("answered with more than {0} bytes")]
    TooLong(usize),
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundRefusal {
    /// Not a URL with a host.
    #[error("is not a URL with a host")]
    NoUrl,
    /// Only HTTP is supported.
    #[error("has the scheme `{0}:`, expected `http://` or `https://`")]
    Scheme(String),
    /// The URL contains a user or password, which would show up in logs.
    #[error("has a user or password in its URL")]
    UserInfo,
    /// The address is closed.
    #[error(
        "has a {why} address (`{host}`), which is not called unless the operator allows it: add \
         `{allow}` to `allow` of `[outbound]` in sluice.toml, or to SLUICE_OUTBOUND_ALLOW"
    )]
    Closed {
        /// The host, as it was written.
        host: String,
        /// Class of its address.
        why: ClosedReason,
        /// The allow-list entry that would open it.
        allow: String,
    },
    /// Too many redirects.
    #[error("redirects more than {REDIRECTS_MAX} times")]
    Redirects,
    /// A redirect from HTTPS to HTTP.
    #[error("redirects from https to http")]
    Downgrade,
    /// The request body is too long.
    #[error("would be sent more than {REQUEST_BYTES_MAX} bytes")]
    LongRequest,
    /// A replay's recording does not match.
    #[error("{0}")]
    Diverged(String),
    /// The request was refused when it was recorded.
    #[error("{0}")]
    Recorded(String),
    /// The HTTP client could not be created.
    #[error("cannot be called: {0}")]
    NoClient(String),
}

impl OutboundRefusal {
    /// A closed host, with the allow-list entry that would open it: the name if that is
    /// enough, otherwise the address.
    pub(super) fn closed(host: &str, to: SocketAddr, why: ClosedReason) -> OutboundRefusal {
        let by_name = host.parse::<std::net::IpAddr>().is_err() && why.opens_by_name();
        let allow = if by_name { format!("{host}:{}", to.port()) } else { to.to_string() };
        OutboundRefusal::Closed { host: host.to_owned(), why, allow }
    }
}

/// Scheme, host and port of a URL: enough to identify it, and never a secret. `None` if it is
/// not a URL with a host.
pub fn origin(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Host::of(&url)?;
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    Some(format!("{}://{}{port}", url.scheme(), url.host_str()?))
}

/// Name of a peer in error messages, with its origin: `the provider at https://api.example`.
pub(crate) fn peer_at(peer: &str, url: &str) -> String {
    match origin(url) {
        Some(origin) => format!("{peer} at {origin}"),
        None => peer.to_owned(),
    }
}

/// Translates an error of the HTTP client. A refusal of the resolver comes back wrapped in the
/// client's own errors.
#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
pub(super) fn translate_error(error: reqwest::Error) -> OutboundError {
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        if let Some(ours) = inner.downcast_ref::<OutboundError>() {
            return ours.clone();
        }
        source = inner.source();
    }
    if error.is_connect() {
        // Nothing was sent, so no work can have started.
        let late = || format!("no connection within {CONNECT_MS} ms");
        let cause = if error.is_timeout() { late() } else { innermost(&error) };
        OutboundError::Unreachable(cause)
    } else if error.is_timeout() {
        OutboundError::Late
    } else {
        OutboundError::Broken
    }
}

/// The root cause of an error: the message of the operating system or TLS.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
