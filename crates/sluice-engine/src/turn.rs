//! One turn of a loaded run: all its pending inputs become one append.
//!
//! INVARIANT: a run changes nowhere else.

use crate::engine::Inner;
use crate::loaded_run::{LoadedRun, fold};
use crate::mailbox::{Mail, Reply};
use crate::observe::Stopwatch;
use sluice_core::id::{Entropy, RunId};
use sluice_core::journal::chain::Link;
use sluice_core::journal::event::{Event, StepEvent};
use sluice_core::journal::wire::{self, Encoded};
use sluice_core::port::ledger::Counter;
use sluice_core::port::store::{
    Append, Appended, Frame, Guard, Head, MailboxMessage, Ownership, ReadMessage, StoreError,
};
use sluice_core::run::command::{Command, Dispatching, Given, Refusal};
use sluice_core::run::decide::{Decided, Turn};
use sluice_core::run::state::Run;
use sluice_core::run::{message, snapshot};
use sluice_core::status::RunStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A command for a turn.
pub(crate) struct TurnInput {
    pub(crate) command: Command,
    pub(crate) reply: Option<Reply>,
    /// The durable message it came from.
    pub(crate) message: Option<ReadMessage>,
}

impl TurnInput {
    pub(crate) fn new(command: Command) -> TurnInput {
        TurnInput { command, reply: None, message: None }
    }
}

/// Whether this node still owns the run after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnResult {
    Kept,
    /// The append released it: the run is parked or has ended.
    Released,
    /// Another node owns it, or the loaded state is stale: drop it.
    Lost,
}

/// Result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitResult {
    Written,
    /// A counter would have passed its limit. Nothing was written.
    Refused,
    /// It is durable, but another owner has continued the run since.
    WrittenButLost,
    /// Nothing was written, and a retry would not help.
    NotWritten,
}

/// Whether every child run that a run has started is known to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildStarts {
    Confirmed,
    /// One must still be started: until then the run needs an owner.
    Unconfirmed,
}

/// A snapshot is due only after this many events.
const SNAPSHOT_EVENTS_MIN: u64 = 256;
/// A snapshot is due when the events after the last one take more than its size divided by
/// this. Loading a run then reads at most half as much again as its snapshot, and writing
/// snapshots takes at most twice the bytes of the journal.
const SNAPSHOT_TO_TAIL: usize = 2;
/// After this many refusals a turn dispatches nothing and leaves that to the next turn.
const REFUSALS_MAX: u32 = 8;
/// First and longest delay between attempts at a failing store.
const RETRY_MS: (u64, u64) = (50, 2000);

impl LoadedRun {
    /// Decides all `inputs`, makes the result durable, then replies. If a cached counter
    /// turns out to be wrong, the run decides again.
    pub(crate) async fn turn(&mut self, mut inputs: Vec<TurnInput>) -> TurnResult {
        let unreadable = std::mem::take(&mut self.unreadable);
        self.refresh_rules_for(&inputs).await;
        self.refresh_history().await;
        let mut dispatching = self.dispatching;
        let mut refusals = 0;
        loop {
            let now_ms = self.engine.clock.now_ms();
            let mut watch = self.engine.observer.is_some().then(Stopwatch::start);
            self.flush_before_deadline(&mut inputs, now_ms);
            let status = self.run.status;
            let (decided, answers) = self.decide(&inputs, now_ms, dispatching);
            let mut read: Vec<ReadMessage> =
                inputs.iter().filter_map(|input| input.message.clone()).collect();
            read.extend(unreadable.iter().cloned());
            let is_awaited = inputs.iter().any(|input| input.reply.is_some());
            if decided.events.is_empty() && read.is_empty() && !is_awaited {
                self.engine.trust.register_waiter(&self.run);
                return TurnResult::Kept;
            }
            // Append even when every command was refused: the version check proves that
            // this node still owns the run.
            let (append, events) = self.append(decided, read, now_ms, status);
            let events = watch.is_some().then_some(events);
            let append = Arc::new(append);
            let ownership = append.head.as_ref().map_or(Ownership::Keep, |head| head.ownership);
            let recipients: Vec<_> = append.messages.iter().map(|message| message.run).collect();
            watch.iter_mut().for_each(Stopwatch::decided);
            let committed = self.commit(&append).await;
            match committed {
                CommitResult::NotWritten => return TurnResult::Lost,
                CommitResult::Refused => {
                    dispatching = match self.catch_up(dispatching, &append).await {
                        Some(dispatching) => dispatching,
                        None => return TurnResult::Lost,
                    };
                    refusals += 1;
                    if refusals >= REFUSALS_MAX && dispatching == Dispatching::Allowed {
                        // The next turn dispatches. A full mailbox leads to one anyway.
                        dispatching = Dispatching::Deferred;
                        let _ = self.handle.mailbox.try_send(Mail::CheckGates);
                    }
                    continue;
                }
                CommitResult::Written | CommitResult::WrittenButLost => {}
            }
            if let (Some(watch), Some(events)) = (watch, events) {
                self.engine.notify_observer(&self.run, &events, now_ms, &watch);
            }
            answer(inputs, answers);
            for run in recipients {
                self.engine.notify_messages(run);
            }
            if committed == CommitResult::WrittenButLost {
                return TurnResult::Lost;
            }
            self.engine.trust.register_waiter(&self.run);
            self.publish(ownership, || frame(Arc::unwrap_or_clone(append)));
            return if ownership == Ownership::Release {
                TurnResult::Released
            } else {
                TurnResult::Kept
            };
        }
    }

