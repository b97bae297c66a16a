//! Invariants of journals, checked after every append.
//!
//! The checkers keep their own fold of every journal. They see the calls to the store and
//! to adapters, but nothing of the engine.

mod caps;
mod grant;
mod ledger;
mod step;
mod table;

use crate::moderation::ModerationChecker;
use crate::tally::Tally;
use grant::Grants;
use ledger::Ledger;
use sluice_core::hash::Hash;
use sluice_core::id::{ApprovalId, RunId};
use sluice_core::journal::chain::{Chain, Link};
use sluice_core::journal::envelope::{Subject, envelopes};
use sluice_core::journal::event::{Event, ParentStep, Path, StepAt, StepEvent};
use sluice_core::journal::wire;
use sluice_core::port::adapter::Request;
use sluice_core::port::store::{Append, Frame, MessageId, NodeId, ReadMessage, Received};
use sluice_core::run::definition::Definition;
use sluice_core::run::snapshot;
use sluice_core::run::state::{Run, StepState};
use sluice_core::status::RunStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use step::Steps;

/// Everything that was appended.
pub(crate) struct Journal {
    pub(crate) definitions: BTreeMap<Hash, Arc<Definition>>,
    pub(crate) tracks: BTreeMap<RunId, Track>,
    /// Newest epoch of each run that was granted to a node.
    epochs: BTreeMap<RunId, u64>,
    /// Runs by idempotency key.
    keys: BTreeMap<String, RunId>,
    messages: BTreeMap<MessageId, (RunId, String)>,
    /// Messages that were read, by key, and whether they led to events.
    read: BTreeMap<(RunId, String), (MessageId, bool)>,
    executed: BTreeSet<(RunId, String, u32)>,
    /// The start that each idempotency key belongs to.
    idempotency: BTreeMap<String, (RunId, String, u32, u32)>,
    /// Children that some journal records as started.
    children: BTreeSet<RunId>,
    /// What each dispatch was allowed for.
    allowed: BTreeMap<(RunId, String, u32), String>,
    pub(crate) ledger: Ledger,
    /// Texts that the moderator has cleared.
    pub(crate) judged: ModerationChecker,
    digest: Hash,
}

/// The journal of one run.
pub(crate) struct Track {
    pub(crate) run: Run,
    pub(crate) events: Vec<(Event, u64)>,
    /// Hash of each event.
    hashes: Vec<Hash>,
    /// The node that wrote under each epoch.
    writers: BTreeMap<u64, NodeId>,
    steps: Steps,
    grants: Grants,
    /// Children whose results the parent has accepted.
    heard: BTreeSet<RunId>,
    asked: BTreeSet<ApprovalId>,
}

/// An append as the store has it.
fn stored(append: &Append) -> Frame {
    Frame {
        first: append.after + 1,
        count: append.count,
        body: append.body.clone(),
        beside: append.beside.clone(),
        chain: Vec::new(),
    }
}

/// Hash of an append's last event; checks the hashes of all its events.
fn linked(append: &Append, tip: Hash) -> Result<Hash, String> {
    let mut link = Link { run: append.run, next: append.after + 1, tip };
    let stored = stored(append);
    let frame = wire::whole(&stored).map_err(|error| error.to_string())?;
    let mut hashes = Chain::new(&mut link);
    let mut chain = Vec::new();
    for event in &frame.events {
        let committed = event.commitment().ok_or("every event is committed to")?;
        chain.extend(hashes.add(event.kind, frame.at_ms, committed).0);
    }
    if chain != append.chain {
        return Err("events are chained".into());
    }
    Ok(link.tip)
}

impl Default for Journal {
    fn default() -> Journal {
        Journal {
            definitions: BTreeMap::new(),
            tracks: BTreeMap::new(),
            epochs: BTreeMap::new(),
            keys: BTreeMap::new(),
            messages: BTreeMap::new(),
            read: BTreeMap::new(),
            executed: BTreeSet::new(),
            idempotency: BTreeMap::new(),
            children: BTreeSet::new(),
            allowed: BTreeMap::new(),
            ledger: Ledger::default(),
            judged: ModerationChecker::default(),
            digest: Hash::of(b""),
        }
    }
}

impl Journal {
    /// A node was granted a run.
    pub(crate) fn owned(&mut self, run: RunId, epoch: u64) {
        let newest = self.epochs.entry(run).or_default();
        *newest = (*newest).max(epoch);
    }

