//! Checks that the open files are still those of the data directory.
//!
//! If the directory is removed or replaced, this process keeps open files that no other
//! process can see, and everything it writes to them is lost when it exits. So before a
//! transaction the writer compares the open database with its path, and checks the
//! node's lock.

use super::fault::Fault;
use super::node::Locks;
use crate::limits::{HOME_LOOK_MS, ROOM_BYTES};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The open database file, and when it was last compared with its path.
#[derive(Debug)]
pub(super) struct Home {
    file: PathBuf,
    opened: FileId,
    looked: Option<Instant>,
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

impl Home {
    /// Remembers a file that was just opened.
    pub(super) fn new(file: &Path) -> io::Result<Home> {
        Ok(Home { file: file.to_owned(), opened: FileId::read(file)?, looked: None })
    }

    /// Fails if the directory no longer contains the open files. Checks at most every
    /// `HOME_LOOK_MS`; after a failure, every time.
    pub(super) fn check(&mut self, locks: &Locks) -> Result<(), Fault> {
        let recent = |at: Instant| at.elapsed() < Duration::from_millis(HOME_LOOK_MS);
        if self.looked.is_some_and(recent) {
            return Ok(());
        }
        self.looked = None;
        let now = FileId::read(&self.file);
        if now.is_err() {
            return Err(Fault::World("the data directory was removed".to_owned()));
        }
        if now.is_ok_and(|now| now != self.opened) {
            return Err(Fault::World("the data directory was replaced".to_owned()));
        }
        locks.hold_again().map_err(|e| Fault::World(format!("the node's lock file: {e}")))?;
        self.looked = Some(Instant::now());
        Ok(())
    }
}

/// Checks that `ROOM_BYTES` can be written to a temporary file in `dir`.
pub(super) fn room(dir: &Path) -> Result<(), Fault> {
    let path = dir.join(format!("room-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file: File = options.write(true).create(true).mode(0o600).open(&path)?;
        file.write_all(&[0; ROOM_BYTES])
    };
    let written = write();
    // On failure the next process that opens the store removes it.
    let _ = std::fs::remove_file(&path);
    written.map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => {
            Fault::World("the disk is full".to_owned())
        }
        _ => Fault::World(format!("the data directory cannot be written: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::port::store::NodeId;

    fn fresh(home: &mut Home, locks: &Locks) -> Result<(), String> {
        home.looked = None;
        home.check(locks).map_err(|fault| match fault {
            Fault::World(why) => why,
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn a_directory_that_was_removed_swapped_or_lost_its_lock_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (file, nodes) = (dir.path().join("a.db"), dir.path().join("nodes"));
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&nodes).unwrap();
        let locks = Locks::open(nodes.clone());
        locks.hold(NodeId(7)).unwrap();
        let mut home = Home::new(&file).unwrap();
        assert_eq!(fresh(&mut home, &locks), Ok(()));

        // A removed lock file is created again.
        std::fs::remove_dir_all(&nodes).unwrap();
        std::fs::create_dir(&nodes).unwrap();
        assert_eq!(fresh(&mut home, &locks), Ok(()));
        assert_eq!(std::fs::read_dir(&nodes).unwrap().count(), 1);

        std::fs::remove_dir_all(&nodes).unwrap();
        assert!(fresh(&mut home, &locks).unwrap_err().starts_with("the node's lock file: "));
        std::fs::create_dir(&nodes).unwrap();
        assert_eq!(fresh(&mut home, &locks), Ok(()), "it goes on where it was put right");

        let aside = dir.path().join("aside.db");
        std::fs::rename(&file, &aside).unwrap();
        assert_eq!(fresh(&mut home, &locks), Err("the data directory was removed".to_owned()));
        std::fs::write(&file, "").unwrap();
        assert_eq!(fresh(&mut home, &locks), Err("the data directory was replaced".to_owned()));
        std::fs::rename(&aside, &file).unwrap();
        assert_eq!(fresh(&mut home, &locks), Ok(()));
    }

    #[test]
    fn room_leaves_no_file_behind() {
        let dir = tempfile::tempdir().unwrap();
        room(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(room(&dir.path().join("gone")).is_err());
    }
}
