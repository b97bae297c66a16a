//! Clients: they start runs, resolve approvals, and send commands.

use super::Scene;
use crate::fault::Fault;
use crate::random::{SeededRandom, halves};
use crate::world::Rule;
use serde_json::Map;
use sluice_core::id::{ApprovalId, RunId};
use sluice_core::journal::event::ApprovalSource;
use sluice_core::port::store::{MailboxMessage, Store as _};
use sluice_core::run::command::{Command, Decision, Resolve};
use sluice_core::run::state::Pause;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::error::StartError;
use sluice_engine::start::Start;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Approvers of a governed seed, with their roles.
const PEOPLE: [(&str, Option<&str>); 4] =
    [("ada", Some("lead")), ("dan", Some("lead")), ("bob", None), ("eve", None)];
/// Fewest runs of a seed, without children.
const RUNS_MIN: u64 = 20;

impl Scene {
    /// Spawns all clients. Returns those that start runs.
    pub(crate) fn clients(
        self: &Arc<Self>,
        chance: &mut SeededRandom,
        faults_ms: u64,
    ) -> Vec<JoinHandle<()>> {
        tokio::spawn(Arc::clone(self).people());
        tokio::spawn(Arc::clone(self).trouble());
        tokio::spawn(Arc::clone(self).readers());
        tokio::spawn(Arc::clone(self).operate());
        let runs = chance.between(RUNS_MIN, RUNS_MIN + 5);
        let runs = if self.world.rule == Rule::Thousand { RUNS_MIN } else { runs };
        let starts = (0..runs).map(|number| {
            let chance = SeededRandom::of(&[chance.next()]);
            tokio::spawn(Arc::clone(self).starter(chance, number, faults_ms))
        });
        starts.collect()
    }

    /// Starts one run, perhaps twice, and sends commands to it.
    async fn starter(self: Arc<Self>, mut chance: SeededRandom, number: u64, faults_ms: u64) {
        let wait_ms = chance.below(faults_ms / 2);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        let flow = chance.pick(&self.flows).clone();
        let mut start = Start::new(flow.stored, Map::new());
        start.children = flow.children;
        start.bring = flow.bring;
        start.default_agent = Some("edge".to_owned());
        start.key = Some(format!("start-{number}"));
        if self.operator.is_some() && number.is_multiple_of(2) {
            start.initiator = "ada".to_owned();
        }
        if self.world.strikes(Fault::StartTwice) {
            let (scene, start) = (Arc::clone(&self), start.clone());
            tokio::spawn(async move { scene.start(start).await });
        }
        let Some(run) = self.start(start).await else { return };
        let often = if self.world.rule == Rule::Thousand { 0 } else { chance.below(3) };
        for _ in 0..often {
            let wait_ms = chance.below(faults_ms / 2);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            self.interfere(&mut chance, run).await;
        }
    }

