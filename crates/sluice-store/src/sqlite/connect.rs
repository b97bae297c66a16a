//! Opens the database file and configures its connections.

use super::fault::describe;
use super::migrate::migrate;
use super::read_only::immutable_uri;
use crate::limits::{BUSY_MS, LOG_BYTES_MAX};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A store that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be created or used.
    #[error("{} cannot be used as a directory for the store", path.display())]
    Directory {
        /// The directory of the store.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The directory or the file is not writable.
    #[error("{} is read-only", path.display())]
    ReadOnly {
        /// The database file.
        path: PathBuf,
    },
    /// A later version of Sluice has changed the schema.
    #[error(
        "the database was written by a newer Sluice: its schema is {found}, this one supports {known}"
    )]
    Newer {
        /// The schema of the file.
        found: usize,
        /// The newest schema that this version supports.
        known: usize,
    },
    /// An earlier version of Sluice wrote it, and a read-only open does not migrate.
    #[error("the schema of the database is {found}; this Sluice reads {known}")]
    Older {
        /// The schema of the file.
        found: usize,
        /// The schema that this version reads.
        known: usize,
    },
    /// An applied migration differs from the one in this version.
    #[error("migration {number} of the database is not the one this Sluice has")]
    Altered {
        /// Number of the migration.
        number: i64,
    },
    /// The file is not a database, or is damaged.
    #[error("{} is damaged or not a database of Sluice", path.display())]
    Damaged {
        /// The database file.
        path: PathBuf,
    },
    /// The operating system refused to start a thread.
    #[error("cannot start a thread for the database: {0}")]
    NoThread(std::io::Error),
    /// Any other error.
    #[error("the database cannot be opened: {0}")]
    Failed(String),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> OpenError {
        match error.sqlite_error_code() {
            Some(ErrorCode::ReadOnly) => OpenError::ReadOnly { path: PathBuf::new() },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                OpenError::Damaged { path: PathBuf::new() }
            }
            Some(_) | None => OpenError::Failed(describe(&error)),
        }
    }
}

impl OpenError {
    /// Adds the path to the error.
    pub(super) fn with_path(self, file: &Path) -> OpenError {
        match self {
            OpenError::ReadOnly { .. } => OpenError::ReadOnly { path: file.to_owned() },
            OpenError::Damaged { .. } => OpenError::Damaged { path: file.to_owned() },
            other => other,
        }
    }
}

/// Creates the directory with access for its owner only. An existing one stays
/// unchanged.
pub(super) fn directory(path: &Path) -> Result<(), OpenError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let failed = |source| OpenError::Directory { path: path.to_owned(), source };
    builder.create(path).map_err(failed)
}

/// Creates the database file if it is missing, and restricts it and its log to their
/// owner, also in a directory that another program created. SQLite gives the log the
/// permissions of the database.
pub(super) fn private(file: &Path) {
    // If the file cannot be created, SQLite reports why.
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    for end in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(end);
        narrow(Path::new(&path));
    }
}

/// Removes the permissions of everyone but the owner. A process that does not own the
/// file cannot do that, and uses the file unchanged.
fn narrow(path: &Path) {
    let Ok(metadata) = std::fs::metadata(path) else { return };
    let mode = metadata.permissions().mode();
    if mode & 0o077 != 0 {
        let _ = std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700));
    }
}

/// The connection that writes, on a migrated database.
pub(super) fn writer(file: &Path) -> Result<Connection, OpenError> {
    let connection = Connection::open(file)?;
    if connection.is_readonly("main")? {
        return Err(OpenError::ReadOnly { path: file.to_owned() });
    }
    connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    write_ahead(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Overwrite deleted or moved content, so that an erasure leaves nothing in free
    // space.
    connection.pragma_update(None, "secure_delete", true)?;
    // The writer runs checkpoints itself, when it is idle.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX.to_string())?;
    // Negative means KiB. Pages at the ends of tables are hot; the operating system's
    // cache holds the rest.
    connection.pragma_update(None, "cache_size", -8192)?;
    stable_plans(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    migrate(&connection)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(super) fn reader(file: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    set_up_reader(Connection::open_with_flags(file, flags)?)
}

/// The same for a file that no process writes to: uses neither its log nor locks.
pub(super) fn immutable_reader(file: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    set_up_reader(Connection::open_with_flags(immutable_uri(file), flags)?)
}

fn set_up_reader(connection: Connection) -> Result<Connection, OpenError> {
    connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    connection.pragma_update(None, "cache_size", -1024)?;
    stable_plans(&connection)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Makes query plans independent of bound values. Otherwise SQLite prepares a statement
/// again for each value that could matter to a partial index.
fn stable_plans(connection: &Connection) -> Result<(), OpenError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Switches to the write-ahead log. If two processes open a new file at once, the first
/// one wins and the second one retries, because SQLite does not wait for this lock.
fn write_ahead(connection: &Connection) -> Result<(), OpenError> {
    let started = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
        let mode: String = match mode {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < Duration::from_millis(BUSY_MS) =>
            {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            mode => mode?,
        };
        if mode != "wal" {
            return Err(OpenError::Failed(
                "its file system does not support a write-ahead log".to_owned(),
            ));
        }
        return Ok(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test can cut the power, so this checks the settings that make a commit durable.
    #[test]
    fn commits_wait_for_the_disk_and_leave_the_log_to_the_writer() {
        let dir = tempfile::tempdir().unwrap();
        let connection = writer(&dir.path().join("a.db")).unwrap();
        let setting = |name: &str| -> String {
            let read = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
            let value = connection.query_row(&format!("PRAGMA {name}"), [], read).unwrap();
            format!("{value:?}")
        };
        assert_eq!(setting("journal_mode"), "Text(\"wal\")");
        assert_eq!(setting("synchronous"), "Integer(2)");
        assert_eq!(setting("wal_autocheckpoint"), "Integer(0)");
    }

    #[test]
    fn a_reader_cannot_write() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.db");
        let _writer = writer(&file).unwrap();
        let error = reader(&file).unwrap().execute("DELETE FROM run", []).unwrap_err();
        assert_eq!(describe(&error), "the database is read-only");
        assert!(matches!(
            OpenError::from(error).with_path(&file),
            OpenError::ReadOnly { path } if path == file
        ));
    }
}
