//! One turn of a resident run: everything that came becomes one append.
//!
//! INVARIANT: the only place a run changes.

use crate::engine::Inner;
use crate::mail::Reply;
use crate::resident::Resident;
use sluice_core::journal::wire;
use sluice_core::port::store::{Append, Appended, Head, Hold, Letter, LetterId, Store, StoreError};
use sluice_core::run::command::{Command, Given, Refusal};
use sluice_core::run::decide::{Decided, Turn};
use sluice_core::run::id::RunId;
use sluice_core::run::letter;
use sluice_core::run::snapshot;
use sluice_core::run::state::Run;
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

/// What becomes of commands, for those who wait for them.
type Replies = Vec<(Reply, Result<(), Refusal>)>;

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

/// The events a snapshot may be behind, at least.
const SNAPSHOT_EVENTS_MIN: u64 = 256;
/// First and longest wait before a store that fails is tried again.
const RETRY_MS: (u64, u64) = (50, 2000);

impl Resident {
    /// Decides everything in `inputs`, makes it durable, then answers.
    pub(crate) async fn turn(&mut self, inputs: Vec<Input>) -> Standing {
        let now_ms = self.engine.clock.now_ms();
        let status = self.run.status;
        let (decided, replies, read) = self.decide(inputs, now_ms);
        if decided.events.is_empty() && read.is_empty() {
            answer(replies);
            return Standing::Kept;
        }
        let append = self.append(decided, read, now_ms, status);
        let hold = append.head.as_ref().map_or(Hold::Keep, |head| head.hold);
        let addressees: Vec<_> = append.letters.iter().map(|letter| letter.run).collect();
        #[cfg(feature = "sabotage")]
        if self.engine.config.sabotage.dispatch_before_log {
            self.perform();
        }
        match self.commit(append).await {
            Appended::Done => {}
            Appended::Conflict | Appended::NotOwner | Appended::Exists { .. } => {
                return Standing::Lost;
            }
            // Guards come with governance; nothing is guarded yet.
            Appended::Refused { .. } => return Standing::Lost,
        }
        answer(replies);
        self.publish(hold);
        for run in addressees {
            self.engine.deliver(run);
        }
        if hold == Hold::Release { Standing::Released } else { Standing::Kept }
    }

    fn decide(&mut self, inputs: Vec<Input>, now_ms: u64) -> (Decided, Replies, Vec<LetterId>) {
        let given = Given { now_ms, entropy: &mut *self.entropy, dispatching: self.dispatching };
        let mut turn = Turn::new(&mut self.run, given);
        let mut replies = Vec::new();
        let mut read = Vec::new();
        for input in inputs {
            #[cfg(feature = "sabotage")]
            let input = self.engine.sabotaged(input, turn.run());
            let applied = turn.apply(input.command);
            read.extend(input.letter);
            replies.extend(input.reply.map(|reply| (reply, applied)));
        }
        (turn.finish(), replies, read)
    }

    fn append(
        &mut self,
        decided: Decided,
        read: Vec<LetterId>,
        now_ms: u64,
        status: sluice_core::run::status::RunStatus,
    ) -> Append {
        let count = u32::try_from(decided.events.len()).expect("a turn is bounded");
        let (body, blobs) = if count == 0 {
            (Vec::new(), Vec::new())
        } else {
            let plan = &self.run.definition.plan;
            let encoded = wire::encode(&decided.events, now_ms, plan);
            (encoded.body, encoded.blobs)
        };
        self.tail_events += u64::from(count);
        self.tail_bytes += body.len();
        let head = self.head(now_ms, status);
        Append {
            run: self.run.id,
            node: self.engine.node,
            epoch: self.epoch,
            after: self.run.version - u64::from(count),
            count,
            body,
            create: None,
            head,
            snapshot: self.snapshot(),
            blobs,
            read,
            letters: letters(decided.letters),
            guards: Vec::new(),
        }
    }

