//! Liveness of nodes.
//!
//! A lease bounds how long a node may be silent. In addition each node locks a file
//! next to the database: the operating system releases the lock the moment the process
//! dies, so other nodes can claim its runs at once.
//!
//! Wrongly taking a node for dead is safe: the run's epoch rejects the old owner.

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
pub(super) struct NodeLocks {
    dir: PathBuf,
    held: Mutex<BTreeMap<NodeId, File>>,
}

impl NodeLocks {
    /// Uses `dir`, and removes the lock files of dead processes.
    pub(super) fn open(dir: PathBuf) -> NodeLocks {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            remove_abandoned(&entry.path());
        }
        NodeLocks::unused(dir)
    }

    /// Uses `dir` without removing anything, for a read-only store.
    pub(super) fn unused(dir: PathBuf) -> NodeLocks {
        NodeLocks { dir, held: Mutex::default() }
    }

    /// Locks the node's file until the node leaves or this process ends.
    pub(super) fn lock_node(&self, node: NodeId) -> io::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock_missing(&mut held, node)
    }

    /// Locks the files of this process's nodes again if another process removed them.
    pub(super) fn lock_again(&self) -> io::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes: Vec<NodeId> = held.keys().copied().collect();
        nodes.into_iter().try_for_each(|node| self.lock_missing(&mut held, node))
    }

    fn lock_missing(&self, held: &mut BTreeMap<NodeId, File>, node: NodeId) -> io::Result<()> {
        let path = self.path(node);
        // A process that checked the file before it was locked may have removed it.
        while !held.contains_key(&node) || !path.exists() {
            let file = private(&path)?;
            lock(&file)?;
            held.insert(node, file);
        }
        Ok(())
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Releases the node's lock file.
    pub(super) fn release(&self, node: NodeId) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.remove(&node).is_some() {
            // On failure the next process that checks the file removes it.
            let _ = std::fs::remove_file(self.path(node));
        }
    }

    /// Whether the process of the node is alive, as far as the lock shows.
    pub(super) fn is_held(&self, node: NodeId) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.contains_key(&node) || !remove_abandoned(&self.path(node))
    }

    fn path(&self, node: NodeId) -> PathBuf {
        self.dir.join(format!("{:032x}.lock", node.0))
    }
}

/// Creates a file that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Locks a file. A process that checks the lock holds it for a moment; a longer wait is
/// an error.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES_MAX {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            // Where locks do not work, only the lease decides.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process uses the same node id"))
}

/// Whether no process holds this file. Removes it in that case.
fn remove_abandoned(path: &Path) -> bool {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    };
    match file.try_lock() {
        Ok(()) => {
            let _ = std::fs::remove_file(path);
            true
        }
        // Where locks cannot be tested, only the lease decides.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}