    pub(crate) fn received(&mut self, messages: &[Received]) {
        for one in messages {
            self.messages.insert(one.id, (one.message.run, one.message.key.clone()));
        }
    }

    pub(crate) fn find(&self, run: RunId, step: &str) -> Option<StepAt> {
        self.tracks.get(&run)?.run.find(step)
    }

    /// Number of a step's last dispatch.
    pub(crate) fn dispatched(&self, run: RunId, at: StepAt) -> u32 {
        self.tracks.get(&run).map_or(0, |track| track.steps.dispatched(at))
    }

    /// The run, if this append is the first one of a new owner.
    pub(crate) fn taken_over(&self, append: &Append) -> Option<&Run> {
        let track = self.tracks.get(&append.run)?;
        (!track.writers.contains_key(&append.epoch)).then_some(&track.run)
    }

    /// The store acknowledged an append, with the resulting counters and the time of its
    /// clock.
    pub(crate) fn appended(
        &mut self,
        append: &Append,
        counts: &[i64],
        now_ms: u64,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let run = append.run;
        let mut written = self.digest.0.to_vec();
        written.extend(run.0.to_be_bytes());
        written.extend(append.epoch.to_be_bytes());
        written.extend(&append.body);
        self.digest = Hash::of(&written);
        let about = |what: String| format!("{run} after event {}: {what}", append.after);
        self.create(append, tally).map_err(about)?;
        self.owner(append).map_err(about)?;
        self.messages_read(append).map_err(about)?;
        tally.snapshots += u64::from(append.snapshot.is_some());
        if append.count == 0 {
            return Ok(());
        }
        let track = self.tracks.get_mut(&run).ok_or_else(|| about("it was not created".into()))?;
        if append.after != track.run.version {
            let version = track.run.version;
            return Err(about(format!("ids are dense: the journal ends at {version}")));
        }
        let blobs = append.blobs.iter().map(|blob| (blob.hash, blob.body.clone())).collect();
        let plan = Arc::clone(&track.run.definition);
        let decoded = wire::decode(&append.body, Some(&plan.plan), &blobs);
        let decoded = decoded.map_err(|error| about(format!("a frame decodes: {error}")))?;
        if decoded.events.len() != append.count as usize {
            return Err(about("a frame holds as many events as it says".into()));
        }
        let tip = linked(append, track.run.tip).map_err(about)?;
        if !append.beside.is_empty() {
            let subject = Subject {
                run,
                workflow: "",
                registered: false,
                definition_hash: "",
                trace_id: "",
                graph: Some(&plan.plan.graph),
            };
            let seen = envelopes(subject, &stored(append), &blobs);
            let seen = seen.map_err(|error| about(format!("a frame is shown: {error}")))?;
            self.judged.shown(&track.run, seen).map_err(about)?;
        }
        for event in decoded.events {
            let id = track.run.version + 1;
            let about = |what: String| format!("{run} event {id} {}: {what}", event.name());
            let before = track.events.last().map(|(event, _)| event);
            let asks = self.ledger.asks;
            track.grants.event(&track.run, &event, before, asks, tally).map_err(about)?;
            self.ledger.event(&track.run, &event, before, tally).map_err(about)?;
            self.judged.event(&track.run, &event).map_err(about)?;
            if let Event::Step(at, StepEvent::Started(started)) = &event
                && let Some(digest) = &started.digest
            {
                let key = (run, track.run.name(*at), started.dispatch_no);
                self.allowed.insert(key, digest.clone());
            }
            track.event(&event, decoded.at_ms, tally).map_err(about)?;
            if let Event::Step(_, StepEvent::Started(started)) = &event
                && let Path::Child(child) = started.path
                && !self.children.insert(child)
            {
                return Err(about("a child belongs to one dispatch".into()));
            }
            track.events.push((event, decoded.at_ms));
        }
        let track = self.tracks.get_mut(&run).expect("it was there before");
        track.run.tip = tip;
        let (hashes, _) = append.chain.as_chunks::<32>();
        track.hashes.extend(hashes.iter().map(|hash| Hash(*hash)));
        self.ledger.appended(&append.guards, counts, now_ms).map_err(about)?;
        let track = &self.tracks[&run];
        track.settled().map_err(about)
    }

