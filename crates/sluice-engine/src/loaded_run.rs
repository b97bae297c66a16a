//! A loaded run: a task that turns mail and results of calls into turns.

use crate::engine::Inner;
use crate::error::LoadError;
use crate::load::{Folded, load};
use crate::mailbox::{Mail, RunHandle};
use crate::moderation::pending::{PendingModeration, moderate};
use crate::perform::{CallContext, CallOutput, FinishedCall, call};
use crate::remote_cancel::RemoteDispatches;
use crate::stream::Streams;
use crate::tool_calls::PendingToolCall;
use crate::turn::{ChildStarts, CommitResult, TurnInput, TurnResult};
use crate::watch::Tip;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sluice_core::id::{Entropy, RunId};
use sluice_core::journal::event::StepAt;
use sluice_core::limits::LOG_LINE_BYTES_MAX;
use sluice_core::plan::policy::{ModerationPhase, ParallelFailure};
use sluice_core::plan::step::Step;
use sluice_core::port::adapter::{Answer, CallErrorCode, Execution};
use sluice_core::port::store::{Frame, Mailboxes, Ownership, ReadMessage};
use sluice_core::run::command::{Command, Dispatching};
use sluice_core::run::due::Effect;
use sluice_core::run::message;
use sluice_core::run::state::Run;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Most mail items and results that one turn handles.
const DRAIN_MAX: usize = 1024;
/// Capacity of a run's mailbox; senders wait beyond that.
pub(crate) const MAILBOX_MAX: usize = 256;
/// How long a run without dispatching stays loaded for another command.
const NOTE_MS: u64 = 250;
/// Longest sleep, so that a changed system clock is noticed.
const SLEEP_MS_MAX: u64 = 5000;

pub(crate) struct LoadedRun {
    pub(crate) engine: Arc<Inner>,
    pub(crate) run: Run,
    pub(crate) epoch: u64,
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) dispatching: Dispatching,
    /// Whether the next append releases the run.
    pub(crate) leaving: bool,
    /// Whether the run was assigned to this node again: the loaded state may be old.
    stale: bool,
    /// Messages that cannot be decoded, to be marked as read with the next append.
    pub(crate) unreadable: Vec<ReadMessage>,
    pub(crate) tail_events: u64,
    pub(crate) tail_bytes: usize,
    pub(crate) snapshot_bytes: usize,
    mailbox: mpsc::Receiver<Mail>,
    /// Sends mail to this run, and shows its tip.
    pub(crate) handle: RunHandle,
    calls: FuturesUnordered<BoxFuture<'static, FinishedCall>>,
    performing: BTreeMap<StepAt, CallInFlight>,
    /// Child runs being started, and whether each is known to exist.
    children: BTreeMap<RunId, bool>,
    /// Results that arrived during an append.
    results: Vec<FinishedCall>,
    moderation: PendingModeration,
    /// Streamed parts that wait to be journalled.
    streams: Streams,
    /// Tool calls that wait for a decision.
    tool_calls: Vec<PendingToolCall>,
    /// Dispatches that a bridge has accepted.
    remote: RemoteDispatches,
    /// Whether a failing step can stop other steps.
    fails_fast: bool,
    _permit: OwnedSemaphorePermit,
}

struct CallInFlight {
    dispatch_no: u32,
    cancel: CancellationToken,
}

/// What the task of a loaded run needs besides the run's state.
pub(crate) struct LoadContext {
    pub(crate) epoch: u64,
    pub(crate) handle: RunHandle,
    pub(crate) mailbox: mpsc::Receiver<Mail>,
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) dispatching: Dispatching,
}

impl LoadedRun {
    pub(crate) fn new(engine: Arc<Inner>, folded: Folded, context: LoadContext) -> LoadedRun {
        context.handle.set_tip(tip(&folded.run, Ownership::Keep));
        let steps = &folded.run.definition.plan.steps;
        let fail_fast = |step: &Step| step.parallel_failure_policy == ParallelFailure::FailFast;
        LoadedRun {
            fails_fast: steps.iter().any(fail_fast),
            streams: Streams::new(&engine.streams),
            entropy: (engine.entropy)(),
            engine,
            run: folded.run,
            epoch: context.epoch,
            dispatching: context.dispatching,
            leaving: false,
            stale: false,
            unreadable: Vec::new(),
            tail_events: folded.tail_events,
            tail_bytes: folded.tail_bytes,
            snapshot_bytes: folded.snapshot_bytes,
            mailbox: context.mailbox,
            handle: context.handle,
            calls: FuturesUnordered::new(),
            performing: BTreeMap::new(),
            children: BTreeMap::new(),
            results: Vec::new(),
            moderation: PendingModeration::default(),
            tool_calls: Vec::new(),
            remote: RemoteDispatches::default(),
            _permit: context.permit,
        }
    }

