//! Workspaces: the working directories of runs, removed when they are no longer needed.
//!
//! A run that ended keeps its directory for a while: people inspect its files, and a failed
//! run may be retried. Removal is decided from the store alone at each interval, so a crash
//! leaves nothing behind.

use crate::limits::WORKSPACES_LOOK_MS;
use crate::service::Service;
use sluice_core::id::RunId;
use sluice_core::port::Clock as _;
use sluice_core::port::store::{Filter, RunRow, Store, StoreError};
use sluice_engine::world::SystemClock;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The parent directory of workspaces; each is named by its run's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspaces {
    dir: PathBuf,
}

impl Workspaces {
    /// The workspaces in a directory, which may not exist yet.
    pub fn new(dir: PathBuf) -> Workspaces {
        Workspaces { dir }
    }

    /// The parent directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes the directory of one run, with everything in it.
    pub async fn remove(&self, run: RunId) -> io::Result<()> {
        let path = self.dir.join(run.to_string());
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path));
        match removed.await.map_err(io::Error::other)? {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Removes the directories of runs that ended at least `keep_ms` ago, and of runs that are
    /// not in the store. Returns how many were removed.
    pub async fn tidy(
        &self,
        store: &dyn Store,
        now_ms: u64,
        keep_ms: u64,
    ) -> Result<usize, StoreError> {
        let (dir, mut gone) = (self.dir.clone(), 0);
        let keep = Duration::from_millis(keep_ms);
        let found = tokio::task::spawn_blocking(move || unused_for(&dir, keep));
        for run in found.await.unwrap_or_default() {
            let filter = Filter { run: Some(run), ..Filter::default() };
            let rows = store.list(filter).await?;
            if !rows.first().is_none_or(|row| is_over(row, now_ms, keep_ms)) {
                continue;
            }
            match self.remove(run).await {
                Ok(()) => gone += 1,
                Err(error) => tracing::warn!(%run, %error, "a workspace cannot be removed"),
            }
        }
        Ok(gone)
    }
}

/// Removes unneeded workspaces at each interval until `stop` is cancelled.
pub async fn tidy(service: Service, keep_ms: u64, stop: CancellationToken) {
    let Some(workspaces) = &service.workspaces else { return };
    let pause = Duration::from_millis(keep_ms.min(WORKSPACES_LOOK_MS));
    loop {
        let tidied = workspaces.tidy(&*service.store, SystemClock.now_ms(), keep_ms).await;
        if let Err(error) = tidied {
            tracing::warn!(%error, "workspaces cannot be removed now");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Whether a run ended long enough ago, and no node will continue it.
fn is_over(row: &RunRow, now_ms: u64, keep_ms: u64) -> bool {
    let ended = row.ended_at_ms.filter(|_| row.status.is_terminal());
    let still = row.owner.is_none() && row.due_at_ms.is_none();
    still && ended.is_some_and(|at| at.saturating_add(keep_ms) <= now_ms)
}

/// The runs whose directory has not changed for this long.
fn unused_for(dir: &Path, keep: Duration) -> Vec<RunId> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let old = |entry: &DirEntry| {
        let metadata = entry.metadata().ok().filter(Metadata::is_dir)?;
        let age = metadata.modified().ok()?.elapsed().ok()?;
        (age >= keep).then_some(())
    };
    let dirs = entries.filter(|entry| old(entry).is_some());
    dirs.filter_map(|entry| RunId::parse(entry.file_name().to_str()?)).collect()
}