    /// Starts a run through any node, retrying until one succeeds.
    async fn start(&self, start: Start) -> Option<RunId> {
        loop {
            if let Some((engine, dead)) = self.world.anyone() {
                let asked = engine.start(start.clone());
                let asked = tokio::time::timeout(Duration::from_secs(60), asked);
                let answer = tokio::select! {
                    biased;
                    () = dead.cancelled() => None,
                    answer = asked => answer.ok(),
                };
                match answer {
                    Some(Ok(started)) => return Some(started.run),
                    Some(Err(
                        StartError::Store(_)
                        | StartError::Stopping
                        | StartError::Agent(_)
                        | StartError::Blocked { .. },
                    ))
                    | None => {}
                    Some(Err(error)) => {
                        self.world.fails(format!("a run can be started: {error}"));
                        return None;
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    async fn interfere(self: &Arc<Self>, chance: &mut SeededRandom, run: RunId) {
        let by = "operator".to_owned();
        let number = self.world.number();
        let key = format!("op-{number}");
        let command = match chance.below(10) {
            0 => Command::Cancel { by, reason: "enough".to_owned() },
            1 | 2 => Command::Pause { by },
            3 | 4 => Command::Unpause { by },
            5 | 6 => Command::Retry { by },
            7 => {
                if self.world.strikes(Fault::LetterUnreadable) {
                    let message = MailboxMessage { run, key, body: b"{\"v\":99}".to_vec() };
                    // The checkers see whether it arrived.
                    drop(self.store.post(message).await);
                }
                return;
            }
            _ => Command::Rewind { by, keep: self.keep(chance, run) },
        };
        if self.world.strikes(Fault::CommandTwice) {
            let (scene, command, key) = (Arc::clone(self), command.clone(), key.clone());
            tokio::spawn(async move { scene.world.command(run, command, &key).await });
        }
        self.world.command(run, command, &key).await;
    }

    /// Steps that were done at some earlier time.
    fn keep(&self, chance: &mut SeededRandom, run: RunId) -> BTreeSet<u32> {
        let journal = self.world.journal();
        let Some(track) = journal.tracks.get(&run) else { return BTreeSet::new() };
        let then = track.at(chance.below(track.run.version + 1));
        let done = |status| matches!(status, StepStatus::Completed | StepStatus::Skipped);
        let steps = (0u32..).zip(&then.steps).filter(|(_, state)| done(state.status()));
        steps.map(|(step, _)| step).collect()
    }

    /// Resolves approvals: some late, some only at the end.
    async fn people(self: Arc<Self>) {
        let mut seen = BTreeSet::new();
        loop {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let calm = !self.world.is_faulty();
            for (run, approval, source) in self.open_approvals() {
                let [high, low] = halves(approval.0);
                let mut chance = SeededRandom::of(&[self.world.seed, 5, high, low]);
                let never = chance.permille(250);
                if (never && !calm) || !seen.insert((approval, calm)) {
                    continue;
                }
                let wait_ms = if calm { 10 } else { chance.between(0, 12_000) };
                let resolve = resolve(&mut chance, approval, source);
                let more = if self.operator.is_some() { &PEOPLE[..] } else { &[] };
                for (by, role) in more {
                    let roles = role.iter().map(|role| (*role).to_owned()).collect();
                    let resolve = Resolve { by: (*by).to_owned(), roles, ..resolve.clone() };
                    let wait_ms = wait_ms + chance.below(3000);
                    tokio::spawn(Arc::clone(&self).answers(run, resolve, wait_ms));
                }
                if more.is_empty() {
                    tokio::spawn(Arc::clone(&self).answers(run, resolve, wait_ms));
                }
            }
            if calm {
                for run in self.paused() {
                    let command = Command::Unpause { by: "operator".to_owned() };
                    let key = format!("unpause-{}", self.world.number());
                    let scene = Arc::clone(&self);
                    tokio::spawn(async move { scene.world.command(run, command, &key).await });
                }
            }
        }
    }

    async fn answers(self: Arc<Self>, run: RunId, resolve: Resolve, wait_ms: u64) {
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        let key = format!("resolve:{}:{}", resolve.approval, resolve.by);
        let command = Command::Resolve(Box::new(resolve));
        if self.world.strikes(Fault::CommandTwice) {
            let (scene, command, key) = (Arc::clone(&self), command.clone(), key.clone());
            tokio::spawn(async move { scene.world.command(run, command, &key).await });
        }
        self.world.command(run, command, &key).await;
    }

    fn open_approvals(&self) -> Vec<(RunId, ApprovalId, ApprovalSource)> {
        let journal = self.world.journal();
        let open = journal.open().flat_map(|run| {
            let open = run.approvals.iter().filter(|(_, one)| one.resolution.is_none());
            open.map(|(id, one)| (run.id, *id, one.source))
        });
        open.collect()
    }

    fn paused(&self) -> Vec<RunId> {
        let journal = self.world.journal();
        let paused = journal
            .open()
            .filter(|run| run.status == RunStatus::Paused && run.pause == Some(Pause::Operator));
        paused.map(|run| run.id).collect()
    }

    /// Loads runs at random times: they must equal what was written.
    async fn readers(self: Arc<Self>) {
        while self.world.is_faulty() {
            let pause_ms = self.world.chance().between(500, 3000);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            let runs: Vec<RunId> = self.world.journal().tracks.keys().copied().collect();
            if runs.is_empty() {
                continue;
            }
            let run = *self.world.chance().pick(&runs);
            let Some((engine, dead)) = self.world.anyone() else { continue };
            let loaded = tokio::select! {
                biased;
                () = dead.cancelled() => None,
                loaded = engine.load(run) => loaded.ok(),
            };
            if let Some(loaded) = loaded {
                let checked = self.world.journal().compare(&loaded);
                self.world.holds(checked);
            }
        }
    }
}

fn resolve(chance: &mut SeededRandom, approval: ApprovalId, source: ApprovalSource) -> Resolve {
    let decision = match source {
        ApprovalSource::Escalation => {
            *chance.pick(&[Decision::Retry, Decision::Skip, Decision::Abort])
        }
        ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool
            if chance.permille(250) =>
        {
            Decision::Reject
        }
        ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool => Decision::Approve,
    };
    Resolve {
        approval,
        decision,
        by: "ada".to_owned(),
        comment: Some("because".to_owned()),
        values: Map::new(),
        roles: Vec::new(),
        constraints: None,
    }
}
