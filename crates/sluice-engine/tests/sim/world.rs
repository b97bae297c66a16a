//! State that all nodes of a seed share, and state of the checkers.

use crate::check::Journal;
use crate::fault::{Fault, Rates};
use crate::random::SeededRandom;
use crate::sabotage::Sabotage;
use crate::tally::Tally;
use sluice_core::id::RunId;
use sluice_core::port::Clock;
use sluice_core::port::adapter::Request;
use sluice_core::run::command::{Command, Refusal};
use sluice_engine::Engine;
use sluice_engine::error::{CommandError, Delivered, LoadError};
use sluice_store::memory::Checks;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Start time of every seed.
const BEGIN_MS: u64 = 1_700_000_000_000;

/// Checks of the store, and a safeguard that is disabled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Safeguards {
    pub(crate) checks: Checks,
    pub(crate) sabotage: Option<Sabotage>,
}

/// Whether an operator has configured governance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Nothing: every gate passes.
    Plain,
    /// Limits, caps and policies, which change.
    Governed,
    /// A thousand steps, and a cap that admits few of them.
    Thousand,
}

/// A node, alive or not.
#[derive(Default)]
pub(crate) struct NodeSlot {
    pub(crate) engine: Option<Arc<Engine>>,
    /// Cancelled when the node dies.
    pub(crate) dead: CancellationToken,
}

/// The world of one seed.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) rule: Rule,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) slots: Mutex<Vec<NodeSlot>>,
    pub(crate) journal: Mutex<Journal>,
    pub(crate) tally: Mutex<Tally>,
    /// Cancelled when an invariant is violated.
    pub(crate) broken: CancellationToken,
    /// Change notification of each node.
    pub(crate) notices: Vec<Notify>,
    /// Nodes that crash.
    pub(crate) crashes: mpsc::UnboundedSender<usize>,
    verdict: Mutex<Option<String>>,
    chance: Mutex<SeededRandom>,
    rates: Rates,
    faulty: AtomicBool,
    began: Instant,
    offset_ms: AtomicI64,
    ids: AtomicU64,
    /// Dispatches that a remote worker has received.
    taken: Mutex<BTreeSet<(RunId, String, u32)>>,
    /// Time of the last store call, and the number of calls at that time.
    calls: Mutex<(u64, u64)>,
}

impl World {
    pub(crate) fn new(
        seed: u64,
        rule: Rule,
        sabotage: Option<Sabotage>,
        processes: usize,
        crashes: mpsc::UnboundedSender<usize>,
    ) -> World {
        let mut chance = SeededRandom::of(&[seed, 1]);
        World {
            seed,
            rule,
            sabotage,
            slots: Mutex::new((0..processes).map(|_| NodeSlot::default()).collect()),
            journal: Mutex::default(),
            tally: Mutex::default(),
            broken: CancellationToken::new(),
            notices: (0..processes).map(|_| Notify::new()).collect(),
            crashes,
            verdict: Mutex::default(),
            rates: Rates::of(&mut chance),
            chance: Mutex::new(chance),
            faulty: AtomicBool::new(true),
            began: Instant::now(),
            offset_ms: AtomicI64::new(0),
            taken: Mutex::default(),
            ids: AtomicU64::new(0),
            calls: Mutex::new((0, 0)),
        }
    }

