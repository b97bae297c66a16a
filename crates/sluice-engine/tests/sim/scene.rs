//! One seed: nodes, clients, approvers, faults, and then calm.

mod client;
mod end;
mod operator;

use crate::adapter::{AsyncAdapter, LocalAdapter};
use crate::fault::Fault;
use crate::flow::{Flow, fifty, flows};
use crate::moderation::SeededModerator;
use crate::random::SeededRandom;
use crate::store::FaultyStore;
use crate::tally::Tally;
use crate::trace::Printer;
use crate::world::{Rule, Safeguards, SimClock, World};
pub(crate) use operator::FIT;
use operator::Operator;
use sluice_core::evidence::key::Signer;
use sluice_core::hash::Hash;
use sluice_core::id::Entropy;
use sluice_core::limits::RECURSION_DEPTH_MAX;
use sluice_core::port::authority::Patience;
use sluice_engine::agents::Agents;
use sluice_engine::config::{Claims, Config, Moderation};
use sluice_engine::engine::{Engine, Ground};
use sluice_engine::sealer::Sealer;
use sluice_engine::trust::PolicySource;
use sluice_store::memory::MemoryStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Result of a seed.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) tally: Tally,
    /// Digest of all journals.
    pub(crate) digest: Hash,
    /// The violated invariant, if any.
    pub(crate) failure: Option<String>,
}

/// What stays the same during one seed.
pub(crate) struct Scene {
    pub(crate) world: Arc<World>,
    pub(crate) store: MemoryStore,
    pub(crate) flows: Vec<Flow>,
    pub(crate) configs: Vec<Config>,
    pub(crate) operator: Option<Operator>,
    skews: Vec<i64>,
    /// A node that lacks an agent, if there is one.
    lacking: Option<usize>,
}

/// Sealing key of every node.
const SEAL_KEY: [u8; 32] = [7; 32];
/// How long faults occur.
const FAULTS_MS: (u64, u64) = (15_000, 45_000);

/// Plays a seed.
pub(crate) fn play(seed: u64, rule: Rule, safeguards: Safeguards) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let mut runtime = runtime;
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime is built");
    runtime.block_on(async {
        let trace = Printer { began: tokio::time::Instant::now() };
        let _guard = Printer::is_wanted().then(|| tracing::subscriber::set_default(trace));
        whole(seed, rule, safeguards).await
    })
}

async fn whole(seed: u64, rule: Rule, safeguards: Safeguards) -> Played {
    let mut chance = SeededRandom::of(&[seed, 2]);
    let processes = usize::try_from(chance.between(1, 3)).expect("a few");
    let (sender, crashes) = mpsc::unbounded_channel();
    let world = Arc::new(World::new(seed, rule, safeguards.sabotage, processes, sender));
    let clock = Arc::new(SimClock { world: Arc::clone(&world), skew_ms: 0 });
    let governed = rule == Rule::Governed;
    let mut flows =
        flows(&mut chance, governed.then(|| SeededRandom::of(&[seed, 6])), safeguards.sabotage);
    if rule == Rule::Thousand {
        flows = vec![fifty()];
    }
    for flow in &flows {
        for stored in flow.bring.iter().chain([&flow.stored]) {
            let definition = world.definition(stored);
            world.journal().definitions.insert(stored.hash, definition);
        }
    }
    let skew = |chance: &mut SeededRandom| i64::try_from(chance.below(400)).expect("small") - 200;
    let configs = (0..processes).map(|process| config(&mut chance, process)).collect();
    let skews = (0..processes).map(|_| skew(&mut chance)).collect();
    let store = MemoryStore::with_checks(clock, safeguards.checks);
    let lacking = (processes > 1 && chance.permille(150)).then_some(1);
    let world_of_it = Arc::clone(&world);
    let operator = Operator::of(rule, seed);
    let scene = Scene { world: world_of_it, store, flows, configs, operator, skews, lacking };
    let scene = Arc::new(scene);
    scene.set_up().await;
    for process in 0..processes {
        scene.open(process).await;
    }
    tokio::spawn(Arc::clone(&scene).undertake(crashes));
    let played = async {
        let faults_ms = chance.between(FAULTS_MS.0, FAULTS_MS.1);
        let started = scene.clients(&mut chance, faults_ms);
        tokio::time::sleep(Duration::from_millis(faults_ms)).await;
        scene.stop_faults(&mut chance).await;
        scene.settle(started).await;
    };
    tokio::select! {
        biased;
        () = world.broken.cancelled() => {}
        () = played => {}
    }
    let mut tally = world.tally().clone();
    tally.seeds = 1;
    tally.virtual_ms = world.elapsed_ms();
    let digest = world.journal().digest();
    // Breaks the reference cycle between engines and world.
    world.slots.lock().expect("the lock is not poisoned").clear();
    Played { tally, digest, failure: world.verdict() }
}