    /// Reads the newest rows before an assignment: it may name an agent that was registered
    /// a moment ago, and no guard of the append would notice older rows.
    async fn refresh_rules_for(&mut self, inputs: &[TurnInput]) {
        if !inputs.iter().any(|input| matches!(input.command, Command::Assign { .. })) {
            return;
        }
        let engine = Arc::clone(&self.engine);
        let rules = engine.trust.rules();
        let refresh = async move { engine.has_newer_rules(&rules).await };
        if let Err(error) = self.while_calling(refresh).await {
            tracing::warn!(run = %self.run.id, %error, "the rules cannot be read");
        }
    }

    /// Reads counters about the history of the run's agents that may be too high by now:
    /// entries that left their windows are still in the sum. A counter that is too low is found
    /// by a guard of the append.
    async fn refresh_history(&mut self) {
        let now_ms = self.engine.clock.now_ms();
        let counters = self.engine.trust.stale_history(&self.run, now_ms);
        if counters.is_empty() {
            return;
        }
        let engine = Arc::clone(&self.engine);
        let refresh = async move { engine.trust.refresh(&*engine.store, counters, now_ms).await };
        if let Err(error) = self.while_calling(refresh).await {
            tracing::warn!(run = %self.run.id, %error, "counters cannot be read");
        }
    }

    fn decide(
        &mut self,
        inputs: &[TurnInput],
        now_ms: u64,
        dispatching: Dispatching,
    ) -> (Decided, Vec<Result<(), Refusal>>) {
        let authority = self.engine.view(now_ms);
        let entropy = &mut *self.entropy;
        let given = Given { now_ms, entropy, dispatching, authority: &authority };
        let mut turn = Turn::new(&mut self.run, given);
        let mut answers = Vec::with_capacity(inputs.len());
        for input in inputs {
            answers.push(turn.apply(input.command.clone()));
        }
        (turn.finish(), answers)
    }

