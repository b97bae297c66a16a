//! The engine of one cluster node: its public methods, and the registry of loaded runs.

use crate::agents::Agents;
use crate::config::{Claims, Config};
use crate::definition::{Definitions, Stored};
use crate::error::{CommandError, Delivered, LoadError, OpenError, StartError};
use crate::feed::{Feed, FeedReader};
use crate::limits::PAGE_BYTES;
use crate::load::{Folded, blobs_of, replay, stored, subject};
use crate::loaded_run::{LoadContext, LoadedRun, fold};
use crate::mailbox::{Mail, RunHandle};
use crate::moderation::ask::ModeratorClient;
use crate::observe::{Gauges, Observer};
use crate::sealer::Sealer;
use crate::start::{Start, StartedRun};
use crate::stream::StreamBudget;
use crate::tail::Reader;
use crate::trust::{GovernanceCache, PolicySource};
use crate::turn::{TurnInput, TurnResult};
use crate::watch::{FollowedRuns, Tip};
use futures_util::FutureExt as _;
use sluice_core::hash::Hash;
use sluice_core::id::{Entropy, RunId};
use sluice_core::journal::envelope::{Seen, envelopes, push};
use sluice_core::port::authority::CatalogSource;
use sluice_core::port::moderator::Moderator;
use sluice_core::port::store::{MailboxMessage, NodeId, Store, StoreError};
use sluice_core::port::{Clock, Later};
use sluice_core::run::command::{Command, Dispatching};
use sluice_core::run::message;
use sluice_core::run::state::Run;
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::Policies;
use sluice_govern::registry::Health;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Creates a source of random bits for one run.
pub type EntropySource = Arc<dyn Fn() -> Box<dyn Entropy> + Send + Sync>;

/// Everything an [`Engine`] depends on.
#[derive(Clone)]
pub struct Ground {
    /// Stores journals, registry rows and counters.
    pub store: Arc<dyn Store>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Source of random bits.
    pub entropy: EntropySource,
    /// Adapters that execute steps, by agent and gateway.
    pub agents: Agents,
    /// Where policies are read from.
    pub policies: PolicySource,
    /// Where the catalog of tools comes from; `None` if this machine declares no tools.
    pub catalog: Option<Arc<dyn CatalogSource>>,
    /// Signs seals; `None` if another process seals this store.
    pub sealer: Option<Sealer>,
    /// Checks texts of moderated steps. Without one, those steps fail.
    pub moderator: Option<Arc<dyn Moderator>>,
    /// Receives every durable turn, for metrics and traces.
    pub observer: Option<Arc<dyn Observer>>,
}

/// The engine of one process. Dropping it aborts all its tasks, as a crash would.
pub struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: EntropySource,
    pub(crate) agents: Agents,
    pub(crate) trust: GovernanceCache,
    pub(crate) sealer: Option<Sealer>,
    pub(crate) moderator: Arc<ModeratorClient>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) config: Config,
    pub(crate) node: NodeId,
    pub(crate) definitions: Definitions,
    pub(crate) followed: FollowedRuns,
    pub(crate) feed: Feed,
    /// Rate and memory that all streams of the process share.
    pub(crate) streams: StreamBudget,
    /// One permit per run that may be in memory.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) stop: CancellationToken,
    dead: CancellationToken,
    loaded: Mutex<BTreeMap<RunId, RunHandle>>,
    /// With `Claims::Own`: the runs that this process loaded, which it wakes when due.
    own_runs: Mutex<BTreeSet<RunId>>,
    /// Whether a claim already waits for a permit.
    pub(crate) claim_queued: AtomicBool,
    /// Whether the answer to a claim was lost, so that some claimed runs are unknown.
    pub(crate) claims_unacknowledged: AtomicBool,
    /// Whether this process appended something since the last seal.
    pub(crate) unsealed: AtomicBool,
    /// Quarantined runs and the reason: their journals cannot be folded.
    poisoned: Mutex<BTreeMap<RunId, String>>,
    trouble: watch::Sender<Option<String>>,
}

/// A run could not be claimed and loaded.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// A live node owns it: send the command to its mailbox.
    #[error("{0} owns the run")]
    Held(NodeId),
    /// Its journal cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store failed: retry.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine is shutting down.
    #[error("the engine is stopping")]
    Stopping,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.inner.dead.cancel();
    }
}

