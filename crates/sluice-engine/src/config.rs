//! How an engine behaves.

use sluice_core::limits::RECURSION_DEPTH_MAX;
use sluice_core::port::authority::Patience;

/// Settings of an engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long this process counts as alive after it last said so.
    pub lease_ms: u64,
    /// How often runs that are due are looked for.
    pub sweep_ms: u64,
    /// How often runs that nobody looks after are looked for.
    pub watchdog_ms: u64,
    /// A run that only waits longer than this is not kept in memory.
    pub park_after_ms: u64,
    /// Most runs in memory at once. Starting more waits for room.
    pub residents_max: usize,
    /// Which runs this process looks after.
    pub claims: Claims,
    /// The model of steps for which nothing else names one.
    pub default_model: Option<String>,
    /// How many runs may be above a run.
    pub recursion_depth_max: u32,
    /// How long a cancelled call may take to stop before it is dropped.
    pub grace_ms: u64,
    /// How long `Engine::shutdown` waits for runs to be handed over.
    pub shutdown_ms: u64,
    /// How often parts of one answer are journalled at most.
    pub delta_ms: u64,
    /// How many parts of answers are journalled a second, all streams together:
    /// the more there are, the further apart are the parts of each.
    pub deltas_per_second: u32,
    /// How long people are given to answer, and steps wait at gates.
    pub patience: Patience,
    /// How often a run that waits at a gate looks by itself.
    pub look_ms: u64,
    /// How the moderator is asked.
    pub moderation: Moderation,
    /// Safeguards that are off.
    #[cfg(feature = "sabotage")]
    pub sabotage: Sabotage,
}

/// How the moderator is asked, and how much of a stream waits for it.
#[derive(Debug, Clone)]
pub struct Moderation {
    /// How long it may take to answer once.
    pub timeout_ms: u64,
    /// How often it is asked before it counts as unavailable.
    pub tries: u32,
    /// Most questions to it at once.
    pub parallel: usize,
    /// A stream is checked when so much of it waits.
    pub window_bytes: usize,
    /// And at the latest after this time.
    pub window_ms: u64,
}

impl Default for Moderation {
    fn default() -> Moderation {
        Moderation {
            timeout_ms: 10_000,
            tries: 3,
            parallel: 32,
            window_bytes: 1024,
            window_ms: 500,
        }
    }
}

/// Which runs a process looks after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// Every run that is due and has no owner.
    All,
    /// Those it started or was asked to take up, and their families.
    Own,
    /// None: it notes commands down and leaves the work to others.
    None,
    /// None, and the store is only read: the engine holds no lease and seals nothing.
    ReadOnly,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            lease_ms: 10_000,
            sweep_ms: 1000,
            watchdog_ms: 120_000,
            park_after_ms: 30_000,
            residents_max: 20_000,
            claims: Claims::All,
            default_model: None,
            recursion_depth_max: RECURSION_DEPTH_MAX,
            grace_ms: 5000,
            shutdown_ms: 10_000,
            delta_ms: 50,
            deltas_per_second: 1000,
            patience: Patience::default(),
            look_ms: 1000,
            moderation: Moderation::default(),
            #[cfg(feature = "sabotage")]
            sabotage: Sabotage::default(),
        }
    }
}

/// Safeguards taken away, one at a time, so that the simulator can show what each is for.
#[cfg(feature = "sabotage")]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sabotage {
    /// Work is sent before the append that says so is durable.
    pub dispatch_before_log: bool,
    /// A result counts, whichever dispatch it is of.
    pub accept_late: bool,
    /// When a run is parked, nobody notes when it is due.
    pub forget_timers: bool,
    /// Steps are dispatched without asking the gates.
    pub unasked: Option<&'static sluice_core::port::authority::Unasked>,
    /// Counters whose names begin so have no bound.
    pub unguarded: Option<&'static str>,
    /// Slots are not given back.
    pub forget_slots: bool,
    /// What is sent again after a crash reserves again.
    pub reserve_again: bool,
    /// A grant that was used counts for ever.
    pub reuse_grants: bool,
    /// Whatever the moderator says of what goes in, it counts as cleared.
    pub let_in: bool,
    /// Streams do not wait for the moderator.
    pub stream_unchecked: bool,
}
