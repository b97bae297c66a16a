//! Starting a run: its request is checked, its definition pinned, and its first
//! append durable before the caller gets an answer.

use crate::admit::{NotAdmitted, bindings, deployment, posture};
use crate::agents::LOCAL_GATEWAY;
use crate::claim::{LoadDemand, RETRY_DELAY_MS};
use crate::definition::Stored;
use crate::engine::Inner;
use crate::error::StartError;
use crate::idempotency;
use crate::load::{Folded, first_event};
use crate::loaded_run::LoadContext;
use crate::observe::Stopwatch;
use crate::trust::Rules;
use crate::turn::{ChildStarts, encode, messages};
use serde_json::{Map, Value};
use sluice_core::hash::Hash;
use sluice_core::id::{Entropy, RunId};
use sluice_core::journal::event::{DocumentSource, Event, Origin, ParentStep, RunStarted};
use sluice_core::label::label;
use sluice_core::money::Money;
use sluice_core::origin::PassedLabels;
use sluice_core::plan::Plan;
use sluice_core::plan::policy::Family;
use sluice_core::port::store::{Append, Appended, Create, Ownership, StoreError};
use sluice_core::run::command::{Dispatching, Given};
use sluice_core::run::due::Effect;
use sluice_core::run::start::{Carried, start};
use sluice_core::run::state::Run;
use sluice_core::trace::TraceParent;
use sluice_core::{args, canonical};
use sluice_govern::facts::SeenIn;
use sluice_govern::registry::Posture;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

/// A request to start a run.
#[derive(Debug, Clone)]
pub struct Start {
    /// Definition of the workflow.
    pub stored: Stored,
    /// Whether the document is registered, inline or a file.
    pub source: DocumentSource,
    /// Hashes of sub-workflow definitions, by reference.
    pub children: BTreeMap<String, Hash>,
    /// Definitions of sub-workflows that may not be in the store yet.
    pub bring: Vec<Stored>,
    /// Arguments from the caller.
    pub args: Map<String, Value>,
    /// Run id to use; `None` generates one.
    pub id: Option<RunId>,
    /// Principal that starts the run.
    pub initiator: String,
    /// People behind a webhook or schedule: each of them is treated as an initiator.
    pub on_behalf_of: Vec<String>,
    /// Agent of steps that name none.
    pub default_agent: Option<String>,
    /// Model of steps that name none; takes precedence over the document's default.
    pub default_model: Option<String>,
    /// Lowers the configured nesting limit for this run and its descendants.
    pub recursion_depth_max: Option<u32>,
    /// Agent for each role.
    pub role_bindings: BTreeMap<String, String>,
    /// Registered version; for an unregistered document, the version its author gave.
    pub version: Option<u64>,
    /// Idempotency key: for a day, the same key of the same version means the same run.
    pub key: Option<String>,
    /// Trace and parent span from the caller.
    pub trace: Option<TraceParent>,
    /// Parent run and the step that starts this run.
    pub parent: Option<ParentStep>,
    /// Top-level run of the family.
    pub root: Option<RunId>,
    /// Number of ancestors.
    pub depth: u32,
    /// The run that this one is restarted or rewound from.
    pub origin: Option<Origin>,
    /// Results carried over from the origin.
    pub carried: Carried,
    /// Whether this process executes the run or leaves that to another.
    pub dispatching: Dispatching,
    /// Upper limit of autonomy, whatever the deployment allows.
    pub posture: Option<Posture>,
    /// Upper limit of any agent's trust, whatever the deployment allows.
    pub trust_ceiling: Option<u8>,
    /// Cost caps of its ancestors.
    pub caps: Vec<(RunId, Money)>,
    /// Labels of the arguments, if another run passed them.
    pub labels: PassedLabels,
    /// Actions approved in the origin run, by step.
    pub agreed: BTreeMap<String, Value>,
    /// Where the run that starts this one has seen the value of each argument.
    pub args_seen: BTreeMap<String, Vec<SeenIn>>,
    /// Registry epoch that the document was resolved under; `None` if it does not come from
    /// the registry. If the registry has changed since, the start fails with
    /// [`StartError::Moved`].
    pub resolved_under: Option<u64>,
}

