//! Starting a run: checked, pinned, and durable before anyone is told.

use crate::admit::{NotAdmitted, bindings, deployment, posture};
use crate::agents::LOCAL_GATEWAY;
use crate::definition::Stored;
use crate::engine::Inner;
use crate::error::StartError;
use crate::key;
use crate::load::{Folded, first_event};
use crate::observe::Stopwatch;
use crate::resident::Seat;
use crate::take::{AGAIN_MS, Wanted};
use crate::trust::Rules;
use crate::turn::{Offspring, letters};
use serde_json::{Map, Value};
use sluice_core::args;
use sluice_core::canonical;
use sluice_core::evidence::event::Link;
use sluice_core::journal::event::{DocumentSource, Event, Origin, RunStarted};
use sluice_core::journal::wire;
use sluice_core::label::label;
use sluice_core::money::Money;
use sluice_core::plan::Plan;
use sluice_core::plan::policy::Family;
use sluice_core::port::Entropy;
use sluice_core::port::store::{Append, Appended, Create, Hash, Hold, StoreError};
use sluice_core::run::command::{Dispatching, Given};
use sluice_core::run::due::Effect;
use sluice_core::run::id::RunId;
use sluice_core::run::start::{Carried, start};
use sluice_core::run::state::Run;
use sluice_core::trace::TraceParent;
use sluice_govern::registry::Posture;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

/// What a run is to be started with.
#[derive(Debug, Clone)]
pub struct Start {
    /// What it is a run of.
    pub stored: Stored,
    /// Where that comes from.
    pub source: DocumentSource,
    /// Definitions of sub-workflows, by reference; stored already.
    pub children: BTreeMap<String, Hash>,
    /// Definitions of sub-workflows that may not be stored yet.
    pub bring: Vec<Stored>,
    /// What the caller gives.
    pub args: Map<String, Value>,
    /// Its id, if it must have a certain one.
    pub id: Option<RunId>,
    /// Who starts it.
    pub initiator: String,
    /// People whose hook or schedule starts it: they count as initiators.
    pub on_behalf_of: Vec<String>,
    /// Who does steps that name nobody.
    pub default_agent: Option<String>,
    /// The model of steps that name none, instead of the document's.
    pub default_model: Option<String>,
    /// How many runs may be above a run of this family; never more than is configured.
    pub recursion_depth_max: Option<u32>,
    /// Which agent stands for which role.
    pub role_bindings: BTreeMap<String, String>,
    /// The version it is registered as; a document has at most its author's.
    pub version: Option<u64>,
    /// The same key within a day means the same run of the same version.
    pub key: Option<String>,
    /// The trace it belongs to, and what in it is its cause.
    pub trace: Option<TraceParent>,
    /// The run and step that start it.
    pub parent: Option<(RunId, String)>,
    /// The run at the top.
    pub root: Option<RunId>,
    /// How many runs are above it.
    pub depth: u32,
    /// The run it is made from.
    pub origin: Option<Origin>,
    /// Results it takes over from there.
    pub carried: Carried,
    /// Whether this process does its work, or leaves that to another.
    pub dispatching: Dispatching,
    /// How much freedom it has at most, whatever its deployment says.
    pub posture: Option<Posture>,
    /// No agent counts as more trusted than this, whatever its deployment says.
    pub trust_ceiling: Option<u8>,
    /// Caps of the runs above it.
    pub caps: Vec<(RunId, Money)>,
    /// What people agreed to in the run it is made from, by step.
    pub agreed: BTreeMap<String, Value>,
    /// The epoch of the registry that its document was resolved under; none where it
    /// comes from no registry. If it has passed, the start is [`StartError::Moved`].
    pub resolved_under: Option<u64>,
}

impl Start {
    /// A plain start.
    pub fn new(stored: Stored, args: Map<String, Value>) -> Start {
        Start {
            stored,
            source: DocumentSource::File,
            children: BTreeMap::new(),
            bring: Vec::new(),
            args,
            id: None,
            initiator: "local".to_owned(),
            on_behalf_of: Vec::new(),
            default_agent: None,
            default_model: None,
            recursion_depth_max: None,
            role_bindings: BTreeMap::new(),
            version: None,
            key: None,
            trace: None,
            parent: None,
            root: None,
            depth: 0,
            origin: None,
            carried: Carried::default(),
            dispatching: Dispatching::Allowed,
            posture: None,
            trust_ceiling: None,
            caps: Vec::new(),
            agreed: BTreeMap::new(),
            resolved_under: None,
        }
    }

    /// The name by which policies, budgets, webhooks and lists know the workflow.
    pub fn workflow(&self) -> Cow<'_, str> {
        self.source.workflow(&self.stored.definition.plan.name)
    }

    /// The key that the inputs themselves make.
    pub fn auto_key(&self) -> String {
        let name = &self.stored.definition.plan.name;
        let text = format!("{name}{}", canonical::to_string(&self.args));
        Hash::of(text.as_bytes()).to_string()
    }
}

