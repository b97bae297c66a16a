//! A run that goes on, shown while it does: by whoever works on it, or watches.
//!
//! The run is read from the store again and again, never from the engine's
//! memory, so that a run in another process is shown by the same code.

mod ask;
mod ending;
mod family;
mod line;
mod screen;
mod there;

use crate::Exit;
use crate::cli::run::View;
use crate::config::{self, setting};
use crate::environment;
use crate::local::{self, Again, Local};
use crate::out::Out;
use crate::stop::{Signal, Stop};
pub(crate) use there::follow as follow_there;

use ask::Prompt;
use family::Family;
use line::Lines;
use screen::Screen;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::Clock as _;
use sluice_core::port::Entropy as _;
use sluice_core::run::command::{Command, Decision, Refusal, Resolve};
use sluice_core::run::id::{ApprovalId, RunId};
use sluice_core::run::state::{Pause, Run};
use sluice_core::visible;
use sluice_engine::error::CommandError;
use sluice_engine::tail::Reader;
use sluice_engine::watch::Tip;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::refused;
use sluice_server::service::find;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, stderr, stdin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often a view that moves is drawn.
const DRAW_MS: u64 = 100;
/// How often the run is read again even if nothing seems to have happened.
const LOOK_MS: u64 = 500;
/// Shortest time between two readings; a run that takes long to read is read less often.
const GAP_MS: u64 = 20;
/// What a reading may cost of the time, as one part of so many.
const SHARE: u32 = 5;
/// How often in a row a run must be found waiting for people only.
const PARKED_MIN: u32 = 2;

/// What this process has to do with the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// It looks on.
    Watch,
    /// It does the work.
    Work {
        /// In whose name questions are answered.
        who: String,
        /// Whether whatever is asked is approved.
        yes: bool,
    },
}

/// A run to be followed.
pub(crate) struct Follow<'a> {
    pub(crate) local: &'a Local,
    pub(crate) run: RunId,
    pub(crate) view: View,
    pub(crate) part: Part,
    /// Events up to this one are not shown.
    pub(crate) after: u64,
    /// Options that a next command needs too, for hints.
    pub(crate) again: Again,
    /// Signals, where they do not simply end the process.
    pub(crate) stop: Option<&'a mut Stop>,
}

/// A key that no other command has.
pub(crate) fn key(word: &str) -> String {
    format!("{word}-{:016x}", SystemEntropy.bits())
}

/// Asks the person at the terminal whether to go on; no if there is nobody.
pub(crate) fn confirm(out: &mut Out) -> anyhow::Result<bool> {
    if !(stderr().is_terminal() && stdin().is_terminal()) {
        return Ok(false);
    }
    out.ask("go on? [y/n] ")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Follows a run until it ends, or waits for people who are not here.
pub(crate) async fn follow(follow: Follow<'_>, out: &mut Out) -> anyhow::Result<Exit> {
    Live::new(follow).await?.go(out).await
}

struct Live<'a> {
    follow: Follow<'a>,
    reader: Reader,
    lines: Lines,
    screen: Option<Screen>,
    prompt: Option<Prompt>,
    /// When the first interrupt came.
    interrupted: Option<Instant>,
    trouble: watch::Receiver<Option<String>>,
    tips: watch::Receiver<Option<Tip>>,
    /// Questions that are left to others.
    left: BTreeSet<ApprovalId>,
    parked: u32,
    paused: bool,
    /// The version of the run at its last failure that is not its end.
    failed: u64,
}

