//! Starting a run: checked, pinned, and durable before anyone is told.

use crate::definition::Stored;
use crate::engine::Inner;
use crate::error::StartError;
use crate::load::Folded;
use crate::resident::Seat;
use crate::turn::letters;
use serde_json::{Map, Value};
use sluice_core::args;
use sluice_core::canonical;
use sluice_core::journal::event::{Origin, RunStarted};
use sluice_core::journal::wire;
use sluice_core::label::label;
use sluice_core::plan::Plan;
use sluice_core::plan::policy::Family;
use sluice_core::plan::step::Work;
use sluice_core::port::Entropy;
use sluice_core::port::store::{Append, Appended, Create, Hash, Hold, Key, StoreError};
use sluice_core::run::command::{Dispatching, Given};
use sluice_core::run::id::RunId;
use sluice_core::run::start::{Carried, start};
use sluice_core::run::state::Run;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long an idempotency key counts.
const KEY_MS: u64 = 24 * 60 * 60 * 1000;
/// The gateway of everything that runs in this process.
const LOCAL_GATEWAY: &str = "local";

/// What a run is to be started with.
#[derive(Debug, Clone)]
pub struct Start {
    /// What it is a run of.
    pub stored: Stored,
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
    /// Who does steps that name nobody.
    pub default_agent: Option<String>,
    /// Which agent stands for which role.
    pub role_bindings: BTreeMap<String, String>,
    /// The same key within a day means the same run.
    pub key: Option<String>,
    /// For tracing.
    pub trace_id: Option<String>,
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
}

impl Start {
    /// A plain start.
    pub fn new(stored: Stored, args: Map<String, Value>) -> Start {
        Start {
            stored,
            children: BTreeMap::new(),
            bring: Vec::new(),
            args,
            id: None,
            initiator: "local".to_owned(),
            default_agent: None,
            role_bindings: BTreeMap::new(),
            key: None,
            trace_id: None,
            parent: None,
            root: None,
            depth: 0,
            origin: None,
            carried: Carried::default(),
            dispatching: Dispatching::Allowed,
        }
    }

    /// Every definition it needs.
    fn brought(&self) -> impl Iterator<Item = &Stored> {
        self.bring.iter().chain([&self.stored])
    }

