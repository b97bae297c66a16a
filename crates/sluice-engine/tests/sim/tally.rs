//! Coverage: how often everything was reached.

use crate::fault::Fault;
use sluice_core::status::{RunStatus, StepStatus};
use std::collections::BTreeMap;
use std::fmt;

/// Counts by category.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) seeds: u64,
    pub(crate) runs: u64,
    pub(crate) events: u64,
    pub(crate) snapshots: u64,
    pub(crate) faults: BTreeMap<Fault, u64>,
    pub(crate) run_statuses: BTreeMap<RunStatus, u64>,
    pub(crate) step_statuses: BTreeMap<StepStatus, u64>,
    pub(crate) moves: BTreeMap<(StepStatus, StepStatus), u64>,
    /// Governance events, by description.
    pub(crate) reached: BTreeMap<String, u64>,
    /// Virtual time that passed.
    pub(crate) virtual_ms: u64,
}

impl Tally {
    pub(crate) fn faults(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Counts a governance event.
    pub(crate) fn reach(&mut self, what: impl Into<String>) {
        *self.reached.entry(what.into()).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.seeds += other.seeds;
        self.runs += other.runs;
        self.events += other.events;
        self.snapshots += other.snapshots;
        self.virtual_ms += other.virtual_ms;
        merge(&mut self.faults, &other.faults);
        merge(&mut self.run_statuses, &other.run_statuses);
        merge(&mut self.step_statuses, &other.step_statuses);
        merge(&mut self.moves, &other.moves);
        merge(&mut self.reached, &other.reached);
    }

    /// What should have been reached but was not.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let faults = Fault::ALL.iter().filter(|fault| !self.faults.contains_key(fault));
        missing.extend(faults.map(|fault| format!("fault {fault:?}")));
        let runs = RUN_STATUSES.iter().filter(|status| !self.run_statuses.contains_key(status));
        missing.extend(runs.map(|status| format!("run status {status}")));
        let steps = STEP_STATUSES.iter().filter(|status| !self.step_statuses.contains_key(status));
        missing.extend(steps.map(|status| format!("step status {status}")));
        let moves = MOVES.iter().filter(|(from, to)| !self.moves.contains_key(&(*from, *to)));
        missing.extend(moves.map(|(from, to)| format!("step {from} -> {to}")));
        let reached = REACHED.iter().filter(|what| !self.reached.contains_key(**what));
        missing.extend(reached.map(|what| (*what).to_owned()));
        if self.snapshots == 0 {
            missing.push("a snapshot".to_owned());
        }
        missing
    }
}

fn merge<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key.clone()).or_default() += count;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { seeds, runs, events, snapshots, virtual_ms, .. } = self;
        let hours = virtual_ms / 3_600_000;
        writeln!(
            f,
            "{seeds} seeds, {runs} runs, {events} events, {snapshots} snapshots, {} faults, \
             {hours} hours",
            self.faults()
        )?;
        for (fault, count) in &self.faults {
            writeln!(f, "  fault {fault:?}: {count}")?;
        }
        for (status, count) in &self.run_statuses {
            writeln!(f, "  run {status}: {count}")?;
        }
        for (status, count) in &self.step_statuses {
            writeln!(f, "  step {status}: {count}")?;
        }
        for ((from, to), count) in &self.moves {
            writeln!(f, "  step {from} -> {to}: {count}")?;
        }
        for (what, count) in &self.reached {
            writeln!(f, "  {what}: {count}")?;
        }
        Ok(())
    }
}

/// Governance and recovery events that a long enough suite must reach.
const REACHED: [&str; 26] = [
    "wait agent_busy",
    "wait rate_limited",
    "wait agent_disabled",
    "wait gateway_unreachable",
    "blocked budget_exceeded",
    "refused busy",
    "refused rate",
    "refused held",
    "refused registry",
    "refused told",
    "refused spent",
    "refused over",
    "sent again",
    "cost unknown",
    "reconciled",
    "alert threshold",
    "alert budget_overrun",
    "alert figures_refused",
    "grant by policy",
    "quorum",
    "recovers",
    "recovered by itself",
    "moderation input flagged",
    "moderation input unavailable",
    "moderation output flagged",
    "moderation output unavailable",
];

const RUN_STATUSES: [RunStatus; 8] = [
    RunStatus::Running,
    RunStatus::Paused,
    RunStatus::Cancelling,
    RunStatus::Recovered,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Cancelled,
    RunStatus::TimedOut,
];

const STEP_STATUSES: [StepStatus; 11] = [
    StepStatus::Queued,
    StepStatus::AwaitingApproval,
    StepStatus::Running,
    StepStatus::Streaming,
    StepStatus::Retrying,
    StepStatus::Completed,
    StepStatus::Failed,
    StepStatus::Skipped,
    StepStatus::Cancelled,
    StepStatus::TimedOut,
    StepStatus::Blocked,
];

/// Status changes that a long enough suite must reach.
const MOVES: [(StepStatus, StepStatus); 36] = {
    use StepStatus as S;
    [
        (S::Pending, S::Queued),
        (S::Pending, S::Skipped),
        (S::Pending, S::Failed),
        (S::Pending, S::Cancelled),
        (S::Queued, S::Running),
        (S::Queued, S::AwaitingApproval),
        (S::Queued, S::Cancelled),
        (S::Queued, S::Pending),
        (S::Queued, S::Completed),
        (S::AwaitingApproval, S::Queued),
        (S::AwaitingApproval, S::Failed),
        (S::AwaitingApproval, S::Skipped),
        (S::AwaitingApproval, S::Cancelled),
        (S::AwaitingApproval, S::Pending),
        (S::Running, S::Running),
        (S::Running, S::Streaming),
        (S::Running, S::Retrying),
        (S::Running, S::Completed),
        (S::Running, S::Failed),
        (S::Running, S::Skipped),
        (S::Running, S::TimedOut),
        (S::Running, S::Cancelled),
        (S::Running, S::AwaitingApproval),
        (S::Running, S::Pending),
        (S::Streaming, S::Running),
        (S::Streaming, S::Completed),
        (S::Streaming, S::Retrying),
        (S::Streaming, S::Cancelled),
        (S::Retrying, S::Running),
        (S::Retrying, S::Queued),
        (S::Retrying, S::Cancelled),
        (S::Completed, S::Pending),
        (S::Failed, S::Pending),
        (S::Skipped, S::Pending),
        (S::Cancelled, S::Pending),
        (S::TimedOut, S::Pending),
    ]
};