    fn create(&mut self, append: &Append, tally: &mut Tally) -> Result<(), String> {
        let Some(create) = &append.create else { return Ok(()) };
        if self.tracks.contains_key(&append.run) {
            return Err("a run is created once".into());
        }
        if let Some(key) = &create.key
            && let Some(other) = self.keys.insert(key.key.clone(), append.run)
        {
            return Err(format!("a key starts one run: {} started {other}", key.key));
        }
        let blobs = append.blobs.iter().map(|blob| (blob.hash, blob.body.clone())).collect();
        let started = wire::started(&append.body, &blobs).map_err(|error| error.to_string())?;
        if let Some(ParentStep { run: parent, step }) = &started.parent {
            let known = self.children.contains(&append.run);
            if !known || !self.tracks.contains_key(parent) {
                return Err(format!(
                    "log before dispatch: `{step}` of {parent} names no such child"
                ));
            }
        }
        let hash = started.definition.ok_or("a run names its definition")?;
        let definition = self.definitions.get(&hash).ok_or("the definition is known")?;
        let run = Run::new(append.run, Arc::clone(definition), Arc::new(started));
        self.owned(append.run, append.epoch);
        tally.runs += 1;
        self.tracks.insert(
            append.run,
            Track {
                run,
                events: Vec::new(),
                hashes: Vec::new(),
                writers: BTreeMap::new(),
                steps: Steps::default(),
                grants: Grants::default(),
                heard: BTreeSet::new(),
                asked: BTreeSet::new(),
            },
        );
        Ok(())
    }

    fn owner(&mut self, append: &Append) -> Result<(), String> {
        let newest = self.epochs.get(&append.run).copied().unwrap_or_default();
        if append.epoch < newest {
            let epoch = append.epoch;
            return Err(format!("only the owner writes: epoch {epoch} after {newest} was granted"));
        }
        let Some(track) = self.tracks.get_mut(&append.run) else { return Ok(()) };
        let writer = *track.writers.entry(append.epoch).or_insert(append.node);
        if writer != append.node {
            return Err(format!("one node writes under epoch {}", append.epoch));
        }
        Ok(())
    }

    fn messages_read(&mut self, append: &Append) -> Result<(), String> {
        for ReadMessage { id, .. } in &append.read {
            let Some((run, key)) = self.messages.get(id) else { continue };
            // Marking a message that led to nothing as read may be repeated.
            let now = (*id, append.count > 0);
            let before = self.read.insert((*run, key.clone()), now);
            if before.is_some_and(|before| before.0 != *id || before.1) {
                return Err(format!("a message is applied once: {key}"));
            }
        }
        Ok(())
    }

    /// An adapter was called.
    pub(crate) fn executes(&mut self, request: &Request) -> Result<(), String> {
        let Request { run, step, dispatch_no, .. } = request;
        let about = |what: &str| format!("{run} `{step}` dispatch {dispatch_no}: {what}");
        let track = self.tracks.get(run).ok_or_else(|| about("log before dispatch: no run"))?;
        let at = place(&track.run, step).ok_or_else(|| about("there is such a step"))?;
        if track.steps.dispatched(at) < *dispatch_no {
            return Err(about("log before dispatch: the journal does not have it"));
        }
        let allowed = self.allowed.get(&(*run, step.clone(), *dispatch_no));
        if allowed != Some(&request.action_digest) {
            return Err(about("what is sent is what was allowed"));
        }
        self.judged.executes(&track.run, at, request).map_err(|what| about(&what))?;
        self.ledger.begins(request);
        if !self.executed.insert((*run, step.clone(), *dispatch_no)) {
            return Err(about("a dispatch is sent once"));
        }
        // A rewound step may have other instances, or none; their dispatch numbers
        // continue from these.
        let current =
            |state: &StepState| state.dispatch_no == *dispatch_no && state.status().is_dispatched();
        if track.run.get(at).is_some_and(current) {
            let generation = track.run.steps[at.step as usize].generation;
            let purpose = (*run, step.clone(), generation, request.attempt);
            let known = self.idempotency.entry(request.idempotency_key.clone());
            if *known.or_insert_with(|| purpose.clone()) != purpose {
                return Err(about("an idempotency key is for one attempt"));
            }
        }
        Ok(())
    }