    /// What the lists show, if this turn changed it.
    fn head(&self, now_ms: u64, before: sluice_core::run::status::RunStatus) -> Option<Head> {
        let hold = self.engine.hold(&self.run, now_ms);
        let changed = self.run.status != before || hold == Hold::Release || self.leaving;
        let hold = if self.leaving { Hold::Release } else { hold };
        changed.then(|| self.engine.head(&self.run, now_ms, hold))
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
    async fn commit(&mut self, append: Append) -> Appended {
        let mut wait_ms = RETRY_MS.0;
        loop {
            let store = std::sync::Arc::clone(&self.engine.store);
            let attempt = append.clone();
            let appended = self.while_calling(async move { store.append(attempt).await }).await;
            match appended {
                Ok(appended) => {
                    self.engine.untroubled();
                    return appended;
                }
                Err(StoreError::Unknown(reason)) => {
                    tracing::warn!(run = %append.run, reason, "the store did not say whether it wrote");
                    self.engine.troubled(&reason);
                    let store = std::sync::Arc::clone(&self.engine.store);
                    match version_in_store(store, append.run).await {
                        Some(version) if version >= append.after + u64::from(append.count) => {
                            self.engine.untroubled();
                            return Appended::Done;
                        }
                        Some(_) => {}
                        None => return Appended::Conflict,
                    }
                }
                Err(error @ StoreError::Corrupt(_)) => {
                    tracing::error!(run = %append.run, %error, "the run is left alone");
                    return Appended::NotOwner;
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

    /// Gives the run up without an event.
    pub(crate) async fn release(&mut self) -> Appended {
        let now_ms = self.engine.clock.now_ms();
        let append = Append {
            run: self.run.id,
            node: self.engine.node,
            epoch: self.epoch,
            after: self.run.version,
            count: 0,
            body: Vec::new(),
            create: None,
            head: Some(self.engine.head(&self.run, now_ms, Hold::Release)),
            snapshot: None,
            blobs: Vec::new(),
            read: Vec::new(),
            letters: Vec::new(),
            guards: Vec::new(),
        };
        self.commit(append).await
    }
}

impl Inner {
    /// Whether a run is kept in memory: not if it only waits, and long enough.
    pub(crate) fn hold(&self, run: &Run, now_ms: u64) -> Hold {
        if !run.is_parked() {
            return Hold::Keep;
        }
        let soon = now_ms.saturating_add(self.config.park_after_ms);
        let due_soon = run.next_due_ms().is_some_and(|due_ms| due_ms <= soon);
        let retries = !run.status.is_terminal() && run.pause.is_none() && due_soon;
        if retries { Hold::Keep } else { Hold::Release }
    }

    pub(crate) fn head(&self, run: &Run, now_ms: u64, hold: Hold) -> Head {
        let due_at_ms = match hold {
            Hold::Keep => None,
            Hold::Release if run.status.is_terminal() => None,
            // Left behind with work to do: whoever can takes it up.
            Hold::Release if !run.is_parked() => Some(now_ms),
            Hold::Release => run.next_due_ms(),
        };
        #[cfg(feature = "sabotage")]
        let due_at_ms = due_at_ms.filter(|_| !self.config.sabotage.forget_timers);
        Head { status: run.status, ended_at_ms: run.ended_at_ms, due_at_ms, hold }
    }

    #[cfg(feature = "sabotage")]
    fn sabotaged(&self, mut input: Input, run: &Run) -> Input {
        if let Command::Complete { at, dispatch_no, .. } = &mut input.command
            && self.config.sabotage.accept_late
            && let Some(state) = run.get(*at)
        {
            *dispatch_no = state.dispatch_no;
        }
        input
    }
}

async fn version_in_store(store: std::sync::Arc<dyn Store>, run: RunId) -> Option<u64> {
    let loaded = store.load(run).await.ok()??;
    let frames = loaded.frames.last().map(|frame| frame.first + u64::from(frame.count) - 1);
    frames.or(loaded.snapshot.map(|(version, _)| version))
}

fn answer(replies: Replies) {
    for (reply, applied) in replies {
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
