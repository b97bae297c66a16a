//! Why nothing came of a call.
//!
//! No message holds a URL: its query may hold a secret, and its path a name that
//! is nobody's business. The host is enough to know which one it was.

use super::address::Closed;
use crate::limits::{REDIRECTS_MAX, REQUEST_BYTES_MAX};

/// What went wrong. One variant per thing the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// It is not done here, now or later.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody is there, or not now: ask later.
    #[error("cannot be reached")]
    Unreachable,
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
    #[error("`{host}` has a {why} address, which is not called unless the operator allows it")]
    Closed {
        /// The host, as it was written.
        host: String,
        /// What kind of address it has.
        why: Closed,
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
    if error.is_timeout() {
        OutboundError::Late
    } else if error.is_connect() {
        OutboundError::Unreachable
    } else {
        OutboundError::Broken
    }
}
