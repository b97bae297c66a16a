//! Shows a run that this process executes, and prompts for its approvals.
//!
//! The run is read from the store, never from the engine's memory: its child runs may be in
//! another process.

mod ending;
mod family;
mod line;
mod prompt;
mod screen;
mod watch;

use crate::Exit;
use crate::cli::run::View;
use crate::config::{self, setting};
use crate::environment;
use crate::local::{self, Again, Local};
use crate::out::Out;
use crate::stop::{Signal, StopSignals};
pub(crate) use watch::watch;

use family::Family;
use line::EventLines;
use prompt::Prompt;
use screen::Screen;
use sluice_core::id::Entropy as _;
use sluice_core::id::{ApprovalId, RunId};
use sluice_core::journal::envelope::Seen;
use sluice_core::port::Clock as _;
use sluice_core::run::command::{Command, Decision, Refusal, Resolve};
use sluice_core::run::state::{Pause, Run};
use sluice_core::visible;
use sluice_engine::error::CommandError;
use sluice_engine::tail::Reader;
use sluice_engine::watch::Tip;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::refused;
use sluice_server::service::{find, runs};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, stderr, stdin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch::Receiver;

/// Interval of redraws.
const DRAW_MS: u64 = 100;
/// Longest time between two reads of the run.
const LOOK_MS: u64 = 500;
/// Shortest time between two reads; a run that takes long to load is read less often.
const GAP_MS: u64 = 20;
/// Loading may take one part in this many of the time.
const SHARE: u32 = 5;
/// How often in a row a run must be found waiting for approvals only.
const PARKED_MIN: u32 = 2;

/// A run whose work this process does.
pub(crate) struct FollowedRun<'a> {
    pub(crate) local: &'a Local,
    pub(crate) run: RunId,
    pub(crate) view: View,
    /// The principal that approves and cancels.
    pub(crate) who: String,
    /// Whether every approval request is approved.
    pub(crate) yes: bool,
    /// Events up to this one are not shown.
    pub(crate) after: u64,
    /// Options that a hint for the next command repeats.
    pub(crate) again: Again,
    pub(crate) stop: &'a mut StopSignals,
}

/// A unique key of a command.
pub(crate) fn key(word: &str) -> String {
    format!("{word}-{:016x}", SystemEntropy.bits())
}

/// Prompts for a confirmation; false without a terminal.
pub(crate) fn confirm(out: &mut Out) -> anyhow::Result<bool> {
    if !(stderr().is_terminal() && stdin().is_terminal()) {
        return Ok(false);
    }
    out.prompt("continue? [y/n] ")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Follows a run until it ends, or waits for an approval that this terminal cannot give.
pub(crate) async fn follow(follow: FollowedRun<'_>, out: &mut Out) -> anyhow::Result<Exit> {
    Live::new(follow).await?.run(out).await
}

struct Live<'a> {
    follow: FollowedRun<'a>,
    reader: Reader,
    lines: EventLines,
    screen: Option<Screen>,
    prompt: Option<Prompt>,
    interrupted: Option<Instant>,
    trouble: Receiver<Option<String>>,
    tips: Receiver<Option<Tip>>,
    /// Approvals that are not prompted for.
    left: BTreeSet<ApprovalId>,
    parked: u32,
    paused: bool,
    /// What steps of the run wait for in their child runs.
    child_waits: BTreeMap<String, String>,
    /// The version of the run at its last failure that is retried.
    failed: u64,
}

