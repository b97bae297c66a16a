//! A run in memory: a task of its own that turns mail and results into turns.

use crate::abroad::Abroad;
use crate::asking::Asking;
use crate::engine::Inner;
use crate::error::LoadError;
use crate::judging::{Judging, judged};
use crate::load::{Folded, load};
use crate::mail::Mail;
use crate::perform::{Calling, Done, Outlet, call};
use crate::stream::Streams;
use crate::turn::{Committed, Input, Offspring, Standing};
use crate::watch::Tip;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sluice_core::journal::event::StepAt;
use sluice_core::limits::LOG_LINE_BYTES_MAX;
use sluice_core::plan::policy::ParallelFailure;
use sluice_core::plan::step::Step;
use sluice_core::port::Entropy;
use sluice_core::port::adapter::{Answer, CallErrorCode, Execution};
use sluice_core::port::moderator::Phase;
use sluice_core::port::store::{Frame, Hold, Inbox, LetterId};
use sluice_core::run::command::{Command, Dispatching};
use sluice_core::run::due::Effect;
use sluice_core::run::id::RunId;
use sluice_core::run::letter;
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

/// Most mail and results that one turn takes.
const DRAIN_MAX: usize = 1024;
/// Letters and results that wait for a run; senders wait beyond that.
pub(crate) const MAILBOX_MAX: usize = 256;
/// How long a run that is not worked on here stays for the next command.
const NOTE_MS: u64 = 250;
/// Longest sleep: a clock that was set is noticed by then.
const SLEEP_MS_MAX: u64 = 5000;

/// A run in memory.
pub(crate) struct Resident {
    pub(crate) engine: Arc<Inner>,
    pub(crate) run: Run,
    pub(crate) epoch: u64,
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) dispatching: Dispatching,
    /// Whether the next append gives the run up.
    pub(crate) leaving: bool,
    /// Whether the run was given away and came back: what is known of it is old.
    stale: bool,
    /// Letters that say nothing, to be put away with the next append.
    pub(crate) unreadable: Vec<LetterId>,
    pub(crate) tail_events: u64,
    pub(crate) tail_bytes: usize,
    pub(crate) snapshot_bytes: usize,
    mailbox: mpsc::Receiver<Mail>,
    /// For the calls of this run.
    pub(crate) sender: mpsc::Sender<Mail>,
    calls: FuturesUnordered<BoxFuture<'static, Done>>,
    performing: BTreeMap<StepAt, (u32, CancellationToken)>,
    /// Children that are being seen to, and whether they are known to exist.
    children: BTreeMap<RunId, bool>,
    /// Results that came while an append was under way.
    results: Vec<Done>,
    /// What the moderator is asked.
    judging: Judging,
    /// Parts of answers that wait to be journalled.
    streams: Streams,
    /// Calls that wait to hear whether a tool may be called.
    asking: Vec<Asking>,
    /// Dispatches that go on elsewhere, and with whom.
    abroad: Abroad,
    /// Whether a step that fails stops others.
    fails_fast: bool,
    _permit: OwnedSemaphorePermit,
}

/// What a resident is made from.
pub(crate) struct Seat {
    pub(crate) epoch: u64,
    pub(crate) sender: mpsc::Sender<Mail>,
    pub(crate) mailbox: mpsc::Receiver<Mail>,
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) dispatching: Dispatching,
}

impl Resident {
    pub(crate) fn new(engine: Arc<Inner>, folded: Folded, seat: Seat) -> Resident {
        let steps = &folded.run.definition.plan.steps;
        let fail_fast = |step: &Step| step.parallel_failure_policy == ParallelFailure::FailFast;
        Resident {
            fails_fast: steps.iter().any(fail_fast),
            streams: Streams::new(&engine.streams),
            entropy: (engine.entropy)(),
            engine,
            run: folded.run,
            epoch: seat.epoch,
            dispatching: seat.dispatching,
            leaving: false,
            stale: false,
            unreadable: Vec::new(),
            tail_events: folded.tail_events,
            tail_bytes: folded.tail_bytes,
            snapshot_bytes: folded.snapshot_bytes,
            mailbox: seat.mailbox,
            sender: seat.sender,
            calls: FuturesUnordered::new(),
            performing: BTreeMap::new(),
            children: BTreeMap::new(),
            results: Vec::new(),
            judging: Judging::default(),
            asking: Vec::new(),
            abroad: Abroad::default(),
            _permit: seat.permit,
        }
    }

