//! What a bridge must not forget, in a directory: a file for each dispatch.
//!
//! A dispatch is accepted when its file is on the disk, finished when its result
//! is, delivered when somebody has taken that. Each change writes the file anew:
//! under a temporary name, synced, renamed, and the directory synced. One thread
//! does it for everybody, so that changes that come together share a sync of the
//! directory.
//!
//! INVARIANT: a file under its own name is whole. One that is not, or is none of
//! ours, is set aside and never looked at again.

pub(super) mod kept;
#[cfg(test)]
mod tests;

use crate::gitignore;
use crate::limits::{SPOOL_BATCH_MAX, SPOOL_FILE_BYTES_MAX, SPOOL_QUEUE_MAX};
use crate::protocol::Key;
use kept::Kept;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// What a file is called until it is whole.
const UNFINISHED: &str = "tmp";
/// Where files go that nobody can read.
const ASIDE: &str = "aside";
/// Held by whoever works with the directory.
const LOCK: &str = "lock";

/// The directory, and who writes into it.
#[derive(Debug)]
pub(super) struct Spool {
    dir: Arc<PathBuf>,
    jobs: mpsc::Sender<Job>,
}

#[derive(Debug)]
struct Job {
    key: Key,
    what: What,
    done: oneshot::Sender<io::Result<()>>,
}

#[derive(Debug)]
enum What {
    Write(Vec<u8>),
    Remove,
}

/// What was in the directory when it was opened.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The files that can be read. Results stay in their files.
    pub(super) kept: Vec<(Key, Kept)>,
    /// How many were set aside.
    pub(super) aside: usize,
}

impl Spool {
    /// Opens a directory, makes it if there is none. It is this process's alone
    /// until it ends.
    pub(super) fn open(dir: &Path) -> io::Result<(Spool, Found)> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(dir.join(LOCK))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::Error(error) => error,
            fs::TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another bridge uses the spool")
            }
        })?;
        // The files hold prompts, answers and the tokens of dispatches.
        gitignore::write(dir)?;
        let found = look(dir)?;
        let (jobs, queue) = mpsc::channel(SPOOL_QUEUE_MAX);
        let dir = Arc::new(dir.to_owned());
        let writer = Writer { dir: Arc::clone(&dir), _lock: lock };
        std::thread::Builder::new().name("spool".to_owned()).spawn(move || writer.run(queue))?;
        Ok((Spool { dir, jobs }, found))
    }

    /// Writes what is to be remembered of a dispatch; on the disk when it answers.
    pub(super) async fn write(&self, key: Key, kept: &Kept) -> io::Result<()> {
        self.ask(key, What::Write(kept.bytes())).await
    }

    /// Forgets a dispatch.
    pub(super) async fn remove(&self, key: Key) -> io::Result<()> {
        self.ask(key, What::Remove).await
    }

    async fn ask(&self, key: Key, what: What) -> io::Result<()> {
        let gone = || io::Error::other("nobody writes to the spool");
        let (done, answer) = oneshot::channel();
        self.jobs.send(Job { key, what, done }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// What is remembered of a dispatch; none if nothing is.
    pub(super) async fn read(&self, key: Key) -> io::Result<Option<Kept>> {
        let path = self.dir.join(key.to_string());
        let read = tokio::task::spawn_blocking(move || match read(&path) {
            Ok(kept) => Ok(Some(kept)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        });
        read.await.map_err(io::Error::other)?
    }
}

/// The one who writes. Holds the directory until it ends.
struct Writer {
    dir: Arc<PathBuf>,
    _lock: File,
}

impl Writer {
    fn run(self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::new();
        while queue.blocking_recv_many(&mut jobs, SPOOL_BATCH_MAX) > 0 {
            let mut done = Vec::new();
            for job in jobs.drain(..) {
                let changed = self.change(job.key, &job.what);
                done.push((job.done, changed));
            }
            let synced = File::open(&*self.dir).and_then(|dir| dir.sync_all());
            for (tell, changed) in done {
                let answer = changed.and_then(|()| match &synced {
                    Ok(()) => Ok(()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                });
                // Whoever asked may be gone.
                let _ = tell.send(answer);
            }
        }
    }

    fn change(&self, key: Key, what: &What) -> io::Result<()> {
        let path = self.dir.join(key.to_string());
        match what {
            What::Write(bytes) => {
                let unfinished = path.with_extension(UNFINISHED);
                let mut options = OpenOptions::new();
                let options = options.create(true).write(true).truncate(true).mode(0o600);
                let mut file = options.open(&unfinished)?;
                file.write_all(bytes)?;
                file.sync_all()?;
                fs::rename(&unfinished, &path)
            }
            What::Remove => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        }
    }
}

/// Reads everything that is there.
fn look(dir: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == LOCK || name == ASIDE || name == gitignore::FILE {
            continue;
        }
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            // Nobody was told that this was remembered.
            fs::remove_file(&path)?;
            continue;
        }
        let key = name.to_str().and_then(Key::parse);
        let kept = read(&path);
        match (key, kept) {
            (Some(key), Ok(kept)) if kept.key() == key => {
                found.kept.push((key, kept.without_result()));
            }
            _ => {
                set_aside(dir, &path)?;
                found.aside += 1;
            }
        }
    }
    Ok(found)
}

/// Puts something that cannot be read where it is not in the way. The newest of
/// a name is kept.
fn set_aside(dir: &Path, path: &Path) -> io::Result<()> {
    let aside = dir.join(ASIDE);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&aside)?;
    let Some(name) = path.file_name() else { return Ok(()) };
    fs::rename(path, aside.join(name))
}

fn read(path: &Path) -> io::Result<Kept> {
    let no_file = || io::Error::from(io::ErrorKind::InvalidData);
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(no_file());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(SPOOL_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Kept::read(&bytes).ok_or_else(no_file)
}
