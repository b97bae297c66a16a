//! What a command does to one run.
//!
//! A [`Turn`] takes commands, one after the other, and decides each against the
//! run as the earlier ones left it; [`Turn::finish`] then starts and settles
//! whatever follows. The events of a turn become one append.
//!
//! INVARIANT: a refused command leaves no event.
//! INVARIANT: effects are read from the run (`due`), never returned from here.
//! Live and recovery take the same path, so a crash after append loses nothing.

mod advance;
mod approve;
mod assign;
mod bind;
mod cancel;
mod child;
mod complete;
mod dossier;
mod fail;
mod fan_out;
mod gate;
mod govern;
mod guards;
mod halt;
mod layer;
mod moderate;
pub(super) mod money;
mod node;
mod origins;
mod outcome;
pub(super) mod rewind;
mod session;
mod timer;
mod tool;

use super::command::{Command, Dispatching, Given, Refusal};
use super::id::RunId;
use super::letter::Letter;
use super::state::{Run, StepState};
use crate::journal::event::{Event, StepAt, StepEvent};
use crate::port::memo::Memo;
use crate::port::moderator::Verdict;
use crate::port::store::Guard;
pub(super) use bind::SHELL;
use child::Ended;
use guards::Guards;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Commands being decided.
pub struct Turn<'a> {
    run: &'a mut Run,
    given: Given<'a>,
    events: Vec<Event>,
    letters: Vec<Letter>,
    /// Fan-outs an instance of which was settled.
    fan_outs: Vec<u32>,
    /// What must hold when this becomes durable.
    guards: Guards,
    /// Steps at a gate that were looked at in this turn.
    looked: BTreeSet<StepAt>,
    /// Dispatches made in this turn: they certainly have not begun.
    sent: BTreeSet<(StepAt, u32)>,
    /// What the moderator says of the result that is being decided.
    verdict: Option<Verdict>,
    /// Answers to be remembered, oldest first.
    memos: Vec<Memo>,
    /// The arguments as expressions see them.
    args: Arc<Value>,
    /// Whether the run waited only for people when the turn began.
    rested: bool,
}

/// What a turn came to.
#[derive(Debug, Default)]
pub struct Decided {
    /// In order; folded into the run already.
    pub events: Vec<Event>,
    /// For other runs, to be posted with the append.
    pub letters: Vec<Letter>,
    /// What must hold when this becomes durable, and what it changes.
    pub guards: Vec<Guard>,
    /// Answers to be remembered, oldest first.
    pub memos: Vec<Memo>,
}

impl<'a> Turn<'a> {
    /// Begins. What is decided is folded into `run` at once: if the append
    /// fails, the run must be dropped and loaded again.
    pub fn new(run: &'a mut Run, given: Given<'a>) -> Turn<'a> {
        let args = Arc::clone(&run.args);
        let rested = run.rests();
        Turn {
            run,
            given,
            events: Vec::new(),
            letters: Vec::new(),
            fan_outs: Vec::new(),
            guards: Guards::default(),
            looked: BTreeSet::new(),
            sent: BTreeSet::new(),
            verdict: None,
            memos: Vec::new(),
            args,
            rested,
        }
    }

    /// The run as it is by now.
    pub fn run(&self) -> &Run {
        self.run
    }

    /// Decides a command.
    pub fn apply(&mut self, command: Command) -> Result<(), Refusal> {
        match command {
            Command::TakeOver => self.take_over(),
            Command::Complete { at, dispatch_no, answer } => {
                self.complete(at, dispatch_no, *answer)?;
            }
            Command::Accepted { at, dispatch_no } => self.accepted(at, dispatch_no)?,
            Command::Stream { at, dispatch_no, part } => self.stream(at, dispatch_no, part)?,
            Command::Log { at, dispatch_no, text } => self.log(at, dispatch_no, text)?,
            Command::Process { at, dispatch_no, process } => {
                self.process(at, dispatch_no, process)?;
            }
            Command::UseTool { at, dispatch_no, wanted } => {
                self.use_tool(at, dispatch_no, wanted)?;
            }
            Command::ToolEnded { at, dispatch_no, ended } => {
                self.tool_ended(at, dispatch_no, ended)?;
            }
            Command::Parts { at, dispatch_no, parts } => self.parts(at, dispatch_no, parts)?,
            Command::Moderated { at, digest, verdict } => self.moderated(at, &digest, &verdict)?,
            Command::Checked { command, verdict } => {
                self.verdict = Some(verdict);
                let decided = self.apply(*command);
                self.verdict = None;
                decided?;
            }
            Command::ChildEnded { child, status, outputs, error, origins } => {
                self.child_ended(Ended { child, status, outputs, error, origins })?;
            }
            Command::ChildPaced { child, pace, at_ms } => self.child_paced(child, pace, at_ms)?,
            Command::Cancel { by, reason } => self.cancel(&by, &reason)?,
            Command::Pause { by } => self.pause(&by)?,
            Command::Unpause { by } => self.unpause(&by)?,
            Command::Resolve(resolve) => self.resolve(*resolve)?,
            Command::Rewind { by, keep } => self.rewind(&by, &keep)?,
            Command::Retry { by } => self.retry(&by)?,
            Command::Assign { by, step, whom } => self.assign(&by, step, &whom)?,
        }
        Ok(())
    }

    /// Starts and settles everything that can be, now that all commands are decided.
    pub fn finish(mut self) -> Decided {
        self.advance();
        self.tell_pace();
        let guards = self.guards.into_list(self.given.authority);
        Decided { events: self.events, letters: self.letters, guards, memos: self.memos }
    }

    /// The append is refused if the registry has changed since the turn read it.
    pub(super) fn require_rows(&mut self) {
        self.guards.require_rows();
    }

    /// The same for what waits or fails because of the rows. A turn that may send
    /// nothing goes without: its rows may be unreadable, and it must come to an end.
    /// What it leaves waiting is decided again before it is sent.
    fn require_rows_to_wait(&mut self) {
        if self.given.dispatching == Dispatching::Allowed {
            self.guards.require_rows();
        }
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.run.evolve(&event, self.given.now_ms);
        self.events.push(event);
    }

    pub(super) fn node(&mut self, at: StepAt, event: StepEvent) {
        let landings = self.run.landings(at, &event);
        self.drop_tool_questions(at, &event, &landings);
        self.remember(at, &event);
        self.emit(Event::Step(at, event));
        for landing in landings {
            self.landed(&landing);
        }
        // What became known late may be of an instance that is gone.
        let settled = self.run.get(at).is_some_and(StepState::is_settled);
        if at.item.is_some() && settled {
            self.fan_outs.push(at.step);
        }
    }

    fn post(&mut self, run: RunId, key: String, command: Command) {
        self.letters.push(Letter { run, key, command });
    }
}