    pub(crate) fn slots(&self) -> MutexGuard<'_, Vec<NodeSlot>> {
        self.slots.lock().expect("the lock is not poisoned")
    }

    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().expect("the lock is not poisoned")
    }

    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("the lock is not poisoned")
    }

    pub(crate) fn chance(&self) -> MutexGuard<'_, SeededRandom> {
        self.chance.lock().expect("the lock is not poisoned")
    }

    /// A unique number.
    pub(crate) fn number(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether a fault occurs now.
    pub(crate) fn strikes(&self, fault: Fault) -> bool {
        let strikes = self.is_faulty() && self.chance().permille(self.rates.get(fault));
        if strikes {
            *self.tally().faults.entry(fault).or_default() += 1;
        }
        strikes
    }

    /// Counts a store call: virtual time must advance, otherwise something spins.
    pub(crate) fn spins(&self) -> bool {
        const CALLS_MAX: u64 = 5000;
        let now_ms = self.elapsed_ms();
        let mut calls = self.calls.lock().expect("the lock is not poisoned");
        *calls = if calls.0 == now_ms { (now_ms, calls.1 + 1) } else { (now_ms, 1) };
        calls.1 > CALLS_MAX
    }

    /// Ends all faults.
    pub(crate) fn calm(&self) {
        self.faulty.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_faulty(&self) -> bool {
        self.faulty.load(Ordering::Relaxed)
    }

    /// Records a violated invariant; the first one ends the seed.
    pub(crate) fn fails(&self, what: String) {
        self.verdict.lock().expect("the lock is not poisoned").get_or_insert(what);
        self.broken.cancel();
    }

    pub(crate) fn holds(&self, checked: Result<(), String>) {
        if let Err(what) = checked {
            self.fails(what);
        }
    }

    /// An adapter was called.
    pub(crate) fn executes(&self, request: &Request) {
        let mut journal = self.journal();
        if let Err(what) = journal.executes(request) {
            self.fails(format!("{what}\n{}", journal.tail(request.run)));
        }
    }

    /// Whether a remote worker receives a dispatch for the first time. A local adapter
    /// never receives one twice.
    pub(crate) fn takes(&self, request: &Request) -> bool {
        let key = (request.run, request.step.clone(), request.dispatch_no);
        let mut taken = self.taken.lock().expect("the lock is not poisoned");
        taken.insert(key) || request.gateway != "elsewhere"
    }

    /// An adapter reported a cost.
    pub(crate) fn costs(&self, request: &Request) {
        self.journal().ledger.costs(request);
    }

    pub(crate) fn verdict(&self) -> Option<String> {
        self.verdict.lock().expect("the lock is not poisoned").clone()
    }

    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a seed is short")
    }

    pub(crate) fn jump(&self, by_ms: i64) {
        self.offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let now_ms = BEGIN_MS + self.elapsed_ms();
        now_ms.saturating_add_signed(self.offset_ms.load(Ordering::Relaxed))
    }

    /// Some live node.
    pub(crate) fn anyone(&self) -> Option<(Arc<Engine>, CancellationToken)> {
        let slots = self.slots();
        let alive = slots.iter().filter_map(|slot| Some((slot.engine.clone()?, slot.dead.clone())));
        let alive: Vec<_> = alive.collect();
        if alive.is_empty() {
            return None;
        }
        Some(self.chance().pick(&alive).clone())
    }

    /// Sends a command to a run through any node, with retries. `None` if that keeps
    /// failing.
    pub(crate) async fn command(
        &self,
        run: RunId,
        command: Command,
        key: &str,
    ) -> Option<Result<Delivered, Refusal>> {
        const TRIES: usize = 40;
        for _ in 0..TRIES {
            if let Some((engine, dead)) = self.anyone() {
                let asked = engine.command(run, command.clone(), key);
                let asked = tokio::time::timeout(Duration::from_secs(60), asked);
                let answer = tokio::select! {
                    biased;
                    () = dead.cancelled() => None,
                    answer = asked => answer.ok(),
                };
                match answer {
                    Some(Ok(delivered)) => return Some(Ok(delivered)),
                    Some(Err(CommandError::Refused(refusal))) => return Some(Err(refusal)),
                    Some(Err(CommandError::Load(error @ LoadError::Poison { .. }))) => {
                        self.fails(format!("{run}: a command finds it poisoned: {error}"));
                        return None;
                    }
                    Some(Err(_)) | None => {}
                }
            }
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        None
    }
}

/// The clock of one node, or of the store.
pub(crate) struct SimClock {
    pub(crate) world: Arc<World>,
    /// Clock skew.
    pub(crate) skew_ms: i64,
}

impl Clock for SimClock {
    fn now_ms(&self) -> u64 {
        self.world.now_ms().saturating_add_signed(self.skew_ms)
    }
}
