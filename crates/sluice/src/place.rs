//! Where everything is kept: in a directory here, or in a database that nodes share.
//!
//! Whoever uses a database has a directory too: its keys are there, and what its
//! runs work on. Each organisation but the first has a schema of the database to
//! itself, as it has a directory of its own here.
//!
//! INVARIANT: nodes of one database have the same keys. What can be told of a key
//! is agreed on in the database; the key itself is never there, since it protects
//! what is.

use crate::authenticate::{Authentication, Backend, missing_key};
use crate::cli::run::Data;
use crate::config::{self, setting};
use crate::key::{self, Secret};
use crate::organisation;
use crate::refused::{by_database, by_store};
use crate::seal_file::{AcceptedRollback, SealFile};
use rustix::fs::{Access, access};
use sluice_bridge::gitignore;
use sluice_bridge::token::DispatchKey;
use sluice_core::evidence::key::Signer;
use sluice_core::evidence::mac::Doubts;
use sluice_core::port::store::{Hash, Store};
use sluice_engine::sealer::Sealer;
use sluice_engine::world::SystemClock;
use sluice_server::refused::{DATA_UNUSABLE, Refused, SEAL_UNUSABLE};
use sluice_server::workspaces::Workspaces;
use sluice_store::authentic::Keyed;
use sluice_store::postgres::{PostgresStore, Time, outside};
use sluice_store::sqlite::SqliteStore;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the schemas of organisations are called, before their name.
const SCHEMA: &str = "sluice_";

/// Where everything of one organisation is kept.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    dir: PathBuf,
    /// The organisation; none for the first one.
    organisation: Option<String>,
    /// The URL of the database, if it is in one.
    database: Option<String>,
    /// Where every seal is copied to.
    seal_file: Option<SealFile>,
    /// Why a store that was rolled back is opened for writing.
    accept_rollback: Option<String>,
}

/// A place, opened.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// What seals are made with; none where that is for others to do.
    pub(crate) sealer: Option<Sealer>,
    /// Where commands of runs work.
    pub(crate) workspaces: Option<Workspaces>,
    /// A rollback that the audit must say is accepted.
    pub(crate) accepted: Option<AcceptedRollback>,
}

/// A place, opened by a node that serves it.
pub(crate) struct Node {
    pub(crate) opened: Opened,
    /// What dispatches have their tokens of.
    pub(crate) dispatch: DispatchKey,
}

impl Place {
    pub(crate) fn of(data: &Data) -> Result<Place, Refused> {
        let dir = data.dir.clone().unwrap_or_else(|| config::get().data());
        let organisation = data.organisation.clone();
        let database = config::get().database()?;
        let seal_file = config::get().path(setting::Name::SealFile).map(|file| {
            let name = organisation::of(data);
            SealFile::of(file, (name != organisation::DEFAULT).then_some(name.as_str()))
        });
        let accept_rollback = data.accept_rollback.clone();
        Ok(Place { dir, organisation, database, seal_file, accept_rollback })
    }

    /// Where an organisation is once it was moved: in a database, with its directory.
    pub(crate) fn moved(dir: PathBuf, organisation: Option<String>, url: &str) -> Place {
        let database = Some(url.to_owned());
        Place { dir, organisation, database, seal_file: None, accept_rollback: None }
    }

    /// Has the database know the keys of the directory, so that no node has others.
    pub(crate) async fn settle(&self, store: &PostgresStore) -> anyhow::Result<()> {
        let seal = self.agree(store, key::SECRET, SEAL, told_seal).await?;
        self.agree(store, key::DISPATCH, DISPATCH, told_dispatch).await?;
        Ok(self.authentication(store, &seal).for_carried()?)
    }

    /// The directory that belongs to it.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where every seal is copied to.
    pub(crate) fn seal_file(&self) -> Option<&SealFile> {
        self.seal_file.as_ref()
    }

    /// Whether this process may write to the store; a database says so itself.
    pub(crate) fn is_writable(&self) -> bool {
        let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
        self.database.is_some() || may_write(&self.dir) && may_write(&self.dir.join("sluice.db"))
    }

    fn workspaces(&self) -> Option<Workspaces> {
        Some(Workspaces::new(workspaces(&self.dir)))
    }

    /// The URL of the database, if it is in one.
    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// The schema in the database; none for the one that it gives by itself.
    pub(crate) fn schema(&self) -> Option<String> {
        self.organisation.as_ref().map(|name| format!("{SCHEMA}{name}"))
    }

