//! Gives a store the key that everything in it is authenticated with.
//!
//! The key is derived from `seal.key`. A file next to it notes which stores have
//! MACs: a store that lacks them afterwards was changed by another hand, and is
//! refused. One from before MACs is held against its hashes and adopted once.

use crate::key::{self, SECRET, Secret, unusable};
use sluice_core::evidence::key::{PublicKey, Signer};
use sluice_core::evidence::mac::{Doubts, MacKey};
use sluice_server::refused::{Refused, SEAL_UNUSABLE, STORE_NOT_AUTHENTIC};
use sluice_server::service::audit::doubts;
use sluice_store::authentic::{Keyed, Mark};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Which stores of a directory have MACs: a line for each, with the public half of
/// the key.
const STORES: &str = "seal.stores";

/// What kind of store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    const fn as_str(self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
        }
    }
}

/// A store that is about to get its key.
pub(crate) struct Authentication<'a> {
    pub(crate) store: &'a dyn Keyed,
    pub(crate) backend: Backend,
    pub(crate) dir: &'a Path,
    pub(crate) secret: &'a Secret,
}

impl Authentication<'_> {
    /// Uses the key where the store has its MACs. One from before MACs is read without:
    /// it is adopted by the next process that writes to it.
    pub(crate) fn for_reading(&self) -> Result<(), Refused> {
        let key = MacKey::derive(self.secret);
        match self.store.marked(&key) {
            Mark::Empty => {}
            Mark::Own => self.store.unlock(key),
            Mark::Foreign => return Err(self.foreign()),
            Mark::Missing => self.refuse_stripped()?,
        }
        Ok(())
    }

    /// The same, and adopts a store from before MACs.
    pub(crate) async fn for_writing(&self) -> anyhow::Result<()> {
        let key = MacKey::derive(self.secret);
        match self.store.marked(&key) {
            Mark::Own => self.store.unlock(key),
            Mark::Foreign => return Err(self.foreign().into()),
            Mark::Empty => self.store.adopt(key, Doubts::default()).await?,
            Mark::Missing => {
                self.refuse_stripped()?;
                tracing::info!(dir = %self.dir.display(), "the store is authenticated once");
                let found = doubts::find(self.store, key::public(self.dir)).await?;
                self.store.adopt(key, found).await?;
            }
        }
        self.note()?;
        Ok(())
    }

    /// Adopts the store whatever MACs it has. Answers what stays in doubt.
    pub(crate) async fn anew(&self) -> anyhow::Result<Doubts> {
        let doubts = doubts::find(self.store, key::public(self.dir)).await?;
        self.store.adopt(MacKey::derive(self.secret), doubts.clone()).await?;
        self.note()?;
        Ok(doubts)
    }

    /// A store that was carried over with its MACs. Without them it is adopted when it
    /// is first served.
    pub(crate) fn for_carried(&self) -> Result<(), Refused> {
        match self.store.marked(&MacKey::derive(self.secret)) {
            Mark::Own => self.note(),
            Mark::Foreign => Err(self.foreign()),
            Mark::Empty | Mark::Missing => Ok(()),
        }
    }

    fn refuse_stripped(&self) -> Result<(), Refused> {
        if self.noted().is_none() {
            return Ok(());
        }
        let message = format!(
            "the store of `{}` had MACs and has none now: another hand has changed it",
            self.dir.display()
        );
        let remedy = "put a backup in its place, and find out who can write to it";
        Err(Refused::new(STORE_NOT_AUTHENTIC, message, remedy))
    }

    fn foreign(&self) -> Refused {
        let path = self.dir.join(SECRET);
        let message = format!(
            "`{}` is not the key that everything in this store is authenticated with",
            path.display()
        );
        Refused::new(SEAL_UNUSABLE, message, REMEDY)
    }

    /// The key that the store had MACs of when it was last opened from here.
    fn noted(&self) -> Option<PublicKey> {
        let text = fs::read_to_string(self.dir.join(STORES)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let keys = lines.filter(|(backend, _)| *backend == self.backend.as_str());
        keys.filter_map(|(_, key)| PublicKey::parse(key)).next_back()
    }

    /// Notes that the store has MACs.
    fn note(&self) -> Result<(), Refused> {
        let public = Signer::new(self.secret).public();
        if self.noted() == Some(public) {
            return Ok(());
        }
        let path = self.dir.join(STORES);
        key::directory(self.dir)?;
        let line = format!("{} {public}\n", self.backend.as_str());
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| unusable(&path, &error))
    }
}

/// What to do where the key is another one, or missing.
const REMEDY: &str = "put the `seal.key` of this store back from where it is kept; if it is lost, \
                      `sluice audit adopt` authenticates the store with a new one";

/// A store that is authenticated, in a directory without the key.
pub(crate) fn missing_key(dir: &Path) -> Refused {
    let path = dir.join(SECRET);
    let message = format!(
        "`{}` is missing: everything in this store is authenticated with it",
        path.display()
    );
    Refused::new(SEAL_UNUSABLE, message, REMEDY)
}