    /// Lives until the run is parked, done, or lost to another process.
    pub(crate) async fn live(mut self, first: Vec<Input>) {
        let id = self.run.id;
        let mut inputs = first;
        // Letters may have come while nobody owned the run. One that was never
        // anybody else's has none yet, and the sweep finds what comes.
        if self.epoch > 1 {
            self.read_letters(&mut inputs).await;
        }
        inputs = self.sift(inputs).await;
        self.recall();
        let standing = loop {
            let standing = self.turn(inputs).await;
            self.answer_asking();
            self.recall();
            if standing != Standing::Kept {
                break standing;
            }
            if self.stale {
                break Standing::Lost;
            }
            let noted = self.dispatching == Dispatching::Deferred && !self.leaving;
            if noted && self.run.is_stopping() && self.run.has_edge_work() {
                // Whoever had it in flight is gone; what it left running is stopped.
                self.engine.stop_survivors(&self.run).await;
                inputs = vec![Input::new(Command::TakeOver)];
                continue;
            }
            let now_ms = self.engine.clock.now_ms();
            if self.leaving || self.hold(now_ms) == Hold::Release {
                match self.mailbox.try_recv() {
                    Ok(mail) if !self.leaving => inputs = self.sort(vec![mail]).await,
                    _ => {
                        // The next owner sends again what is in flight: it must be still by then.
                        self.stop_calls(Standing::Released).await;
                        break self.give_up().await;
                    }
                }
                continue;
            }
            if self.dispatching == Dispatching::Deferred {
                match self.note().await {
                    Some(noted) => inputs = noted,
                    None => break self.give_up().await,
                }
                continue;
            }
            self.perform();
            inputs = self.gather().await;
        };
        tracing::trace!(run = %id, node = %self.engine.node, ?standing, "leaves memory");
        self.stop_calls(standing).await;
        self.engine.forget(id, self.mailbox, standing).await;
    }