    /// Runs until the run is parked, has ended, or is lost to another node.
    pub(crate) async fn run_loop(mut self, first: Vec<TurnInput>) {
        let id = self.run.id;
        let mut inputs = first;
        // Messages may have arrived while the run had no owner. A run in its first
        // epoch always had one, and the sweep finds later messages.
        if self.epoch > 1 {
            self.read_messages(&mut inputs).await;
        }
        inputs = self.withhold_unmoderated(inputs).await;
        self.cancel_remote();
        let result = loop {
            let result = self.turn(inputs).await;
            self.answer_tool_calls();
            self.cancel_remote();
            if result != TurnResult::Kept {
                break result;
            }
            if self.stale {
                break TurnResult::Lost;
            }
            let is_recording = self.dispatching == Dispatching::Deferred && !self.leaving;
            if is_recording && self.run.is_stopping() && self.run.has_edge_work() {
                // The node that had these calls in flight is gone: stop its processes.
                self.engine.stop_survivors(&self.run).await;
                inputs = vec![TurnInput::new(Command::TakeOver)];
                continue;
            }
            let now_ms = self.engine.clock.now_ms();
            if self.leaving || self.ownership(now_ms) == Ownership::Release {
                match self.mailbox.try_recv() {
                    Ok(mail) if !self.leaving => inputs = self.collect_inputs(vec![mail]).await,
                    _ => {
                        // The next owner dispatches the calls again, so they must have stopped.
                        self.stop_calls(TurnResult::Released).await;
                        break self.release_run().await;
                    }
                }
                continue;
            }
            if self.dispatching == Dispatching::Deferred {
                match self.wait_for_mail().await {
                    Some(received) => inputs = received,
                    None => break self.release_run().await,
                }
                continue;
            }
            self.perform();
            inputs = self.wait_for_inputs().await;
        };
        tracing::trace!(run = %id, node = %self.engine.node, ?result, "run unloaded");
        self.stop_calls(result).await;
        self.engine.unload(id, self.mailbox, result).await;
    }

    /// Waits for something to do, then collects everything there is.
    async fn wait_for_inputs(&mut self) -> Vec<TurnInput> {
        let mut mails = Vec::new();
        while self.results.is_empty() && !self.moderation.has_answers() {
            let wake = self.wake_at();
            tokio::select! {
                biased;
                received = self.mailbox.recv_many(&mut mails, DRAIN_MAX) => {
                    debug_assert!(received > 0, "the run holds a sender of its own mailbox");
                }
                Some(done) = self.calls.next(), if !self.calls.is_empty() => {
                    self.results.push(done);
                }
                () = self.moderation.next(), if !self.moderation.is_empty() => {}
                // New parts only change when the run must wake.
                () = self.streams.data_arrived() => continue,
                () = tokio::time::sleep_until(wake) => {}
            }
            break;
        }
        while mails.len() < DRAIN_MAX
            && let Ok(mail) = self.mailbox.try_recv()
        {
            mails.push(mail);
        }
        while self.results.len() < DRAIN_MAX
            && let Some(Some(done)) = futures_util::FutureExt::now_or_never(self.calls.next())
        {
            self.results.push(done);
        }
        self.collect_inputs(mails).await
    }

    /// Waits a short time for mail.
    async fn wait_for_mail(&mut self) -> Option<Vec<TurnInput>> {
        let mut mails = Vec::new();
        let patience = Duration::from_millis(NOTE_MS);
        let received = self.mailbox.recv_many(&mut mails, DRAIN_MAX);
        match tokio::time::timeout(patience, received).await {
            Ok(_) => Some(self.collect_inputs(mails).await),
            Err(_) => None,
        }
    }

