//! Opens a database read-only, also on a read-only file system.
//!
//! Readers of a write-ahead log share a `-shm` file with its writers. SQLite opens or
//! creates that file where it can. Where it cannot, a database without a log is opened
//! as immutable. A database with a log is copied together with its log to a private
//! directory, because SQLite ignores the log of an immutable database.
//!
//! INVARIANT: reads return the content of the database and its log at one moment. If a
//! process on another mount starts to write, reads fail.

use super::connect::{self, OpenError};
use super::fault::Fault;
use crate::limits::COPY_TRIES_MAX;
use rusqlite::{Connection, ErrorCode};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A query that works on any database.
const PROBE: &str = "SELECT count(*) FROM sqlite_schema";

/// The way to open connections that read.
#[derive(Debug)]
pub(super) enum ReadSource {
    /// The database, with a log that is shared with writers.
    Shared(PathBuf),
    /// A database without a log, and the state of the file when it was opened.
    Immutable(PathBuf, Stamp),
    /// A copy of the database and its log.
    Copy(PrivateCopy),
}

/// File metadata that changes when the file is replaced or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: i128,
}

impl Stamp {
    fn read(path: &Path) -> io::Result<Stamp> {
        let found = std::fs::metadata(path)?;
        let modified_ns =
            i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        Ok(Stamp { device: found.dev(), inode: found.ino(), bytes: found.len(), modified_ns })
    }