impl Engine {
    /// Opens an engine and starts its background tasks.
    pub async fn open(ground: Ground, config: Config) -> Result<Engine, OpenError> {
        let mut entropy = (ground.entropy)();
        let node = NodeId(RunId::new(ground.clock.now_ms(), &mut *entropy).0);
        let patience = config.patience.clone();
        let implied = ground.agents.implied_gateway();
        let (policies, catalog) = (ground.policies, ground.catalog);
        let trust =
            GovernanceCache::open(&*ground.store, policies, catalog, implied, patience).await??;
        if config.claims != Claims::ReadOnly {
            ground.store.renew(node, config.lease_ms).await?;
        }
        let moderator = ModeratorClient::new(ground.moderator, config.moderation.clone());
        let inner = Arc::new(Inner {
            store: ground.store,
            clock: ground.clock,
            entropy: ground.entropy,
            agents: ground.agents,
            trust,
            sealer: ground.sealer,
            moderator: Arc::new(moderator),
            observer: ground.observer,
            node,
            definitions: Definitions::default(),
            followed: FollowedRuns::default(),
            feed: Feed::new(),
            streams: StreamBudget::default(),
            room: Arc::new(Semaphore::new(config.residents_max)),
            stop: CancellationToken::new(),
            dead: CancellationToken::new(),
            loaded: Mutex::default(),
            own_runs: Mutex::default(),
            claim_queued: AtomicBool::new(false),
            claims_unacknowledged: AtomicBool::new(false),
            unsealed: AtomicBool::new(false),
            poisoned: Mutex::default(),
            trouble: watch::channel(None).0,
            config,
        });
        if inner.config.claims != Claims::ReadOnly {
            inner.spawn_background_tasks();
        }
        Ok(Engine { inner })
    }

    /// Id of this node among those that share the store.
    pub fn node(&self) -> NodeId {
        self.inner.node
    }

    /// Current health of a gateway as seen by this node, and its last changes. A gateway that
    /// was not checked yet is checked now.
    pub async fn health(&self, gateway: &str) -> Result<(Health, Vec<(u64, Health)>), StoreError> {
        self.inner.check_new_gateway(gateway).await?;
        Ok(self.inner.trust.health(gateway))
    }

    /// Policies fixed by configuration; `None` if the registry defines them.
    pub fn fixed_policies(&self) -> Option<Arc<Policies>> {
        self.inner.trust.fixed()
    }

