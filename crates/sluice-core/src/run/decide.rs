//! What a command does to one run.
//!
//! A [`Turn`] takes commands, one after the other, and decides each against the
//! run as the earlier ones left it; [`Turn::finish`] then starts and settles
//! everything that follows. The events of a turn become one append.
//!
//! Four parts decide, and each is called only from above:
//! - `schedule` decides what happens next, and carries out what the others return;
//! - `admit` decides whether a step may be dispatched and returns an `Admission`;
//! - `settle` decides what a result means and returns what to do `Next`;
//! - `people` requests approvals and checks answers.
//!
//! All of them record events in the `draft`.
//!
//! INVARIANT: a refused command leaves no event.
//! INVARIANT: effects are read from the run (`due`), never returned from here.
//! Live and recovery take the same path, so a crash after append loses nothing.
//! INVARIANT: no two files of this folder call each other, and `admit`, `settle`
//! and `people` do not call one another (`tidy` checks both).

mod admit;
pub(super) mod draft;
mod origins;
mod people;
mod schedule;
mod settle;

use super::command::{Command, Given, Refusal};
use super::message::RunMessage;
use super::state::Run;
use crate::journal::event::{Event, LogLine, RunStarted, StepAt, StepEvent};
use crate::port::moderator::Verdict;
use crate::port::remembered_output::RememberedOutput;
use crate::port::store::Guard;
use draft::Draft;
use draft::pause::{pause, unpause};
use people::assign::assign;
use schedule::advance::advance;
use schedule::approval::answer_approval;
use schedule::dispatch::follow;
use schedule::end::report_pace;
use schedule::rewind::{retry, rewind};
use schedule::take_over::take_over;
use schedule::tool::use_tool;
use settle::cancel::cancel;
use settle::child::{ChildEnd, child_ended, child_paced};
use settle::complete::complete_dispatch;
use settle::moderate::input_moderated;
use settle::progress::{accepted, in_flight, log_text, stream, stream_parts, tool_ended};

/// Commands being decided.
pub struct Turn<'a> {
    draft: Draft<'a>,
    /// Whether the run waited only for people when the turn began.
    rested: bool,
}

/// The result of a turn.
#[derive(Debug, Default)]
pub struct Decided {
    /// In order; already folded into the run.
    pub events: Vec<Event>,
    /// Messages to other runs, sent with the append.
    pub messages: Vec<RunMessage>,
    /// Changes of counters, and the bounds that must hold when the append becomes durable.
    pub guards: Vec<Guard>,
    /// Outputs to remember, oldest first.
    pub remembered_outputs: Vec<RememberedOutput>,
}

impl<'a> Turn<'a> {
    /// Begins a turn. Each decision is folded into `run` at once: if the append
    /// fails, the run must be dropped and loaded again.
    pub fn new(run: &'a mut Run, given: Given<'a>) -> Turn<'a> {
        let rested = run.is_clock_stopped();
        Turn { draft: Draft::new(run, given), rested }
    }

    /// Records the start of a run, and the results that it takes over from another one.
    pub(super) fn start(&mut self, started: RunStarted, carried: Vec<(StepAt, StepEvent)>) {
        // The run keeps the posture, the gateway and the bindings of these rows.
        self.draft.guards.require_rows();
        self.draft.emit(Event::RunStarted(Box::new(started)));
        for (at, event) in carried {
            self.draft.record(at, event);
        }
    }

    /// Decides a command.
    pub fn apply(&mut self, command: Command) -> Result<(), Refusal> {
        self.decide(command, None)
    }

    /// Decides a command; `verdict` is the moderator's about the result in it.
    fn decide(&mut self, command: Command, verdict: Option<Verdict>) -> Result<(), Refusal> {
        let draft = &mut self.draft;
        match command {
            Command::TakeOver => take_over(draft),
            Command::Complete { at, dispatch_no, answer } => {
                let next = complete_dispatch(draft, at, dispatch_no, *answer, verdict)?;
                follow(draft, next);
            }
            Command::Accepted { at, dispatch_no } => {
                in_flight(draft.run, at, dispatch_no)?;
                accepted(draft, at);
            }
            Command::Stream { at, dispatch_no, part } => {
                in_flight(draft.run, at, dispatch_no)?;
                stream(draft, at, part);
            }
            Command::Log { at, dispatch_no, text } => {
                in_flight(draft.run, at, dispatch_no)?;
                log_text(draft, at, text);
            }
            Command::Process { at, dispatch_no, process } => {
                in_flight(draft.run, at, dispatch_no)?;
                draft.log(at, LogLine::Process(process));
            }
            Command::UseTool { at, dispatch_no, wanted } => {
                in_flight(draft.run, at, dispatch_no)?;
                use_tool(draft, at, wanted);
            }
            Command::ToolEnded { at, dispatch_no, ended } => {
                in_flight(draft.run, at, dispatch_no)?;
                tool_ended(draft, at, ended);
            }
            Command::Parts { at, dispatch_no, parts } => {
                in_flight(draft.run, at, dispatch_no)?;
                stream_parts(draft, at, parts);
            }
            Command::Moderated { at, digest, verdict } => {
                input_moderated(draft, at, &digest, &verdict)?;
            }
            Command::Checked { command, verdict } => self.decide(*command, Some(verdict))?,
            Command::ChildEnded { child, status, outputs, error, origins, labels } => {
                let end = ChildEnd { child, status, outputs, error, origins, labels };
                let next = child_ended(draft, end, verdict)?;
                follow(draft, next);
            }
            Command::ChildPaced { child, pace, at_ms } => child_paced(draft, child, pace, at_ms)?,
            Command::Cancel { by, reason } => cancel(draft, &by, &reason)?,
            Command::Pause { by } => pause(draft, &by)?,
            Command::Unpause { by } => unpause(draft, &by)?,
            Command::Resolve(resolve) => answer_approval(draft, *resolve)?,
            Command::Rewind { by, keep } => rewind(draft, &by, &keep)?,
            Command::Retry { by } => retry(draft, &by)?,
            Command::Assign { by, step, whom } => assign(draft, &by, step, &whom)?,
        }
        Ok(())
    }

    /// Starts and settles everything that can be, after all commands are decided.
    pub fn finish(mut self) -> Decided {
        advance(&mut self.draft);
        report_pace(&mut self.draft, self.rested);
        self.draft.finish()
    }
}