/// A run that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedRun {
    /// Its id.
    pub run: RunId,
    /// Whether it was there before, by its key.
    pub existed: bool,
}

/// A run that is about to be created.
pub(crate) struct Draft {
    pub(crate) run: Run,
    /// What happened, and when, for whoever observes.
    events: Vec<Event>,
    at_ms: u64,
    /// Runs that are written to with the append.
    addressees: Vec<RunId>,
    hold: Hold,
    count: u32,
    tail_bytes: usize,
}

/// What became of a run that was to be created.
#[derive(Clone, Copy)]
enum Created {
    /// It is durable.
    New,
    /// An answer was lost, and now it exists: perhaps by that, perhaps by
    /// another process that was to start the same child.
    There,
    /// Its key was used before.
    Before { run: RunId },
    /// A counter was not what it was believed to be.
    Refused,
}

impl Inner {
    /// Starts a run and answers when that is durable.
    pub(crate) async fn start(self: &Arc<Self>, request: Start) -> Result<StartedRun, StartError> {
        let plan = &request.stored.definition.plan;
        let args = check_args(plan, &request.args)?;
        let permit = self.room_for(&request).await?;
        let mut entropy = (self.entropy)();
        let fresh = || RunId::new(self.clock.now_ms(), &mut *entropy);
        let id = request.id.unwrap_or_else(fresh);
        let place = self.reserve(id).map_err(|_| StartError::Stopping)?;
        let drafted = self.draft_until_written(&request, id, &args, permit.is_some()).await;
        let (Draft { run, addressees, hold, count, tail_bytes, .. }, created) = match drafted {
            Ok(drafted) => drafted,
            Err(error) => {
                if let Some((_, mailbox)) = place
                    && self.unreserve(id, mailbox) != Wanted::No
                {
                    self.insist(id);
                }
                return Err(error);
            }
        };
        let (place, permit) = match (&created, hold, place, permit) {
            (Ok(Created::New), Hold::Keep, Some(place), Some(permit)) => (place, permit),
            (_, _, place, _) => {
                let wanted = place.map(|(_, mailbox)| self.unreserve(id, mailbox));
                let kept = hold == Hold::Keep;
                let there = matches!(created, Ok(Created::New | Created::There));
                if (kept && there) || wanted.is_some_and(|wanted| wanted != Wanted::No) {
                    self.insist(id);
                }
                for run in addressees {
                    self.deliver(run);
                }
                return self.existing(&request, id, &args, created?).await;
            }
        };
        self.keep_definitions(&request);
        for run in addressees {
            self.deliver(run);
        }
        let folded = Folded {
            run,
            tail_events: u64::from(count),
            tail_bytes,
            snapshot_bytes: 0,
            counts: None,
        };
        let (sender, mailbox) = place;
        let dispatching = Dispatching::Allowed;
        let seat = Seat { epoch: 1, sender, mailbox, permit, dispatching };
        self.seat(folded, seat, Vec::new());
        Ok(StartedRun { run: id, existed: false })
    }

    /// Room in memory. A child does not wait for it: those above it would hold
    /// the room it waits for. It is left to whoever has room first.
    async fn room_for(&self, request: &Start) -> Result<Option<OwnedSemaphorePermit>, StartError> {
        let room = Arc::clone(&self.room);
        if request.parent.is_some() {
            return match room.try_acquire_owned() {
                Ok(permit) => Ok(Some(permit)),
                Err(TryAcquireError::NoPermits) => Ok(None),
                Err(TryAcquireError::Closed) => Err(StartError::Stopping),
            };
        }
        room.acquire_owned().await.map(Some).map_err(|_| StartError::Stopping)
    }

    /// Drafts the first append and writes it, again if a counter or the rows
    /// were not what they were believed to be.
    ///
    /// INVARIANT: a start, and a refusal of one, rests on rows that are at least as new as
    /// the last change acknowledged before it. The append says which rows these are, and
    /// the store refuses it if there are newer ones.
    async fn draft_until_written(
        self: &Arc<Self>,
        request: &Start,
        id: RunId,
        args: &Map<String, Value>,
        has_room: bool,
    ) -> Result<(Draft, Result<Created, StoreError>), StartError> {
        loop {
            let rules = self.rules_for(request).await?;
            if let Err(refusal) = self.admit(&rules, request, id) {
                // The caller that resolved the request has just read the epoch.
                let is_new = request.resolved_under.is_some();
                if !is_new && self.has_newer_rules(&rules).await? {
                    continue;
                }
                return Err(match refusal {
                    NotAdmitted::Unfit(error) => error,
                    NotAdmitted::Stopped(verdict) => self.refuse(request, verdict).await?,
                });
            }
            let hold = if request.dispatching == Dispatching::Deferred || !has_room {
                Hold::Release
            } else {
                Hold::Keep
            };
            let mut watch = Stopwatch::start();
            let (draft, append) = self.draft(&rules, request, id, args.clone(), hold, None);
            watch.decided();
            let created = self.create(append).await;
            if matches!(created, Ok(Created::New)) {
                self.tell_observer(&draft.run, &draft.events, draft.at_ms, &watch);
            }
            if !matches!(created, Ok(Created::Refused)) {
                return Ok((draft, created));
            }
            self.refresh_rules().await?;
        }
    }