    /// Refuses one that nobody has run anything in: it would be made by looking
    /// at it.
    pub(crate) fn existing(&self) -> Result<(), Refused> {
        let Some(url) = &self.database else {
            if self.dir.join("sluice.db").exists() {
                return Ok(());
            }
            let message = format!("there are no runs in `{}`", self.dir.display());
            let remedy =
                "name the directory with `--data DIR` or SLUICE_DATA; `sluice run` makes one";
            return Err(Refused::new(DATA_UNUSABLE, message, remedy));
        };
        let found = outside::inspect(url, self.schema().as_deref());
        if found.map_err(|error| by_database(&error))?.schema > 0 {
            return Ok(());
        }
        let remedy = "name the database with `--database-url URL` or SLUICE_DATABASE_URL; \
                      `sluice serve` makes the tables in it";
        Err(Refused::new(DATA_UNUSABLE, "there are no runs in the database", remedy))
    }

    /// The store, and nobody at work on it.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, Refused> {
        // With a key that cannot be used one can still look, at what hashes and seals show.
        let secret = self.kept(key::SECRET).ok().flatten();
        Ok(match &self.database {
            None => {
                let store = self.sqlite_to_read()?;
                if let Some(secret) = &secret {
                    self.authentication(&store, secret).for_reading()?;
                }
                Arc::new(store)
            }
            Some(url) => {
                let store = self.postgres(url)?;
                if let Some(secret) = &secret {
                    self.authentication(&store, secret).for_reading()?;
                }
                Arc::new(store)
            }
        })
    }

    fn authentication<'a>(
        &'a self,
        store: &'a dyn Keyed,
        secret: &'a Secret,
    ) -> Authentication<'a> {
        let backend = match self.database {
            None => Backend::Sqlite,
            Some(_) => Backend::Postgres,
        };
        Authentication { store, backend, dir: &self.dir, secret }
    }

    fn sqlite(&self) -> Result<SqliteStore, Refused> {
        let opened = SqliteStore::open(&self.dir, Arc::new(SystemClock));
        let store = opened.map_err(|error| by_store(&self.dir, &error))?;
        // On a full disk an existing directory can still be read. A new key is made
        // only where the file is written.
        let _ = gitignore::write(&self.dir);
        Ok(store)
    }

    /// A directory that can be written is opened for writing: a store of an older version
    /// is brought up to date, and no file of a write-ahead log is left behind.
    fn sqlite_to_read(&self) -> Result<SqliteStore, Refused> {
        if self.is_writable() {
            return self.sqlite();
        }
        let opened = SqliteStore::open_read_only(&self.dir, Arc::new(SystemClock));
        opened.map_err(|error| by_store(&self.dir, &error))
    }

    fn postgres(&self, url: &str) -> Result<PostgresStore, Refused> {
        let opened = PostgresStore::open_in(url, self.schema().as_deref(), Time::Database);
        opened.map_err(|error| by_database(&error))
    }

    /// Authenticates the store of a directory with the key that is there, whatever key
    /// it had: the operator says that the old one is lost.
    pub(crate) async fn adopt(&self) -> anyhow::Result<Doubts> {
        if self.database.is_some() {
            let message =
                "`audit adopt` is for the store of a data directory, and this is a database";
            let remedy = "put the `seal.key` of the database's nodes back from where it is kept";
            return Err(Refused::new(SEAL_UNUSABLE, message, remedy).into());
        }
        let store = self.sqlite()?;
        let secret = key::secret(&self.dir, key::SECRET)?;
        self.authentication(&store, &secret).anew().await
    }

    /// Opens it for a command. In a database seals are made by who has the key.
    pub(crate) async fn open(&self) -> anyhow::Result<Opened> {
        let Some(url) = &self.database else {
            // The store makes the directory that the key is in.
            let store = Arc::new(self.sqlite()?);
            if store.is_marked() && key::found(&self.dir, key::SECRET)?.is_none() {
                return Err(missing_key(&self.dir).into());
            }
            let secret = key::secret(&self.dir, key::SECRET)?;
            let accepted = self.compare_seals(&*store, &secret).await?;
            self.authentication(&*store, &secret).for_writing().await?;
            let sealer = Some(self.sealer(&secret)?);
            return Ok(Opened { store, sealer, workspaces: self.workspaces(), accepted });
        };
        let store = self.postgres(url)?;
        let (sealer, accepted) = match self.kept(key::SECRET)? {
            Some(secret) if store.agreed(SEAL).await? == Some(told_seal(&secret)) => {
                let accepted = self.compare_seals(&store, &secret).await?;
                self.authentication(&store, &secret).for_writing().await?;
                (Some(self.sealer(&secret)?), accepted)
            }
            _ => (None, None),
        };
        Ok(Opened { store: Arc::new(store), sealer, workspaces: self.workspaces(), accepted })
    }

    /// Opens it only to read: also where nothing can be written, or where the store was
    /// rolled back.
    pub(crate) fn open_read_only(&self) -> Result<Opened, Refused> {
        let (store, workspaces) = (self.store()?, self.workspaces());
        Ok(Opened { store, sealer: None, workspaces, accepted: None })
    }

    /// Refuses a store that was rolled back, by the file that its seals are copied to,
    /// unless the operator accepts that.
    async fn compare_seals(
        &self,
        store: &dyn Store,
        secret: &Secret,
    ) -> anyhow::Result<Option<AcceptedRollback>> {
        let Some(file) = &self.seal_file else { return Ok(None) };
        let mut keys = key::public(&self.dir);
        keys.push(Signer::new(secret).public());
        match file.compare(store, &keys, &self.dir).await? {
            None => Ok(None),
            Some(found) => Ok(Some(found.accept(self.accept_rollback.as_deref())?)),
        }
    }

    /// Refuses a store that was rolled back, where there is a key to tell that by.
    pub(crate) async fn refuse_rollback(&self, store: &dyn Store) -> anyhow::Result<()> {
        match self.kept(key::SECRET)? {
            Some(secret) => self.compare_seals(store, &secret).await.map(drop),
            None => Ok(()),
        }
    }

    fn sealer(&self, secret: &Secret) -> Result<Sealer, Refused> {
        key::sealer_with(secret, &self.dir, self.seal_file.as_ref())
    }

    /// Opens it for a node. Its keys are made where there are none yet.
    pub(crate) async fn serve(&self) -> anyhow::Result<Node> {
        let Some(url) = &self.database else {
            let opened = self.open().await?;
            let dispatch = DispatchKey::new(key::secret(&self.dir, key::DISPATCH)?);
            return Ok(Node { opened, dispatch });
        };
        let store = self.postgres(url)?;
        key::directory(&self.dir)?;
        let seal = self.agree(&store, key::SECRET, SEAL, told_seal).await?;
        let dispatch = self.agree(&store, key::DISPATCH, DISPATCH, told_dispatch).await?;
        let accepted = self.compare_seals(&store, &seal).await?;
        self.authentication(&store, &seal).for_writing().await?;
        let sealer = Some(self.sealer(&seal)?);
        let workspaces = self.workspaces();
        let opened = Opened { store: Arc::new(store), sealer, workspaces, accepted };
        Ok(Node { opened, dispatch: DispatchKey::new(dispatch) })
    }

    /// A key that is here: in a file, or made of that of the first organisation.
    fn kept(&self, name: &str) -> Result<Option<Secret>, Refused> {
        let own = key::found(&self.dir, name)?;
        let Some(organisation) = self.organisation.as_ref().filter(|_| own.is_none()) else {
            return Ok(own);
        };
        let first = key::found(&organisation::first(&self.dir), name)?;
        Ok(first.map(|first| key::derived(&first, organisation)))
    }

    /// The key that all nodes of the database have. Whoever comes first makes it.
    async fn agree(
        &self,
        store: &PostgresStore,
        file: &str,
        name: &str,
        told: fn(&Secret) -> String,
    ) -> anyhow::Result<Secret> {
        let other = || {
            let path = self.dir.join(file);
            let message = format!("`{}` is not the key that this database has", path.display());
            let remedy = "copy `seal.key` and `dispatch.key` from the data directory of a node that \
                          serves it already";
            Refused::new(SEAL_UNUSABLE, message, remedy)
        };
        let secret = match self.kept(file)? {
            Some(secret) => secret,
            // Another node of this directory may have made it just now: a key is there
            // before it is agreed on.
            None if store.agreed(name).await?.is_some() => self.kept(file)?.ok_or_else(other)?,
            None => key::secret(&self.dir, file)?,
        };
        let told = told(&secret);
        if store.agree(name, &told).await? == told { Ok(secret) } else { Err(other().into()) }
    }
}

/// Where commands of runs work, each run in a directory of its own.
pub(crate) fn workspaces(dir: &Path) -> PathBuf {
    let dir = dir.join("workspaces");
    // A relative one would be looked for from the directory of a command.
    std::path::absolute(&dir).unwrap_or(dir)
}

/// The organisations of a database beside the first one. Waits for the answer.
pub(crate) fn others(url: &str) -> Result<Vec<String>, Refused> {
    let schemas = outside::schemas(url, SCHEMA).map_err(|error| by_database(&error))?;
    Ok(schemas.iter().filter_map(|name| name.strip_prefix(SCHEMA)).map(str::to_owned).collect())
}

/// What is agreed on about the key that seals are signed with: its public half.
const SEAL: &str = "seal";
/// What is agreed on about the key of dispatches: a hash of it.
const DISPATCH: &str = "dispatch";

fn told_seal(secret: &Secret) -> String {
    Signer::new(secret).public().to_string()
}

fn told_dispatch(secret: &Secret) -> String {
    Hash::of(&[b"the key of dispatches ".as_slice(), secret].concat()).to_string()
}