    /// The current catalog of tools; empty if this machine declares none.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.trust.catalog().unwrap_or_default()
    }

    /// Records the health that a gateway reported. It is used for a limited time if
    /// this process cannot probe the gateway itself.
    pub async fn heard(&self, gateway: &str, health: Health) {
        self.inner.gateway_reported(gateway, health).await;
    }

    /// Whether this process dispatches work or only records commands.
    pub fn dispatching(&self) -> Dispatching {
        self.inner.dispatching()
    }

    /// Starts a run; returns once the start is durable.
    pub async fn start(&self, request: Start) -> Result<StartedRun, StartError> {
        let inner = Arc::clone(&self.inner);
        let work = Box::pin(async move { inner.start(request).await });
        let started = self.inner.run_to_end(work).await;
        started.unwrap_or(Err(StartError::Stopping))
    }

    /// Sends a command to a run; returns once it is durable. `key` makes the message
    /// idempotent if it has to go through the mailbox of another node.
    pub async fn command(
        &self,
        run: RunId,
        command: Command,
        key: &str,
    ) -> Result<Delivered, CommandError> {
        self.inner.command(run, command, key).await
    }

    /// Claims an unfinished run, loads it and continues its work.
    pub async fn take_up(&self, run: RunId) -> Result<(), TakeError> {
        self.inner.ensure_loaded(run, Dispatching::Allowed, None).await
    }

    /// Loads a run from the store.
    pub async fn load(&self, run: RunId) -> Result<Run, LoadError> {
        Ok(fold(&self.inner, run).await?.run)
    }

    /// Loads a run as it was after the event `upto`.
    pub async fn load_at(&self, run: RunId, upto: u64) -> Result<Run, LoadError> {
        Ok(replay(&*self.inner.store, &self.inner.definitions, run, upto).await?.run)
    }

    /// Returns one page of envelopes of the events after `after`.
    pub async fn events(&self, run: &Run, after: u64) -> Result<Vec<Seen>, LoadError> {
        let mut shown = Vec::new();
        for frame in self.inner.store.frames(run.id, after, PAGE_BYTES).await? {
            let blobs = blobs_of(&*self.inner.store, run.id, &frame).await?;
            let page = envelopes(subject(run), &frame, &blobs);
            let page =
                page.map_err(|error| LoadError::Poison { run: run.id, reason: error.to_string() })?;
            for seen in page.into_iter().filter(|one| one.id() > after) {
                push(&mut shown, seen);
            }
        }
        Ok(shown)
    }

    /// Reads a run's events after a cursor: stored events first, then new ones as they come.
    pub async fn reader(&self, run: RunId, after: u64) -> Result<Reader, LoadError> {
        Reader::open(Arc::clone(&self.inner), run, after).await
    }

    /// Reads the events of all runs after a position in the store's append order, or
    /// from now on: stored events first, then new ones as they come.
    pub async fn feed(&self, after: Option<u64>) -> Result<FeedReader, StoreError> {
        FeedReader::open(Arc::clone(&self.inner), after).await
    }

    /// Number of readers of the feed of all runs.
    pub fn feed_readers(&self) -> usize {
        self.inner.feed.readers()
    }

    /// Loads a definition by the hash of its stored form.
    pub async fn definition(&self, hash: Hash) -> Result<Result<Stored, String>, LoadError> {
        stored(&*self.inner.store, &self.inner.definitions, hash).await
    }

    /// Follows a run: yields its tip if this process has it loaded, then a value after
    /// each turn that this process commits.
    pub fn follow(&self, run: RunId) -> watch::Receiver<Option<Tip>> {
        self.inner.follow(run).1
    }

    /// Number of loaded runs.
    pub fn residents(&self) -> usize {
        self.inner.loaded_runs().len()
    }

    /// Current load of the engine.
    pub fn gauges(&self) -> Gauges {
        let (residents, mail) = {
            let loaded = self.inner.loaded_runs();
            let waiting = |one: &RunHandle| one.mailbox.max_capacity() - one.mailbox.capacity();
            (loaded.len(), loaded.values().map(waiting).sum())
        };
        Gauges {
            residents,
            room: self.inner.room.available_permits(),
            mail,
            feed_readers: self.inner.feed.readers(),
            poisoned: self.poisoned().len(),
        }
    }

    /// The error that keeps the store from writing, while there is one.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.inner.trouble.subscribe()
    }

    /// Checks that the store accepts writes and has free space.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.inner.store.renew(self.inner.node, self.inner.config.lease_ms).await?;
        self.inner.store.room().await
    }

    /// Quarantined runs, each with the reason.
    pub fn poisoned(&self) -> BTreeMap<RunId, String> {
        self.inner.poisoned.lock().expect("the lock is not poisoned").clone()
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Seals everything written so far.
    pub async fn seal(&self) -> Result<(), StoreError> {
        self.inner.seal().await
    }

    /// Stops the engine: nothing new starts, and running work is left to the next owner.
    ///
    /// Returns after `Config::shutdown_ms` at the latest, with the number of runs that
    /// could not be released because the store accepted no append. Their work is stopped,
    /// and the next owner recovers them as after a crash.
    pub async fn shutdown(&self) -> usize {
        self.inner.stop.cancel();
        self.inner.room.close();
        let patience = Duration::from_millis(self.inner.config.shutdown_ms);
        if tokio::time::timeout(patience, self.inner.hand_over()).await.is_ok() {
            return 0;
        }
        let left = self.inner.loaded_runs().len();
        tracing::warn!(left, "runs could not be released in time; the next owner recovers them");
        // Dropping the loaded runs stops their work.
        self.inner.dead.cancel();
        left
    }
}