    /// The first append, given up at once if `hold` says so, or if there is
    /// nothing to do yet. One that looks ahead is judged by another's freedom.
    pub(crate) fn draft(
        &self,
        rules: &Arc<Rules>,
        request: &Start,
        id: RunId,
        args: Map<String, Value>,
        hold: Hold,
        ahead_for: Option<Posture>,
    ) -> (Draft, Append) {
        let plan = &request.stored.definition.plan;
        let mut entropy = (self.entropy)();
        let now_ms = self.clock.now_ms();
        let authority = self.view_under(Arc::clone(rules), now_ms).ahead_for(ahead_for);
        let started = self.started(rules, request, args, &mut *entropy);
        let create = Create {
            workflow: request.workflow().into_owned(),
            version: plan.version,
            initiator: request.initiator.clone(),
            started_at_ms: now_ms,
            parent: request.parent.as_ref().map(|(run, _)| *run),
            key: key::of(request, now_ms),
        };
        let dispatching = request.dispatching;
        let given = Given { now_ms, entropy: &mut *entropy, dispatching, authority: &authority };
        let definition = Arc::clone(&request.stored.definition);
        let (mut run, decided) = start(id, definition, started, request.carried.clone(), given);
        #[cfg(feature = "sabotage")]
        let decided = self.unguarded(decided, Vec::new());
        let count = u32::try_from(decided.events.len()).expect("a turn is bounded");
        let mut link = Link::before(&run, count);
        let plan = &run.definition.plan;
        let encoded = wire::encode(&decided.events, now_ms, plan, &mut link, &mut *entropy);
        run.tip = link.tip;
        let mut blobs = encoded.blobs;
        let brought = request.bring.iter().chain([&request.stored]);
        let unknown = brought.filter(|one| self.definitions.get(one.hash).is_none());
        blobs.extend(unknown.map(Stored::blob));
        let offspring = offspring(&run);
        let hold = if hold == Hold::Keep { self.hold(&run, now_ms, offspring) } else { hold };
        let addressees = decided.letters.iter().map(|letter| letter.run).collect();
        let takings = run.takings(&decided.events);
        let append = Append {
            run: id,
            node: self.node,
            epoch: 1,
            after: 0,
            count,
            body: encoded.body,
            beside: encoded.beside,
            chain: encoded.chain,
            create: Some(create),
            head: Some(self.head(&run, now_ms, hold, offspring)),
            snapshot: None,
            blobs,
            read: Vec::new(),
            letters: letters(decided.letters),
            guards: decided.guards,
            entries: Vec::new(),
            takings,
            memos: decided.memos,
        };
        let hold = append.head.as_ref().map_or(Hold::Keep, |head| head.hold);
        let tail_bytes = append.body.len();
        let events = if self.observer.is_some() { decided.events } else { Vec::new() };
        (Draft { run, events, at_ms: now_ms, addressees, hold, count, tail_bytes }, append)
    }