impl<'a> Live<'a> {
    async fn new(follow: FollowedRun<'a>) -> anyhow::Result<Live<'a>> {
        let on_terminal = stderr().is_terminal() && !environment::terminal_is_dumb();
        let drawn = on_terminal && !follow.view.json && !follow.view.events;
        let asks = stderr().is_terminal() && stdin().is_terminal();
        let reader = follow.local.engine.reader(follow.run, follow.after).await;
        Ok(Live {
            reader: reader.map_err(refused::load)?,
            lines: EventLines::default(),
            screen: drawn.then(Screen::new),
            prompt: asks.then(Prompt::default),
            interrupted: None,
            trouble: follow.local.engine.trouble(),
            tips: follow.local.engine.follow(follow.run),
            left: BTreeSet::new(),
            parked: 0,
            paused: false,
            child_waits: BTreeMap::new(),
            failed: 0,
            follow,
        })
    }

    async fn run(mut self, out: &mut Out) -> anyhow::Result<Exit> {
        loop {
            let began = Instant::now();
            let run = find::load(self.follow.local, self.follow.run).await?;
            let gap = (began.elapsed() * SHARE).max(Duration::from_millis(GAP_MS));
            self.print_events(&run, out).await?;
            if run.status.is_terminal() && !self.recovers(&run, out)? {
                return self.end(&run, out).await;
            }
            if let Some(exit) = self.attend(&run, out).await? {
                return Ok(exit);
            }
            if self.cancels_in_vain() {
                return Ok(Exit::Interrupted);
            }
            if let Some(exit) = self.wait(&run, gap, out).await? {
                return Ok(exit);
            }
        }
    }

    /// Whether the store has rejected the cancellation of the run for `limits.drain_ms`.
    fn cancels_in_vain(&self) -> bool {
        let patience = Duration::from_millis(config::get().number(setting::Name::DrainMs));
        let late = self.interrupted.is_some_and(|at| at.elapsed() >= patience);
        late && self.trouble.borrow().is_some()
    }

    /// Waits until the run may have changed, and redraws meanwhile.
    async fn wait(
        &mut self,
        run: &Run,
        gap: Duration,
        out: &mut Out,
    ) -> anyhow::Result<Option<Exit>> {
        let soonest = tokio::time::Instant::now() + gap;
        // A run that seems to wait for approvals is read again soon, to be sure.
        let look_ms = if self.parked > 0 { GAP_MS } else { LOOK_MS };
        let latest = soonest + Duration::from_millis(look_ms);
        let local = self.follow.local;
        let changed = local.store.changed(LOOK_MS);
        tokio::pin!(changed);
        let mut wanted = false;
        loop {
            let moment = tokio::time::Instant::now();
            if moment >= latest || (wanted && moment >= soonest) {
                return Ok(None);
            }
            if let Some(screen) = &mut self.screen {
                screen.draw(&ending::picture_with(run, &self.child_waits), SystemClock.now_ms());
            }
            let tick = moment + Duration::from_millis(DRAW_MS);
            let until = if wanted { soonest } else { latest }.min(tick);
            tokio::select! {
                biased;
                signal = self.follow.stop.next() => {
                    if let Some(exit) = self.stop(signal, out)? {
                        return Ok(Some(exit));
                    }
                }
                Ok(()) = self.trouble.changed() => self.print_trouble(out)?,
                Ok(()) = self.tips.changed(), if !wanted => wanted = true,
                () = &mut changed, if !wanted => wanted = true,
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Prints the events since the last call.
    async fn print_events(&mut self, run: &Run, out: &mut Out) -> anyhow::Result<()> {
        let view = self.follow.view;
        if let Some(screen) = &mut self.screen {
            screen.draw(&ending::picture_with(run, &self.child_waits), SystemClock.now_ms());
        } else {
            loop {
                let page = self.reader.read().await.map_err(refused::load)?;
                if page.is_empty() {
                    break;
                }
                for seen in page {
                    match &*seen {
                        Seen::Event(event) if view.events => out.json_text(&event.json)?,
                        Seen::Event(event) => {
                            if let Some(lines) = self.lines.draw(&event.kind, &event.json) {
                                out.note(&lines)?;
                            }
                        }
                        Seen::Elided { first, last } if view.events => {
                            out.note(&format!("events {first} to {last} were elided"))?;
                        }
                        Seen::Elided { .. } => {}
                    }
                }
                out.flush()?;
            }
        }
        let paused = run.pause == Some(Pause::Operator);
        if paused && !self.paused {
            let again = &self.follow.again.look;
            let text = format!("paused; `sluice runs unpause {}{again}` resumes it", run.id);
            self.note(&text, out)?;
        }
        self.paused = paused;
        Ok(())
    }

    /// Reads what steps wait for in their child runs, and prints it unless it is drawn.
    async fn print_child_waits(&mut self, run: &Run, out: &mut Out) -> anyhow::Result<()> {
        self.child_waits = runs::child_waits(self.follow.local, run).await;
        if self.screen.is_none() && !self.follow.view.events {
            for line in self.lines.draw_child_waits(&self.child_waits) {
                out.note(&line)?;
            }
        }
        Ok(())
    }

    /// Prints a line above the part that is redrawn.
    fn note(&mut self, text: &str, out: &mut Out) -> anyhow::Result<()> {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
        out.note(text)
    }

    fn print_trouble(&mut self, out: &mut Out) -> anyhow::Result<()> {
        let trouble = self.trouble.borrow_and_update().clone();
        let text = match trouble {
            Some(why) => format!("cannot write: {}; trying again", visible::brief(&why)),
            None => "writing works again".to_owned(),
        };
        self.note(&text, out)
    }

    /// SIGINT cancels the run, SIGTERM releases it. The second signal ends this process.
    fn stop(&mut self, signal: Signal, out: &mut Out) -> anyhow::Result<Option<Exit>> {
        match signal {
            _ if self.interrupted.is_some() => {
                let text = killed(self.follow.run, &self.follow.again);
                self.note(&text, out)?;
                Ok(Some(signal.exit()))
            }
            Signal::Interrupt => self.cancel(out).map(|()| None),
            Signal::Terminate => {
                let again = &self.follow.again.work;
                let text =
                    format!("leaving; `sluice resume {}{again}` continues it", self.follow.run);
                self.note(&text, out)?;
                Ok(Some(signal.exit()))
            }
        }
    }

    fn cancel(&mut self, out: &mut Out) -> anyhow::Result<()> {
        self.interrupted = Some(Instant::now());
        self.note("cancelling; interrupt again to end at once", out)?;
        let who = self.follow.who.clone();
        let engine = Arc::clone(&self.follow.local.engine);
        let run = self.follow.run;
        tokio::spawn(async move {
            let reason = "interrupted at the terminal".to_owned();
            let cancel = Command::Cancel { by: who, reason };
            // The run may have ended just now.
            let _ = engine.command(run, cancel, &key("cancel")).await;
        });
        Ok(())
    }

    /// Claims due runs of the family, and prompts for their approvals.
    async fn attend(&mut self, run: &Run, out: &mut Out) -> anyhow::Result<Option<Exit>> {
        let (who, yes) = (self.follow.who.clone(), self.follow.yes);
        let family = Family::load(self.follow.local, run).await?;
        self.print_child_waits(run, out).await?;
        let mut acted = family.claimed;
        for (child, id) in &family.open {
            if self.left.contains(id) || self.interrupted.is_some() {
                continue;
            }
            if yes && self.approve(child, *id, &who).await? {
                acted = true;
            } else if self.prompt.is_some() {
                match self.prompt(child, *id, &who, out).await? {
                    PromptOutcome::Answered => acted = true,
                    PromptOutcome::Left => drop(self.left.insert(*id)),
                    PromptOutcome::Ended(exit) => return Ok(Some(exit)),
                }
            } else {
                self.left.insert(*id);
            }
        }
        let idle = !acted && !family.retries && self.follow.local.engine.residents() == 0;
        let people = !(family.open.is_empty() && family.blocked.is_empty());
        let waits = idle && people && self.interrupted.is_none();
        self.parked = if waits { self.parked + 1 } else { 0 };
        if self.parked < PARKED_MIN {
            return Ok(None);
        }
        self.print_events(run, out).await?;
        self.wait_for_people(run, &family, out).await.map(Some)
    }

    /// Approves, unless the approval needs values or a choice.
    async fn approve(&self, run: &Run, id: ApprovalId, who: &str) -> anyhow::Result<bool> {
        let approve = Resolve {
            approval: id,
            decision: Decision::Approve,
            by: who.to_owned(),
            comment: None,
            values: serde_json::Map::new(),
            roles: local::roles(&[]),
            constraints: None,
        };
        match self.resolve(run.id, approve).await? {
            Ok(()) | Err(Refusal::Resolved(_) | Refusal::Ended(_)) => Ok(true),
            Err(_) => Ok(false),
        }
    }

    async fn resolve(&self, run: RunId, resolve: Resolve) -> anyhow::Result<Result<(), Refusal>> {
        let command = Command::Resolve(Box::new(resolve));
        match self.follow.local.engine.command(run, command, &key("resolve")).await {
            Ok(_) => Ok(Ok(())),
            Err(CommandError::Refused(refusal)) => Ok(Err(refusal)),
            Err(error) => Err(refused::command(run, error).into()),
        }
    }

    /// Prompts at the terminal, unless another process decides first.
    async fn prompt(
        &mut self,
        run: &Run,
        id: ApprovalId,
        who: &str,
        out: &mut Out,
    ) -> anyhow::Result<PromptOutcome> {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
        let mut unfit: Option<Refusal> = None;
        loop {
            let Some(mut prompt) = self.prompt.take() else { return Ok(PromptOutcome::Left) };
            let local = self.follow.local;
            let answer = tokio::select! {
                biased;
                signal = self.follow.stop.next() => Err(signal),
                () = closed(local, run.id, id) => return self.overtaken(prompt, out),
                answer = prompt.decide(run, id, who, unfit.as_ref(), out) => Ok(answer?),
            };
            match answer {
                Err(signal) => {
                    self.prompt = Some(prompt);
                    out.note("")?;
                    return Ok(self
                        .stop(signal, out)?
                        .map_or(PromptOutcome::Answered, PromptOutcome::Ended));
                }
                // The terminal was closed.
                Ok(None) => return Ok(PromptOutcome::Left),
                Ok(Some(resolve)) => {
                    self.prompt = Some(prompt);
                    match self.resolve(run.id, resolve).await? {
                        Ok(()) | Err(Refusal::Resolved(_) | Refusal::Ended(_)) => {
                            return Ok(PromptOutcome::Answered);
                        }
                        Err(refusal) => unfit = Some(refusal),
                    }
                }
            }
        }
    }

    fn overtaken(&mut self, prompt: Prompt, out: &mut Out) -> anyhow::Result<PromptOutcome> {
        self.prompt = Some(prompt);
        out.note("\ndecided by another process")?;
        Ok(PromptOutcome::Answered)
    }
}

enum PromptOutcome {
    Answered,
    Left,
    Ended(Exit),
}

/// The note of a process that ends before the run was released.
pub(crate) fn killed(run: RunId, again: &Again) -> String {
    format!("killed; `sluice resume {run}{}` continues it", again.work)
}

/// Completes when the approval is no longer pending.
async fn closed(local: &Local, run: RunId, id: ApprovalId) {
    loop {
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        if let Ok(run) = local.engine.load(run).await {
            let open = run.approvals.get(&id).is_some_and(|approval| approval.resolution.is_none());
            if !open || run.status.is_terminal() {
                return;
            }
        }
    }
}
