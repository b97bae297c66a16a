//! Moderation of inputs.
//!
//! INVARIANT: a step whose input is moderated reaches approvers and gates only with a
//! clearance of exactly that input.

use crate::journal::event::{LogLine, StepEvent};
use crate::port::moderator::Phase;
use crate::run::decide::draft::{Draft, PreparedStep};
use crate::run::moderate::{digest, input_text};
use crate::status::StepStatus;
use sluice_govern::registry::Posture;
use std::sync::Arc;

/// The request to the moderator that the step waits for; none if its input is cleared or
/// is not moderated.
pub(super) fn input_check(draft: &mut Draft<'_>, ready: &PreparedStep) -> Option<StepEvent> {
    let at = ready.at;
    // A dry run sends nothing.
    let dry_run = draft.run.started.posture == Posture::Advisory;
    if dry_run || !draft.run.step(at).moderation.covers(Phase::Input) {
        return None;
    }
    let digest = digest(&input_text(&ready.prepared));
    if draft.run.state(at).cleared.as_ref() == Some(&digest) {
        return None;
    }
    // It waited between attempts, or is in flight from before there was a moderator.
    if draft.run.state(at).status() != StepStatus::Queued {
        draft.record(at, StepEvent::Queued { items: None });
    }
    let prepared = (!ready.recorded).then(|| Arc::clone(&ready.prepared));
    let dispatch_no = draft.run.state(at).dispatch_no;
    Some(StepEvent::Log { dispatch_no, line: LogLine::ModerationAsked { digest, prepared } })
}
