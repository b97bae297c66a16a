//! The data directory, opened: the store in it and an engine on it.

use crate::cli::run::{Data, Name};
use crate::config::{self, setting};
use crate::environment;
use crate::keyring;
use crate::organisation;
use crate::place::{Opened, Place};
use crate::refused;
use anyhow::Context as _;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::port::authority::Patience;
use sluice_core::port::ledger::Change;
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
use sluice_govern::registry::Row;
use sluice_server::refused::{Refused, STORE_ROLLED_BACK};
use sluice_server::service::{RowOrigin, Service};
use sluice_store::memory::MemoryStore;
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long what is left may take to end when the command does.
const END_MS: u64 = 2000;

/// How long runs may take to be handed over at the end, however short
/// `limits.drain_ms` is.
const HAND_OVER_MS_MIN: u64 = 1000;

/// The data directory.
pub(crate) fn directory(data: &Data) -> PathBuf {
    data.dir.clone().unwrap_or_else(|| config::get().data())
}

/// Options that a next command needs too, for hints.
#[derive(Debug, Clone, Default)]
pub(crate) struct Again {
    /// Where the runs are: for every command.
    pub(crate) look: String,
    /// Who does the work, too: for those that do some.
    pub(crate) work: String,
}

impl Again {
    pub(crate) fn of(data: &Data, mock: Option<&OsString>) -> Again {
        let config = config::get();
        let url = config.text(setting::Name::Url);
        let url = url.filter(|_| *config.source(setting::Name::Url) == config::Source::Flag);
        let mut look = match (&data.dir, url) {
            (Some(dir), _) => option("--data", dir.as_os_str()),
            (None, Some(url)) => option("--url", OsStr::new(url)),
            (None, None) => String::new(),
        };
        // Its value may hold a password: what is shown of it is where it is.
        if *config.source(setting::Name::DatabaseUrl) == config::Source::Flag {
            let shown = config.shown(setting::Name::DatabaseUrl);
            look.push_str(&option("--database-url", OsStr::new(&shown)));
        }
        let mock = mock.map(|mock| option("--mock", mock)).unwrap_or_default();
        Again { work: format!("{look}{mock}"), look }
    }

    /// Who judges texts, too.
    pub(crate) fn moderated(mut self, moderation: Option<&OsString>) -> Again {
        self.work.extend(moderation.map(|named| option("--moderation", named)));
        self
    }
}

fn option(name: &str, value: &OsStr) -> String {
    format!(" {name} {}", quoted(&value.to_string_lossy()))
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", visible::line(word).replace('\'', r"'\''"))
}

/// In whose name things are done.
pub(crate) fn who(name: &Name) -> String {
    name.who.clone().or_else(environment::user).unwrap_or_else(|| "local".to_owned())
}

/// The roles of whoever has the data directory: on one's own machine nobody else
/// decides. Other roles must be said.
pub(crate) fn roles(said: &[String]) -> Vec<String> {
    let own = ["approver", "admin"].map(str::to_owned);
    own.into_iter().chain(said.iter().cloned()).collect()
}

/// Who judges texts, and who is told of everything.
type Beside = (Option<Arc<dyn Moderator>>, Option<Arc<dyn Observer>>);

/// An engine on a data directory.
pub(crate) struct Local(Service);

impl Deref for Local {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl Local {
    /// Opens the data directory, and makes it where it is missing.
    pub(crate) async fn open(data: &Data, agents: Agents, claims: Claims) -> anyhow::Result<Local> {
        Local::under(data, agents, claims, PolicySource::default(), None).await
    }

    /// The same, under policies that are named, and with somebody who judges texts.
    pub(crate) async fn under(
        data: &Data,
        agents: Agents,
        claims: Claims,
        policies: PolicySource,
        moderator: Option<Arc<dyn Moderator>>,
    ) -> anyhow::Result<Local> {
        let opened = Place::of(data)?.open().await?;
        let local = Local::on(opened, agents, claims, policies, (moderator, None)).await?;
        Ok(local.of_owner(data))
    }

    /// The same, for the owner of the directory.
    fn of_owner(self, data: &Data) -> Local {
        // Commands on the first organisation's directory are the operator's.
        let first = organisation::of(data) == organisation::DEFAULT;
        let origin = if first { RowOrigin::Operator } else { RowOrigin::Client };
        self.by(origin, keyring::of(data))
    }