    /// After a refused append: refreshes counters and rules and reloads the run. Returns
    /// `None` if another owner has continued it.
    async fn catch_up(
        &mut self,
        dispatching: Dispatching,
        refused: &Append,
    ) -> Option<Dispatching> {
        let (counters, after) = (counters(&refused.guards), refused.after);
        let engine = Arc::clone(&self.engine);
        let now_ms = engine.clock.now_ms();
        let counts = async move { engine.trust.refresh(&*engine.store, counters, now_ms).await };
        if let Err(error) = self.while_calling(counts).await {
            // The refusal itself carried one counter; a stale one is refused again.
            tracing::warn!(run = %self.run.id, %error, "counters cannot be read");
        }
        let engine = Arc::clone(&self.engine);
        let mut dispatching = dispatching;
        let rules = self.while_calling(async move { engine.refresh_rules().await }).await;
        if let Err(error) = rules {
            // Decisions that need no rules still go on; the sweep reads the rules again.
            tracing::warn!(run = %self.run.id, %error, "the rules cannot be read");
            dispatching = Dispatching::Deferred;
        }
        let engine = Arc::clone(&self.engine);
        let run = self.run.id;
        let folded = self.while_calling(async move { fold(&engine, run).await }).await;
        match folded {
            // Another owner appended after our version.
            Ok(folded) if folded.run.version != after => None,
            Ok(folded) => {
                self.tail_events = folded.tail_events;
                self.tail_bytes = folded.tail_bytes;
                self.snapshot_bytes = folded.snapshot_bytes;
                self.run = folded.run;
                Some(dispatching)
            }
            Err(error) => {
                tracing::warn!(%run, %error, "the run cannot be reloaded");
                None
            }
        }
    }

    fn append(
        &mut self,
        decided: Decided,
        read: Vec<ReadMessage>,
        now_ms: u64,
        status_before: RunStatus,
    ) -> (Append, Vec<Event>) {
        let provenance_edges = self.run.provenance_edges(&decided.events);
        let encoded = encode(&mut self.run, &decided.events, now_ms, &mut *self.entropy);
        let Encoded { body, beside, blobs, chain } = encoded;
        let count = count(&decided.events);
        self.tail_events += u64::from(count);
        self.tail_bytes += body.len();
        let ownership = self.ownership(now_ms);
        // Written only when the lists would show something else.
        let is_head_changed = self.run.status != status_before
            || ownership == Ownership::Release
            || self.leaving
            || decided.events.iter().any(is_about_approval);
        let ownership = if self.leaving { Ownership::Release } else { ownership };
        let head = is_head_changed
            .then(|| self.engine.head(&self.run, now_ms, ownership, self.child_starts()));
        let append = Append {
            after: self.run.version - u64::from(count),
            count,
            body,
            beside,
            chain,
            head,
            snapshot: if count > 0 { self.snapshot() } else { None },
            blobs,
            read,
            messages: messages(decided.messages),
            guards: decided.guards,
            provenance_edges,
            remembered_outputs: decided.remembered_outputs,
            ..self.empty()
        };
        (append, decided.events)
    }

    fn snapshot(&mut self) -> Option<Vec<u8>> {
        let due = self.tail_events > SNAPSHOT_EVENTS_MIN
            && self.tail_bytes > self.snapshot_bytes / SNAPSHOT_TO_TAIL
            && !self.run.status.is_terminal();
        if !due {
            return None;
        }
        let bytes = snapshot::encode(&self.run);
        self.tail_events = 0;
        self.tail_bytes = 0;
        self.snapshot_bytes = bytes.len();
        Some(bytes)
    }

    /// Appends, retrying until the store answers. Calls in flight continue meanwhile; their
    /// results wait for the next turn.
    async fn commit(&mut self, append: &Arc<Append>) -> CommitResult {
        let mut wait_ms = RETRY_MS.0;
        // Whether an answer was lost: that attempt may still be written.
        let mut is_uncertain = false;
        loop {
            let store = Arc::clone(&self.engine.store);
            let attempt = Arc::clone(append);
            let appended = self.while_calling(async move { store.append(attempt).await }).await;
            match appended {
                Ok(appended) => {
                    self.engine.untroubled();
                    let now_ms = self.engine.clock.now_ms();
                    self.engine.unsealed.store(true, Ordering::Relaxed);
                    return match appended {
                        Appended::Done { counts } => {
                            let free = self.engine.trust.learn(&append.guards, &counts, now_ms);
                            self.engine.trust.remember(&append.remembered_outputs);
                            self.engine.wake(free);
                            self.engine.feed.notify_appended();
                            CommitResult::Written
                        }
                        _ if is_uncertain && self.is_written(append).await => {
                            CommitResult::WrittenButLost
                        }
                        Appended::Refused { counter, count } => {
                            self.engine.trust.corrected(&counter, count, now_ms);
                            CommitResult::Refused
                        }
                        Appended::Conflict | Appended::NotOwner | Appended::Exists { .. } => {
                            CommitResult::NotWritten
                        }
                    };
                }
                Err(StoreError::Unknown(reason)) => {
                    tracing::warn!(run = %append.run, reason, "the store did not confirm the append");
                    self.engine.report_trouble(&reason);
                    is_uncertain = true;
                    if self.is_written(append).await {
                        self.engine.untroubled();
                        return self.still_ours(append).await;
                    }
                }
                Err(StoreError::Corrupt(reason)) => {
                    self.engine.quarantine(append.run, &reason);
                    return CommitResult::NotWritten;
                }
                Err(StoreError::Unavailable(reason)) => {
                    tracing::warn!(run = %append.run, reason, wait_ms, "the store is unavailable");
                    self.engine.report_trouble(&reason);
                }
            }
            self.back_off(&mut wait_ms).await;
        }
    }

