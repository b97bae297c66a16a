//! The engine: who is in memory, and how to reach them.

use crate::agents::Agents;
use crate::config::{Claims, Config};
use crate::definition::{Definitions, Stored};
use crate::error::{CommandError, Delivered, LoadError, OpenError, StartError};
use crate::feed::{Feed, FeedReader};
use crate::judge::Judge;
use crate::limits::PAGE_BYTES;
use crate::load::{Folded, blobs_of, replay, stored, subject};
use crate::mail::Mail;
use crate::observe::{Gauges, Observer};
use crate::resident::{Resident, Seat, fold};
use crate::sealer::Sealer;
use crate::start::{Start, StartedRun};
use crate::stream::Budget;
use crate::tail::Reader;
use crate::trust::{PolicySource, Trust};
use crate::turn::{Input, Standing};
use crate::watch::{Tip, Watches};
use futures_util::FutureExt as _;
use sluice_core::journal::envelope::{Seen, envelopes, push};
use sluice_core::port::moderator::Moderator;
use sluice_core::port::store::{Hash, Letter, NodeId, Store, StoreError};
use sluice_core::port::{Clock, Entropy};
use sluice_core::run::command::{Command, Dispatching};
use sluice_core::run::id::RunId;
use sluice_core::run::letter;
use sluice_core::run::state::Run;
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

/// Makes chance.
pub type EntropySource = Arc<dyn Fn() -> Box<dyn Entropy> + Send + Sync>;

/// What an engine stands on.
#[derive(Clone)]
pub struct Ground {
    /// Where journals live.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where chance comes from.
    pub entropy: EntropySource,
    /// Who does the work.
    pub agents: Agents,
    /// Where the rules come from.
    pub policies: PolicySource,
    /// What seals are made with; none if somebody else makes them.
    pub sealer: Option<Sealer>,
    /// Who judges texts. Without one, steps that ask for it fail.
    pub moderator: Option<Arc<dyn Moderator>>,
    /// Who is told what became of runs.
    pub observer: Option<Arc<dyn Observer>>,
}

/// A process's engine. Dropping it is as if the process died.
pub struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: EntropySource,
    pub(crate) agents: Agents,
    pub(crate) trust: Trust,
    pub(crate) sealer: Option<Sealer>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) config: Config,
    pub(crate) node: NodeId,
    pub(crate) definitions: Definitions,
    pub(crate) watches: Watches,
    pub(crate) feed: Feed,
    /// What streams share.
    pub(crate) streams: Budget,
    /// Room for runs in memory.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) stop: CancellationToken,
    dead: CancellationToken,
    residents: Mutex<BTreeMap<RunId, mpsc::Sender<Mail>>>,
    /// Of a process that looks after its own runs only: those it had in memory.
    family: Mutex<BTreeSet<RunId>>,
    /// Whether a claim stands in line for room.
    pub(crate) queues: AtomicBool,
    /// Whether runs were claimed that nobody told us of.
    pub(crate) missed: AtomicBool,
    /// Whether something was written here that may not be sealed.
    pub(crate) grown: AtomicBool,
    /// Runs whose journals cannot be folded, and why.
    poisoned: Mutex<BTreeMap<RunId, String>>,
    trouble: watch::Sender<Option<String>>,
}

/// Why a run could not be taken up here.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// A process that lives owns it.
    #[error("{0} owns the run")]
    Held(NodeId),
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine stops.
    #[error("the engine is stopping")]
    Stopping,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.inner.dead.cancel();
    }
}

impl Engine {
    /// Starts an engine. What it looks after begins at once.
    pub async fn open(ground: Ground, config: Config) -> Result<Engine, OpenError> {
        let mut entropy = (ground.entropy)();
        let node = NodeId(RunId::new(ground.clock.now_ms(), &mut *entropy).0);
        let patience = config.patience.clone();
        let implied = ground.agents.implied_gateway();
        let trust = Trust::open(&*ground.store, ground.policies, implied, patience).await??;
        if config.claims != Claims::ReadOnly {
            ground.store.renew(node, config.lease_ms).await?;
        }
        let judge = Judge::new(ground.moderator, config.moderation.clone());
        #[cfg(feature = "sabotage")]
        let judge = judge.sabotaged(config.sabotage);
        let inner = Arc::new(Inner {
            store: ground.store,
            clock: ground.clock,
            entropy: ground.entropy,
            agents: ground.agents,
            trust,
            sealer: ground.sealer,
            judge: Arc::new(judge),
            observer: ground.observer,
            node,
            definitions: Definitions::default(),
            watches: Watches::default(),
            feed: Feed::new(),
            streams: Budget::default(),
            room: Arc::new(Semaphore::new(config.residents_max)),
            stop: CancellationToken::new(),
            dead: CancellationToken::new(),
            residents: Mutex::default(),
            family: Mutex::default(),
            queues: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            grown: AtomicBool::new(false),
            poisoned: Mutex::default(),
            trouble: watch::channel(None).0,
            config,
        });
        if inner.config.claims != Claims::ReadOnly {
            inner.keep_working();
        }
        Ok(Engine { inner })
    }