    /// The same for a server: every run is looked after, and somebody is told of it.
    pub(crate) async fn served(
        opened: Opened,
        agents: Agents,
        policies: PolicySource,
        moderator: Option<Arc<dyn Moderator>>,
        observer: Arc<dyn Observer>,
    ) -> anyhow::Result<Local> {
        Local::on(opened, agents, Claims::All, policies, (moderator, Some(observer))).await
    }

    /// A data directory that is made up: only these rows are in it, and nothing stays.
    pub(crate) async fn imagined(rows: Vec<Row>, origin: RowOrigin) -> anyhow::Result<Local> {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let opened = Opened { store, sealer: None, workspaces: None, accepted: None };
        let policies = PolicySource::default();
        let local = Local::on(opened, Agents::new(), Claims::None, policies, (None, None)).await?;
        if !rows.is_empty() {
            let (node, entries) = (local.engine.node(), Vec::new());
            let remove = Vec::new();
            let change = Change { expect: None, put: rows, remove, node, entries };
            local.store.change(change).await?;
        }
        Ok(local.by(origin, Keyring::default()))
    }

    async fn on(
        Opened { store, sealer, workspaces, accepted }: Opened,
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
            let actor = who(&Name { who: None });
            store.record(engine.node(), vec![accepted.entry(actor)]).await?;
            // From here on the seal file ends with a seal of this store.
            engine.seal().await?;
        }
        let (origin, secrets) = (RowOrigin::Client, Keyring::default());
        let engine = Arc::new(engine);
        Ok(Local(Service { store, engine, workspaces, origin, secrets }))
    }

    /// The same, with who changes its rows and the secrets that they may name.
    pub(crate) fn by(self, origin: RowOrigin, secrets: Keyring) -> Local {
        Local(Service { origin, secrets, ..self.0 })
    }

    /// Opens a data directory that is there, to look and to note things down.
    pub(crate) async fn look(data: &Data) -> anyhow::Result<Local> {
        existing(data)?;
        Local::open(data, Agents::new(), Claims::None).await
    }

    /// Opens a data directory that is there, only to look. Nothing is written where the
    /// directory cannot be written, or where its store was rolled back.
    pub(crate) async fn read(data: &Data) -> anyhow::Result<Local> {
        existing(data)?;
        let place = Place::of(data)?;
        if place.is_writable() {
            match Local::look(data).await {
                Err(error) if refused::is(&error, STORE_ROLLED_BACK) => {}
                opened => return opened,
            }
        }
        let (opened, policies) = (place.open_read_only()?, PolicySource::default());
        let local = Local::on(opened, Agents::new(), Claims::ReadOnly, policies, (None, None));
        Ok(local.await?.of_owner(data))
    }

    /// Hands what is in flight over and releases the directory, within
    /// `limits.drain_ms`. Answers how many runs could not be handed over.
    pub(crate) async fn close(self) -> usize {
        self.engine.shutdown().await
    }
}

/// How long approvals stay open, when people are reminded of them, and how long steps
/// wait at gates.
fn patience() -> Patience {
    use setting::Name;
    let ms = |name| config::get().duration_ms(name);
    let mut reminders = [
        (ms(Name::ApprovalsRemindNormal), "normal"),
        (ms(Name::ApprovalsRemindElevated), "elevated"),
        (ms(Name::ApprovalsRemindCritical), "critical"),
    ]
    .map(|(after_ms, level)| (after_ms, level.to_owned()))
    .to_vec();
    // They are sent in the order of their list.
    reminders.sort_by_key(|(after_ms, _)| *after_ms);
    let expires_ms = ms(Name::ApprovalsExpiresIn);
    Patience { reminders, expires_ms, queue_ms: ms(Name::QueueTimeout) }
}

/// The store of a place, and nobody at work on it.
pub(crate) fn store(data: &Data) -> Result<Arc<dyn Store>, Refused> {
    Place::of(data)?.store()
}

/// Refuses a place that nobody has run anything in: it would be made by looking
/// at it.
pub(crate) fn existing(data: &Data) -> Result<(), Refused> {
    Place::of(data)?.existing()
}

/// Waits for `work` with everything an engine needs around it.
pub(crate) fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    let done = runtime.block_on(work);
    // Whatever is still under way is dropped, and with it what it started.
    runtime.shutdown_timeout(Duration::from_millis(END_MS));
    done
}
