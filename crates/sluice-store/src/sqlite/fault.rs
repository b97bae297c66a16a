//! Classifies SQLite's errors for the caller.

use rusqlite::{Error, ErrorCode};
use sluice_core::port::store::StoreError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The disk, the file system or another process: temporary, unrelated to the
    /// statement, and affects all writes.
    Environment(String),
    /// The same, while writing the log: after a crash the write may be durable.
    Log(String),
    /// The file holds invalid data.
    Corrupt(String),
    /// This statement with these values.
    Statement(String),
}

impl Fault {
    /// Whether other writes of the same transaction would fail too.
    pub(super) fn affects_all(&self) -> bool {
        matches!(self, Fault::Environment(_) | Fault::Log(_))
    }

    /// The error of a caller whose transaction was rolled back.
    pub(super) fn rolled_back(&self) -> StoreError {
        match self {
            Fault::Environment(why) | Fault::Log(why) | Fault::Statement(why) => {
                StoreError::Unavailable(why.clone())
            }
            Fault::Corrupt(why) => StoreError::Corrupt(why.clone()),
        }
    }

    /// The error of a caller whose commit failed.
    pub(super) fn not_committed(&self) -> StoreError {
        match self {
            Fault::Log(why) => StoreError::Unknown(why.clone()),
            Fault::Environment(_) | Fault::Corrupt(_) | Fault::Statement(_) => self.rolled_back(),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let why = describe(&error);
        match error.sqlite_error_code() {
            Some(ErrorCode::SystemIoFailure) => Fault::Log(why),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Fault::Corrupt(why),
            Some(
                ErrorCode::ConstraintViolation
                | ErrorCode::TooBig
                | ErrorCode::TypeMismatch
                | ErrorCode::ApiMisuse
                | ErrorCode::ParameterOutOfRange,
            ) => Fault::Statement(why),
            Some(_) => Fault::Environment(why),
            // The file contains a value of an unexpected type or size.
            None => Fault::Corrupt(why),
        }
    }
}

/// A plain message for the common errors; SQLite's own message for the rest.
pub(super) fn describe(error: &Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
        Some(ErrorCode::ReadOnly) => "the database is read-only".to_owned(),
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            format!("the database cannot be opened: {error}")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process is using the database for too long".to_owned()
        }
        Some(ErrorCode::SystemIoFailure) => format!("reading or writing the disk failed: {error}"),
        Some(ErrorCode::DatabaseCorrupt) => "the database file is damaged".to_owned(),
        Some(ErrorCode::NotADatabase) => "the file is not a database".to_owned(),
        Some(_) | None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn fault(code: i32) -> Fault {
        Fault::from(Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn a_log_that_could_not_be_written_leaves_the_outcome_open() {
        let fault = fault(ffi::SQLITE_IOERR_FSYNC);
        assert!(matches!(fault.not_committed(), StoreError::Unknown(_)));
        assert!(matches!(fault.rolled_back(), StoreError::Unavailable(_)));
        assert!(fault.affects_all());
    }

    #[test]
    fn misfortunes_are_named() {
        for (code, text) in [
            (ffi::SQLITE_FULL, "the store is unavailable: the disk is full"),
            (ffi::SQLITE_READONLY, "the store is unavailable: the database is read-only"),
            (
                ffi::SQLITE_BUSY,
                "the store is unavailable: another process is using the database for too long",
            ),
            (ffi::SQLITE_CORRUPT, "the stored data cannot be read: the database file is damaged"),
        ] {
            assert_eq!(fault(code).rolled_back().to_string(), text);
            assert_eq!(fault(code).not_committed().to_string(), text);
        }
    }

    #[test]
    fn a_statement_at_fault_does_not_hit_others() {
        assert!(!fault(ffi::SQLITE_TOOBIG).affects_all());
        assert!(!fault(ffi::SQLITE_CORRUPT).affects_all());
        assert!(fault(ffi::SQLITE_FULL).affects_all());
    }
}
