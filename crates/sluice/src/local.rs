//! An engine on the data directory of a command.

use crate::cli::run::Data;
use crate::config::{self, setting};
use crate::data_location::{DataLocation, OpenedStore};
use crate::environment;
use crate::keyring;
use crate::organisation;
use crate::providers;
use crate::refused;
use anyhow::Context as _;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::port::authority::Patience;
use sluice_core::port::moderator::Moderator;
use sluice_core::port::store::Store;
use sluice_core::visible;
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::{Claims, Config};
use sluice_engine::engine::Ground;
use sluice_engine::observe::Observer;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::refused::{Refused, STORE_ROLLED_BACK};
use sluice_server::service::{RowOrigin, Service};
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long tasks may take to end with the command.
const END_MS: u64 = 2000;

/// Shortest time for the release of runs at the end, also if `limits.drain_ms` is shorter.
const HAND_OVER_MS_MIN: u64 = 1000;

pub(crate) fn directory(data: &Data) -> PathBuf {
    data.dir.clone().unwrap_or_else(|| config::get().data())
}

/// Options that a hint for the next command repeats.
#[derive(Debug, Clone, Default)]
pub(crate) struct Again {
    /// Options that select the store.
    pub(crate) look: String,
    /// The same, with options that select agents.
    pub(crate) work: String,
}

impl Again {
    pub(crate) fn from_options(data: &Data, mock: Option<&OsString>) -> Again {
        let config = config::get();
        let url = config.text(setting::Name::Url);
        let url = url.filter(|_| *config.source(setting::Name::Url) == config::Source::Flag);
        let mut look = match (&data.dir, url) {
            (Some(dir), _) => option("--data", dir.as_os_str()),
            (None, Some(url)) => option("--url", OsStr::new(url)),
            (None, None) => String::new(),
        };
        // Its value may hold a password, so the redacted form is shown.
        if *config.source(setting::Name::DatabaseUrl) == config::Source::Flag {
            let shown = config.shown(setting::Name::DatabaseUrl);
            look.push_str(&option("--database-url", OsStr::new(&shown)));
        }
        let mock = mock.map(|mock| option("--mock", mock)).unwrap_or_default();
        Again { work: format!("{look}{mock}"), look }
    }

    /// Adds the moderator.
    pub(crate) fn moderated(mut self, moderation: Option<&OsString>) -> Again {
        self.work.extend(moderation.map(|named| option("--moderation", named)));
        self
    }
}

fn option(name: &str, value: &OsStr) -> String {
    format!(" {name} {}", quoted(&value.to_string_lossy()))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", visible::line(word).replace('\'', r"'\''"))
}

/// The principal that a command acts as: the one that `--as` names, else the user.
pub(crate) fn principal(name: Option<&str>) -> String {
    let named = name.map(str::to_owned);
    named.or_else(environment::user).unwrap_or_else(|| "local".to_owned())
}

/// The roles of the owner of the data directory, who decides alone there, and those that
/// `--role` adds.
pub(crate) fn roles(said: &[String]) -> Vec<String> {
    let own = ["approver", "admin"].map(str::to_owned);
    own.into_iter().chain(said.iter().cloned()).collect()
}

type Beside = (Option<Arc<dyn Moderator>>, Option<Arc<dyn Observer>>);

/// An engine on a data directory, as a service.
pub(crate) struct Local(Service);

impl Deref for Local {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl Local {
    /// Opens the data directory, and creates it if it is missing.
    pub(crate) async fn open(data: &Data, agents: Agents, claims: Claims) -> anyhow::Result<Local> {
        Local::open_with(data, agents, claims, PolicySource::default(), None).await
    }

    /// The same, with a policy source and a moderator.
    pub(crate) async fn open_with(
        data: &Data,
        agents: Agents,
        claims: Claims,
        policies: PolicySource,
        moderator: Option<Arc<dyn Moderator>>,
    ) -> anyhow::Result<Local> {
        let opened = DataLocation::resolve(data)?.open().await?;
        let local =
            Local::start_engine(opened, agents, claims, policies, (moderator, None)).await?;
        Ok(local.for_owner(data))
    }

    fn for_owner(self, data: &Data) -> Local {
        // Only the operator has the directory of the first organisation.
        let first = organisation::name_of(data) == organisation::DEFAULT;
        let origin = if first { RowOrigin::Operator } else { RowOrigin::Client };
        self.with_origin(origin, keyring::for_data(data))
    }

    /// Opens a store for a server: the engine claims all runs, and reports to an observer.
    pub(crate) async fn served(
        opened: OpenedStore,
        agents: Agents,
        policies: PolicySource,
        moderator: Option<Arc<dyn Moderator>>,
        observer: Arc<dyn Observer>,
    ) -> anyhow::Result<Local> {
        Local::start_engine(opened, agents, Claims::All, policies, (moderator, Some(observer)))
            .await
    }

