//! Read-only checks of a database file, and copies of it.

use super::connect::OpenError;
use super::read_only::ReadSource;
use super::{FILE, migrate};
use rusqlite::params;
use std::path::Path;

/// Largest number of faults in an inspection.
const FAULTS_MAX: usize = 10;

/// The result of an inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The schema of the database.
    pub schema: usize,
    /// The newest schema that this version supports.
    pub known: usize,
    /// Faults that SQLite finds in its pages.
    pub faults: Vec<String>,
}

/// Checks the schema and the page structure of a directory's database. Writes and
/// migrates nothing.
pub fn inspect(dir: &Path) -> Result<Inspection, OpenError> {
    let file = dir.join(FILE);
    let look = || -> Result<Inspection, OpenError> {
        let source = ReadSource::find(&file)?;
        let connection = source.connect()?;
        let schema = migrate::version(&connection)?;
        let mut check = connection.prepare(&format!("PRAGMA quick_check({FAULTS_MAX})"))?;
        let lines = check.query_map([], |row| row.get::<_, String>(0))?;
        let mut faults: Vec<String> = lines.collect::<Result<_, _>>()?;
        faults.retain(|line| line != "ok");
        Ok(Inspection { schema, known: migrate::MIGRATIONS.len(), faults })
    };
    look().map_err(|error| error.with_path(&file))
}

/// Size of a directory's database in bytes, without its log.
pub fn size(dir: &Path) -> std::io::Result<u64> {
    Ok(std::fs::metadata(dir.join(FILE))?.len())
}

/// Copies the database of a directory to a new file, complete and of one moment, while
/// other processes may use it. The target must be missing or empty.
pub fn copy(dir: &Path, to: &Path) -> Result<(), OpenError> {
    let file = dir.join(FILE);
    let copy = || -> Result<(), OpenError> {
        let to = to.to_str();
        let to = to.ok_or_else(|| OpenError::Failed("the copy's path is not UTF-8".to_owned()))?;
        let source = ReadSource::find(&file)?;
        source.connect()?.execute("VACUUM INTO ?1", params![to])?;
        source.check().map_err(|fault| OpenError::Failed(fault.rolled_back().to_string()))?;
        Ok(())
    };
    copy().map_err(|error| error.with_path(&file))
}

#[cfg(test)]
mod tests {
    use super::super::connect;
    use super::*;

    #[test]
    fn a_damaged_page_is_found_and_a_whole_database_is_not_blamed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let connection = connect::writer(&file).unwrap();
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        drop(connection);
        let found = inspect(dir.path()).unwrap();
        assert_eq!((found.schema, found.faults), (found.known, Vec::new()));
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[3 * 4096..4 * 4096].fill(0xa5);
        std::fs::write(&file, bytes).unwrap();
        let damaged = inspect(dir.path());
        assert!(damaged.is_err() || !damaged.unwrap().faults.is_empty());
    }

    #[test]
    fn a_copy_is_a_database_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let connection = connect::writer(&dir.path().join(FILE)).unwrap();
        connection.execute_batch("CREATE TABLE extra (n); INSERT INTO extra VALUES (7)").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        copy(dir.path(), &elsewhere.path().join(FILE)).unwrap();
        let copied = connect::reader(&elsewhere.path().join(FILE)).unwrap();
        let n: i64 = copied.query_row("SELECT n FROM extra", [], |row| row.get(0)).unwrap();
        assert_eq!(n, 7);
        assert!(copy(dir.path(), &elsewhere.path().join(FILE)).is_err(), "nothing is overwritten");
    }
}
