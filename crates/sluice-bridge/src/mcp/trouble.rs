//! Why a server of tools could not be asked.

/// What went wrong. One variant per thing the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// The connection was over before anything was sent, or the server has
    /// forgotten it and did nothing: make another one and ask again.
    #[error("{0}")]
    Unsent(String),
    /// It ended, or what came was no answer. What it did, nobody knows.
    #[error("{0}")]
    Lost(String),
    /// It does not do what was asked.
    #[error("refused: {0}")]
    Refused(String),
    /// It took too long.
    #[error("did not answer within {0} ms")]
    Late(u64),
    /// It is asked too much at once.
    #[error("is asked more than {0} things at once")]
    Busy(usize),
}
