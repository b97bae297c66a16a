//! What the database's errors mean for the caller.

use sluice_core::port::store::StoreError;
use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

/// Something the database did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection is of no use any more, or there was none.
    Gone(String),
    /// Another transaction was in the way: the same again may succeed.
    Again(String),
    /// The disk, or the settings: it hits everyone and passes.
    World(String),
    /// What is stored makes no sense.
    Corrupt(String),
    /// This statement with these values.
    Statement(String),
}

impl Fault {
    /// Whether other writes of the same transaction would fail too.
    pub(super) fn hits_everyone(&self) -> bool {
        matches!(self, Fault::World(_) | Fault::Gone(_) | Fault::Again(_))
    }

    /// What the database or the driver said.
    pub(super) fn why(&self) -> &str {
        match self {
            Fault::Gone(why)
            | Fault::Again(why)
            | Fault::World(why)
            | Fault::Corrupt(why)
            | Fault::Statement(why) => why,
        }
    }

    /// The error of a caller whose transaction was rolled back, or who only read.
    pub(super) fn rolled_back(self) -> StoreError {
        match self {
            Fault::Gone(why) | Fault::Again(why) | Fault::World(why) | Fault::Statement(why) => {
                StoreError::Unavailable(why)
            }
            Fault::Corrupt(why) => StoreError::Corrupt(why),
        }
    }

    /// The error of a caller whose commit was under way.
    pub(super) fn not_committed(self) -> StoreError {
        match self {
            Fault::Gone(why) => StoreError::Unknown(why),
            Fault::Again(_) | Fault::World(_) | Fault::Corrupt(_) | Fault::Statement(_) => {
                self.rolled_back()
            }
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        if let Some(db) = error.as_db_error() {
            return from_database(db);
        }
        let why = describe(&error);
        // A value that cannot be sent is the sender's fault, and the only one here
        // that says nothing of the connection.
        if why.starts_with("error serializing") { Fault::Statement(why) } else { Fault::Gone(why) }
    }
}

fn from_database(error: &DbError) -> Fault {
    let why = error.message().to_owned();
    let code = error.code();
    let again = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        // Two who made the same row or the same table at once: the second looks again.
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
    ];
    if again.contains(code) {
        return Fault::Again(why);
    }
    let class = code.code().get(..2).unwrap_or_default();
    match class {
        // Connections; an operator's word, as when the server stops; and a server
        // that has become a replica, which is left for the one that is none.
        "08" | "57" => Fault::Gone(why),
        "25" if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Fault::Gone(why),
        // It stood still in a transaction for too long, and has lost it.
        "25" if *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Fault::Gone(why),
        // The wrong password, no such database.
        "28" | "3D" => Fault::Gone(why),
        "53" if *code == SqlState::DISK_FULL => Fault::World("the disk is full".to_owned()),
        // Means of the server, its files, rows that were held for too long, and what
        // it refuses to us as a user.
        "53" | "55" | "58" => Fault::World(why),
        "42" if *code == SqlState::INSUFFICIENT_PRIVILEGE => Fault::World(why),
        "XX" => Fault::Corrupt(why),
        _ => Fault::Statement(why),
    }
}

/// The driver's message with its cause, which alone says something.
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
        let gone = Fault::Gone("connection closed".to_owned());
        assert!(matches!(gone.clone().rolled_back(), StoreError::Unavailable(_)));
        assert!(matches!(gone.not_committed(), StoreError::Unknown(_)));
        let again = Fault::Again("deadlock detected".to_owned());
        assert!(matches!(again.not_committed(), StoreError::Unavailable(_)));
    }

    #[test]
    fn a_statement_at_fault_does_not_hit_others() {
        assert!(!Fault::Statement(String::new()).hits_everyone());
        assert!(!Fault::Corrupt(String::new()).hits_everyone());
        assert!(Fault::World(String::new()).hits_everyone());
    }
}
