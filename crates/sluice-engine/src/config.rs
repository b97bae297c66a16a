//! Settings of an engine.

use sluice_core::limits::RECURSION_DEPTH_MAX;
use sluice_core::port::authority::Patience;

/// Settings of an engine. All durations are in milliseconds.
#[derive(Debug, Clone)]
pub struct Config {
    /// Duration of this node's lease; it is renewed every third of that.
    pub lease_ms: u64,
    /// Interval between sweeps for runs that are due.
    pub sweep_ms: u64,
    /// Interval between scans for runs without an owner.
    pub watchdog_ms: u64,
    /// A run that waits longer than this is unloaded.
    pub park_after_ms: u64,
    /// Most loaded runs. Further starts wait.
    pub residents_max: usize,
    /// Which runs this process claims.
    pub claims: Claims,
    /// Model of steps for which nothing else names one.
    pub default_model: Option<String>,
    /// Most nested runs.
    pub recursion_depth_max: u32,
    /// Grace period of a cancelled call before it is dropped.
    pub grace_ms: u64,
    /// How long `Engine::shutdown` waits for runs to be released.
    pub shutdown_ms: u64,
    /// Shortest interval between journalled parts of one stream.
    pub delta_ms: u64,
    /// Most journalled parts per second of all streams together; the interval of each
    /// stream grows with the number of streams.
    pub deltas_per_second: u32,
    /// How long approvals stay open, and how long steps wait at gates.
    pub patience: Patience,
    /// How often a run that waits at a gate checks it.
    pub look_ms: u64,
    /// Calls to the moderator.
    pub moderation: Moderation,
}

/// Calls to the moderator, and moderated streams.
#[derive(Debug, Clone)]
pub struct Moderation {
    /// Timeout of one call.
    pub timeout_ms: u64,
    /// Attempts before the moderator is treated as unavailable.
    pub tries: u32,
    /// Most calls at the same time.
    pub parallel: usize,
    /// A stream is checked when this many bytes are withheld.
    pub window_bytes: usize,
    /// A stream is checked at the latest after this time.
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

/// Which runs a process claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// Every run that is due and has no owner.
    All,
    /// Runs that it started or was asked to claim, and their child runs.
    Own,
    /// No runs: commands are recorded, and other processes execute them.
    None,
    /// No runs, and no writes: the engine holds no lease and makes no seals.
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
        }
    }
}
