//! Where an organisation is stored: in a data directory, or in a PostgreSQL database that nodes
//! share.
//!
//! A database needs a data directory too: it holds the keys and the workspaces of runs. Each
//! organisation but the first has its own schema in the database, and its own directory
//! otherwise.
//!
//! INVARIANT: nodes of one database have the same keys. The database stores a fingerprint of
//! each key, never the key itself, which protects the database.

use crate::authenticate::{Authentication, StoreKind, missing_key};
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
use sluice_core::hash::Hash;
use sluice_core::port::store::Store;
use sluice_engine::sealer::Sealer;
use sluice_engine::world::SystemClock;
use sluice_server::refused::{DATA_UNUSABLE, Refused, SEAL_UNUSABLE};
use sluice_server::workspaces::Workspaces;
use sluice_store::authentic::Keyed;
use sluice_store::postgres::{PostgresStore, Time, outside};
use sluice_store::sqlite::SqliteStore;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prefix of the schema of an organisation.
const SCHEMA: &str = "sluice_";

#[derive(Debug, Clone)]
pub(crate) struct DataLocation {
    dir: PathBuf,
    /// None for the first organisation.
    organisation: Option<String>,
    database: Option<String>,
    seal_file: Option<SealFile>,
    /// The reason to open a store that was rolled back for writing.
    accept_rollback: Option<String>,
}

pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    /// None where another node of the database makes the seals.
    pub(crate) sealer: Option<Sealer>,
    pub(crate) workspaces: Option<Workspaces>,
    /// An accepted rollback, to be recorded in the audit log.
    pub(crate) accepted: Option<AcceptedRollback>,
}

/// A store that is opened by a node which serves it.
pub(crate) struct ServedLocation {
    pub(crate) opened: OpenedStore,
    /// The key that tokens of dispatches are derived from.
    pub(crate) dispatch: DispatchKey,
}

impl DataLocation {
    pub(crate) fn resolve(data: &Data) -> Result<DataLocation, Refused> {
        let dir = data.dir.clone().unwrap_or_else(|| config::get().data());
        let organisation = data.organisation.clone();
        let database = config::get().database()?;
        let seal_file = config::get().path(setting::Name::SealFile).map(|file| {
            let name = organisation::name_of(data);
            SealFile::for_organisation(
                file,
                (name != organisation::DEFAULT).then_some(name.as_str()),
            )
        });
        let accept_rollback = data.accept_rollback.clone();
        Ok(DataLocation { dir, organisation, database, seal_file, accept_rollback })
    }

    /// The location of an organisation that was migrated to a database.
    pub(crate) fn moved(dir: PathBuf, organisation: Option<String>, url: &str) -> DataLocation {
        let database = Some(url.to_owned());
        DataLocation { dir, organisation, database, seal_file: None, accept_rollback: None }
    }

    /// Registers the keys of the directory in the database, so that no node uses other keys.
    pub(crate) async fn register_keys(&self, store: &PostgresStore) -> anyhow::Result<()> {
        let seal = self.agree(store, key::SECRET, SEAL, seal_fingerprint).await?;
        self.agree(store, key::DISPATCH, DISPATCH, dispatch_fingerprint).await?;
        Ok(self.authentication(store, &seal).for_carried()?)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn seal_file(&self) -> Option<&SealFile> {
        self.seal_file.as_ref()
    }

    /// Whether this process may write to the store. A database decides that itself.
    pub(crate) fn is_writable(&self) -> bool {
        let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
        self.database.is_some() || may_write(&self.dir) && may_write(&self.dir.join("sluice.db"))
    }

    fn workspaces(&self) -> Option<Workspaces> {
        Some(Workspaces::new(workspaces(&self.dir)))
    }

    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// The schema in the database; none for the default one.
    pub(crate) fn schema(&self) -> Option<String> {
        self.organisation.as_ref().map(|name| format!("{SCHEMA}{name}"))
    }

    /// Refuses a location without a store: opening it would create one.
    pub(crate) fn existing(&self) -> Result<(), Refused> {
        let Some(url) = &self.database else {
            if self.dir.join("sluice.db").exists() {
                return Ok(());
            }
            let message = format!("there are no runs in `{}`", self.dir.display());
            let remedy =
                "name the directory with `--data DIR` or SLUICE_DATA; `sluice run` creates one";
            return Err(Refused::new(DATA_UNUSABLE, message, remedy));
        };
        let found = outside::inspect(url, self.schema().as_deref());
        if found.map_err(|error| by_database(&error))?.schema > 0 {
            return Ok(());
        }
        let remedy = "name the database with `--database-url URL` or SLUICE_DATABASE_URL; \
                      `sluice serve` creates its tables";
        Err(Refused::new(DATA_UNUSABLE, "there are no runs in the database", remedy))
    }

    /// Opens the store without an engine.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, Refused> {
        // Without a usable key, reading is still possible: hashes and seals protect the store.
        let secret = self.existing_key(key::SECRET).ok().flatten();
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
        let kind = match self.database {
            None => StoreKind::Sqlite,
            Some(_) => StoreKind::Postgres,
        };
        Authentication { store, kind, dir: &self.dir, secret }
    }