    /// Appends the first frame. Once an answer was lost it is not left at that:
    /// the run may be there, and nobody would look after it.
    async fn create(&self, append: Append) -> Result<Created, StoreError> {
        let append = Arc::new(append);
        let mut doubt = false;
        loop {
            match self.store.append(Arc::clone(&append)).await {
                Ok(Appended::Done { counts }) => {
                    let now_ms = self.clock.now_ms();
                    self.trust.learn(&append.guards, &counts, now_ms);
                    self.grown.store(true, Ordering::Relaxed);
                    self.feed.grown();
                    return Ok(Created::New);
                }
                Ok(Appended::Refused { counter, count }) if !doubt => {
                    self.trust.corrected(&counter, count, self.clock.now_ms());
                    return Ok(Created::Refused);
                }
                Ok(Appended::Exists { run, .. }) if run == append.run && doubt => {
                    return Ok(Created::There);
                }
                Ok(Appended::Exists { run, .. }) => return Ok(Created::Before { run }),
                Ok(other) => {
                    let reason = format!("a new run was answered {other:?}");
                    return Err(StoreError::Unavailable(reason));
                }
                Err(StoreError::Unknown(reason)) => {
                    tracing::warn!(run = %append.run, reason, "a start was not acknowledged");
                    doubt = true;
                }
                Err(error @ StoreError::Unavailable(_)) if doubt => {
                    tracing::warn!(run = %append.run, %error, "a start is not certain yet");
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
        }
    }

    /// The answer about a run that is not in memory here.
    async fn existing(
        &self,
        request: &Start,
        id: RunId,
        args: &Map<String, Value>,
        created: Created,
    ) -> Result<StartedRun, StartError> {
        match created {
            Created::New | Created::There => {
                self.keep_definitions(request);
                Ok(StartedRun { run: id, existed: false })
            }
            Created::Before { run } => {
                let started = first_event(&*self.store, run).await?;
                let differs = key::differences(&started, request, args);
                // A default that is spelt out says the same.
                if differs.is_empty() {
                    return Ok(StartedRun { run, existed: true });
                }
                Err(StartError::KeyConflict { run, differs })
            }
            Created::Refused => Err(StartError::Stopping),
        }
    }

    fn keep_definitions(&self, request: &Start) {
        for stored in request.bring.iter().chain([&request.stored]) {
            self.definitions.keep(stored);
        }
    }

    fn started(
        &self,
        rules: &Rules,
        request: &Start,
        args: Map<String, Value>,
        entropy: &mut dyn Entropy,
    ) -> RunStarted {
        let plan = &request.stored.definition.plan;
        let trace =
            || format!("{:032x}", RunId::new(self.clock.now_ms(), &mut *(self.entropy)()).0);
        let cause = request.trace.as_ref();
        let deployed = deployment(rules, request);
        let deployment = deployed.map(|(_, deployment)| deployment);
        let default = || {
            let mut gateways = rules.fabric.gateways.iter();
            gateways.find(|(_, gateway)| gateway.default).map(|(name, _)| name.clone())
        };
        let gateway = deployment.and_then(|one| one.gateway.clone()).or_else(default);
        RunStarted {
            workflow: request.workflow().into_owned(),
            version: plan.version,
            source: request.source,
            definition_hash: request.stored.definition.hash.clone(),
            definition: Some(request.stored.hash),
            children: request.children.clone(),
            args: Arc::new(args),
            role_bindings: bindings(rules, request),
            default_agent: request.default_agent.clone(),
            default_model: request.default_model.clone(),
            fallback_model: self.config.default_model.clone(),
            recursion_depth_max: request
                .recursion_depth_max
                .map(|asked| self.recursion_depth_max(Some(asked))),
            gateway: gateway.unwrap_or_else(|| LOCAL_GATEWAY.to_owned()),
            initiator: request.initiator.clone(),
            on_behalf_of: request.on_behalf_of.clone(),
            trace_id: cause.map_or_else(trace, |cause| cause.trace_id.clone()),
            root_span_id: format!("{:016x}", entropy.bits().max(1)),
            parent_span_id: cause.map(|cause| cause.span_id.clone()),
            parent: request.parent.clone(),
            root: request.root,
            depth: request.depth,
            origin: request.origin.clone(),
            deployment: deployed.map(|(name, _)| name.clone()),
            posture: posture(rules, request),
            trust_ceiling: lower(
                request.trust_ceiling,
                deployment.and_then(|one| one.trust_ceiling),
            ),
            pins: deployment.map(|one| one.agent_gateways.clone()).unwrap_or_default(),
            caps: request.caps.clone(),
            agreed: request.agreed.clone(),
        }
    }

    /// How many runs may be above a run: what is configured, or fewer.
    pub(crate) fn recursion_depth_max(&self, asked: Option<u32>) -> u32 {
        let configured = self.config.recursion_depth_max;
        asked.map_or(configured, |asked| asked.min(configured))
    }
}

/// Children of a new run are started by whoever owns it.
fn offspring(run: &Run) -> Offspring {
    let awaited = run.due().any(|effect| matches!(effect, Effect::Child { .. }));
    if awaited { Offspring::Awaited } else { Offspring::Known }
}

/// The lower of two bounds.
fn lower(a: Option<u8>, b: Option<u8>) -> Option<u8> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// The arguments, complete. A lens document that declares none takes any.
pub(crate) fn check_args(
    plan: &Plan,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, StartError> {
    if plan.family == Family::Lens && plan.args.is_empty() {
        return Ok(given.clone());
    }
    if plan.family == Family::Lens {
        let names: BTreeMap<String, &String> =
            plan.args.keys().map(|name| (label(name), name)).collect();
        let spelt = given.iter().map(|(name, value)| {
            let name = names.get(&label(name)).map_or(name, |name| *name);
            (name.clone(), value.clone())
        });
        return args::check(&plan.args, &spelt.collect()).map_err(StartError::Args);
    }
    args::check(&plan.args, given).map_err(StartError::Args)
}
