//! After the faults: every run must end, and nothing may be left behind.

use super::{FIT, SEAL_KEY, Scene};
use crate::random::SeededRandom;
use crate::world::Rule;
use sluice_core::cost::{self, Part, Spend};
use sluice_core::evidence::key::Signer;
use sluice_core::evidence::verify::{Verifier, needs};
use sluice_core::id::RunId;
use sluice_core::port::inspect::Inspect as _;
use sluice_core::port::ledger::{Counter, Ledger as _};
use sluice_core::port::store::{Filter, Mailboxes, RunRow, Store as _};
use sluice_core::run::projection::project;
use sluice_core::run::recount::Recount;
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_engine::examine::Examiner;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long all runs may take to end once faults have stopped.
const CALM_MS: u64 = 20 * 60 * 1000;
/// How late a timer may be, beyond lease and sweep: calls that ignore cancellation, and a
/// lack of permits, delay it too.
const SLACK_MS: u64 = 45_000;

impl Scene {
    /// Ends all faults, and restarts every node.
    pub(crate) async fn stop_faults(&self, chance: &mut SeededRandom) {
        self.world.calm();
        self.reopen().await;
        for process in 0..self.configs.len() {
            // The crash handler restarts a crashed node.
            while self.world.slots()[process].engine.is_none() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        if chance.permille(200) {
            self.restart(0).await;
        }
    }

    /// Waits until every run has ended, and checks what is left.
    pub(crate) async fn settle(&self, mut starts: Vec<JoinHandle<()>>) {
        let began_ms = self.world.elapsed_ms();
        let lease_ms = self.configs.iter().map(|one| one.lease_ms + one.sweep_ms).max();
        let patience_ms = lease_ms.unwrap_or_default() + SLACK_MS;
        loop {
            tokio::time::sleep(Duration::from_millis(1000)).await;
            starts.retain(|start| !start.is_finished());
            let waited_ms = self.world.elapsed_ms() - began_ms;
            if waited_ms > patience_ms {
                self.overdue(patience_ms).await;
            }
            let open: Vec<RunId> = self.world.journal().open().map(|run| run.id).collect();
            if open.is_empty() && starts.is_empty() {
                break;
            }
            if waited_ms > CALM_MS {
                return self.stuck(&open).await;
            }
        }
        // Messages to ended runs have been read by then.
        let rest_ms = patience_ms.max(15_000);
        tokio::time::sleep(Duration::from_millis(rest_ms)).await;
        self.rest().await;
    }

    async fn overdue(&self, patience_ms: u64) {
        let now_ms = self.world.now_ms();
        let late = self.world.journal().open().find_map(|run| {
            let due_ms = run.next_due_ms().filter(|due_ms| due_ms + patience_ms < now_ms)?;
            Some((run.id, now_ms - due_ms))
        });
        if let Some((id, late_ms)) = late {
            let about = self.about(id).await;
            self.world.fails(format!("{id}: a timer is {late_ms} ms late\n{about}"));
        }
    }

    async fn stuck(&self, open: &[RunId]) {
        let Some(id) = open.first() else {
            return self.world.fails("every start is answered".to_owned());
        };
        let about = self.about(*id).await;
        self.world.fails(format!("{id} comes to an end\n{about}"));
    }

    /// Details of a run, for failure reports.
    pub(crate) async fn about(&self, run: RunId) -> String {
        let filter = Filter { run: Some(run), limit: 1, ..Filter::default() };
        let rows = self.store.list(filter).await.expect("memory answers");
        let messages = self.store.messages(Mailboxes::Run(run)).await.expect("memory answers");
        let keys: Vec<&str> = messages.iter().map(|one| one.message.key.as_str()).collect();
        let nodes: Vec<String> = (self.world.slots().iter().zip(&self.configs))
            .map(|(slot, config)| match &slot.engine {
                Some(engine) => format!("{} {} {config:?}", engine.node(), engine.residents()),
                None => format!("gone {config:?}"),
            })
            .collect();
        let (nodes, tail) = (nodes.join("\n"), self.world.journal().tail(run));
        let mut open = String::new();
        for run in self.world.journal().open() {
            let (id, status, due) = (run.id, run.status, run.next_due_ms());
            open.push_str(&format!("{id} {status} {due:?} {:?}\n", run.due().collect::<Vec<_>>()));
        }
        let nodes = format!("{}\n{open}{nodes}", self.world.now_ms());
        format!("{rows:?}\nunread: {keys:?}\n{nodes}\n{tail}")
    }

    /// Nothing is left in memory or in mailboxes, and the stored state is right.
    async fn rest(&self) {
        let engines: Vec<_> = self.world.slots().iter().map(|slot| slot.engine.clone()).collect();
        for engine in engines.into_iter().flatten() {
            let residents = engine.residents();
            if residents != 0 {
                let open = self.store.list(Filter::default()).await.expect("memory answers");
                let open: Vec<_> = open.iter().filter(|row| row.owner.is_some()).collect();
                return self.world.fails(format!(
                    "memory is given back: {residents} are left\n{} {:?}\n{open:?}",
                    engine.node(),
                    self.configs
                ));
            }
            let poisoned = engine.poisoned();
            if let Some((run, why)) = poisoned.first_key_value() {
                return self.world.fails(format!("{run} can be read: {why}"));
            }
            let runs: Vec<RunId> = self.world.journal().tracks.keys().copied().collect();
            for run in runs {
                match engine.load(run).await {
                    Ok(loaded) => {
                        let checked = self.world.journal().compare(&loaded);
                        self.world.holds(checked);
                    }
                    Err(error) => self.world.fails(format!("{run} can be read: {error}")),
                }
            }
        }
        let checked = self.world.journal().families();
        self.world.holds(checked);
        let checked = self.world.journal().ledger.rests();
        self.world.holds(checked);
        self.counters().await;
        let admissions = self.world.journal().ledger.admissions;
        if self.world.rule == Rule::Thousand && admissions != FIT {
            self.world.fails(format!("exactly what fits is sent: {admissions} of {FIT}"));
        }
        self.rows().await;
        self.evidence().await;
    }

    /// All hashes and seals are valid after all crashes, every row follows from the
    /// journals, and everything is sealed.
    async fn evidence(&self) {
        let verifier = Verifier::new([Signer::new(&SEAL_KEY).public()]);
        let verifier = Arc::new(Mutex::new(Some(verifier)));
        let shown = Arc::clone(&verifier);
        let each = move |row| {
            if let Some(verifier) = shown.lock().expect("rows are shown in turn").as_mut() {
                verifier.row(row);
            }
        };
        self.store.inspect(Box::new(each)).await.expect("memory answers");
        let verifier = verifier.lock().expect("rows are shown in turn").take();
        let mut verifier = verifier.expect("it is taken once");
        let (examiner, mut counts) = (Examiner::default(), Recount::default());
        for row in verifier.runs() {
            let frames = self.store.examine(row.run, 0, usize::MAX).await.expect("memory answers");
            for examined in frames {
                let mut blobs = BTreeMap::new();
                for hash in needs(&examined.frame).unwrap_or_default() {
                    let blob = self.store.blob(hash).await.expect("memory answers");
                    blobs.extend(blob.map(|body| (hash, body)));
                }
                verifier.frame(row.run, &examined, &blobs);
            }
            let folded = examiner.fold(&self.store, row.run, row.version, &mut counts).await;
            let folded = folded.map_err(|error| error.to_string());
            verifier.folded(&row, folded.as_ref().map_err(String::as_str));
        }
        verifier.counted(&counts);
        let report = verifier.finish();
        if let Some(finding) = report.findings.first() {
            self.world.fails(format!("the evidence holds: {finding}"));
        }
        let unsealed = self.store.unsealed(1).await.expect("memory answers");
        if !unsealed.heads.is_empty() || report.unhashed > 0 {
            self.world.fails(format!("everything is sealed: {unsealed:?}"));
        }
    }

    /// The store's counters agree with the journals.
    async fn counters(&self) {
        let expected = self.world.journal().ledger.counters();
        let names = expected.iter().map(|(name, _)| Counter::plain(name.clone())).collect();
        let counts = self.store.counts(names).await.expect("memory answers");
        for ((name, expected), count) in expected.into_iter().zip(counts) {
            if expected != count {
                let what = format!("{name} is {count}, not {expected}");
                self.world.fails(format!("counters agree with the journals: {what}"));
            }
        }
        self.booked().await;
    }

    /// The recorded spend agrees with the runs.
    async fn booked(&self) {
        let (from, to) = cost::range(0, u64::MAX / 2);
        let counters = self.store.counters(from, to, usize::MAX).await.expect("memory answers");
        let cost = |name: &str| Spend::parse(name).is_some_and(|one| one.part == Part::Cost);
        let booked = counters.iter().filter(|one| cost(&one.name)).map(|one| one.count);
        let booked: i64 = booked.sum();
        let own = {
            let journal = self.world.journal();
            let own = |run: &Run| project(run).cost.micro_cents();
            journal.tracks.values().map(|track| own(&track.run)).sum::<u64>()
        };
        if u64::try_from(booked) != Ok(own) {
            let what = format!("what work costs is {booked}, not {own}");
            self.world.fails(format!("counters agree with the journals: {what}"));
        }
    }

    async fn rows(&self) {
        let filter = Filter { limit: 1000, ..Filter::default() };
        let rows = self.store.list(filter).await.expect("memory answers");
        let statuses: BTreeMap<RunId, RunStatus> = {
            let journal = self.world.journal();
            journal.tracks.iter().map(|(id, track)| (*id, track.run.status)).collect()
        };
        if rows.len() != statuses.len() {
            self.world.fails("every run is listed".to_owned());
        }
        // An ended run may still have an owner that missed its answer: harmless.
        let right = |row: &RunRow| statuses.get(&row.run) == Some(&row.status);
        if let Some(row) = rows.iter().find(|row| !right(row)) {
            let about = self.about(row.run).await;
            self.world.fails(format!("{} is listed as it is\n{about}", row.run));
        }
        for run in statuses.into_keys() {
            let messages = self.store.messages(Mailboxes::Run(run)).await.expect("memory answers");
            if let Some(message) = messages.first() {
                let key = &message.message.key;
                self.world.fails(format!("{run}: a message is read: {key}"));
            }
        }
    }
}