impl<'a> Live<'a> {
    async fn new(follow: Follow<'a>) -> anyhow::Result<Live<'a>> {
        let on_terminal = stderr().is_terminal() && !environment::terminal_is_dumb();
        let drawn = on_terminal && !follow.view.json && !follow.view.events;
        let works = follow.part != Part::Watch;
        let asks = works && stderr().is_terminal() && stdin().is_terminal();
        let reader = follow.local.engine.reader(follow.run, follow.after).await;
        Ok(Live {
            reader: reader.map_err(refused::load)?,
            lines: Lines::default(),
            screen: drawn.then(Screen::new),
            prompt: asks.then(Prompt::default),
            interrupted: None,
            trouble: follow.local.engine.trouble(),
            tips: follow.local.engine.follow(follow.run),
            left: BTreeSet::new(),
            parked: 0,
            paused: false,
            failed: 0,
            follow,
        })
    }

    async fn go(mut self, out: &mut Out) -> anyhow::Result<Exit> {
        loop {
            let began = Instant::now();
            let run = find::load(self.follow.local, self.follow.run).await?;
            let gap = (began.elapsed() * SHARE).max(Duration::from_millis(GAP_MS));
            self.tell(&run, out).await?;
            if run.status.is_terminal() && !self.recovers(&run, out)? {
                return self.end(&run, out).await;
            }
            if let Part::Work { who, yes } = self.follow.part.clone()
                && let Some(exit) = self.see_to(&run, &who, yes, out).await?
            {
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

    /// Whether the run should be cancelled and the store has not taken that for
    /// `limits.drain_ms`.
    fn cancels_in_vain(&self) -> bool {
        let patience = Duration::from_millis(config::get().number(setting::Name::DrainMs));
        let late = self.interrupted.is_some_and(|at| at.elapsed() >= patience);
        late && self.trouble.borrow().is_some()
    }

    /// Waits until the run may have changed, and keeps the view moving.
    async fn wait(
        &mut self,
        run: &Run,
        gap: Duration,
        out: &mut Out,
    ) -> anyhow::Result<Option<Exit>> {
        let soonest = tokio::time::Instant::now() + gap;
        // Whether it really waits for people is seen at the second look.
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
                screen.draw(&ending::picture(run), SystemClock.now_ms());
            }
            let tick = moment + Duration::from_millis(DRAW_MS);
            let until = if wanted { soonest } else { latest }.min(tick);
            tokio::select! {
                biased;
                signal = received(&mut self.follow.stop) => {
                    if let Some(exit) = self.stop(signal, out)? {
                        return Ok(Some(exit));
                    }
                }
                Ok(()) = self.trouble.changed() => self.tell_trouble(out)?,
                Ok(()) = self.tips.changed(), if !wanted => wanted = true,
                () = &mut changed, if !wanted => wanted = true,
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Shows what has happened since the last time.
    async fn tell(&mut self, run: &Run, out: &mut Out) -> anyhow::Result<()> {
        let view = self.follow.view;
        if let Some(screen) = &mut self.screen {
            screen.draw(&ending::picture(run), SystemClock.now_ms());
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
                            if let Some(lines) = self.lines.of(&event.kind, &event.json) {
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
            let text = format!("paused; `sluice runs unpause {}{again}` lets it go on", run.id);
            self.note(&text, out)?;
        }
        self.paused = paused;
        Ok(())
    }

    /// A line for people, outside the part that is drawn again and again.
    fn note(&mut self, text: &str, out: &mut Out) -> anyhow::Result<()> {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
        out.note(text)
    }

    fn tell_trouble(&mut self, out: &mut Out) -> anyhow::Result<()> {
        let trouble = self.trouble.borrow_and_update().clone();
        let text = match trouble {
            Some(why) => format!("cannot write: {}; trying again", visible::brief(&why)),
            None => "writing works again".to_owned(),
        };
        self.note(&text, out)
    }

    /// The first interrupt cancels the run, a request to terminate leaves it to the
    /// next process. The second signal ends this one.
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
                let text = format!("leaving; `sluice resume {}{again}` goes on", self.follow.run);
                self.note(&text, out)?;
                Ok(Some(signal.exit()))
            }
        }
    }

    fn cancel(&mut self, out: &mut Out) -> anyhow::Result<()> {
        self.interrupted = Some(Instant::now());
        self.note("cancelling; interrupt once more to end at once", out)?;
        let Part::Work { who, .. } = self.follow.part.clone() else { return Ok(()) };
        let engine = Arc::clone(&self.follow.local.engine);
        let run = self.follow.run;
        tokio::spawn(async move {
            let reason = "interrupted at the terminal".to_owned();
            let cancel = Command::Cancel { by: who, reason };
            // One that has just ended needs no cancelling.
            let _ = engine.command(run, cancel, &key("cancel")).await;
        });
        Ok(())
    }

    /// Keeps the family going and its questions answered.
    async fn see_to(
        &mut self,
        run: &Run,
        who: &str,
        yes: bool,
        out: &mut Out,
    ) -> anyhow::Result<Option<Exit>> {
        let family = Family::look(self.follow.local, run).await?;
        let mut acted = family.taken_up;
        for (asker, id) in &family.open {
            if self.left.contains(id) || self.interrupted.is_some() {
                continue;
            }
            if yes && self.approve(asker, *id, who).await? {
                acted = true;
            } else if self.prompt.is_some() {
                match self.ask(asker, *id, who, out).await? {
                    Asked::Answered => acted = true,
                    Asked::Left => drop(self.left.insert(*id)),
                    Asked::Ended(exit) => return Ok(Some(exit)),
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
        self.tell(run, out).await?;
        self.wait_for_people(run, &family, out).await.map(Some)
    }

    /// Agrees, if a plain yes is an answer.
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

    /// Asks the person at the terminal, unless somebody else answers first.
    async fn ask(
        &mut self,
        run: &Run,
        id: ApprovalId,
        who: &str,
        out: &mut Out,
    ) -> anyhow::Result<Asked> {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
        let mut unfit: Option<Refusal> = None;
        loop {
            let Some(mut prompt) = self.prompt.take() else { return Ok(Asked::Left) };
            let local = self.follow.local;
            let answer = tokio::select! {
                biased;
                signal = received(&mut self.follow.stop) => Err(signal),
                () = closed(local, run.id, id) => return self.overtaken(prompt, out),
                answer = prompt.ask(run, id, who, unfit.as_ref(), out) => Ok(answer?),
            };
            match answer {
                Err(signal) => {
                    self.prompt = Some(prompt);
                    out.note("")?;
                    return Ok(self.stop(signal, out)?.map_or(Asked::Answered, Asked::Ended));
                }
                // The terminal is gone: nobody is left to ask.
                Ok(None) => return Ok(Asked::Left),
                Ok(Some(resolve)) => {
                    self.prompt = Some(prompt);
                    match self.resolve(run.id, resolve).await? {
                        Ok(()) | Err(Refusal::Resolved(_) | Refusal::Ended(_)) => {
                            return Ok(Asked::Answered);
                        }
                        Err(refusal) => unfit = Some(refusal),
                    }
                }
            }
        }
    }

    fn overtaken(&mut self, prompt: Prompt, out: &mut Out) -> anyhow::Result<Asked> {
        self.prompt = Some(prompt);
        out.note("\nanswered elsewhere")?;
        Ok(Asked::Answered)
    }
}

/// What became of a question.
enum Asked {
    Answered,
    Left,
    /// A signal ends the command.
    Ended(Exit),
}

/// Says that the process ends before the run was handed over.
pub(crate) fn killed(run: RunId, again: &Again) -> String {
    format!("killed; `sluice resume {run}{}` goes on with what is left", again.work)
}

/// Completes at the next signal; never where signals are not caught.
async fn received(stop: &mut Option<&mut Stop>) -> Signal {
    match stop {
        Some(stop) => stop.next().await,
        None => std::future::pending().await,
    }
}

/// Completes when the question needs no answer any more.
async fn closed(local: &Local, run: RunId, id: ApprovalId) {
    loop {
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        if let Ok(run) = local.engine.load(run).await {
            let open = run.approvals.get(&id).is_some_and(|asked| asked.resolution.is_none());
            if !open || run.status.is_terminal() {
                return;
            }
        }
    }
}