    /// Waits before another attempt at the store, and doubles the next wait.
    async fn back_off(&mut self, wait_ms: &mut u64) {
        let pause = tokio::time::sleep(Duration::from_millis(*wait_ms));
        self.while_calling(pause).await;
        *wait_ms = (*wait_ms * 2).min(RETRY_MS.1);
    }

    /// After a lost answer the frame was found. If this node still owns the run at that
    /// version, it wrote the frame; otherwise another owner may have decided the same.
    async fn still_ours(&mut self, append: &Append) -> CommitResult {
        let after = append.after + u64::from(append.count);
        let fence = Arc::new(Append { after, ..self.empty() });
        let mut wait_ms = RETRY_MS.0;
        loop {
            let store = Arc::clone(&self.engine.store);
            let attempt = Arc::clone(&fence);
            match self.while_calling(async move { store.append(attempt).await }).await {
                Ok(Appended::Done { .. }) => return CommitResult::Written,
                Ok(_) => return CommitResult::WrittenButLost,
                Err(error) => {
                    tracing::warn!(run = %fence.run, %error, "ownership cannot be checked yet");
                }
            }
            self.back_off(&mut wait_ms).await;
        }
    }

    /// Whether the journal contains exactly this frame. An append without events leaves no
    /// frame and is safe to repeat.
    async fn is_written(&mut self, append: &Append) -> bool {
        if append.count == 0 {
            return false;
        }
        let mut wait_ms = RETRY_MS.0;
        loop {
            let store = Arc::clone(&self.engine.store);
            let (run, after) = (append.run, append.after);
            let frames = self.while_calling(async move { store.frames(run, after, 1).await }).await;
            match frames {
                Ok(frames) => {
                    let frame = frames.first();
                    return frame.is_some_and(|frame| {
                        frame.first == after + 1 && frame.body == append.body
                    });
                }
                Err(StoreError::Corrupt(reason)) => {
                    self.engine.quarantine(run, &reason);
                    return false;
                }
                Err(error) => tracing::warn!(%run, %error, "the journal cannot be read yet"),
            }
            self.back_off(&mut wait_ms).await;
        }
    }

    /// Releases the run without an event.
    pub(crate) async fn append_release(&mut self) -> CommitResult {
        let now_ms = self.engine.clock.now_ms();
        let head = self.engine.head(&self.run, now_ms, Ownership::Release, self.child_starts());
        let append = Append { head: Some(head), ..self.empty() };
        self.commit(&Arc::new(append)).await
    }

    fn empty(&self) -> Append {
        self.engine.empty_append(self.run.id, self.epoch, self.run.version)
    }
}

/// The frame that an append has written.
fn frame(append: Append) -> Option<Frame> {
    let Append { after, count, body, beside, chain, .. } = append;
    (count > 0).then(|| Frame { first: after + 1, count, body, beside, chain })
}

fn count(events: &[Event]) -> u32 {
    u32::try_from(events.len()).expect("a turn is bounded")
}