    async fn start_engine(
        OpenedStore { store, sealer, workspaces, accepted }: OpenedStore,
        agents: Agents,
        claims: Claims,
        policies: PolicySource,
        (moderator, observer): Beside,
    ) -> anyhow::Result<Local> {
        let ground = Ground {
            store: Arc::clone(&store),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(|| Box::new(SystemEntropy)),
            agents,
            policies,
            catalog: providers::catalog(),
            sealer,
            moderator,
            observer,
        };
        let lease_ms = config::get().number(setting::Name::LeaseMs);
        let default_model = config::get().text(setting::Name::DefaultModel).map(str::to_owned);
        let depth = config::get().number(setting::Name::RecursionDepth);
        let recursion_depth_max = u32::try_from(depth).unwrap_or(u32::MAX);
        let config = Config {
            claims,
            lease_ms,
            default_model,
            recursion_depth_max,
            shutdown_ms: config::get().number(setting::Name::DrainMs).max(HAND_OVER_MS_MIN),
            patience: patience(),
            ..Config::default()
        };
        let engine = Engine::open(ground, config).await.map_err(refused::open)?;
        if let Some(accepted) = accepted {
            let actor = principal(None);
            store.record(engine.node(), vec![accepted.entry(actor)]).await?;
            // From here on the seal file ends with a seal of this store.
            engine.seal().await?;
        }
        let (origin, secrets) = (RowOrigin::Client, Keyring::default());
        let engine = Arc::new(engine);
        Ok(Local(Service { store, engine, workspaces, origin, secrets }))
    }

    /// Sets the origin of row changes, and the secrets that rows may name.
    pub(crate) fn with_origin(self, origin: RowOrigin, secrets: Keyring) -> Local {
        Local(Service { origin, secrets, ..self.0 })
    }

    /// Opens an existing data directory for writing, without claiming runs.
    pub(crate) async fn open_existing(data: &Data) -> anyhow::Result<Local> {
        existing(data)?;
        Local::open(data, Agents::new(), Claims::None).await
    }

    /// Opens an existing data directory for reading. The store is opened read-only if the directory
    /// is not writable or the store was rolled back.
    pub(crate) async fn read(data: &Data) -> anyhow::Result<Local> {
        existing(data)?;
        let place = DataLocation::resolve(data)?;
        if place.is_writable() {
            match Local::open_existing(data).await {
                Err(error) if refused::is(&error, STORE_ROLLED_BACK) => {}
                opened => return opened,
            }
        }
        let (opened, policies) = (place.open_read_only()?, PolicySource::default());
        let local =
            Local::start_engine(opened, Agents::new(), Claims::ReadOnly, policies, (None, None));
        Ok(local.await?.for_owner(data))
    }

    /// Releases runs in flight and the directory, within `limits.drain_ms`. Returns how many runs
    /// could not be released.
    pub(crate) async fn close(self) -> usize {
        self.engine.shutdown().await
    }
}

/// When approvals expire and are reminded of, and how long steps wait at gates.
fn patience() -> Patience {
    use setting::Name;
    let ms = |name| config::get().duration_ms(name);
    let mut reminders: Vec<(u64, String)> = [
        (Name::ApprovalsRemindNormal, "normal"),
        (Name::ApprovalsRemindElevated, "elevated"),
        (Name::ApprovalsRemindCritical, "critical"),
    ]
    .into_iter()
    .filter_map(|(name, level)| {
        Some((config::get().duration_ms_unless_off(name)?, level.to_owned()))
    })
    .collect();
    // Reminders are sent in the order of the list.
    reminders.sort_by_key(|(after_ms, _)| *after_ms);
    let expires_ms = ms(Name::ApprovalsExpiresIn);
    Patience { reminders, expires_ms, queue_ms: ms(Name::QueueTimeout) }
}

/// Opens the store without an engine.
pub(crate) fn store(data: &Data) -> Result<Arc<dyn Store>, Refused> {
    DataLocation::resolve(data)?.store()
}

/// Refuses a location without a store: opening it would create one.
pub(crate) fn existing(data: &Data) -> Result<(), Refused> {
    DataLocation::resolve(data)?.existing()
}

/// Runs `work` on a runtime that an engine can use.
pub(crate) fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = sluice_engine::world::runtime();
    let runtime = runtime.context("cannot start threads")?;
    let done = runtime.block_on(work);
    // Dropping the remaining tasks kills the processes they started.
    runtime.shutdown_timeout(Duration::from_millis(END_MS));
    done
}
