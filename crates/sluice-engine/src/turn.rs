//! One turn of a resident run: everything that came becomes one append.
//!
//! INVARIANT: the only place a run changes.

use crate::engine::Inner;
use crate::mail::{Mail, Reply};
use crate::observe::Stopwatch;
use crate::resident::{Resident, fold};
use sluice_core::evidence::event::Link;
use sluice_core::journal::event::{Event, NodeEvent};
use sluice_core::journal::wire::{self, Encoded};
use sluice_core::port::ledger::Counter;
use sluice_core::port::store::{
    Append, Appended, Frame, Guard, Head, Hold, Letter, LetterId, StoreError,
};
use sluice_core::run::command::{Command, Dispatching, Given, Refusal};
use sluice_core::run::decide::{Decided, Turn};
use sluice_core::run::letter;
use sluice_core::run::snapshot;
use sluice_core::run::state::Run;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A command on its way into a turn.
pub(crate) struct Input {
    pub(crate) command: Command,
    pub(crate) reply: Option<Reply>,
    /// The letter it came by.
    pub(crate) letter: Option<LetterId>,
}

impl Input {
    pub(crate) fn new(command: Command) -> Input {
        Input { command, reply: None, letter: None }
    }
}

/// Whether the run goes on being ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does.
    Kept,
    /// It was given up with the append: parked, or done.
    Released,
    /// Another process has it, or what we know of it is stale: let go.
    Lost,
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Committed {
    /// It is durable.
    Done,
    /// A counter would have passed its bound. Nothing was written.
    Refused,
    /// It is durable, and the run has moved on from there without us.
    Left,
    /// It is not, and never will be.
    Not,
}

/// Whether every child that a run has in flight is known to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offspring {
    /// They are.
    Known,
    /// Somebody must see to one: until then the run needs an owner.
    Awaited,
}

/// The events a snapshot may be behind, at least.
const SNAPSHOT_EVENTS_MIN: u64 = 256;
/// Refusals after which a turn sends nothing: the next one does.
const REFUSALS_MAX: u32 = 8;
/// First and longest wait before a store that fails is tried again.
const RETRY_MS: (u64, u64) = (50, 2000);

impl Resident {
    /// Decides everything in `inputs`, makes it durable, then answers. If a
    /// counter was not what it was believed to be, the run decides again.
    pub(crate) async fn turn(&mut self, mut inputs: Vec<Input>) -> Standing {
        let unreadable = std::mem::take(&mut self.unreadable);
        let mut dispatching = self.dispatching;
        let mut refusals = 0;
        loop {
            let now_ms = self.engine.clock.now_ms();
            let mut watch = self.engine.observer.is_some().then(Stopwatch::start);
            self.hurry(&mut inputs, now_ms);
            let status = self.run.status;
            let (decided, answers) = self.decide(&inputs, now_ms, dispatching);
            let mut read: Vec<LetterId> = inputs.iter().filter_map(|input| input.letter).collect();
            read.extend(&unreadable);
            let asked = inputs.iter().any(|input| input.reply.is_some());
            if decided.events.is_empty() && read.is_empty() && !asked {
                self.engine.trust.stands_in_line(&self.run);
                return Standing::Kept;
            }
            // A refusal is the owner's to give: even without events it is appended at,
            // so that what is not ours any more, or has moved on, is noticed.
            let (append, events) = self.append(decided, read, now_ms, status);
            let events = watch.is_some().then_some(events);
            let append = Arc::new(append);
            let hold = append.head.as_ref().map_or(Hold::Keep, |head| head.hold);
            let addressees: Vec<_> = append.letters.iter().map(|letter| letter.run).collect();
            #[cfg(feature = "sabotage")]
            if self.engine.config.sabotage.dispatch_before_log {
                self.perform();
            }
            watch.iter_mut().for_each(Stopwatch::decided);
            let committed = self.commit(&append).await;
            match committed {
                Committed::Not => return Standing::Lost,
                Committed::Refused => {
                    dispatching = match self.catch_up(dispatching, &append).await {
                        Some(dispatching) => dispatching,
                        None => return Standing::Lost,
                    };
                    refusals += 1;
                    if refusals >= REFUSALS_MAX && dispatching == Dispatching::Allowed {
                        // What was decided first may rest on what came later. A
                        // full mailbox leads to another turn anyway.
                        dispatching = Dispatching::Deferred;
                        let _ = self.sender.try_send(Mail::Look);
                    }
                    continue;
                }
                Committed::Done | Committed::Left => {}
            }
            if let (Some(watch), Some(events)) = (watch, events) {
                self.engine.tell_observer(&self.run, &events, now_ms, &watch);
            }
            answer(inputs, answers);
            for run in addressees {
                self.engine.deliver(run);
            }
            if committed == Committed::Left {
                return Standing::Lost;
            }
            self.engine.trust.stands_in_line(&self.run);
            self.publish(hold, || frame(Arc::unwrap_or_clone(append)));
            return if hold == Hold::Release { Standing::Released } else { Standing::Kept };
        }
    }