    /// `None` if the file does not exist.
    fn find(path: &Path) -> io::Result<Option<Stamp>> {
        match Stamp::read(path) {
            Ok(stamp) => Ok(Some(stamp)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl ReadSource {
    /// Chooses how to read a database.
    pub(super) fn find(file: &Path) -> Result<ReadSource, OpenError> {
        let shared = || Ok(ReadSource::Shared(file.to_owned()));
        // SQLite opens the log with the first read.
        let read = match connect::reader(file) {
            Ok(connection) => connection.query_row(PROBE, [], |_| Ok(())),
            // Opening it again reports the damage.
            Err(OpenError::Damaged { .. }) => return shared(),
            Err(_) => return ReadSource::without_sharing(file),
        };
        match read.map_err(|error| error.sqlite_error_code()) {
            Err(Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) => {
                ReadSource::without_sharing(file)
            }
            // Any other error will be reported by the first real read.
            Ok(()) | Err(_) => shared(),
        }
    }

    /// For a directory in which the `-shm` file can be neither opened nor created.
    fn without_sharing(file: &Path) -> Result<ReadSource, OpenError> {
        let failed = |error: io::Error| OpenError::Failed(error.to_string());
        let look = || -> Result<(Stamp, Option<Stamp>), OpenError> {
            let log = Stamp::find(&log_of(file)).map_err(failed)?;
            Ok((Stamp::read(file).map_err(failed)?, log.filter(|log| log.bytes > 0)))
        };
        let mut before = look()?;
        for _ in 0..COPY_TRIES_MAX {
            if let (stamp, None) = before {
                return Ok(ReadSource::Immutable(file.to_owned(), stamp));
            }
            let copy = PrivateCopy::make(file)?;
            let after = look()?;
            if after == before {
                return Ok(ReadSource::Copy(copy));
            }
            before = after;
        }
        Err(OpenError::Failed("another process keeps writing to it while it is copied".to_owned()))
    }

    /// A connection that cannot write.
    pub(super) fn connect(&self) -> Result<Connection, OpenError> {
        match self {
            ReadSource::Shared(file) => connect::reader(file),
            ReadSource::Immutable(file, _) => connect::immutable_reader(file),
            ReadSource::Copy(copy) => connect::reader(&copy.file()),
        }
    }

    /// Refuses a result if another process has written to the database meanwhile, since
    /// it may mix two states.
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self {
            ReadSource::Shared(_) | ReadSource::Copy(_) => Ok(()),
            ReadSource::Immutable(file, opened) => {
                let log = Stamp::find(&log_of(file)).ok().flatten();
                let has_log = log.is_some_and(|log| log.bytes > 0);
                if Stamp::read(file).ok() == Some(*opened) && !has_log {
                    return Ok(());
                }
                let why = "another process has begun to write to the database; start again";
                Err(Fault::Environment(why.to_owned()))
            }
        }
    }
}

fn log_of(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// A URI under which SQLite reads a file without its log and without locks.
pub(super) fn immutable_uri(file: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

/// A copy in a directory that only this process's user can read; removed on drop.
#[derive(Debug)]
pub(super) struct PrivateCopy {
    dir: PathBuf,
}

impl PrivateCopy {
    fn make(file: &Path) -> Result<PrivateCopy, OpenError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("sluice-read-{}-{number}", std::process::id()));
        let failed = |error: io::Error| {
            OpenError::Failed(format!(
                "it has a write-ahead log in a read-only directory, and cannot be copied to `{}`: \
                 {error}; set TMPDIR to a directory with room for it",
                dir.display()
            ))
        };
        DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
        let copy = PrivateCopy { dir: dir.clone() };
        let to = copy.file();
        for (from, to) in [(file.to_owned(), to.clone()), (log_of(file), log_of(&to))] {
            let mut made = OpenOptions::new();
            let made = made.write(true).create_new(true).mode(0o600).open(&to);
            let copied = made.and_then(|mut made| io::copy(&mut File::open(&from)?, &mut made));
            copied.map_err(failed)?;
        }
        Ok(copy)
    }

    fn file(&self) -> PathBuf {
        self.dir.join(super::FILE)
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        // On failure the copy stays, readable only by its owner.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database with a row that is only in its log, as a killed process leaves it,
    /// and without the `-shm` file.
    fn left_behind() -> (tempfile::TempDir, PathBuf) {
        let (alive, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (alive.path().join(super::super::FILE), dir.path().join("odd %?#name.db"));
        let writer = connect::writer(&from).unwrap();
        writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); CREATE TABLE extra (n);").unwrap();
        writer.execute_batch("INSERT INTO extra VALUES (7)").unwrap();
        std::fs::copy(&from, &to).unwrap();
        std::fs::copy(log_of(&from), log_of(&to)).unwrap();
        (dir, to)
    }

    fn number(source: &ReadSource) -> rusqlite::Result<i64> {
        source.connect().unwrap().query_row("SELECT n FROM extra", [], |row| row.get(0))
    }

    #[test]
    fn what_is_only_in_the_log_is_read_from_a_private_copy() {
        let (dir, file) = left_behind();
        let source = ReadSource::without_sharing(&file).unwrap();
        assert!(matches!(source, ReadSource::Copy(_)), "{source:?}");
        assert_eq!(number(&source).unwrap(), 7);
        source.check().unwrap();
        // Opened as immutable, the row would be missing without an error.
        assert!(connect::immutable_reader(&file).unwrap().prepare("SELECT n FROM extra").is_err());
        let ReadSource::Copy(copy) = &source else { unreachable!() };
        let private = copy.dir.clone();
        let mode = std::fs::metadata(&private).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(source);
        assert!(!private.exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left next to it");
    }

    #[test]
    fn a_database_without_a_log_is_read_in_place_until_it_changes() {
        let (dir, file) = left_behind();
        // Closing the last connection that may write checkpoints the log.
        drop(Connection::open(&file).unwrap().query_row("SELECT n FROM extra", [], |_| Ok(())));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let source = ReadSource::without_sharing(&file).unwrap();
        assert!(matches!(source, ReadSource::Immutable(..)), "{source:?}");
        assert_eq!(number(&source).unwrap(), 7);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left next to it");
        source.check().unwrap();
        // A process on another mount starts to write.
        let writer = connect::writer(&file).unwrap();
        writer.execute_batch("INSERT INTO extra VALUES (8)").unwrap();
        assert!(matches!(source.check(), Err(Fault::Environment(_))));
        drop(writer);
        assert!(matches!(source.check(), Err(Fault::Environment(_))), "its log is folded in");
    }

    #[test]
    fn a_database_that_can_be_shared_is() {
        let (_dir, file) = left_behind();
        let source = ReadSource::find(&file).unwrap();
        assert!(matches!(source, ReadSource::Shared(_)), "{source:?}");
        assert_eq!(number(&source).unwrap(), 7);
    }
}
