//! Errors of a tool server.

/// One variant per thing the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum McpError {
    /// The server did not receive or did not execute the request, because the connection
    /// had ended or the session was lost: connect again and repeat.
    #[error("{0}")]
    Unsent(String),
    /// The connection ended, or the answer was malformed. It is unknown whether the server
    /// executed the request.
    #[error("{0}")]
    Lost(String),
    /// The server rejected the request.
    #[error("refused: {0}")]
    Refused(String),
    #[error("did not answer within {0} ms")]
    Late(u64),
    #[error("has more than {0} calls at the same time")]
    Busy(usize),
}