impl Inner {
    pub(crate) fn loaded_runs(&self) -> std::sync::MutexGuard<'_, BTreeMap<RunId, RunHandle>> {
        self.loaded.lock().expect("the lock is not poisoned")
    }

    /// Releases every loaded run, then the lease.
    async fn hand_over(&self) {
        let handles: Vec<_> = self.loaded_runs().values().cloned().collect();
        for handle in &handles {
            // A closed mailbox belongs to a run that has already left memory.
            let _ = handle.mailbox.send(Mail::Release).await;
        }
        for handle in handles {
            handle.mailbox.closed().await;
        }
        if self.config.claims == Claims::ReadOnly {
            return;
        }
        if let Err(error) = self.seal().await {
            tracing::warn!(%error, "the last writes could not be sealed; another node seals them");
        }
        if let Err(error) = self.store.leave(self.node).await {
            tracing::warn!(%error, "the lease could not be released; it will expire");
        }
    }

    /// With `Claims::Own`: the runs that this process wakes when they are due.
    pub(crate) fn own_runs(&self) -> std::sync::MutexGuard<'_, BTreeSet<RunId>> {
        self.own_runs.lock().expect("the lock is not poisoned")
    }

    /// Whether this process may load a waiting run in order to wake it.
    pub(crate) fn may_wake(&self, run: RunId) -> bool {
        match self.config.claims {
            Claims::All => true,
            Claims::Own => self.own_runs().contains(&run),
            Claims::None | Claims::ReadOnly => false,
        }
    }

    /// Cancelled when the engine is dropped or its shutdown timed out.
    pub(crate) fn dead_token(&self) -> CancellationToken {
        self.dead.clone()
    }

    /// Spawns a task that ends when the engine is dropped.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let dead = self.dead.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = dead.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Starts the task of a loaded run. Its mailbox is already registered.
    pub(crate) fn spawn_run(
        self: &Arc<Self>,
        folded: Folded,
        context: LoadContext,
        first: Vec<TurnInput>,
    ) {
        if self.stop.is_cancelled() {
            // The shutdown reached only runs that were loaded then. A full mailbox is fine:
            // its senders find the run released and go to the next owner.
            let _ = context.handle.mailbox.try_send(Mail::Release);
        }
        tracing::trace!(run = %folded.run.id, node = %self.node, epoch = context.epoch, "run loaded");
        if self.config.claims == Claims::Own {
            self.own_runs().insert(folded.run.id);
        }
        let run = folded.run.id;
        let loaded = LoadedRun::new(Arc::clone(self), folded, context);
        let engine = Arc::clone(self);
        // On the heap at once, so that spawning it does not copy its kilobytes.
        self.spawn(Box::pin(async move {
            let lived = AssertUnwindSafe(loaded.run_loop(first)).catch_unwind().await;
            if lived.is_err() {
                // Otherwise its mailbox stays registered, and senders wait for a task
                // that no longer exists.
                engine.loaded_runs().remove(&run);
                engine.quarantine(run, "a turn panicked");
            }
        }));
    }

    /// Removes a run from memory and forwards what is left in its mailbox.
    pub(crate) async fn unload(
        self: &Arc<Self>,
        run: RunId,
        mut mailbox: mpsc::Receiver<Mail>,
        result: TurnResult,
    ) {
        self.loaded_runs().remove(&run);
        mailbox.close();
        let poisoned = self.quarantined().contains(&run);
        let mut is_assigned = result == TurnResult::Lost && !poisoned;
        let mut has_messages = false;
        let mut rest = Vec::new();
        while let Some(mail) = mailbox.recv().await {
            match mail {
                Mail::Command(..) => rest.push(mail),
                Mail::Messages => has_messages = true,
                Mail::Claimed(_) => is_assigned = true,
                // These belong to calls that ended with the run's task.
                Mail::Log { .. }
                | Mail::Tool { .. }
                | Mail::ToolEnded { .. }
                | Mail::Process { .. }
                | Mail::Child(_)
                | Mail::CheckGates
                | Mail::Release => {}
            }
        }
        if !rest.is_empty() {
            let engine = Arc::clone(self);
            self.spawn(async move {
                for mail in rest {
                    engine.send_mail(run, mail).await;
                }
            });
        }
        let claims = matches!(self.config.claims, Claims::All | Claims::Own);
        if is_assigned || (has_messages && claims) {
            // The run may still be assigned to this node: only a reload can tell.
            self.retry_load(run);
        }
    }

    /// Whether this process dispatches work.
    pub(crate) fn dispatching(&self) -> Dispatching {
        match self.config.claims {
            Claims::All | Claims::Own => Dispatching::Allowed,
            Claims::None | Claims::ReadOnly => Dispatching::Deferred,
        }
    }

    /// Runs `work` to its end even if the caller stops waiting. Returns `None` if the
    /// engine died first. The work is on the heap, because it takes kilobytes and every
    /// caller up to the HTTP request would copy them.
    pub(crate) async fn run_to_end<T: Send + 'static>(&self, work: Later<'static, T>) -> Option<T> {
        let (sender, done) = oneshot::channel();
        self.spawn(async move {
            // The caller may have stopped waiting.
            let _ = sender.send(work.await);
        });
        done.await.ok()
    }

    /// The mailbox of a loaded run.
    pub(crate) fn mailbox(&self, run: RunId) -> Option<mpsc::Sender<Mail>> {
        self.loaded_runs().get(&run).map(|handle| handle.mailbox.clone())
    }

    /// Sends mail to a run, loading it if necessary. If it cannot be loaded the mail is
    /// dropped, which closes the reply channel of a waiting caller.
    pub(crate) async fn send_mail(self: &Arc<Self>, run: RunId, mail: Mail) {
        if let Err(error) = self.ensure_loaded(run, self.dispatching(), Some(mail)).await {
            tracing::debug!(%run, %error, "mail cannot be delivered");
        }
    }

    /// Tells a run that messages wait in its durable mailbox, loading it if this process
    /// may claim it.
    pub(crate) fn notify_messages(self: &Arc<Self>, run: RunId) {
        if let Some(sender) = self.mailbox(run) {
            let full = match sender.try_send(Mail::Messages) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Full(mail)) => Some(mail),
                Err(mpsc::error::TrySendError::Closed(_)) => None,
            };
            if let Some(mail) = full {
                self.spawn(async move { drop(sender.send(mail).await) });
                return;
            }
        }
        let claims = matches!(self.config.claims, Claims::All | Claims::Own);
        if !claims || self.stop.is_cancelled() {
            return;
        }
        let engine = Arc::clone(self);
        self.spawn(async move {
            if let Err(error) = engine.ensure_loaded(run, Dispatching::Allowed, None).await {
                tracing::debug!(%run, %error, "the run is not loaded by this node");
            }
        });
    }

    pub(crate) async fn command(
        self: &Arc<Self>,
        run: RunId,
        command: Command,
        key: &str,
    ) -> Result<Delivered, CommandError> {
        const TRIES: usize = 5;
        for _ in 0..TRIES {
            let (reply, answer) = oneshot::channel();
            let mail = Mail::Command(command.clone(), Some(reply));
            match self.ensure_loaded(run, self.dispatching(), Some(mail)).await {
                Ok(()) => match answer.await {
                    Ok(applied) => return Ok(applied.map(|()| Delivered::Done)?),
                    // The run was unloaded before it read the command.
                    Err(_) => continue,
                },
                Err(TakeError::Held(owner)) => {
                    let body = message::encode(&command).ok_or(CommandError::Stopping)?;
                    let message = MailboxMessage { run, key: key.to_owned(), body };
                    self.store.post(message).await?;
                    return Ok(Delivered::Posted(owner));
                }
                Err(TakeError::Load(error)) => return Err(error.into()),
                Err(TakeError::Store(error)) => return Err(error.into()),
                Err(TakeError::Stopping) => return Err(CommandError::Stopping),
            }
        }
        let reason = "the run keeps moving between nodes".to_owned();
        Err(StoreError::Unavailable(reason).into())
    }

    /// Marks a run as unreadable, so that no further load is attempted.
    pub(crate) fn quarantine(&self, run: RunId, reason: &str) {
        tracing::error!(%run, reason, "the run is quarantined");
        let mut poisoned = self.poisoned.lock().expect("the lock is not poisoned");
        poisoned.insert(run, reason.to_owned());
    }

    pub(crate) fn report_trouble(&self, reason: &str) {
        self.trouble.send_if_modified(|now| {
            let new = now.as_deref() != Some(reason);
            if new {
                *now = Some(reason.to_owned());
            }
            new
        });
    }

    pub(crate) fn untroubled(&self) {
        self.trouble.send_if_modified(|now| now.take().is_some());
    }

    /// Runs that must not be loaded again.
    pub(crate) fn quarantined(&self) -> BTreeSet<RunId> {
        let poisoned = self.poisoned.lock().expect("the lock is not poisoned");
        poisoned.keys().copied().collect()
    }
}
