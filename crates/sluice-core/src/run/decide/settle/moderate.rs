//! What follows from a verdict of the moderator.
//!
//! INVARIANT: an output of a moderated step is used only with a clearance of exactly
//! that output. A text that is not cleared fails the step, without another attempt.

use super::fail::{FailedAttempt, give_up};
use crate::code::Code;
use crate::journal::event::{LogLine, StepAt, StepEvent};
use crate::plan::policy::ModerationPhase;
use crate::port::adapter::{Answer, Usage};
use crate::port::moderator::Verdict;
use crate::run::command::Refusal;
use crate::run::decide::draft::Draft;
use crate::run::moderate::{digest, output_text};

/// The moderator has judged the input of a step.
pub(crate) fn input_moderated(
    draft: &mut Draft<'_>,
    at: StepAt,
    digest: &str,
    verdict: &Verdict,
) -> Result<(), Refusal> {
    let asked = draft.run.get(at).and_then(|state| state.phase.moderated());
    if asked != Some(digest) {
        return Err(Refusal::Late);
    }
    if *verdict == Verdict::Clear {
        let digest = digest.to_owned();
        draft.log(at, LogLine::ModerationCleared { phase: ModerationPhase::Input, digest });
    } else {
        fail_flagged(draft, at, ModerationPhase::Input, verdict, Usage::default());
    }
    Ok(())
}

/// The verdict that fails a result. A result without a verdict counts as flagged. Of a
/// failure only the parts that were streamed before it were judged.
pub(super) fn objection(
    draft: &mut Draft<'_>,
    at: StepAt,
    answer: &Answer,
    verdict: Option<Verdict>,
) -> Option<Verdict> {
    if !draft.run.step(at).moderation.covers(ModerationPhase::Output) {
        return None;
    }
    match verdict {
        Some(Verdict::Clear) if answer.error.is_none() => {
            let digest = digest(&output_text(answer));
            draft.log(at, LogLine::ModerationCleared { phase: ModerationPhase::Output, digest });
            None
        }
        None if answer.error.is_none() => {
            Some(Verdict::Unavailable("the answer was not checked".to_owned()))
        }
        verdict => verdict.filter(|verdict| *verdict != Verdict::Clear),
    }
}

/// Fails a step whose input or output is not cleared.
pub(super) fn fail_flagged(
    draft: &mut Draft<'_>,
    at: StepAt,
    phase: ModerationPhase,
    verdict: &Verdict,
    usage: Usage,
) {
    let decision = verdict.decision().unwrap_or_default();
    draft.record(at, StepEvent::ModerationFlagged { phase, decision });
    let code = Code::ModerationBlocked;
    give_up(draft, at, FailedAttempt::new(code, code.to_string(), usage));
}