    /// When the run must wake even if nothing arrives.
    fn wake_at(&self) -> Instant {
        let now_ms = self.engine.clock.now_ms();
        let due_ms = self.run.next_due_ms().unwrap_or(u64::MAX);
        let is_gated = self.run.gated().next().is_some();
        let most_ms = if is_gated { self.engine.config.look_ms } else { SLEEP_MS_MAX };
        let sleep_ms = due_ms.saturating_sub(now_ms).min(most_ms);
        let wake = Instant::now() + Duration::from_millis(sleep_ms);
        self.streams.due(&self.engine.config).map_or(wake, |due| due.min(wake))
    }

    /// Turns mail and results into commands; streamed parts come before the end of
    /// their attempt.
    async fn collect_inputs(&mut self, mails: Vec<Mail>) -> Vec<TurnInput> {
        let mut inputs = Vec::new();
        if self.may_end_attempts(&mails) {
            self.streams.take_all(&mut inputs);
        } else {
            self.streams.take_due(&self.engine.config, &mut inputs);
        }
        let streamed = inputs.len();
        let mut messages = false;
        for mail in mails {
            match mail {
                Mail::Command(command, reply) => {
                    // A bridge reports the answers of earlier calls by message.
                    messages |= matches!(command, Command::UseTool { .. });
                    inputs.push(TurnInput { command, reply, message: None });
                }
                Mail::Messages => messages = true,
                // The turn that follows checks the gates.
                Mail::CheckGates => {}
                Mail::Log { at, dispatch_no, text } => log(&mut inputs, at, dispatch_no, text),
                Mail::Tool { at, dispatch_no, wanted, reply } => {
                    let command = Command::UseTool { at, dispatch_no, wanted: wanted.clone() };
                    inputs.push(TurnInput::new(command));
                    self.tool_calls.push(PendingToolCall { at, dispatch_no, wanted, reply });
                }
                Mail::ToolEnded { at, dispatch_no, ended } => {
                    inputs.push(TurnInput::new(Command::ToolEnded { at, dispatch_no, ended }));
                }
                Mail::Process { at, dispatch_no, process, reply } => {
                    let command = Command::Process { at, dispatch_no, process };
                    inputs.push(TurnInput { command, reply: Some(reply), message: None });
                }
                Mail::Claimed(epoch) => self.stale |= epoch != self.epoch,
                Mail::Child(child) => drop(self.children.insert(child, true)),
                Mail::Release => {
                    self.leaving = true;
                    // New dispatches would be stopped at once.
                    self.dispatching = Dispatching::Deferred;
                }
            }
        }
        if messages {
            // Before the commands: a tool call is judged with all answers that arrived.
            let commands = inputs.split_off(streamed);
            self.read_messages(&mut inputs).await;
            inputs.extend(commands);
        }
        for done in std::mem::take(&mut self.results) {
            let FinishedCall { at, dispatch_no, execution, verdict } = done;
            self.streams.end(at, dispatch_no, &mut inputs);
            let command = match execution {
                Execution::Done(answer) => Command::Complete { at, dispatch_no, answer },
                Execution::Accepted => Command::Accepted { at, dispatch_no },
            };
            let command = match verdict {
                Some(verdict) => Command::Checked { command: Box::new(command), verdict },
                None => command,
            };
            inputs.push(TurnInput::new(command));
        }
        // In this order, so that a message whose check is done is not withheld again.
        let mut inputs = self.withhold_unmoderated(inputs).await;
        inputs.extend(self.moderation.take_answers());
        inputs
    }

    /// Withholds results that must be moderated first.
    async fn withhold_unmoderated(&mut self, inputs: Vec<TurnInput>) -> Vec<TurnInput> {
        let mut ready = Vec::with_capacity(inputs.len());
        for input in inputs {
            // A withheld message stays in the mailbox and is read again with it.
            if input.message.as_ref().is_some_and(|read| self.moderation.holds(read.id)) {
                continue;
            }
            let moderator = Arc::clone(&self.engine.moderator);
            match (self.run.output_subject(&input.command), self.dispatching) {
                (None, _) => ready.push(input),
                (Some(subject), Dispatching::Allowed) => {
                    self.moderation.withhold(input, subject, &moderator);
                }
                // The node that executes the run reads the message again.
                (Some(_), Dispatching::Deferred) if input.message.is_some() => {}
                (Some(subject), Dispatching::Deferred) => {
                    let check = async move { moderate(input, &subject, &moderator).await };
                    let input = self.while_calling(check).await;
                    ready.push(input);
                }
            }
        }
        ready
    }