    fn decide(
        &mut self,
        inputs: &[Input],
        now_ms: u64,
        dispatching: Dispatching,
    ) -> (Decided, Vec<Result<(), Refusal>>) {
        #[cfg(feature = "sabotage")]
        self.engine.keep_grants(&mut self.run);
        #[cfg(feature = "sabotage")]
        let twice = self.engine.taken_twice(&self.run, inputs);
        let authority = self.engine.view(now_ms);
        let entropy = &mut *self.entropy;
        let given = Given { now_ms, entropy, dispatching, authority: &authority };
        let mut turn = Turn::new(&mut self.run, given);
        let mut answers = Vec::with_capacity(inputs.len());
        for input in inputs {
            let command = input.command.clone();
            #[cfg(feature = "sabotage")]
            let command = self.engine.sabotaged(command, turn.run());
            answers.push(turn.apply(command));
        }
        let decided = turn.finish();
        #[cfg(feature = "sabotage")]
        let decided = self.engine.unguarded(decided, twice);
        (decided, answers)
    }

    /// A guard refused the append: what was decided is dropped, and the run is as
    /// the store has it. None if it is not ours to go on with.
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
            // One is known by the refusal; the others are refused in their turn.
            tracing::warn!(run = %self.run.id, %error, "counters cannot be read");
        }
        let engine = Arc::clone(&self.engine);
        let mut dispatching = dispatching;
        let rules = self.while_calling(async move { engine.refresh_rules().await }).await;
        if let Err(error) = rules {
            // Whatever does not need the rules goes on; the sweep tries them again.
            tracing::warn!(run = %self.run.id, %error, "the rules cannot be read");
            dispatching = Dispatching::Deferred;
        }
        let engine = Arc::clone(&self.engine);
        let run = self.run.id;
        let folded = self.while_calling(async move { fold(&engine, run).await }).await;
        match folded {
            // Another owner has gone on from there: what is in flight now is its.
            Ok(folded) if folded.run.version != after => None,
            Ok(folded) => {
                self.tail_events = folded.tail_events;
                self.tail_bytes = folded.tail_bytes;
                self.snapshot_bytes = folded.snapshot_bytes;
                self.run = folded.run;
                Some(dispatching)
            }
            Err(error) => {
                tracing::warn!(%run, %error, "the run cannot be looked at again");
                None
            }
        }
    }

    fn append(
        &mut self,
        decided: Decided,
        read: Vec<LetterId>,
        now_ms: u64,
        status: sluice_core::run::status::RunStatus,
    ) -> (Append, Vec<Event>) {
        let count = u32::try_from(decided.events.len()).expect("a turn is bounded");
        let takings = self.run.takings(&decided.events);
        let Encoded { body, beside, blobs, chain } = self.encode(&decided.events, count, now_ms);
        self.tail_events += u64::from(count);
        self.tail_bytes += body.len();
        let asked = |event: &Event| {
            let Event::Node(_, event) = event else { return false };
            matches!(event, NodeEvent::ApprovalRequested(_) | NodeEvent::ApprovalResolved(_))
        };
        let asked = decided.events.iter().any(asked);
        let head = self.head(now_ms, (self.run.status != status || asked).then_some(()));
        let append = Append {
            run: self.run.id,
            node: self.engine.node,
            epoch: self.epoch,
            after: self.run.version - u64::from(count),
            count,
            body,
            beside,
            chain,
            create: None,
            head,
            snapshot: if count > 0 { self.snapshot() } else { None },
            blobs,
            read,
            letters: letters(decided.letters),
            guards: decided.guards,
            entries: Vec::new(),
            takings,
            memos: decided.memos,
        };
        (append, decided.events)
    }

    /// Writes the events that the run was just folded over, and links them to
    /// those before.
    fn encode(&mut self, events: &[Event], count: u32, now_ms: u64) -> Encoded {
        if events.is_empty() {
            return Encoded::default();
        }
        let mut link = Link::before(&self.run, count);
        let plan = &self.run.definition.plan;
        let encoded = wire::encode(events, now_ms, plan, &mut link, &mut *self.entropy);
        self.run.tip = link.tip;
        encoded
    }

    /// What the lists show, if this turn changed it.
    fn head(&self, now_ms: u64, news: Option<()>) -> Option<Head> {
        let hold = self.hold(now_ms);
        let changed = news.is_some() || hold == Hold::Release || self.leaving;
        let hold = if self.leaving { Hold::Release } else { hold };
        changed.then(|| self.engine.head(&self.run, now_ms, hold, self.offspring()))
    }

    fn snapshot(&mut self) -> Option<Vec<u8>> {
        let due = self.tail_events > SNAPSHOT_EVENTS_MIN
            && self.tail_bytes > self.snapshot_bytes / 4
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

    /// Appends, however long the store takes to be able to. Calls in flight go
    /// on meanwhile; what they come to is kept for the next turn.
    async fn commit(&mut self, append: &Arc<Append>) -> Committed {
        let mut wait_ms = RETRY_MS.0;
        // Whether an answer was lost: what was sent then may yet be written.
        let mut doubt = false;
        loop {
            let store = Arc::clone(&self.engine.store);
            let attempt = Arc::clone(append);
            let appended = self.while_calling(async move { store.append(attempt).await }).await;
            match appended {
                Ok(appended) => {
                    self.engine.untroubled();
                    let now_ms = self.engine.clock.now_ms();
                    self.engine.grown.store(true, Ordering::Relaxed);
                    return match appended {
                        Appended::Done { counts } => {
                            let free = self.engine.trust.learn(&append.guards, &counts, now_ms);
                            self.engine.trust.remember(&append.memos);
                            self.engine.wake(free);
                            self.engine.feed.grown();
                            Committed::Done
                        }
                        _ if doubt && self.is_written(append).await => Committed::Left,
                        Appended::Refused { counter, count } => {
                            self.engine.trust.corrected(&counter, count, now_ms);
                            Committed::Refused
                        }
                        Appended::Conflict | Appended::NotOwner | Appended::Exists { .. } => {
                            Committed::Not
                        }
                    };
                }
                Err(StoreError::Unknown(reason)) => {
                    tracing::warn!(run = %append.run, reason, "the store did not say whether it wrote");
                    self.engine.troubled(&reason);
                    doubt = true;
                    if self.is_written(append).await {
                        self.engine.untroubled();
                        return self.still_ours(append).await;
                    }
                }
                Err(StoreError::Corrupt(reason)) => {
                    self.engine.quarantine(append.run, &reason);
                    return Committed::Not;
                }
                Err(StoreError::Unavailable(reason)) => {
                    tracing::warn!(run = %append.run, reason, wait_ms, "the store is unavailable");
                    self.engine.troubled(&reason);
                }
            }
            let pause = tokio::time::sleep(Duration::from_millis(wait_ms));
            self.while_calling(pause).await;
            wait_ms = (wait_ms * 2).min(RETRY_MS.1);
        }
    }

    /// The frame is there. If the run is still ours after it, we wrote it; else
    /// another owner may have, who decided the same at the same time.
    async fn still_ours(&mut self, append: &Append) -> Committed {
        let after = append.after + u64::from(append.count);
        let fence = Arc::new(Append { after, ..self.empty() });
        let mut wait_ms = RETRY_MS.0;
        loop {
            let store = Arc::clone(&self.engine.store);
            let attempt = Arc::clone(&fence);
            match self.while_calling(async move { store.append(attempt).await }).await {
                Ok(Appended::Done { .. }) => return Committed::Done,
                Ok(_) => return Committed::Left,
                Err(error) => {
                    tracing::warn!(run = %fence.run, %error, "ownership is not certain yet");
                }
            }
            let pause = tokio::time::sleep(Duration::from_millis(wait_ms));
            self.while_calling(pause).await;
            wait_ms = (wait_ms * 2).min(RETRY_MS.1);
        }
    }

    /// Whether the journal has this very frame. An append without one is not
    /// to be seen, and harmless to repeat.
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
                Err(error) => tracing::warn!(%run, %error, "the journal cannot be looked at yet"),
            }
            let pause = tokio::time::sleep(Duration::from_millis(wait_ms));
            self.while_calling(pause).await;
            wait_ms = (wait_ms * 2).min(RETRY_MS.1);
        }
    }

    /// Gives the run up without an event.
    pub(crate) async fn release(&mut self) -> Committed {
        let now_ms = self.engine.clock.now_ms();
        let head = self.engine.head(&self.run, now_ms, Hold::Release, self.offspring());
        let append = Append { head: Some(head), ..self.empty() };
        self.commit(&Arc::new(append)).await
    }

    /// An append that says nothing.
    fn empty(&self) -> Append {
        Append {
            run: self.run.id,
            node: self.engine.node,
            epoch: self.epoch,
            after: self.run.version,
            count: 0,
            body: Vec::new(),
            beside: Vec::new(),
            chain: Vec::new(),
            create: None,
            head: None,
            snapshot: None,
            blobs: Vec::new(),
            read: Vec::new(),
            letters: Vec::new(),
            guards: Vec::new(),
            entries: Vec::new(),
            takings: Vec::new(),
            memos: Vec::new(),
        }
    }
}