    fn sqlite(&self) -> Result<SqliteStore, Refused> {
        let opened = SqliteStore::open(&self.dir, Arc::new(SystemClock));
        let store = opened.map_err(|error| by_store(&self.dir, &error))?;
        // On a full disk an existing directory can still be read. A key is only created where this
        // file can be written.
        let _ = gitignore::write(&self.dir);
        Ok(store)
    }

    /// A writable directory is opened for writing: an older schema is migrated, and no write-ahead
    /// log is left behind.
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

    /// Authenticates the store with its current key. The operator states that the previous key
    /// is lost, or accepts the registry as it is. The nodes of a database share one key, so it
    /// is adopted only with that key.
    pub(crate) async fn adopt(&self) -> anyhow::Result<Doubts> {
        if let Some(url) = &self.database {
            let store = self.postgres(url)?;
            let secret = self.existing_key(key::SECRET)?;
            let agreed = store.agreed(SEAL).await?;
            let Some(secret) = secret.filter(|one| agreed == Some(seal_fingerprint(one))) else {
                let message = "the nodes of this database have another `seal.key`";
                let remedy =
                    "put the `seal.key` of the database's nodes back from where it is kept";
                return Err(Refused::new(SEAL_UNUSABLE, message, remedy).into());
            };
            return self.authentication(&store, &secret).anew().await;
        }
        let store = self.sqlite()?;
        let secret = key::secret(&self.dir, key::SECRET)?;
        self.authentication(&store, &secret).anew().await
    }

    /// Opens the store for a command. In a database, only a node with the key makes seals.
    pub(crate) async fn open(&self) -> anyhow::Result<OpenedStore> {
        let Some(url) = &self.database else {
            // Opening the store creates the directory of the key.
            let store = Arc::new(self.sqlite()?);
            if store.is_marked() && key::found(&self.dir, key::SECRET)?.is_none() {
                return Err(missing_key(&self.dir).into());
            }
            let secret = key::secret(&self.dir, key::SECRET)?;
            let accepted = self.compare_seals(&*store, &secret).await?;
            self.authentication(&*store, &secret).for_writing().await?;
            let sealer = Some(self.sealer(&secret)?);
            return Ok(OpenedStore { store, sealer, workspaces: self.workspaces(), accepted });
        };
        let store = self.postgres(url)?;
        let (sealer, accepted) = match self.existing_key(key::SECRET)? {
            Some(secret) if store.agreed(SEAL).await? == Some(seal_fingerprint(&secret)) => {
                let accepted = self.compare_seals(&store, &secret).await?;
                self.authentication(&store, &secret).for_writing().await?;
                (Some(self.sealer(&secret)?), accepted)
            }
            _ => (None, None),
        };
        Ok(OpenedStore { store: Arc::new(store), sealer, workspaces: self.workspaces(), accepted })
    }

    /// Opens the store read-only, also if it is not writable or was rolled back.
    pub(crate) fn open_read_only(&self) -> Result<OpenedStore, Refused> {
        let (store, workspaces) = (self.store()?, self.workspaces());
        Ok(OpenedStore { store, sealer: None, workspaces, accepted: None })
    }

    /// Refuses a store that is older than its seal file, unless the operator accepts that.
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