    /// This process's name among those that share the store.
    pub fn node(&self) -> NodeId {
        self.inner.node
    }

    /// Whether a gateway can do work, and the last changes of that, as far as
    /// this process can tell.
    pub fn health(&self, gateway: &str) -> (Health, Vec<(u64, Health)>) {
        self.inner.trust.health(gateway)
    }

    /// The policies that count here whatever the registry says; none where those of
    /// the registry count.
    pub fn fixed_policies(&self) -> Option<Arc<Policies>> {
        self.inner.trust.fixed()
    }

    /// A gateway said how it is. That counts for a while where nobody here can
    /// ask it.
    pub async fn heard(&self, gateway: &str, health: Health) {
        self.inner.heard(gateway, health).await;
    }

    /// Whether work is done here, or only noted down.
    pub fn dispatching(&self) -> Dispatching {
        self.inner.dispatching()
    }

    /// Starts a run, and answers when that is durable.
    pub async fn start(&self, request: Start) -> Result<StartedRun, StartError> {
        let inner = Arc::clone(&self.inner);
        let started = self.inner.finish(async move { inner.start(request).await }).await;
        started.unwrap_or(Err(StartError::Stopping))
    }

    /// Asks something of a run, and answers when it is durable. `key` names
    /// the command where it has to go through the inbox.
    pub async fn command(
        &self,
        run: RunId,
        command: Command,
        key: &str,
    ) -> Result<Delivered, CommandError> {
        self.inner.command(run, command, key).await
    }

    /// Takes an unfinished run up here.
    pub async fn take_up(&self, run: RunId) -> Result<(), TakeError> {
        self.inner.reach(run, Dispatching::Allowed, None).await
    }

    /// A run as the store has it.
    pub async fn load(&self, run: RunId) -> Result<Run, LoadError> {
        Ok(fold(&self.inner, run).await?.run)
    }

    /// A run as it was after the event `upto`.
    pub async fn load_at(&self, run: RunId, upto: u64) -> Result<Run, LoadError> {
        Ok(replay(&*self.inner.store, &self.inner.definitions, run, upto).await?.run)
    }

    /// Envelopes of the events after `after`, a page of them.
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

    /// Reads a run's events from a cursor on: first what is there, then what comes.
    pub async fn reader(&self, run: RunId, after: u64) -> Result<Reader, LoadError> {
        Reader::open(Arc::clone(&self.inner), run, after).await
    }

    /// Reads the events of all runs from a place in the store's order on, or from
    /// now on: first what is there, then what comes.
    pub async fn feed(&self, after: Option<u64>) -> Result<FeedReader, StoreError> {
        FeedReader::open(Arc::clone(&self.inner), after).await
    }

    /// How many follow all runs.
    pub fn feed_readers(&self) -> usize {
        self.inner.feed.readers()
    }

    /// A definition by the hash of its stored form.
    pub async fn definition(&self, hash: Hash) -> Result<Result<Stored, String>, LoadError> {
        stored(&*self.inner.store, &self.inner.definitions, hash).await
    }

    /// Follows a run: a new value after each of its turns here.
    pub fn follow(&self, run: RunId) -> watch::Receiver<Option<Tip>> {
        self.inner.watches.follow(run)
    }

    /// How many runs are in memory.
    pub fn residents(&self) -> usize {
        self.inner.residents().len()
    }

