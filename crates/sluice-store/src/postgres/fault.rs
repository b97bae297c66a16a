//! Classifies the database's errors for the caller.

use sluice_core::port::store::StoreError;
use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection is lost, or could not be made.
    Disconnected(String),
    /// A conflict with another transaction: a retry may succeed.
    Conflict(String),
    /// The disk or the configuration: temporary, and affects all writes.
    Environment(String),
    /// The database holds invalid data.
    Corrupt(String),
    /// This statement with these values.
    Statement(String),
}

impl Fault {
    /// Whether other writes of the same transaction would fail too.
    pub(super) fn affects_all(&self) -> bool {
        matches!(self, Fault::Environment(_) | Fault::Disconnected(_) | Fault::Conflict(_))
    }

    /// The message of the database or the driver.
    pub(super) fn why(&self) -> &str {
        match self {
            Fault::Disconnected(why)
            | Fault::Conflict(why)
            | Fault::Environment(why)
            | Fault::Corrupt(why)
            | Fault::Statement(why) => why,
        }
    }

    /// The error of a caller whose transaction was rolled back, or which only reads.
    pub(super) fn rolled_back(self) -> StoreError {
        match self {
            Fault::Disconnected(why)
            | Fault::Conflict(why)
            | Fault::Environment(why)
            | Fault::Statement(why) => StoreError::Unavailable(why),
            Fault::Corrupt(why) => StoreError::Corrupt(why),
        }
    }

    /// The error of a caller whose commit was in progress.
    pub(super) fn not_committed(self) -> StoreError {
        match self {
            Fault::Disconnected(why) => StoreError::Unknown(why),
            Fault::Conflict(_)
            | Fault::Environment(_)
            | Fault::Corrupt(_)
            | Fault::Statement(_) => self.rolled_back(),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        if let Some(db) = error.as_db_error() {
            return from_database(db);
        }
        let why = describe(&error);
        // An unsendable value is the caller's fault, and the only driver error that
        // does not concern the connection.
        if why.starts_with("error serializing") {
            Fault::Statement(why)
        } else {
            Fault::Disconnected(why)
        }
    }
}

fn from_database(error: &DbError) -> Fault {
    let why = error.message().to_owned();
    let code = error.code();
    let conflict = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        // Two nodes created the same row or table at once: the second one retries.
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
    ];
    if conflict.contains(code) {
        return Fault::Conflict(why);
    }
    let class = code.code().get(..2).unwrap_or_default();
    match class {
        // Connection errors; an intervention by the operator, such as a server stop;
        // and a server that has become a replica, so that the primary is tried next.
        "08" | "57" => Fault::Disconnected(why),
        "25" if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Fault::Disconnected(why),
        // The transaction was idle for too long and was aborted.
        "25" if *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Fault::Disconnected(why),
        // The wrong password, or no such database.
        "28" | "3D" => Fault::Disconnected(why),
        "53" if *code == SqlState::DISK_FULL => Fault::Environment("the disk is full".to_owned()),
        // Exhausted resources of the server, its files, lock timeouts, and missing
        // privileges.
        "53" | "55" | "58" => Fault::Environment(why),
        "42" if *code == SqlState::INSUFFICIENT_PRIVILEGE => Fault::Environment(why),
        "XX" => Fault::Corrupt(why),
        _ => Fault::Statement(why),
    }
}

/// The driver's message with its cause, which alone is specific.
pub(super) fn describe(error: &Error) -> String {
    if let Some(db) = error.as_db_error() {
        return db.message().to_owned();
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_went_leaves_a_commit_open_and_nothing_else() {
        let lost = Fault::Disconnected("connection closed".to_owned());
        assert!(matches!(lost.clone().rolled_back(), StoreError::Unavailable(_)));
        assert!(matches!(lost.not_committed(), StoreError::Unknown(_)));
        let conflict = Fault::Conflict("deadlock detected".to_owned());
        assert!(matches!(conflict.not_committed(), StoreError::Unavailable(_)));
    }

    #[test]
    fn a_statement_at_fault_does_not_hit_others() {
        assert!(!Fault::Statement(String::new()).affects_all());
        assert!(!Fault::Corrupt(String::new()).affects_all());
        assert!(Fault::Environment(String::new()).affects_all());
    }
}
