//! Checks that the open files are still those of the data directory.
//!
//! If the directory is removed or replaced, this process keeps open files that no other
//! process can see, and everything it writes to them is lost when it exits. So before a
//! transaction the writer compares the open database with its path, and checks the
//! node's lock. Both cost a few system calls, so they are done at most every
//! `DIRECTORY_CHECK_MS`. After every commit the writer checks that the file still has a
//! name: a write to a removed file is not acknowledged.

use super::fault::Fault;
use super::node_locks::NodeLocks;
use crate::limits::{DIRECTORY_CHECK_MS, FREE_BYTES_MIN};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, open};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The open database file, and when it was last compared with its path.
#[derive(Debug)]
pub(super) struct DirectoryCheck {
    file: PathBuf,
    opened: FileId,
    /// The same file, opened without access: closing any other handle of it would
    /// release the locks that SQLite holds.
    handle: OwnedFd,
    checked_at: Option<Instant>,
}

/// The device and the inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn read(path: &Path) -> io::Result<FileId> {
        let metadata = std::fs::metadata(path)?;
        Ok(FileId(metadata.dev(), metadata.ino()))
    }
}

impl DirectoryCheck {
    /// Remembers a file that was just opened.
    pub(super) fn new(file: &Path) -> io::Result<DirectoryCheck> {
        let handle = open(file, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let opened = FileId::read(file)?;
        Ok(DirectoryCheck { file: file.to_owned(), opened, handle, checked_at: None })
    }

    /// Fails if the open file was removed; then the next check is made in full. One
    /// system call, without a path: it is made for every transaction.
    pub(super) fn check_linked(&mut self) -> Result<(), Fault> {
        match fstat(&self.handle) {
            Ok(found) if found.st_nlink == 0 => {
                self.checked_at = None;
                Err(Fault::Environment("the data directory was removed".to_owned()))
            }
            // The next check of the path reports it.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Fails if the directory no longer contains the open files. Checks at most every
    /// `DIRECTORY_CHECK_MS`; after a failure, every time.
    pub(super) fn check(&mut self, locks: &NodeLocks) -> Result<(), Fault> {
        let recent = |at: Instant| at.elapsed() < Duration::from_millis(DIRECTORY_CHECK_MS);
        if self.checked_at.is_some_and(recent) {
            return Ok(());
        }
        self.checked_at = None;
        let now = FileId::read(&self.file);
        if now.is_err() {
            return Err(Fault::Environment("the data directory was removed".to_owned()));
        }
        if now.is_ok_and(|now| now != self.opened) {
            return Err(Fault::Environment("the data directory was replaced".to_owned()));
        }
        locks.lock_again().map_err(|e| Fault::Environment(format!("the node's lock file: {e}")))?;
        self.checked_at = Some(Instant::now());
        Ok(())
    }
}

/// Checks that `FREE_BYTES_MIN` can be written to a temporary file in `dir`.
pub(super) fn check_free_space(dir: &Path) -> Result<(), Fault> {
    let path = dir.join(format!("room-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file: File = options.write(true).create(true).mode(0o600).open(&path)?;
        file.write_all(&[0; FREE_BYTES_MIN])
    };
    let written = write();
    // On failure the next process that opens the store removes it.
    let _ = std::fs::remove_file(&path);
    written.map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => {
            Fault::Environment("the disk is full".to_owned())
        }
        _ => Fault::Environment(format!("the data directory cannot be written: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::port::store::NodeId;

    fn fresh(check: &mut DirectoryCheck, locks: &NodeLocks) -> Result<(), String> {
        check.checked_at = None;
        check.check(locks).map_err(|fault| match fault {
            Fault::Environment(why) => why,
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn a_directory_that_was_removed_swapped_or_lost_its_lock_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (file, nodes) = (dir.path().join("a.db"), dir.path().join("nodes"));
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&nodes).unwrap();
        let locks = NodeLocks::open(nodes.clone());
        locks.lock_node(NodeId(7)).unwrap();
        let mut check = DirectoryCheck::new(&file).unwrap();
        assert_eq!(fresh(&mut check, &locks), Ok(()));

        // A removed lock file is created again.
        std::fs::remove_dir_all(&nodes).unwrap();
        std::fs::create_dir(&nodes).unwrap();
        assert_eq!(fresh(&mut check, &locks), Ok(()));
        assert_eq!(std::fs::read_dir(&nodes).unwrap().count(), 1);

        std::fs::remove_dir_all(&nodes).unwrap();
        assert!(fresh(&mut check, &locks).unwrap_err().starts_with("the node's lock file: "));
        std::fs::create_dir(&nodes).unwrap();
        assert_eq!(fresh(&mut check, &locks), Ok(()), "it goes on where it was put right");

        let aside = dir.path().join("aside.db");
        std::fs::rename(&file, &aside).unwrap();
        assert_eq!(fresh(&mut check, &locks), Err("the data directory was removed".to_owned()));
        std::fs::write(&file, "").unwrap();
        assert_eq!(fresh(&mut check, &locks), Err("the data directory was replaced".to_owned()));
        std::fs::rename(&aside, &file).unwrap();
        assert_eq!(fresh(&mut check, &locks), Ok(()));
    }

    #[test]
    fn a_removed_file_is_noticed_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.db");
        std::fs::write(&file, "").unwrap();
        let mut check = DirectoryCheck::new(&file).unwrap();
        // A moved file is not lost.
        std::fs::rename(&file, dir.path().join("b.db")).unwrap();
        assert!(check.check_linked().is_ok());
        std::fs::remove_file(dir.path().join("b.db")).unwrap();
        assert!(matches!(check.check_linked(), Err(Fault::Environment(_))));
    }

    #[test]
    fn room_leaves_no_file_behind() {
        let dir = tempfile::tempdir().unwrap();
        check_free_space(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(check_free_space(&dir.path().join("gone")).is_err());
    }
}
