//! Gives a store the key that authenticates its contents.
//!
//! The key is derived from `seal.key`. A file next to it lists the stores with MACs: such a
//! store without MACs was replaced by another process, and is refused. A store from before MACs
//! is verified against its hashes and adopted once.

use crate::key::{self, SECRET, Secret, unusable};
use sluice_core::evidence::key::{PublicKey, Signer};
use sluice_core::evidence::mac::{Doubts, MacKey};
use sluice_govern::choice::choices;
use sluice_server::refused::{Refused, SEAL_UNUSABLE, STORE_NOT_AUTHENTIC};
use sluice_server::service::audit::doubts;
use sluice_store::authentic::{Keyed, Mark};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Lists the stores of a directory that have MACs, each with the public half of its key.
const STORES: &str = "seal.stores";

choices! {
    /// What holds a store; the word is its prefix in `seal.stores`.
    pub(crate) enum StoreKind, "a kind of store" {
        /// A file.
        Sqlite = "sqlite",
        /// A schema of a database.
        Postgres = "postgres",
    }
}

pub(crate) struct Authentication<'a> {
    pub(crate) store: &'a dyn Keyed,
    pub(crate) kind: StoreKind,
    pub(crate) dir: &'a Path,
    pub(crate) secret: &'a Secret,
}

impl Authentication<'_> {
    /// Uses the key if the store has MACs. A store from before MACs is read without; the next
    /// process that writes to it adopts it.
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

    /// Uses the key, and adopts a store from before MACs.
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
        self.register()?;
        Ok(())
    }

    /// Adopts the store whatever MACs it has. Returns what cannot be authenticated.
    pub(crate) async fn anew(&self) -> anyhow::Result<Doubts> {
        let doubts = doubts::find(self.store, key::public(self.dir)).await?;
        self.store.adopt(MacKey::derive(self.secret), doubts.clone()).await?;
        self.register()?;
        Ok(doubts)
    }

    /// Registers a store that was migrated with its MACs. Without them it is adopted when it is
    /// first served.
    pub(crate) fn for_carried(&self) -> Result<(), Refused> {
        match self.store.marked(&MacKey::derive(self.secret)) {
            Mark::Own => self.register(),
            Mark::Foreign => Err(self.foreign()),
            Mark::Empty | Mark::Missing => Ok(()),
        }
    }

    fn refuse_stripped(&self) -> Result<(), Refused> {
        if self.registered_key().is_none() {
            return Ok(());
        }
        let message = format!(
            "the store of `{}` had MACs and has none now: another program changed it",
            self.dir.display()
        );
        let remedy = "restore a backup, and find out which processes can write to it";
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

    /// The key of the store's MACs when this directory last opened it.
    fn registered_key(&self) -> Option<PublicKey> {
        let text = fs::read_to_string(self.dir.join(STORES)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let keys = lines.filter(|(kind, _)| *kind == self.kind.as_str());
        keys.filter_map(|(_, key)| PublicKey::parse(key)).next_back()
    }

    /// Records that the store has MACs.
    fn register(&self) -> Result<(), Refused> {
        let public = Signer::new(self.secret).public();
        if self.registered_key() == Some(public) {
            return Ok(());
        }
        let path = self.dir.join(STORES);
        key::directory(self.dir)?;
        let line = format!("{} {public}\n", self.kind);
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| unusable(&path, &error))
    }
}

/// The remedy for a wrong or missing key.
const REMEDY: &str = "put the `seal.key` of this store back from where it is kept; if it is lost, \
                      `sluice audit adopt` authenticates the store with a new one";

pub(crate) fn missing_key(dir: &Path) -> Refused {
    let path = dir.join(SECRET);
    let message = format!(
        "`{}` is missing: everything in this store is authenticated with it",
        path.display()
    );
    Refused::new(SEAL_UNUSABLE, message, REMEDY)
}