/// What an append has written.
fn frame(append: Append) -> Option<Frame> {
    let Append { after, count, body, beside, chain, .. } = append;
    (count > 0).then(|| Frame { first: after + 1, count, body, beside, chain })
}

impl Inner {
    /// Whether a run is kept in memory: not if it only waits, and long enough.
    pub(crate) fn hold(&self, run: &Run, now_ms: u64, offspring: Offspring) -> Hold {
        let awaits = offspring == Offspring::Awaited && !run.status.is_terminal();
        if !run.is_parked() || awaits {
            return Hold::Keep;
        }
        // In a full house a run that only waits makes room for one that need not.
        let full = self.room.available_permits() == 0;
        let soon = now_ms.saturating_add(self.config.park_after_ms);
        let due_soon = run.next_due_ms().is_some_and(|due_ms| due_ms <= soon && !full);
        let retries = !run.status.is_terminal() && run.pause.is_none() && due_soon;
        // One that waits for a child makes room: the child may need just that.
        if retries && run.due().next().is_none() { Hold::Keep } else { Hold::Release }
    }

    pub(crate) fn head(&self, run: &Run, now_ms: u64, hold: Hold, offspring: Offspring) -> Head {
        let due_at_ms = match hold {
            Hold::Keep => None,
            // What it was charged for may still be open.
            Hold::Release if run.status.is_terminal() => run.next_due_ms(),
            // Left behind with work to do: whoever can takes it up.
            Hold::Release if !run.is_parked() || offspring == Offspring::Awaited => Some(now_ms),
            // What is waited for at a gate may come free in another process.
            Hold::Release if run.gated().next().is_some() => {
                let pause_ms = self.config.park_after_ms.max(self.config.look_ms);
                let look_ms = now_ms.saturating_add(pause_ms);
                Some(run.next_due_ms().map_or(look_ms, |due_ms| due_ms.min(look_ms)))
            }
            Hold::Release => run.next_due_ms(),
        };
        #[cfg(feature = "sabotage")]
        let due_at_ms = due_at_ms.filter(|_| !self.config.sabotage.forget_timers);
        let asks = run.approvals.values().any(|asked| asked.resolution.is_none());
        Head { status: run.status, ended_at_ms: run.ended_at_ms, due_at_ms, asks, hold }
    }
}

/// The counters that guards are about.
fn counters(guards: &[Guard]) -> Vec<Counter> {
    let counter =
        |guard: &Guard| Counter { name: guard.counter.whole(), window_ms: guard.window_ms };
    guards.iter().map(counter).collect()
}

fn answer(inputs: Vec<Input>, answers: Vec<Result<(), Refusal>>) {
    let replies = inputs.into_iter().zip(answers);
    for (reply, applied) in replies.filter_map(|(input, applied)| Some((input.reply?, applied))) {
        // Whoever asked may have stopped waiting.
        let _ = reply.send(applied);
    }
}

pub(crate) fn letters(letters: Vec<letter::Letter>) -> Vec<Letter> {
    let written = letters.into_iter().map(|one| Letter {
        run: one.run,
        key: one.key,
        body: letter::encode(&one.command).expect("letters hold commands that travel"),
    });
    written.collect()
}
