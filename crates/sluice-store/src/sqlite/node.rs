//! Which nodes live.
//!
//! A lease says how long a node may be silent. A lock on a file beside the
//! database says more: the system lets go of it the moment a process dies,
//! however it dies, so its runs can be taken at once.
//!
//! A wrong "dead" is not dangerous: the run's epoch keeps the old owner out.

use sluice_core::port::store::NodeId;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often a lock is tried, a millisecond apart.
const LOCK_TRIES_MAX: u32 = 100;

/// The lock files of a directory, and those that this process holds.
pub(super) struct Locks {
    dir: PathBuf,
    held: Mutex<BTreeMap<NodeId, File>>,
}

impl Locks {
    /// Uses `dir`, and removes what dead processes left there.
    pub(super) fn open(dir: PathBuf) -> Locks {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            abandoned(&entry.path());
        }
        Locks::unused(dir)
    }

    /// Uses `dir` and leaves what is there, for a store that is only read.
    pub(super) fn unused(dir: PathBuf) -> Locks {
        Locks { dir, held: Mutex::default() }
    }

    /// Locks the node's file until it leaves or this process ends.
    pub(super) fn hold(&self, node: NodeId) -> io::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock(&mut held, node)
    }

    /// Locks the files of this process's nodes again that another process removed.
    pub(super) fn hold_again(&self) -> io::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes: Vec<NodeId> = held.keys().copied().collect();
        nodes.into_iter().try_for_each(|node| self.lock(&mut held, node))
    }

    fn lock(&self, held: &mut BTreeMap<NodeId, File>, node: NodeId) -> io::Result<()> {
        let path = self.path(node);
        // A process that looked before the lock was taken may have removed the file.
        while !held.contains_key(&node) || !path.exists() {
            let file = private(&path)?;
            lock(&file)?;
            held.insert(node, file);
        }
        Ok(())
    }

    /// Where the files are.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lets go of the node's file.
    pub(super) fn release(&self, node: NodeId) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.remove(&node).is_some() {
            // One that stays behind is removed by the next process that looks.
            let _ = std::fs::remove_file(self.path(node));
        }
    }

    /// Whether the process of the node is still there, as far as can be seen.
    pub(super) fn is_held(&self, node: NodeId) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.contains_key(&node) || !abandoned(&self.path(node))
    }

    fn path(&self, node: NodeId) -> PathBuf {
        self.dir.join(format!("{:032x}.lock", node.0))
    }
}

/// Makes a file that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Locks a file. Whoever looks at it holds it for a moment; longer is an error.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES_MAX {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            // Where locks do not work, the lease alone counts.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process uses the same node id"))
}

/// Whether nobody holds this file. Removes it then.
fn abandoned(path: &Path) -> bool {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    };
    match file.try_lock() {
        Ok(()) => {
            let _ = std::fs::remove_file(path);
            true
        }
        // Where locks cannot be tested, the lease alone counts.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}
