//! Durable state of a bridge: a directory with one file for each dispatch.
//!
//! A dispatch is accepted when its file is on disk, finished when its result is, and delivered
//! when the engine has accepted the result. Each change rewrites the file: under a temporary
//! name, synced, renamed, and the directory synced. One thread performs all writes, so that
//! concurrent changes share a sync of the directory.
//!
//! INVARIANT: a file under its own name is complete. A file that is incomplete or in an unknown
//! format is moved aside and never read again.

pub(super) mod record;
#[cfg(test)]
mod tests;

use crate::gitignore;
use crate::limits::{SPOOL_BATCH_MAX, SPOOL_FILE_BYTES_MAX, SPOOL_QUEUE_MAX};
use crate::protocol::DispatchHash;
use record::SpoolRecord;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Extension of a file that is still being written.
const UNFINISHED: &str = "tmp";
/// Directory for unreadable files.
const ASIDE: &str = "aside";
/// Lock file of the process that uses the directory.
const LOCK: &str = "lock";

/// Handle to the directory and its writer thread.
#[derive(Debug)]
pub(super) struct Spool {
    dir: Arc<PathBuf>,
    jobs: mpsc::Sender<SpoolJob>,
}

#[derive(Debug)]
struct SpoolJob {
    key: DispatchHash,
    change: SpoolChange,
    done: oneshot::Sender<io::Result<()>>,
}

#[derive(Debug)]
enum SpoolChange {
    Write(Vec<u8>),
    Remove,
}

/// Contents of the directory when it was opened.
#[derive(Debug, Default)]
pub(super) struct SpoolContents {
    /// Readable records, without their results.
    pub(super) records: Vec<(DispatchHash, SpoolRecord)>,
    /// Number of files that were moved aside.
    pub(super) aside: usize,
}

impl Spool {
    /// Opens the directory, creating it if necessary, and locks it for the life of this
    /// process.
    pub(super) fn open(dir: &Path) -> io::Result<(Spool, SpoolContents)> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(dir.join(LOCK))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::Error(error) => error,
            fs::TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another bridge process uses the spool")
            }
        })?;
        // The files hold prompts, answers and the tokens of dispatches.
        gitignore::write(dir)?;
        let found = read_directory(dir)?;
        let (jobs, queue) = mpsc::channel(SPOOL_QUEUE_MAX);
        let dir = Arc::new(dir.to_owned());
        let writer = SpoolWriter { dir: Arc::clone(&dir), _lock: lock };
        std::thread::Builder::new().name("spool".to_owned()).spawn(move || writer.run(queue))?;
        Ok((Spool { dir, jobs }, found))
    }

    /// Writes the record of a dispatch and returns when it is durable.
    pub(super) async fn write(&self, key: DispatchHash, record: &SpoolRecord) -> io::Result<()> {
        self.submit(key, SpoolChange::Write(record.encode())).await
    }

    /// Removes the record of a dispatch.
    pub(super) async fn remove(&self, key: DispatchHash) -> io::Result<()> {
        self.submit(key, SpoolChange::Remove).await
    }

    async fn submit(&self, key: DispatchHash, change: SpoolChange) -> io::Result<()> {
        let gone = || io::Error::other("the spool's writer thread has ended");
        let (done, answer) = oneshot::channel();
        self.jobs.send(SpoolJob { key, change, done }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Reads the record of a dispatch, if there is one.
    pub(super) async fn read(&self, key: DispatchHash) -> io::Result<Option<SpoolRecord>> {
        let path = self.dir.join(key.to_string());
        let read = tokio::task::spawn_blocking(move || match read(&path) {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        });
        read.await.map_err(io::Error::other)?
    }
}

/// The writer thread. Holds the lock until it ends.
struct SpoolWriter {
    dir: Arc<PathBuf>,
    _lock: File,
}

impl SpoolWriter {
    fn run(self, mut queue: mpsc::Receiver<SpoolJob>) {
        let mut jobs = Vec::new();
        while queue.blocking_recv_many(&mut jobs, SPOOL_BATCH_MAX) > 0 {
            let mut done = Vec::new();
            for job in jobs.drain(..) {
                let changed = self.apply(job.key, &job.change);
                done.push((job.done, changed));
            }
            let synced = File::open(&*self.dir).and_then(|dir| dir.sync_all());
            for (requester, changed) in done {
                let answer = changed.and_then(|()| match &synced {
                    Ok(()) => Ok(()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                });
                // The requester may have been dropped.
                let _ = requester.send(answer);
            }
        }
    }

    fn apply(&self, key: DispatchHash, change: &SpoolChange) -> io::Result<()> {
        let path = self.dir.join(key.to_string());
        match change {
            SpoolChange::Write(bytes) => {
                let unfinished = path.with_extension(UNFINISHED);
                let mut options = OpenOptions::new();
                let options = options.create(true).write(true).truncate(true).mode(0o600);
                let mut file = options.open(&unfinished)?;
                file.write_all(bytes)?;
                file.sync_all()?;
                fs::rename(&unfinished, &path)
            }
            SpoolChange::Remove => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        }
    }
}

/// Reads all files of the directory.
fn read_directory(dir: &Path) -> io::Result<SpoolContents> {
    let mut found = SpoolContents::default();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == LOCK || name == ASIDE || name == gitignore::FILE {
            continue;
        }
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            // A temporary file was never acknowledged.
            fs::remove_file(&path)?;
            continue;
        }
        let key = name.to_str().and_then(DispatchHash::parse);
        let record = read(&path);
        match (key, record) {
            (Some(key), Ok(record)) if record.key() == key => {
                found.records.push((key, record.without_result()));
            }
            _ => {
                set_aside(dir, &path)?;
                found.aside += 1;
            }
        }
    }
    Ok(found)
}

/// Moves an unreadable file aside. A later file of the same name replaces it.
fn set_aside(dir: &Path, path: &Path) -> io::Result<()> {
    let aside = dir.join(ASIDE);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&aside)?;
    let Some(name) = path.file_name() else { return Ok(()) };
    fs::rename(path, aside.join(name))
}

fn read(path: &Path) -> io::Result<SpoolRecord> {
    let no_file = || io::Error::from(io::ErrorKind::InvalidData);
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(no_file());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(SPOOL_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    SpoolRecord::decode(&bytes).ok_or_else(no_file)
}