/// Encodes events that the run has already been folded over, and extends its hash chain.
pub(crate) fn encode(
    run: &mut Run,
    events: &[Event],
    now_ms: u64,
    entropy: &mut dyn Entropy,
) -> Encoded {
    if events.is_empty() {
        return Encoded::default();
    }
    let mut link = Link::before(run, count(events));
    let encoded = wire::encode(events, now_ms, &run.definition.plan, &mut link, entropy);
    run.tip = link.tip;
    encoded
}

fn is_about_approval(event: &Event) -> bool {
    let Event::Step(_, event) = event else { return false };
    matches!(event, StepEvent::ApprovalRequested(_) | StepEvent::ApprovalResolved(_))
}

impl Inner {
    /// An append that changes nothing, to be filled in.
    pub(crate) fn empty_append(&self, run: RunId, epoch: u64, after: u64) -> Append {
        Append {
            run,
            node: self.node,
            epoch,
            after,
            count: 0,
            body: Vec::new(),
            beside: Vec::new(),
            chain: Vec::new(),
            create: None,
            head: None,
            snapshot: None,
            blobs: Vec::new(),
            read: Vec::new(),
            messages: Vec::new(),
            guards: Vec::new(),
            entries: Vec::new(),
            provenance_edges: Vec::new(),
            remembered_outputs: Vec::new(),
        }
    }

    /// Whether a run stays in memory: not if it only waits, and for long enough.
    pub(crate) fn ownership(&self, run: &Run, now_ms: u64, child_starts: ChildStarts) -> Ownership {
        let starts_child = child_starts == ChildStarts::Unconfirmed && !run.status.is_terminal();
        if !run.is_parked() || starts_child {
            return Ownership::Keep;
        }
        // With no permit left, a waiting run makes room for one that can work.
        let full = self.room.available_permits() == 0;
        let soon = now_ms.saturating_add(self.config.park_after_ms);
        let due_soon = run.next_due_ms().is_some_and(|due_ms| due_ms <= soon && !full);
        let retries = !run.status.is_terminal() && run.pause.is_none() && due_soon;
        // A run that waits for a child is released: the child may need its permit.
        if retries && run.due().next().is_none() { Ownership::Keep } else { Ownership::Release }
    }

    pub(crate) fn head(
        &self,
        run: &Run,
        now_ms: u64,
        ownership: Ownership,
        child_starts: ChildStarts,
    ) -> Head {
        let due_at_ms = match ownership {
            Ownership::Keep => None,
            // Its reservations may still have to expire.
            Ownership::Release if run.status.is_terminal() => run.next_due_ms(),
            // Released with work to do: any node may claim it at once.
            Ownership::Release if !run.is_parked() || child_starts == ChildStarts::Unconfirmed => {
                Some(now_ms)
            }
            // What it waits for at a gate may become free on another node.
            Ownership::Release if run.gated().next().is_some() => {
                let pause_ms = self.config.park_after_ms.max(self.config.look_ms);
                let look_ms = now_ms.saturating_add(pause_ms);
                Some(run.next_due_ms().map_or(look_ms, |due_ms| due_ms.min(look_ms)))
            }
            Ownership::Release => run.next_due_ms(),
        };
        let asks = run.approvals.values().any(|request| request.resolution.is_none());
        Head { status: run.status, ended_at_ms: run.ended_at_ms, due_at_ms, asks, ownership }
    }
}

/// The counters that the guards of an append change or check.
fn counters(guards: &[Guard]) -> Vec<Counter> {
    let counter =
        |guard: &Guard| Counter { name: guard.counter.whole(), window_ms: guard.window_ms };
    guards.iter().map(counter).collect()
}

fn answer(inputs: Vec<TurnInput>, answers: Vec<Result<(), Refusal>>) {
    let replies = inputs.into_iter().zip(answers);
    for (reply, applied) in replies.filter_map(|(input, applied)| Some((input.reply?, applied))) {
        // The caller may have stopped waiting.
        let _ = reply.send(applied);
    }
}

pub(crate) fn messages(messages: Vec<message::RunMessage>) -> Vec<MailboxMessage> {
    let messages = messages.into_iter().map(|one| MailboxMessage {
        run: one.run,
        key: one.key,
        body: message::encode(&one.command).expect("messages hold encodable commands"),
    });
    messages.collect()
}