impl Start {
    /// A start with default settings.
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
            labels: PassedLabels::default(),
            agreed: BTreeMap::new(),
            args_seen: BTreeMap::new(),
            resolved_under: None,
        }
    }

    /// Name of the workflow in policies, budgets, webhooks and lists.
    pub fn workflow(&self) -> Cow<'_, str> {
        self.source.workflow(&self.stored.definition.plan.name)
    }

    /// An idempotency key derived from the workflow and its arguments.
    pub fn auto_key(&self) -> String {
        let name = &self.stored.definition.plan.name;
        let text = format!("{name}{}", canonical::to_string(&self.args));
        Hash::of(text.as_bytes()).to_string()
    }
}

/// Result of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedRun {
    /// Id of the new or existing run.
    pub run: RunId,
    /// Whether the run already existed under the same idempotency key.
    pub existed: bool,
}

/// A run whose first append is ready.
pub(crate) struct DraftedRun {
    pub(crate) run: Run,
    /// Kept only if an observer is configured.
    events: Vec<Event>,
    at_ms: u64,
    /// Runs that receive messages with the append.
    recipients: Vec<RunId>,
    ownership: Ownership,
    count: u32,
    tail_bytes: usize,
}

/// Result of the first append.
#[derive(Clone, Copy)]
enum Created {
    New,
    /// The run exists, but an answer was lost: it was created by that attempt or by
    /// another node that started the same child.
    Unconfirmed,
    /// Another run has the idempotency key.
    KeyUsed {
        run: RunId,
    },
    /// A cached counter was wrong.
    Refused,
}

impl Inner {
    /// Starts a run; returns once the start is durable.
    pub(crate) async fn start(self: &Arc<Self>, request: Start) -> Result<StartedRun, StartError> {
        let plan = &request.stored.definition.plan;
        let args = check_args(plan, &request.args)?;
        let permit = self.acquire_permit(&request).await?;
        let mut entropy = (self.entropy)();
        let fresh = || RunId::new(self.clock.now_ms(), &mut *entropy);
        let id = request.id.unwrap_or_else(fresh);
        let mailbox = self.reserve_mailbox(id).map_err(|_| StartError::Stopping)?;
        let drafted = self.draft_until_written(&request, id, &args, permit.is_some()).await;
        let (DraftedRun { run, recipients, ownership, count, tail_bytes, .. }, created) =
            match drafted {
                Ok(drafted) => drafted,
                Err(error) => {
                    if let Some((_, mailbox)) = mailbox
                        && self.release_mailbox(id, mailbox) != LoadDemand::None
                    {
                        self.retry_load(id);
                    }
                    return Err(error);
                }
            };
        let (mailbox, permit) = match (&created, ownership, mailbox, permit) {
            (Ok(Created::New), Ownership::Keep, Some(mailbox), Some(permit)) => (mailbox, permit),
            (_, _, mailbox, _) => {
                let demand = mailbox.map(|(_, mailbox)| self.release_mailbox(id, mailbox));
                let kept = ownership == Ownership::Keep;
                let exists = matches!(created, Ok(Created::New | Created::Unconfirmed));
                if (kept && exists) || demand.is_some_and(|demand| demand != LoadDemand::None) {
                    self.retry_load(id);
                }
                for run in recipients {
                    self.notify_messages(run);
                }
                return self.answer_existing(&request, id, &args, created?).await;
            }
        };
        self.keep_definitions(&request);
        for run in recipients {
            self.notify_messages(run);
        }
        let folded = Folded {
            run,
            tail_events: u64::from(count),
            tail_bytes,
            snapshot_bytes: 0,
            counts: None,
        };
        let (handle, mailbox) = mailbox;
        let dispatching = Dispatching::Allowed;
        let context = LoadContext { epoch: 1, handle, mailbox, permit, dispatching };
        self.spawn_run(folded, context, Vec::new());
        Ok(StartedRun { run: id, existed: false })
    }