    /// How much is in hand.
    pub fn gauges(&self) -> Gauges {
        let (residents, mail) = {
            let residents = self.inner.residents();
            let waiting = |one: &mpsc::Sender<Mail>| one.max_capacity() - one.capacity();
            (residents.len(), residents.values().map(waiting).sum())
        };
        Gauges {
            residents,
            room: self.inner.room.available_permits(),
            mail,
            feed_readers: self.inner.feed.readers(),
            poisoned: self.poisoned().len(),
        }
    }

    /// What keeps the store from writing, while something does.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.inner.trouble.subscribe()
    }

    /// Whether the store takes writes now, and has room for more.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.inner.store.renew(self.inner.node, self.inner.config.lease_ms).await?;
        self.inner.store.room().await
    }

    /// Runs that are left alone, and why.
    pub fn poisoned(&self) -> BTreeMap<RunId, String> {
        self.inner.poisoned.lock().expect("nobody panics while holding it").clone()
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Seals everything that is written by now.
    pub async fn seal(&self) -> Result<(), StoreError> {
        self.inner.seal().await
    }

    /// Stops: nothing new starts, what is in flight is left to the next owner.
    ///
    /// Answers after `Config::shutdown_ms` at the latest, with the number of runs that
    /// could not be handed over: the store took no append. Their work is stopped, and
    /// the next owner resumes them as after a crash.
    pub async fn shutdown(&self) -> usize {
        self.inner.stop.cancel();
        self.inner.room.close();
        let patience = Duration::from_millis(self.inner.config.shutdown_ms);
        if tokio::time::timeout(patience, self.inner.hand_over()).await.is_ok() {
            return 0;
        }
        let left = self.inner.residents().len();
        tracing::warn!(left, "runs could not be handed over in time; the next owner resumes them");
        // Dropping the loaded runs stops their work.
        self.inner.dead.cancel();
        left
    }
}

impl Inner {
    pub(crate) fn residents(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<RunId, mpsc::Sender<Mail>>> {
        self.residents.lock().expect("nobody panics while holding it")
    }

    /// Hands every loaded run over, then the lease.
    async fn hand_over(&self) {
        let senders: Vec<_> = self.residents().values().cloned().collect();
        for sender in &senders {
            // One that is gone has nothing to leave.
            let _ = sender.send(Mail::Leave).await;
        }
        for sender in senders {
            sender.closed().await;
        }
        if self.config.claims == Claims::ReadOnly {
            return;
        }
        if let Err(error) = self.seal().await {
            tracing::warn!(%error, "what was written last is left for others to seal");
        }
        if let Err(error) = self.store.leave(self.node).await {
            tracing::warn!(%error, "the lease could not be given up; it will run out");
        }
    }

    /// The runs a process looks after that claims nothing else.
    pub(crate) fn family(&self) -> std::sync::MutexGuard<'_, BTreeSet<RunId>> {
        self.family.lock().expect("nobody panics while holding it")
    }

    /// Whether a run that waits and is not in memory is this process's to look after.
    pub(crate) fn is_ours_to_wake(&self, run: RunId) -> bool {
        match self.config.claims {
            Claims::All => true,
            Claims::Own => self.family().contains(&run),
            Claims::None | Claims::ReadOnly => false,
        }
    }