    /// Waits for something to do, then takes everything there is.
    async fn gather(&mut self) -> Vec<Input> {
        let mut mails = Vec::new();
        while self.results.is_empty() && !self.judging.has_answers() {
            let wake = self.wake_at();
            tokio::select! {
                biased;
                received = self.mailbox.recv_many(&mut mails, DRAIN_MAX) => {
                    debug_assert!(received > 0, "the run holds a sender of its own mailbox");
                }
                Some(done) = self.calls.next(), if !self.calls.is_empty() => {
                    self.results.push(done);
                }
                () = self.judging.next(), if !self.judging.is_empty() => {}
                // Something came that is journalled in a moment: when is to be seen.
                () = self.streams.poked() => continue,
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
        self.sort(mails).await
    }

    /// Waits a little for mail, and for nothing else.
    async fn note(&mut self) -> Option<Vec<Input>> {
        let mut mails = Vec::new();
        let patience = Duration::from_millis(NOTE_MS);
        let received = self.mailbox.recv_many(&mut mails, DRAIN_MAX);
        match tokio::time::timeout(patience, received).await {
            Ok(_) => Some(self.sort(mails).await),
            Err(_) => None,
        }
    }

    /// When the run has something to do even if nothing comes.
    fn wake_at(&self) -> Instant {
        let now_ms = self.engine.clock.now_ms();
        let due_ms = self.run.next_due_ms().unwrap_or(u64::MAX);
        let waits = self.run.gated().next().is_some();
        let most_ms = if waits { self.engine.config.look_ms } else { SLEEP_MS_MAX };
        let sleep_ms = due_ms.saturating_sub(now_ms).min(most_ms);
        let wake = Instant::now() + Duration::from_millis(sleep_ms);
        self.streams.due(&self.engine.config).map_or(wake, |due| due.min(wake))
    }

    /// Turns mail and results into commands, parts of an answer before its end.
    async fn sort(&mut self, mails: Vec<Mail>) -> Vec<Input> {
        let mut inputs = Vec::new();
        if self.may_end_attempts(&mails) {
            self.streams.take_all(&mut inputs);
        } else {
            self.streams.take_due(&self.engine.config, &mut inputs);
        }
        let mut letters = false;
        for mail in mails {
            match mail {
                Mail::Command(command, reply) => {
                    inputs.push(Input { command, reply, letter: None });
                }
                Mail::Letters => letters = true,
                // The turn that follows looks by itself.
                Mail::Look => {}
                Mail::Log { at, dispatch_no, text } => log(&mut inputs, at, dispatch_no, text),
                Mail::Tool { at, dispatch_no, wanted, reply } => {
                    let command = Command::UseTool { at, dispatch_no, wanted: wanted.clone() };
                    inputs.push(Input::new(command));
                    self.asking.push(Asking { at, dispatch_no, wanted, reply });
                }
                Mail::ToolEnded { at, dispatch_no, ended } => {
                    inputs.push(Input::new(Command::ToolEnded { at, dispatch_no, ended }));
                }
                Mail::Process { at, dispatch_no, process, reply } => {
                    let command = Command::Process { at, dispatch_no, process };
                    inputs.push(Input { command, reply: Some(reply), letter: None });
                }
                Mail::Claimed(epoch) => self.stale |= epoch != self.epoch,
                Mail::Child(child) => drop(self.children.insert(child, true)),
                Mail::Leave => {
                    self.leaving = true;
                    // What would be sent now would be stopped at once.
                    self.dispatching = Dispatching::Deferred;
                }
            }
        }
        if letters {
            self.read_letters(&mut inputs).await;
        }
        for done in std::mem::take(&mut self.results) {
            let Done { at, dispatch_no, execution, verdict } = done;
            self.streams.end(at, dispatch_no, &mut inputs);
            let command = match execution {
                Execution::Done(answer) => Command::Complete { at, dispatch_no, answer },
                Execution::Accepted => Command::Accepted { at, dispatch_no },
            };
            let command = match verdict {
                Some(verdict) => Command::Checked { command: Box::new(command), verdict },
                None => command,
            };
            inputs.push(Input::new(command));
        }
        // Sifted first: a letter whose verdict has come is not held a second time.
        let mut inputs = self.sift(inputs).await;
        inputs.extend(self.judging.take());
        inputs
    }

    /// Results that must be judged first are held back until they are.
    async fn sift(&mut self, inputs: Vec<Input>) -> Vec<Input> {
        let mut ready = Vec::with_capacity(inputs.len());
        for input in inputs {
            // It is in the inbox until it is applied, and is read again and again.
            if input.letter.is_some_and(|letter| self.judging.holds(letter)) {
                continue;
            }
            let judge = Arc::clone(&self.engine.judge);
            match (self.run.output_subject(&input.command), self.dispatching) {
                (None, _) => ready.push(input),
                (Some(subject), Dispatching::Allowed) => self.judging.hold(input, subject, &judge),
                // Whoever does the work finds the letter.
                (Some(_), Dispatching::Deferred) if input.letter.is_some() => {}
                (Some(subject), Dispatching::Deferred) => {
                    let asked = async move { judged(input, &subject, &judge).await };
                    let input = self.while_calling(asked).await;
                    ready.push(input);
                }
            }
        }
        ready
    }

    /// Whether what came may end attempts other than those that answered: what
    /// they said until now must be in the journal before.
    fn may_end_attempts(&self, mails: &[Mail]) -> bool {
        let told = |mail: &Mail| {
            matches!(mail, Mail::Command(..) | Mail::Letters | Mail::Leave | Mail::Claimed(_))
        };
        let stops = |done: &Done| match &done.execution {
            Execution::Done(_) => self.fails_fast,
            Execution::Accepted => false,
        };
        // What was judged may be the result of another step.
        let judged = self.judging.has_answers();
        judged || mails.iter().any(told) || self.results.iter().any(stops)
    }

    /// Puts what was kept back before `inputs`, if time alone ends attempts now.
    pub(crate) fn hurry(&mut self, inputs: &mut Vec<Input>, now_ms: u64) {
        if self.run.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            let mut kept = Vec::new();
            self.streams.take_all(&mut kept);
            inputs.splice(0..0, kept);
        }
    }

    async fn read_letters(&mut self, inputs: &mut Vec<Input>) {
        let letters = match self.engine.store.letters(Inbox::Run(self.run.id)).await {
            Ok(letters) => letters,
            Err(error) => {
                // The next sweep finds them again.
                tracing::warn!(run = %self.run.id, %error, "the inbox cannot be read now");
                return;
            }
        };
        for received in letters {
            if !received.is_authentic {
                let key = &received.letter.key;
                tracing::error!(run = %self.run.id, key, "a letter is not authentic and is put away unread");
                self.unreadable.push(received.id);
                continue;
            }
            match letter::decode(&received.letter.body, |step| self.run.find(step)) {
                Ok(command) => {
                    inputs.push(Input { command, reply: None, letter: Some(received.id) });
                }
                Err(error) => {
                    tracing::error!(run = %self.run.id, %error, "a letter is put away unread");
                    self.unreadable.push(received.id);
                }
            }
        }
    }

    /// Waits for `work` while the calls in flight go on.
    pub(crate) async fn while_calling<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(done) = self.calls.next(), if !self.calls.is_empty() => {
                    self.results.push(done);
                }
                () = self.judging.next(), if !self.judging.is_empty() => {}
            }
        }
    }

    /// Tells whoever watches, and shows them the frame that led here.
    pub(crate) fn publish(&self, hold: Hold, frame: impl FnOnce() -> Option<Frame>) {
        let tip = Tip {
            version: self.run.version,
            status: self.run.status,
            resident: hold == Hold::Keep,
        };
        self.engine.watches.tell(self.run.id, tip, frame);
    }

    /// Does what is due and not yet done, and stops what is no longer.
    pub(crate) fn perform(&mut self) {
        let stopping = self.run.is_stopping();
        let (mut wanted, mut asked) = (BTreeSet::new(), BTreeSet::new());
        let effects: Vec<Effect> = self.run.due().collect();
        for effect in effects {
            match effect {
                Effect::Dispatch { at, dispatch_no } => {
                    wanted.insert(at);
                    let known = self.performing.get(&at).map(|(number, _)| *number);
                    if known != Some(dispatch_no) {
                        self.dispatch(at, dispatch_no);
                    }
                }
                Effect::Moderate { at } => {
                    asked.insert(at);
                    self.judging.ask(&self.run, at, &self.engine.judge);
                }
                Effect::Child { at, child } => {
                    if let Entry::Vacant(entry) = self.children.entry(child) {
                        entry.insert(false);
                        let request = crate::children::request(&self.run, at, child);
                        Arc::clone(&self.engine).start_child(self.run.id, child, request);
                    }
                }
            }
        }
        self.judging.keep(&asked);
        self.performing.retain(|at, (_, cancel)| {
            let keep = wanted.contains(at);
            if !keep || stopping {
                cancel.cancel();
            }
            keep
        });
    }

    fn dispatch(&mut self, at: StepAt, dispatch_no: u32) {
        let request = self.run.request(at);
        let cancel = CancellationToken::new();
        let replaced = self.performing.insert(at, (dispatch_no, cancel.clone()));
        if let Some((_, old)) = replaced {
            old.cancel();
        }
        let rules = self.engine.trust.rules();
        let row = rules.fabric.gateways.get(&request.gateway);
        let gateway = row.map(|row| (request.gateway.as_str(), row));
        let Some(adapter) = self.engine.agents.at(&request.agent, gateway) else {
            let message = format!(
                "gateway `{}` cannot do the work of agent `{}`",
                request.gateway, request.agent
            );
            let answer = Box::new(Answer::failed(CallErrorCode::InvalidRequest, message));
            let execution = Execution::Done(answer);
            self.results.push(Done { at, dispatch_no, execution, verdict: None });
            return;
        };
        let moderated = self.run.step(at).moderation.covers(Phase::Output);
        let subject = moderated.then(|| self.run.subject(at, Phase::Output, String::new()));
        let stream = self.streams.open(at, dispatch_no);
        let calling = Calling {
            adapter,
            outlet: Outlet { at, dispatch_no, mailbox: self.sender.clone(), stream },
            judge: subject.map(|subject| (Arc::clone(&self.engine.judge), subject)),
            cancel,
            grace_ms: self.engine.config.grace_ms,
        };
        self.calls.push(Box::pin(call(calling, request)));
    }

    /// Tells those whose tools were decided about, now that it is durable.
    fn answer_asking(&mut self) {
        let run = &self.run;
        self.asking = std::mem::take(&mut self.asking)
            .into_iter()
            .filter_map(|one| one.settle(run))
            .collect();
    }

    /// Tells those who work elsewhere on what nobody wants any more.
    fn recall(&mut self) {
        let gone = self.abroad.update(&self.run);
        for away in gone {
            let rules = self.engine.trust.rules();
            let row = rules.fabric.gateways.get(&away.gateway);
            let row = row.map(|row| (away.gateway.as_str(), row));
            if let Some(adapter) = self.engine.agents.at(&away.agent, row) {
                self.engine.spawn(async move { adapter.recall(&away.recall).await });
            }
        }
    }

    /// Whether a child that must exist is not known to.
    pub(crate) fn offspring(&self) -> Offspring {
        let mut effects = self.run.due();
        let open = effects.any(|effect| match effect {
            Effect::Child { child, .. } => self.children.get(&child) != Some(&true),
            Effect::Dispatch { .. } | Effect::Moderate { .. } => false,
        });
        if open { Offspring::Awaited } else { Offspring::Known }
    }

    pub(crate) fn hold(&self, now_ms: u64) -> Hold {
        if !self.run.is_parked() || self.judging.holds_results() {
            // Most turns end here, without a look at everything in flight.
            return Hold::Keep;
        }
        self.engine.hold(&self.run, now_ms, self.offspring())
    }

    /// Gives a parked run up without an event.
    async fn give_up(&mut self) -> Standing {
        match self.release().await {
            Committed::Done | Committed::Left => {
                self.publish(Hold::Release, || None);
                Standing::Released
            }
            Committed::Not | Committed::Refused => Standing::Lost,
        }
    }

    /// What is still under way is stopped before the run is forgotten.
    async fn stop_calls(&mut self, standing: Standing) {
        for (_, cancel) in self.performing.values() {
            cancel.cancel();
        }
        self.judging.stop();
        if standing == Standing::Lost {
            self.calls.clear();
        }
        while self.calls.next().await.is_some() {}
    }
}

/// Lines of one step that come together are one event: a step that talks a lot
/// does not fill the journal with it.
fn log(inputs: &mut Vec<Input>, at: StepAt, dispatch_no: u32, text: String) {
    if let Some(Input {
        command: Command::Log { at: of, dispatch_no: number, text: lines }, ..
    }) = inputs.last_mut()
        && (*of, *number) == (at, dispatch_no)
        && lines.len() + text.len() < LOG_LINE_BYTES_MAX
    {
        lines.push('\n');
        lines.push_str(&text);
        return;
    }
    inputs.push(Input::new(Command::Log { at, dispatch_no, text }));
}

/// Loads a run that this process owns.
pub(crate) async fn fold(engine: &Inner, run: RunId) -> Result<Folded, LoadError> {
    load(&*engine.store, &engine.definitions, run).await
}