    /// Refuses a store that was rolled back, if the key to detect that exists.
    pub(crate) async fn refuse_rollback(&self, store: &dyn Store) -> anyhow::Result<()> {
        match self.existing_key(key::SECRET)? {
            Some(secret) => self.compare_seals(store, &secret).await.map(drop),
            None => Ok(()),
        }
    }

    fn sealer(&self, secret: &Secret) -> Result<Sealer, Refused> {
        key::sealer_with(secret, &self.dir, self.seal_file.as_ref())
    }

    /// Opens the store for a node, and creates missing keys.
    pub(crate) async fn serve(&self) -> anyhow::Result<ServedLocation> {
        let Some(url) = &self.database else {
            let opened = self.open().await?;
            let dispatch = DispatchKey::new(key::secret(&self.dir, key::DISPATCH)?);
            return Ok(ServedLocation { opened, dispatch });
        };
        let store = self.postgres(url)?;
        key::directory(&self.dir)?;
        let seal = self.agree(&store, key::SECRET, SEAL, seal_fingerprint).await?;
        let dispatch = self.agree(&store, key::DISPATCH, DISPATCH, dispatch_fingerprint).await?;
        let accepted = self.compare_seals(&store, &seal).await?;
        self.authentication(&store, &seal).for_writing().await?;
        let sealer = Some(self.sealer(&seal)?);
        let workspaces = self.workspaces();
        let opened = OpenedStore { store: Arc::new(store), sealer, workspaces, accepted };
        Ok(ServedLocation { opened, dispatch: DispatchKey::new(dispatch) })
    }

    /// An existing key: from its file, or derived from the key of the first organisation.
    fn existing_key(&self, name: &str) -> Result<Option<Secret>, Refused> {
        let own = key::found(&self.dir, name)?;
        let Some(organisation) = self.organisation.as_ref().filter(|_| own.is_none()) else {
            return Ok(own);
        };
        let first = key::found(&organisation::first(&self.dir), name)?;
        Ok(first.map(|first| key::derived(&first, organisation)))
    }

    /// The key that all nodes of the database share. The first node creates it.
    async fn agree(
        &self,
        store: &PostgresStore,
        file: &str,
        name: &str,
        fingerprint: fn(&Secret) -> String,
    ) -> anyhow::Result<Secret> {
        let other = || {
            let path = self.dir.join(file);
            let message = format!("`{}` is not the key of this database", path.display());
            let remedy = "copy `seal.key` and `dispatch.key` from the data directory of a node that \
                          serves it already";
            Refused::new(SEAL_UNUSABLE, message, remedy)
        };
        let secret = match self.existing_key(file)? {
            Some(secret) => secret,
            // Another node of this directory may have created it just now: a key is written before
            // its fingerprint is registered.
            None if store.agreed(name).await?.is_some() => {
                self.existing_key(file)?.ok_or_else(other)?
            }
            None => key::secret(&self.dir, file)?,
        };
        let fingerprint = fingerprint(&secret);
        if store.agree(name, &fingerprint).await? == fingerprint {
            Ok(secret)
        } else {
            Err(other().into())
        }
    }
}

/// The directory that holds one workspace per run.
pub(crate) fn workspaces(dir: &Path) -> PathBuf {
    let dir = dir.join("workspaces");
    // Commands of steps run in other directories, so the path must be absolute.
    std::path::absolute(&dir).unwrap_or(dir)
}

/// The organisations of a database but the first. Blocks.
pub(crate) fn other_organisations(url: &str) -> Result<Vec<String>, Refused> {
    let schemas = outside::schemas(url, SCHEMA).map_err(|error| by_database(&error))?;
    Ok(schemas.iter().filter_map(|name| name.strip_prefix(SCHEMA)).map(str::to_owned).collect())
}

/// Registered for the key that signs seals: its public half.
const SEAL: &str = "seal";
/// Registered for the key of dispatches: its hash.
const DISPATCH: &str = "dispatch";

fn seal_fingerprint(secret: &Secret) -> String {
    Signer::new(secret).public().to_string()
}

fn dispatch_fingerprint(secret: &Secret) -> String {
    Hash::of(&[b"the key of dispatches ".as_slice(), secret].concat()).to_string()
}