    /// Acquires a permit for a loaded run. A child does not wait for one, since its
    /// ancestors hold permits: without a free permit any node may claim it later.
    async fn acquire_permit(
        &self,
        request: &Start,
    ) -> Result<Option<OwnedSemaphorePermit>, StartError> {
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

    /// Drafts the first append and writes it; repeats if a cached counter or the registry
    /// rows were stale.
    ///
    /// INVARIANT: a start, and the refusal of one, is decided under rows at least as new as
    /// the last change acknowledged before it. The append names the epoch of its rows, and
    /// the store refuses it if there are newer ones.
    async fn draft_until_written(
        self: &Arc<Self>,
        request: &Start,
        id: RunId,
        args: &Map<String, Value>,
        has_room: bool,
    ) -> Result<(DraftedRun, Result<Created, StoreError>), StartError> {
        loop {
            let rules = self.rules_for(request).await?;
            if let Err(refusal) = self.admit(&rules, request, id) {
                // A resolved request has just read the newest epoch.
                let is_new = request.resolved_under.is_some();
                if !is_new && self.has_newer_rules(&rules).await? {
                    continue;
                }
                return Err(match refusal {
                    NotAdmitted::Invalid(error) => error,
                    NotAdmitted::Denied(denial) => self.record_denial(request, denial).await?,
                });
            }
            let ownership = if request.dispatching == Dispatching::Deferred || !has_room {
                Ownership::Release
            } else {
                Ownership::Keep
            };
            let mut watch = Stopwatch::start();
            let (draft, append) = self.draft(&rules, request, id, args.clone(), ownership, None);
            watch.decided();
            let created = self.create(append).await;
            if matches!(created, Ok(Created::New)) {
                self.notify_observer(&draft.run, &draft.events, draft.at_ms, &watch);
            }
            if !matches!(created, Ok(Created::Refused)) {
                return Ok((draft, created));
            }
            self.refresh_rules().await?;
        }
    }

    /// Builds the first append. It releases the run if `ownership` says so or if nothing is due
    /// yet. A forecast runs with advisory posture but is decided under `ahead_for`.
    pub(crate) fn draft(
        &self,
        rules: &Arc<Rules>,
        request: &Start,
        id: RunId,
        args: Map<String, Value>,
        ownership: Ownership,
        ahead_for: Option<Posture>,
    ) -> (DraftedRun, Append) {
        let plan = &request.stored.definition.plan;
        let mut entropy = (self.entropy)();
        let now_ms = self.clock.now_ms();
        let authority = self.view_under(Arc::clone(rules), now_ms).ahead_for(ahead_for);
        let started = self.run_started(rules, request, args, &mut *entropy);
        let create = Create {
            workflow: request.workflow().into_owned(),
            version: plan.version,
            initiator: request.initiator.clone(),
            started_at_ms: now_ms,
            parent: request.parent.as_ref().map(|parent| parent.run),
            key: idempotency::key(request, now_ms),
        };
        let dispatching = request.dispatching;
        let given = Given { now_ms, entropy: &mut *entropy, dispatching, authority: &authority };
        let definition = Arc::clone(&request.stored.definition);
        let (mut run, decided) = start(id, definition, started, request.carried.clone(), given);
        let encoded = encode(&mut run, &decided.events, now_ms, &mut *entropy);
        let mut blobs = encoded.blobs;
        let brought = request.bring.iter().chain([&request.stored]);
        let unknown = brought.filter(|one| self.definitions.get(one.hash).is_none());
        blobs.extend(unknown.map(Stored::blob));
        let child_starts = child_starts(&run);
        let ownership = if ownership == Ownership::Keep {
            self.ownership(&run, now_ms, child_starts)
        } else {
            ownership
        };
        let recipients = decided.messages.iter().map(|message| message.run).collect();
        let provenance_edges = run.provenance_edges(&decided.events);
        let count = u32::try_from(decided.events.len()).expect("a turn is bounded");
        let append = Append {
            count,
            body: encoded.body,
            beside: encoded.beside,
            chain: encoded.chain,
            create: Some(create),
            head: Some(self.head(&run, now_ms, ownership, child_starts)),
            blobs,
            messages: messages(decided.messages),
            guards: decided.guards,
            provenance_edges,
            remembered_outputs: decided.remembered_outputs,
            ..self.empty_append(id, 1, 0)
        };
        let ownership = append.head.as_ref().map_or(Ownership::Keep, |head| head.ownership);
        let tail_bytes = append.body.len();
        let events = if self.observer.is_some() { decided.events } else { Vec::new() };
        (
            DraftedRun { run, events, at_ms: now_ms, recipients, ownership, count, tail_bytes },
            append,
        )
    }

    /// Writes the first append. Once an answer was lost it retries until it is certain:
    /// otherwise the run might exist without an owner.
    async fn create(&self, append: Append) -> Result<Created, StoreError> {
        let append = Arc::new(append);
        let mut is_uncertain = false;
        loop {
            match self.store.append(Arc::clone(&append)).await {
                Ok(Appended::Done { counts }) => {
                    let now_ms = self.clock.now_ms();
                    self.trust.learn(&append.guards, &counts, now_ms);
                    self.unsealed.store(true, Ordering::Relaxed);
                    self.feed.notify_appended();
                    return Ok(Created::New);
                }
                Ok(Appended::Refused { counter, count }) if !is_uncertain => {
                    self.trust.corrected(&counter, count, self.clock.now_ms());
                    return Ok(Created::Refused);
                }
                Ok(Appended::Exists { run, .. }) if run == append.run && is_uncertain => {
                    return Ok(Created::Unconfirmed);
                }
                Ok(Appended::Exists { run, .. }) => return Ok(Created::KeyUsed { run }),
                Ok(other) => {
                    let reason = format!("unexpected answer to the first append: {other:?}");
                    return Err(StoreError::Unavailable(reason));
                }
                Err(StoreError::Unknown(reason)) => {
                    tracing::warn!(run = %append.run, reason, "the store did not confirm a start");
                    is_uncertain = true;
                }
                Err(error @ StoreError::Unavailable(_)) if is_uncertain => {
                    tracing::warn!(run = %append.run, %error, "a start is not confirmed yet");
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
        }
    }

    /// The result of a start whose run is not loaded by this node.
    async fn answer_existing(
        &self,
        request: &Start,
        id: RunId,
        args: &Map<String, Value>,
        created: Created,
    ) -> Result<StartedRun, StartError> {
        match created {
            Created::New | Created::Unconfirmed => {
                self.keep_definitions(request);
                Ok(StartedRun { run: id, existed: false })
            }
            Created::KeyUsed { run } => {
                let started = first_event(&*self.store, run).await?;
                let differs = idempotency::differences(&started, request, args);
                // An argument that repeats its default is not a difference.
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

    fn run_started(
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
                .map(|lower| self.recursion_depth_max(Some(lower))),
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
            trust_ceiling: lower_of(
                request.trust_ceiling,
                deployment.and_then(|one| one.trust_ceiling),
            ),
            pins: deployment.map(|one| one.agent_gateways.clone()).unwrap_or_default(),
            caps: request.caps.clone(),
            agreed: request.agreed.clone(),
            passed: request.labels.clone(),
            args_seen: request.args_seen.clone(),
        }
    }

    /// Nesting limit: the configured one, or a lower one that was requested.
    pub(crate) fn recursion_depth_max(&self, requested: Option<u32>) -> u32 {
        let configured = self.config.recursion_depth_max;
        requested.map_or(configured, |requested| requested.min(configured))
    }
}

/// The children of a new run are started by its owner's first turn.
fn child_starts(run: &Run) -> ChildStarts {
    let awaited = run.due().any(|effect| matches!(effect, Effect::Child { .. }));
    if awaited { ChildStarts::Unconfirmed } else { ChildStarts::Confirmed }
}

fn lower_of(a: Option<u8>, b: Option<u8>) -> Option<u8> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// Checks arguments and fills in defaults. A lens document without declarations accepts
/// any arguments.
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
