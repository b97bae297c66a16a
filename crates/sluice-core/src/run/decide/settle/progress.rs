//! What a dispatch in flight reports before its result.

use crate::journal::event::{
    Delta, DeltaPart, EndedCall, LogLine, Path, Ruling, StepAt, StepEvent, Wait,
};
use crate::limits::LOG_LINE_BYTES_MAX;
use crate::plan::policy::ModerationPhase;
use crate::port::adapter::{Emission, ToolContent, ToolEnded};
use crate::run::command::Refusal;
use crate::run::decide::draft::Draft;
use crate::run::state::Run;
use crate::status::Waiting;
use std::sync::Arc;

/// Refuses a report unless it is of the dispatch in flight: any other came late or twice.
/// A child run reports only its end and its pauses.
pub(crate) fn in_flight(run: &Run, at: StepAt, dispatch_no: u32) -> Result<(), Refusal> {
    let is_current = run.index.in_flight.get(&at) == Some(&dispatch_no);
    let reports = |path| matches!(path, Path::Edge | Path::Bridge | Path::Sync);
    if is_current && run.state(at).path().is_some_and(reports) {
        Ok(())
    } else {
        Err(Refusal::Late)
    }
}

/// A gateway has accepted the work; its result comes by callback.
pub(crate) fn accepted(draft: &mut Draft<'_>, at: StepAt) {
    let state = draft.run.state(at);
    if state.phase.waiting() == Some(Waiting::ExternalCallback) {
        return;
    }
    let wait = Wait {
        reason: Waiting::ExternalCallback,
        attempt: state.attempt,
        cause: None,
        delay_ms: 0,
        until_ms: state.phase.deadline_ms().unwrap_or(u64::MAX),
        code: None,
        hint: None,
    };
    draft.record(at, StepEvent::Waiting(Box::new(wait)));
}

pub(crate) fn stream(draft: &mut Draft<'_>, at: StepAt, part: DeltaPart) {
    let state = draft.run.state(at);
    let (index, attempt, dispatch_no) = (state.deltas, state.attempt, state.dispatch_no);
    let delta = Delta { index, attempt, dispatch_no, part };
    draft.record(at, StepEvent::Delta(Box::new(delta)));
}

/// Records the parts of an answer that a bridge delivers. The parts of a moderated output
/// are dropped: the moderator judges the whole answer first.
pub(crate) fn stream_parts(draft: &mut Draft<'_>, at: StepAt, parts: Vec<Emission>) {
    let moderated = draft.run.step(at).moderation.covers(ModerationPhase::Output);
    for part in parts {
        match part {
            // Not a part of the output: the next tool call is judged with it.
            Emission::ToolEnded(ended) => tool_ended(draft, at, ended),
            _ if moderated => {}
            Emission::Text(text) => stream(draft, at, DeltaPart::Text(text)),
            Emission::Media { url, mime } => stream(draft, at, DeltaPart::Media { url, mime }),
            Emission::Log(text) => log_text(draft, at, text),
            // A process of another machine is stopped by that machine.
            Emission::Process(_) => {}
        }
    }
}

/// Records the answer of a tool, with what the operator declares about it now. What a worker
/// says of a call that was not allowed is a record of no one.
pub(crate) fn tool_ended(draft: &mut Draft<'_>, at: StepAt, mut ended: ToolEnded) {
    let call = draft.run.state(at).calls.get(&ended.id).filter(|call| call.tool == ended.tool);
    let allowed = call.filter(|call| matches!(call.ruling, Ruling::Allowed(_)));
    // A worker may report it both in its stream and with its parts.
    if allowed.is_some_and(|call| call.answered) {
        return;
    }
    ended.content = ended.content.map(ToolContent::bounded);
    let tool = draft.given.authority.catalog().tool(&ended.tool);
    let tool = tool.filter(|_| allowed.is_some());
    let fields = tool.map(|tool| tool.fields.clone()).unwrap_or_default();
    let call = EndedCall { ended, fields };
    draft.log(at, LogLine::ToolEnded(Arc::new(call)));
}

pub(crate) fn log_text(draft: &mut Draft<'_>, at: StepAt, mut text: String) {
    if text.len() > LOG_LINE_BYTES_MAX {
        let cut = (0..=LOG_LINE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(cut.unwrap_or(0));
        text.push('…');
    }
    draft.log(at, LogLine::Text(text));
}