    /// Whether this mail may end attempts that have not answered yet: their streamed parts
    /// must then be journalled first.
    fn may_end_attempts(&self, mails: &[Mail]) -> bool {
        let may_stop = |mail: &Mail| {
            matches!(mail, Mail::Command(..) | Mail::Messages | Mail::Release | Mail::Claimed(_))
        };
        let stops = |done: &FinishedCall| match &done.execution {
            Execution::Done(_) => self.fails_fast,
            Execution::Accepted => false,
        };
        // The checked result may stop another step.
        let is_checked = self.moderation.has_answers();
        is_checked || mails.iter().any(may_stop) || self.results.iter().any(stops)
    }

    /// Puts streamed parts before `inputs` if a timeout may end their attempts now.
    pub(crate) fn flush_before_deadline(&mut self, inputs: &mut Vec<TurnInput>, now_ms: u64) {
        if self.run.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            let mut kept = Vec::new();
            self.streams.take_all(&mut kept);
            inputs.splice(0..0, kept);
        }
    }

    async fn read_messages(&mut self, inputs: &mut Vec<TurnInput>) {
        let messages = match self.engine.store.messages(Mailboxes::Run(self.run.id)).await {
            Ok(messages) => messages,
            Err(error) => {
                // The next sweep finds them again.
                tracing::warn!(run = %self.run.id, %error, "messages cannot be read now");
                return;
            }
        };
        for received in messages {
            if !received.is_authentic {
                let key = &received.message.key;
                tracing::error!(run = %self.run.id, key, "a message is not authentic and is discarded");
                self.unreadable.push(received.as_read());
                continue;
            }
            match message::decode(&received.message.body, |step| self.run.find(step)) {
                Ok(command) => {
                    let message = Some(received.as_read());
                    inputs.push(TurnInput { command, reply: None, message });
                }
                Err(error) => {
                    tracing::error!(run = %self.run.id, %error, "a message cannot be decoded and is discarded");
                    self.unreadable.push(received.as_read());
                }
            }
        }
    }

    /// Waits for `work` while polling the calls in flight.
    pub(crate) async fn while_calling<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(done) = self.calls.next(), if !self.calls.is_empty() => {
                    self.results.push(done);
                }
                () = self.moderation.next(), if !self.moderation.is_empty() => {}
            }
        }
    }

    /// Publishes the new tip to followers, and the frame to readers.
    pub(crate) fn publish(&self, ownership: Ownership, frame: impl FnOnce() -> Option<Frame>) {
        let tip = tip(&self.run, ownership);
        self.handle.set_tip(tip);
        self.engine.followed.publish(self.run.id, tip, frame);
    }

    /// Starts effects that are due, and cancels calls that no longer are.
    pub(crate) fn perform(&mut self) {
        let stopping = self.run.is_stopping();
        let (mut wanted, mut moderated_steps) = (BTreeSet::new(), BTreeSet::new());
        let effects: Vec<Effect> = self.run.due().collect();
        for effect in effects {
            match effect {
                Effect::Dispatch { at, dispatch_no } => {
                    wanted.insert(at);
                    let known = self.performing.get(&at).map(|call| call.dispatch_no);
                    if known != Some(dispatch_no) {
                        self.dispatch(at, dispatch_no);
                    }
                }
                Effect::Moderate { at } => {
                    moderated_steps.insert(at);
                    self.moderation.check_input(&self.run, at, &self.engine.moderator);
                }
                Effect::Child { at, child } => {
                    if let Entry::Vacant(entry) = self.children.entry(child) {
                        entry.insert(false);
                        let request = crate::children::request(&mut self.run, at, child);
                        Arc::clone(&self.engine).start_child(self.run.id, child, request);
                    }
                }
            }
        }
        self.moderation.retain_steps(&moderated_steps);
        self.performing.retain(|at, call| {
            let keep = wanted.contains(at);
            if !keep || stopping {
                call.cancel.cancel();
            }
            keep
        });
    }

    fn dispatch(&mut self, at: StepAt, dispatch_no: u32) {
        let request = self.run.request(at);
        let cancel = CancellationToken::new();
        let call_in_flight = CallInFlight { dispatch_no, cancel: cancel.clone() };
        if let Some(replaced) = self.performing.insert(at, call_in_flight) {
            replaced.cancel.cancel();
        }
        let rules = self.engine.trust.rules();
        let row = rules.fabric.gateways.get(&request.gateway);
        let gateway = row.map(|row| (request.gateway.as_str(), row));
        let Some(adapter) = self.engine.agents.at(&request.agent, gateway) else {
            let message =
                format!("gateway `{}` does not serve agent `{}`", request.gateway, request.agent);
            let answer = Box::new(Answer::failed(CallErrorCode::InvalidRequest, message));
            let execution = Execution::Done(answer);
            self.results.push(FinishedCall { at, dispatch_no, execution, verdict: None });
            return;
        };
        let moderated = self.run.step(at).moderation.covers(ModerationPhase::Output);
        let subject =
            moderated.then(|| self.run.subject(at, ModerationPhase::Output, String::new()));
        let stream = self.streams.open(at, dispatch_no);
        let context = CallContext {
            adapter,
            output: CallOutput { at, dispatch_no, mailbox: self.handle.mailbox.clone(), stream },
            moderation: subject.map(|subject| (Arc::clone(&self.engine.moderator), subject)),
            cancel,
            grace_ms: self.engine.config.grace_ms,
        };
        self.calls.push(Box::pin(call(context, request)));
    }

    /// Answers tool calls whose decision is now durable.
    fn answer_tool_calls(&mut self) {
        let run = &self.run;
        self.tool_calls = std::mem::take(&mut self.tool_calls)
            .into_iter()
            .filter_map(|one| one.resolve(run))
            .collect();
    }

    /// Cancels remote dispatches that the run no longer wants.
    fn cancel_remote(&mut self) {
        let unwanted = self.remote.update(&self.run);
        for dispatch in unwanted {
            let rules = self.engine.trust.rules();
            let row = rules.fabric.gateways.get(&dispatch.gateway);
            let row = row.map(|row| (dispatch.gateway.as_str(), row));
            if let Some(adapter) = self.engine.agents.at(&dispatch.agent, row) {
                self.engine.spawn(async move { adapter.recall(&dispatch.recall).await });
            }
        }
    }

    pub(crate) fn child_starts(&self) -> ChildStarts {
        let mut effects = self.run.due();
        let open = effects.any(|effect| match effect {
            Effect::Child { child, .. } => self.children.get(&child) != Some(&true),
            Effect::Dispatch { .. } | Effect::Moderate { .. } => false,
        });
        if open { ChildStarts::Unconfirmed } else { ChildStarts::Confirmed }
    }

    pub(crate) fn ownership(&self, now_ms: u64) -> Ownership {
        if !self.run.is_parked() || self.moderation.withholds_results() {
            // The common case: skip the scan of everything in flight.
            return Ownership::Keep;
        }
        self.engine.ownership(&self.run, now_ms, self.child_starts())
    }

    /// Releases a parked run without an event.
    async fn release_run(&mut self) -> TurnResult {
        match self.append_release().await {
            CommitResult::Written | CommitResult::WrittenButLost => {
                self.publish(Ownership::Release, || None);
                TurnResult::Released
            }
            CommitResult::NotWritten | CommitResult::Refused => TurnResult::Lost,
        }
    }

    /// Stops the calls in flight before the run is unloaded.
    async fn stop_calls(&mut self, result: TurnResult) {
        for call in self.performing.values() {
            call.cancel.cancel();
        }
        self.moderation.stop();
        if result == TurnResult::Lost {
            self.calls.clear();
        }
        while self.calls.next().await.is_some() {}
    }
}

fn tip(run: &Run, ownership: Ownership) -> Tip {
    Tip { version: run.version, status: run.status, resident: ownership == Ownership::Keep }
}

/// Appends log lines. Consecutive lines of one step share an event, so that a chatty
/// step does not fill the journal.
fn log(inputs: &mut Vec<TurnInput>, at: StepAt, dispatch_no: u32, text: String) {
    if let Some(TurnInput {
        command: Command::Log { at: of, dispatch_no: number, text: lines },
        ..
    }) = inputs.last_mut()
        && (*of, *number) == (at, dispatch_no)
        && lines.len() + text.len() < LOG_LINE_BYTES_MAX
    {
        lines.push('\n');
        lines.push_str(&text);
        return;
    }
    inputs.push(TurnInput::new(Command::Log { at, dispatch_no, text }));
}

/// Loads a run from the store.
pub(crate) async fn fold(engine: &Inner, run: RunId) -> Result<Folded, LoadError> {
    load(&*engine.store, &engine.definitions, run).await
}
