//! What follows from an approval that is answered or expires.

use super::tool::rule_on_held_calls;
use crate::code::Code;
use crate::failure::Failure;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalResolved, ApprovalSource, Resolution, Skip, SkipCause, StepEvent,
};
use crate::plan::step::Work;
use crate::run::command::{Refusal, Resolve};
use crate::run::decide::draft::Draft;
use crate::run::decide::draft::pause::resume_after_people;
use crate::run::decide::people::answer::{check_answer, record_answer};
use crate::run::decide::settle::fail::{abort, fail};
use crate::run::decide::settle::outcome::{approved, record_completed};

/// A person answers an approval.
pub(crate) fn answer_approval(draft: &mut Draft<'_>, resolve: Resolve) -> Result<(), Refusal> {
    let answer = check_answer(draft, &resolve)?;
    let (at, source, resolution) = (answer.at, answer.source, answer.resolution);
    let completed = match (resolution, &draft.run.step(at).work) {
        (Resolution::Approved, Work::Approval) => Some(approved(draft, at, &resolve)?),
        _ => None,
    };
    let approval = resolve.approval;
    let rejected = format!("rejected by {}", resolve.by);
    let why =
        resolve.comment.as_ref().map_or(rejected.clone(), |text| format!("{rejected}: {text}"));
    record_answer(draft, answer, resolve);
    if resolution == Resolution::Pending {
        return Ok(());
    }
    if source == ApprovalSource::Tool {
        rule_on_held_calls(draft, at, approval);
        return Ok(());
    }
    resume_after_people(draft);
    match resolution {
        Resolution::Approved | Resolution::Retry => {
            if let Some((endorsed, completed)) = completed {
                record_completed(draft, at, endorsed, completed);
            }
        }
        Resolution::Rejected => fail(draft, at, Failure::new(Code::ApprovalRejected, why)),
        Resolution::Skip => {
            let error = draft.run.state(at).failure.as_ref();
            let error = error.map(|ending| (ending.code.clone(), ending.message.clone()));
            let reason = "a person chose to go on without it";
            let skip = Skip { error, ..Skip::new(SkipCause::Decision, reason) };
            draft.record(at, StepEvent::Skipped(skip));
        }
        Resolution::Abort => abort(draft, at),
        Resolution::Pending | Resolution::Expired | Resolution::Cancelled => {}
    }
    Ok(())
}

/// Reminds the approvers of an open approval, or expires it.
pub(super) fn remind_or_expire(draft: &mut Draft<'_>, id: ApprovalId) {
    let approval = &draft.run.approvals[&id];
    let (at, source) = (approval.at, approval.source);
    if approval.expires_at_ms > draft.given.now_ms {
        let level = approval.remind_at.get(approval.reminders as usize);
        let level = level.map(|(_, level)| level.clone()).unwrap_or_default();
        return draft.record(at, StepEvent::ApprovalReminded { approval: id, level });
    }
    let resolved = ApprovalResolved::new(id, Resolution::Expired);
    draft.record(at, StepEvent::ApprovalResolved(Box::new(resolved)));
    resume_after_people(draft);
    match source {
        ApprovalSource::Escalation => abort(draft, at),
        ApprovalSource::Tool => rule_on_held_calls(draft, at, id),
        ApprovalSource::Step | ApprovalSource::Policy => {
            let message = "no approver answered in time";
            fail(draft, at, Failure::new(Code::ApprovalRejected, message));
        }
    }
}