    /// Every end of a child reached its parent exactly once.
    pub(crate) fn families(&self) -> Result<(), String> {
        for (id, track) in &self.tracks {
            let Some(ParentStep { run: parent, .. }) = &track.run.started.parent else { continue };
            let ends = track.events.iter().filter(|(event, _)| {
                matches!(
                    event,
                    Event::RunCompleted { .. }
                        | Event::RunFailed { .. }
                        | Event::RunCancelled { .. }
                        | Event::RunTimedOut { .. }
                )
            });
            let prefix = format!("child:{id}:");
            let first = (*parent, prefix.clone());
            let heard = self
                .read
                .range(first..)
                .take_while(|((run, key), _)| run == parent && key.starts_with(&prefix));
            // A child that this node could not start, but another node did, ended at 0.
            // Waiting for approval, or resuming, is not an end.
            let others = [":0", ":paused", ":resumed"];
            let is_end = |key: &str| !others.iter().any(|other| key.ends_with(other));
            let heard = heard.filter(|((_, key), _)| is_end(key));
            let (ends, heard) = (ends.count(), heard.count());
            if ends != heard {
                return Err(format!("{parent} received {heard} of {ends} ends of {id}"));
            }
        }
        Ok(())
    }

    /// Runs that have not ended.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Run> {
        self.tracks
            .values()
            .map(|track| &track.run)
            .filter(|run| !run.status.is_terminal() || run.recovers_at_ms().is_some())
    }

    /// Checks that a loaded run equals the fold of its journal.
    pub(crate) fn compare(&self, loaded: &Run) -> Result<(), String> {
        let track = self.tracks.get(&loaded.id).ok_or("a loaded run was created")?;
        let folded = track.at(loaded.version);
        let same = snapshot::encode(loaded) == snapshot::encode(&folded)
            && loaded.next_due_ms() == folded.next_due_ms()
            && loaded.is_parked() == folded.is_parked()
            && loaded.due().eq(folded.due());
        if same {
            return Ok(());
        }
        let (id, version) = (loaded.id, loaded.version);
        Err(format!("{id} at {version}: a loaded run equals the fold of its journal"))
    }

    /// Digest of all appends, in order.
    pub(crate) fn digest(&self) -> Hash {
        self.digest
    }

    /// End of a run's journal, for failure reports.
    pub(crate) fn tail(&self, run: RunId) -> String {
        let Some(track) = self.tracks.get(&run) else { return String::new() };
        let skipped = track.events.len().saturating_sub(40);
        let lines = track.events.iter().enumerate().skip(skipped).map(|(index, (event, at_ms))| {
            let text = format!("{event:?}");
            let text: String = text.chars().take(230).collect();
            format!("  {} @{at_ms} {text}\n", index + 1)
        });
        lines.collect()
    }
}

impl Track {
    /// Folds a run up to the event `version`.
    pub(crate) fn at(&self, version: u64) -> Run {
        let started = Arc::clone(&self.run.started);
        let mut run = Run::new(self.run.id, Arc::clone(&self.run.definition), started);
        let count = usize::try_from(version).expect("journals are short");
        for (event, at_ms) in self.events.iter().take(count) {
            run.evolve(event, *at_ms);
        }
        run.tip = self.hashes.iter().take(count).next_back().copied().unwrap_or(run.tip);
        run
    }

    fn event(&mut self, event: &Event, at_ms: u64, tally: &mut Tally) -> Result<(), String> {
        tally.events += 1;
        let before = self.run.status;
        if let Event::Step(at, node) = event {
            self.steps.before(&self.run, *at, node)?;
            self.approval(node)?;
            self.hears(node)?;
            if let StepEvent::ModerationFlagged { phase, decision } = node {
                let outcome = decision["outcome"].as_str().unwrap_or_default();
                tally.reach(format!("moderation {phase} {outcome}"));
            }
        }
        let was = match event {
            Event::Step(at, _) => self.run.get(*at).map(StepState::status),
            _ => None,
        };
        self.run.evolve(event, at_ms);
        let after = self.run.status;
        if before.is_terminal() && !reopens(event) && !is_about_money(event) {
            return Err(format!("nothing follows the end: it was {before}"));
        }
        let allowed = self.run.definition.plan.recovery.as_ref().map_or(0, |one| one.max);
        match event {
            Event::RunStatusChanged { reason, .. } if reason == "recovery" => {
                tally.reach("recovers");
            }
            Event::RunRecovered if self.run.recoveries > 0 => tally.reach("recovered by itself"),
            _ => {}
        }
        if self.run.recoveries > allowed {
            return Err(format!("it recovers by itself more than {allowed} times"));
        }
        if before != after {
            *tally.run_statuses.entry(after).or_default() += 1;
            if !table::run_may(before, after) {
                return Err(format!("a run goes from {before} to {after}"));
            }
        }
        if let (Event::Step(at, node), Some(was)) = (event, was) {
            let now = self.run.state(*at).status();
            let started = matches!(node, StepEvent::Started(_));
            if was != now || started {
                *tally.step_statuses.entry(now).or_default() += 1;
                *tally.moves.entry((was, now)).or_default() += 1;
                if !table::step_may(was, now) {
                    let name = self.run.name(*at);
                    return Err(format!("`{name}` goes from {was} to {now}"));
                }
            }
            self.steps.after(&self.run, *at, node)?;
        }
        Ok(())
    }