    /// What the lists need of it.
    fn create(&self, now_ms: u64) -> Create {
        let plan = &self.stored.definition.plan;
        let key = self.key.as_ref().map(|key| Key {
            key: key.clone(),
            fingerprint: fingerprint(self),
            expires_at_ms: now_ms.saturating_add(KEY_MS),
        });
        Create {
            workflow: plan.name.clone(),
            version: plan.version,
            started_at_ms: now_ms,
            parent: self.parent.as_ref().map(|(run, _)| *run),
            key,
        }
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

/// A run that is about to be made durable.
struct Begun {
    run: Run,
    append: Append,
    hold: Hold,
    addressees: Vec<RunId>,
    tail_events: u64,
    tail_bytes: usize,
}

impl Inner {
    /// Starts a run and answers when that is durable.
    pub(crate) async fn start(self: &Arc<Self>, request: Start) -> Result<StartedRun, StartError> {
        let plan = &request.stored.definition.plan;
        let args = check_args(plan, &request.args)?;
        self.check_agents(plan, &request)?;
        let permit = Arc::clone(&self.room).acquire_owned().await;
        let permit = permit.map_err(|_| StartError::Stopping)?;
        let begun = self.begin(&request, args);
        let id = begun.run.id;
        match self.store.append(begun.append).await? {
            Appended::Done => {}
            Appended::Exists { run, same: true } => {
                return Ok(StartedRun { run, existed: true });
            }
            Appended::Exists { run, same: false } => return Err(StartError::KeyConflict(run)),
            other => {
                let reason = format!("a new run was answered {other:?}");
                return Err(StoreError::Unavailable(reason).into());
            }
        }
        for stored in request.brought() {
            self.definitions.keep(stored);
        }
        for run in begun.addressees {
            self.deliver(run);
        }
        if begun.hold == Hold::Keep {
            let (sender, mailbox) = self.mailbox();
            let folded = Folded {
                run: begun.run,
                tail_events: begun.tail_events,
                tail_bytes: begun.tail_bytes,
                snapshot_bytes: 0,
            };
            let dispatching = Dispatching::Allowed;
            let seat = Seat { epoch: 1, sender, mailbox, permit, dispatching };
            self.seat(folded, seat, Vec::new());
        }
        Ok(StartedRun { run: id, existed: false })
    }

    /// The run's first turn, and the append it makes.
    fn begin(&self, request: &Start, args: Map<String, Value>) -> Begun {
        let mut entropy = (self.entropy)();
        let now_ms = self.clock.now_ms();
        let id = request.id.unwrap_or_else(|| RunId::new(now_ms, &mut *entropy));
        let started = self.started(request, args, &mut *entropy);
        let given = Given { now_ms, entropy: &mut *entropy, dispatching: request.dispatching };
        let definition = Arc::clone(&request.stored.definition);
        let (run, decided) = start(id, definition, started, request.carried.clone(), given);
        let encoded = wire::encode(&decided.events, now_ms, &run.definition.plan);
        let count = u32::try_from(decided.events.len()).expect("a turn is bounded");
        let tail_bytes = encoded.body.len();
        let new = request.brought().filter(|one| self.definitions.get(one.hash).is_none());
        let blobs = encoded.blobs.into_iter().chain(new.map(Stored::blob)).collect();
        let hold = match request.dispatching {
            // A run that only waits for children stays until they are started.
            Dispatching::Allowed if run.due().next().is_some() => Hold::Keep,
            Dispatching::Allowed => self.hold(&run, now_ms),
            Dispatching::Deferred => Hold::Release,
        };
        let addressees = decided.letters.iter().map(|letter| letter.run).collect();
        let append = Append {
            run: id,
            node: self.node,
            epoch: 1,
            after: 0,
            count,
            body: encoded.body,
            create: Some(request.create(now_ms)),
            head: Some(self.head(&run, now_ms, hold)),
            snapshot: None,
            blobs,
            read: Vec::new(),
            letters: letters(decided.letters),
            guards: Vec::new(),
        };
        Begun { run, append, hold, addressees, tail_events: u64::from(count), tail_bytes }
    }

    fn started(
        &self,
        request: &Start,
        args: Map<String, Value>,
        entropy: &mut dyn Entropy,
    ) -> RunStarted {
        let plan = &request.stored.definition.plan;
        let trace =
            || format!("{:032x}", RunId::new(self.clock.now_ms(), &mut *(self.entropy)()).0);
        RunStarted {
            workflow: plan.name.clone(),
            version: plan.version,
            definition_hash: request.stored.definition.hash.clone(),
            definition: Some(request.stored.hash),
            children: request.children.clone(),
            args: Arc::new(args),
            role_bindings: request.role_bindings.clone(),
            default_agent: request.default_agent.clone(),
            gateway: LOCAL_GATEWAY.to_owned(),
            initiator: request.initiator.clone(),
            trace_id: request.trace_id.clone().unwrap_or_else(trace),
            root_span_id: format!("{:016x}", entropy.bits()),
            parent: request.parent.clone(),
            root: request.root,
            depth: request.depth,
            origin: request.origin.clone(),
        }
    }

    /// Every step must have somebody who can do it.
    fn check_agents(&self, plan: &Plan, request: &Start) -> Result<(), StartError> {
        for step in &plan.steps {
            match &step.work {
                Work::Approval | Work::Workflow(_) => continue,
                Work::Unresolved { what, name } => {
                    let message = format!("{what} `{name}` of step `{}` is not at hand", step.id);
                    return Err(StartError::Unresolved(message));
                }
                Work::Command { .. } | Work::Lens(_) => {}
            }
            let bound = || request.role_bindings.get(step.role.as_ref()?);
            let agent = step.agent.as_ref().or_else(bound).or(request.default_agent.as_ref());
            let Some(agent) = agent else {
                return Err(StartError::Agent(nobody(step)));
            };
            if self.agents.get(agent).is_none() {
                let known: Vec<&str> = self.agents.names().collect();
                let message = format!(
                    "step `{}` names the agent `{agent}`, which is not here; there is {}",
                    step.id,
                    known.join(", ")
                );
                return Err(StartError::Agent(message));
            }
        }
        Ok(())
    }
}

fn nobody(step: &sluice_core::plan::step::Step) -> String {
    let role = step.role.as_ref().map_or_else(String::new, |role| {
        format!(" (its role `{role}` is bound to none: `--bind {role}=AGENT`)")
    });
    format!(
        "step `{}` names no agent{role}; name one in the document, give the run a default with \
         `--agent NAME` or in sluice.toml, or let a script answer with `--mock FILE`",
        step.id
    )
}

/// The arguments, complete. A lens document that declares none takes any.
fn check_args(plan: &Plan, given: &Map<String, Value>) -> Result<Map<String, Value>, StartError> {
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

fn fingerprint(request: &Start) -> Hash {
    let what = (&request.stored.definition.hash, &request.args);
    Hash::of(canonical::to_string(&what).as_bytes())
}