    /// Completes when this process is as good as dead.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.dead.clone()
    }

    /// Runs a task until it ends or this process is as good as dead.
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

    /// Puts a run into memory, into the place it has there.
    pub(crate) fn seat(self: &Arc<Self>, folded: Folded, seat: Seat, first: Vec<Input>) {
        if self.stop.is_cancelled() {
            // Those who were told to leave did not include it. If its mailbox is
            // full, what lies there asks for an owner that this is not any more.
            let _ = seat.sender.try_send(Mail::Leave);
        }
        tracing::trace!(run = %folded.run.id, node = %self.node, epoch = seat.epoch, "enters memory");
        if self.config.claims == Claims::Own {
            self.family().insert(folded.run.id);
        }
        let run = folded.run.id;
        let resident = Resident::new(Arc::clone(self), folded, seat);
        let engine = Arc::clone(self);
        self.spawn(async move {
            let lived = AssertUnwindSafe(resident.live(first)).catch_unwind().await;
            if lived.is_err() {
                // Its place would be taken for ever, and those who write to it
                // would wait for one that is gone.
                engine.residents().remove(&run);
                engine.quarantine(run, "a turn broke off");
            }
        });
    }

    /// A run has left memory. What still lay in its mailbox is sent on.
    pub(crate) async fn forget(
        self: &Arc<Self>,
        run: RunId,
        mut mailbox: mpsc::Receiver<Mail>,
        standing: Standing,
    ) {
        self.residents().remove(&run);
        mailbox.close();
        let poisoned = self.quarantined().contains(&run);
        let mut ours = standing == Standing::Lost && !poisoned;
        let mut letters = false;
        let mut rest = Vec::new();
        while let Some(mail) = mailbox.recv().await {
            match mail {
                Mail::Command(..) => rest.push(mail),
                Mail::Letters => letters = true,
                Mail::Claimed(_) => ours = true,
                // Of a call that is over with the run's stay in memory.
                Mail::Log { .. }
                | Mail::Tool { .. }
                | Mail::ToolEnded { .. }
                | Mail::Process { .. }
                | Mail::Child(_)
                | Mail::Look
                | Mail::Leave => {}
            }
        }
        if !rest.is_empty() {
            let engine = Arc::clone(self);
            self.spawn(async move {
                for mail in rest {
                    engine.mail(run, mail).await;
                }
            });
        }
        let claims = matches!(self.config.claims, Claims::All | Claims::Own);
        if ours || (letters && claims) {
            // Unless another process has it, nobody else would look after it.
            self.insist(run);
        }
    }

    /// Whether this process does work.
    pub(crate) fn dispatching(&self) -> Dispatching {
        match self.config.claims {
            Claims::All | Claims::Own => Dispatching::Allowed,
            Claims::None | Claims::ReadOnly => Dispatching::Deferred,
        }
    }

    /// Does something to its end, also when whoever waits for it stops waiting.
    /// None if the process died meanwhile.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, done) = oneshot::channel();
        self.spawn(async move {
            // Nobody may wait any more.
            let _ = sender.send(work.await);
        });
        done.await.ok()
    }

    /// A resident of this run, if there is one.
    pub(crate) fn resident(&self, run: RunId) -> Option<mpsc::Sender<Mail>> {
        self.residents().get(&run).cloned()
    }

    /// Sends mail to a run, which is taken up if it is not in memory. If that
    /// is not possible the mail is dropped, and whoever waits for it is told.
    pub(crate) async fn mail(self: &Arc<Self>, run: RunId, mail: Mail) {
        if let Err(error) = self.reach(run, self.dispatching(), Some(mail)).await {
            tracing::debug!(%run, %error, "mail cannot be delivered");
        }
    }

    /// A letter lies in a run's inbox: if the run is ours to look after, it is told.
    pub(crate) fn deliver(self: &Arc<Self>, run: RunId) {
        let sender = self.residents().get(&run).cloned();
        if let Some(sender) = sender {
            let full = match sender.try_send(Mail::Letters) {
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
            if let Err(error) = engine.reach(run, Dispatching::Allowed, None).await {
                tracing::debug!(%run, %error, "not taken up here");
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
            match self.reach(run, self.dispatching(), Some(mail)).await {
                Ok(()) => match answer.await {
                    Ok(applied) => return Ok(applied.map(|()| Delivered::Done)?),
                    // The run left this process with the command unread.
                    Err(_) => continue,
                },
                Err(TakeError::Held(owner)) => {
                    let body = letter::encode(&command).ok_or(CommandError::Stopping)?;
                    let letter = Letter { run, key: key.to_owned(), body };
                    self.store.post(letter).await?;
                    return Ok(Delivered::Posted(owner));
                }
                Err(TakeError::Load(error)) => return Err(error.into()),
                Err(TakeError::Store(error)) => return Err(error.into()),
                Err(TakeError::Stopping) => return Err(CommandError::Stopping),
            }
        }
        let reason = "the run keeps moving between processes".to_owned();
        Err(StoreError::Unavailable(reason).into())
    }

    /// A run that cannot be read is left alone.
    pub(crate) fn quarantine(&self, run: RunId, reason: &str) {
        tracing::error!(%run, reason, "the run is left alone");
        let mut poisoned = self.poisoned.lock().expect("nobody panics while holding it");
        poisoned.insert(run, reason.to_owned());
    }

    pub(crate) fn troubled(&self, reason: &str) {
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

    /// Runs that are not worth another try.
    pub(crate) fn quarantined(&self) -> BTreeSet<RunId> {
        let poisoned = self.poisoned.lock().expect("nobody panics while holding it");
        poisoned.keys().copied().collect()
    }
}