    fn approval(&mut self, node: &StepEvent) -> Result<(), String> {
        match node {
            StepEvent::ApprovalRequested(asked) if !self.asked.insert(asked.approval) => {
                Err("an approval is requested once".into())
            }
            StepEvent::ApprovalResolved(resolved) => {
                let open = self.run.approvals.get(&resolved.approval);
                let open = open.is_some_and(|one| one.resolution.is_none());
                if open { Ok(()) } else { Err("an approval is resolved once".into()) }
            }
            _ => Ok(()),
        }
    }

    fn hears(&mut self, node: &StepEvent) -> Result<(), String> {
        if let StepEvent::Provenance(one) = node
            && one.source_output_path == "outputs"
            && let Some(child) = one.source_run
            && !self.heard.insert(child)
        {
            return Err(format!("the end of {child} is received once"));
        }
        Ok(())
    }

    /// Invariants between appends.
    fn settled(&self) -> Result<(), String> {
        let run = &self.run;
        let flies = |path: Option<Path>| path != Some(Path::FanOut);
        let in_flight =
            run.all().filter(|(_, one)| one.status().is_dispatched() && flies(one.path()));
        let bound = run.definition.plan.max_parallel as usize;
        let in_flight = in_flight.count();
        if in_flight > bound {
            return Err(format!("at most {bound} steps are in flight: {in_flight} are"));
        }
        for (step, whole) in run.definition.plan.steps.iter().zip(&run.steps) {
            let bound = step.for_each.as_ref().and_then(|each| each.max_parallel);
            if let (Some(bound), Some(fan_out)) = (bound, &whole.fan_out) {
                let busy = fan_out.instances.iter().filter(|one| one.status().is_dispatched());
                if busy.count() > bound as usize {
                    return Err(format!(
                        "at most {bound} instances of `{}` are in flight",
                        step.id
                    ));
                }
            }
        }
        let stalled = |(code, _): &(String, String)| code == "workflow_stalled";
        let error = run.end.as_ref().and_then(|end| end.error.as_ref());
        if run.status.is_terminal() && !error.is_some_and(stalled) {
            let mut open = run.all().filter(|(_, one)| !one.status().is_settled());
            if let Some((at, one)) = open.next() {
                return Err(format!("it ended with `{}` {}", run.name(at), one.status()));
            }
        }
        Ok(())
    }
}

/// The step of this name; an instance need not exist any more.
fn place(run: &Run, name: &str) -> Option<StepAt> {
    let (id, item) = match name.strip_suffix(']').and_then(|name| name.rsplit_once('[')) {
        Some((id, item)) => (id, Some(item.parse().ok()?)),
        None => (name, None),
    };
    Some(StepAt { item, ..run.find(id)? })
}

/// The cost of a run may become known after its end.
fn is_about_money(event: &Event) -> bool {
    matches!(event, Event::BudgetAlert(_) | Event::Step(_, StepEvent::Reconciled { .. }))
}

fn reopens(event: &Event) -> bool {
    match event {
        // A run that would recover by itself is prevented from it.
        Event::RunStatusChanged { status: RunStatus::Cancelling, .. } => true,
        Event::RunStatusChanged { reason, .. } => {
            matches!(reason.as_str(), "rewind" | "retry" | "recovery")
        }
        _ => false,
    }
}