fn config(chance: &mut SeededRandom, process: usize) -> Config {
    let claims = *chance.pick(&[Claims::All, Claims::All, Claims::None, Claims::Own]);
    let claims = if process == 0 { Claims::All } else { claims };
    Config {
        patience: Patience::default(),
        look_ms: 1000,
        lease_ms: chance.between(2000, 8000),
        sweep_ms: chance.between(200, 1500),
        watchdog_ms: 120_000,
        park_after_ms: *chance.pick(&[0, 500, 5000, 30_000]),
        residents_max: *chance.pick(&[3, 8, 1000, 1000]),
        claims,
        default_model: None,
        recursion_depth_max: RECURSION_DEPTH_MAX,
        grace_ms: chance.between(100, 3000),
        shutdown_ms: 25_000,
        delta_ms: chance.between(0, 100),
        moderation: Moderation {
            timeout_ms: 1000,
            tries: 2,
            parallel: 4,
            window_bytes: 8,
            window_ms: 50,
        },
        deltas_per_second: 1000,
    }
}

impl Scene {
    /// Starts a node, retrying until it succeeds.
    async fn open(&self, process: usize) {
        let world = &self.world;
        loop {
            let dead = CancellationToken::new();
            let number = world.number();
            let seed = world.seed;
            let entropy = SeededRandom::of(&[seed, 4, number]);
            let entropy = std::sync::Mutex::new(entropy);
            let source = move || {
                let mut entropy = entropy.lock().expect("the lock is not poisoned");
                Box::new(SeededRandom::of(&[entropy.next()])) as Box<dyn Entropy>
            };
            let store = self.store.beside();
            let store = FaultyStore::new(store, Arc::clone(world), process, dead.clone());
            let skew_ms = self.skews[process];
            let ground = Ground {
                store: Arc::new(store),
                clock: Arc::new(SimClock { world: Arc::clone(world), skew_ms }),
                entropy: Arc::new(source),
                agents: self.agents(process),
                policies: PolicySource::default(),
                catalog: None,
                sealer: Some(Sealer { signer: Signer::new(&SEAL_KEY), witness: None }),
                moderator: Some(Arc::new(SeededModerator(Arc::clone(world)))),
                observer: None,
            };
            if let Ok(engine) = Engine::open(ground, self.configs[process].clone()).await {
                let mut slots = world.slots();
                slots[process].engine = Some(Arc::new(engine));
                slots[process].dead = dead;
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    fn agents(&self, process: usize) -> Agents {
        let edge = Agents::new().with("edge", Arc::new(LocalAdapter(Arc::clone(&self.world))));
        // Its gateway would be offline there, and the choice of node is random.
        let elsewhere = self.world.rule == Rule::Governed && self.world.seed.is_multiple_of(2);
        if self.lacking == Some(process) && !elsewhere {
            return edge;
        }
        edge.with("async", Arc::new(AsyncAdapter(Arc::clone(&self.world))))
    }

    /// Removes crashed nodes and restarts them.
    async fn undertake(self: Arc<Self>, mut crashes: mpsc::UnboundedReceiver<usize>) {
        while let Some(process) = crashes.recv().await {
            // Dropped outside the lock.
            let gone = self.world.slots()[process].engine.take();
            drop(gone);
            let scene = Arc::clone(&self);
            let pause_ms = self.world.chance().between(1, 6000);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                scene.open(process).await;
            });
        }
    }

    /// Stops a node gracefully, and restarts it.
    pub(crate) async fn restart(&self, process: usize) {
        let (engine, dead) = {
            let mut slots = self.world.slots();
            (slots[process].engine.take(), slots[process].dead.clone())
        };
        let Some(engine) = engine else { return };
        let patience = Duration::from_secs(30);
        tokio::select! {
            biased;
            () = dead.cancelled() => {}
            stopped = tokio::time::timeout(patience, engine.shutdown()) => {
                if stopped != Ok(0) && !self.world.is_faulty() {
                    self.world.fails("a process that is asked to stop does".to_owned());
                }
            }
        }
        let crashed = dead.is_cancelled();
        dead.cancel();
        drop(engine);
        if crashed {
            // The crash handler restarts it.
            return;
        }
        self.world.chance().next();
        self.open(process).await;
    }

    /// Injects faults at random times.
    pub(crate) async fn trouble(self: Arc<Self>) {
        while self.world.is_faulty() {
            let pause_ms = self.world.chance().between(500, 4000);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            let world = &self.world;
            if world.strikes(Fault::ClockForward) {
                let by_ms = world.chance().between(10, 30_000);
                world.jump(i64::try_from(by_ms).expect("small"));
            }
            if world.strikes(Fault::ClockBackward) {
                let by_ms = world.chance().between(10, 8000);
                world.jump(-i64::try_from(by_ms).expect("small"));
            }
            let process = world.chance().below(self.configs.len() as u64);
            let process = usize::try_from(process).expect("small");
            if world.strikes(Fault::Shutdown) {
                self.restart(process).await;
            } else if world.strikes(Fault::CrashAtStop) {
                self.kill(process);
            }
        }
    }

    /// Kills a node between two of its store calls.
    fn kill(&self, process: usize) {
        let slots = self.world.slots();
        if slots[process].engine.is_some() && !slots[process].dead.is_cancelled() {
            slots[process].dead.cancel();
            // The receiver is gone only when the seed is over.
            let _ = self.world.crashes.send(process);
        }
    }
}
