//! Consent of people to tool calls.
//!
//! INVARIANT: a call is allowed by a decision of its own, for one tool and one input. A
//! consent is for one call, within the attempt that requested it.

use super::approval::request_tool_consent;
use crate::canonical;
use crate::id::ApprovalId;
use crate::journal::event::{Resolution, Ruling, StepAt};
use crate::limits::{TOOL_CALLS_MAX, TOOL_INPUT_BYTES_MAX};
use crate::port::adapter::ToolUse;
use crate::run::decide::draft::Draft;
use crate::run::evolve::tool::KEPT;
use crate::run::state::Run;
use crate::tools::names;
use sluice_govern::decision::Decision;
use sluice_govern::facts::CallFacts;

/// Why a call is denied without asking the gates.
pub(crate) fn out_of_bounds(draft: &Draft<'_>, at: StepAt, wanted: &ToolUse) -> Option<String> {
    let (run, tool) = (&*draft.run, &wanted.tool);
    let state = run.state(at);
    if state.calls.len() >= TOOL_CALLS_MAX {
        return Some(format!("the attempt has asked for {TOOL_CALLS_MAX} tools already"));
    }
    if canonical::to_string(&wanted.input).len() > TOOL_INPUT_BYTES_MAX {
        return Some(format!("its input is over {TOOL_INPUT_BYTES_MAX} bytes"));
    }
    if !names(&run.tools_of(at.step), tool) {
        return Some(format!("the step does not name tool {tool}"));
    }
    let bounds = state.terms().map(|terms| &terms.constraints);
    let allow = bounds.and_then(|bounds| bounds.tools_allow.as_ref());
    let denied = bounds.is_some_and(|bounds| names(&bounds.tools_deny, tool));
    if denied || allow.is_some_and(|allow| !names(allow, tool)) {
        return Some(format!("what was allowed with the step does not cover tool {tool}"));
    }
    draft.given.authority.catalog().tool(tool)?.state.refusal(tool)
}

/// A call that needs the consent of people.
#[derive(Clone, Copy)]
pub(crate) struct HeldCall<'c> {
    pub(crate) wanted: &'c ToolUse,
    /// SHA-256 of tool and input.
    pub(crate) digest: &'c str,
    /// Where its values were seen.
    pub(crate) call: &'c CallFacts,
}

/// What people have decided about this call, else a request for their approval.
pub(crate) fn consent(
    draft: &mut Draft<'_>,
    at: StepAt,
    held: HeldCall<'_>,
    decision: &Decision,
) -> Ruling {
    let HeldCall { wanted, digest, call } = held;
    let mut same = draft.run.state(at).calls.values().filter(|call| call.digest == digest);
    let requested = same.find_map(|call| match call.ruling {
        Ruling::Held(approval) => Some(approval),
        Ruling::Allowed(_) | Ruling::Denied(_) => None,
    });
    let known = requested.and_then(|id| Some((id, draft.run.approvals.get(&id)?)));
    if let Some((id, approval)) = known {
        let same_action = approval.digest() == Some(&decision.action_digest);
        match approval.resolution {
            None if same_action => return Ruling::Held(id),
            Some(Resolution::Approved) if same_action => {
                draft.guards.require_rows();
                return Ruling::Allowed(Some(id));
            }
            Some(Resolution::Rejected) => {
                let by = approval.by.as_deref().unwrap_or("an approver");
                let why = approval.comment.as_deref().unwrap_or_default();
                return Ruling::Denied(format!("rejected by {by}: {why}"));
            }
            Some(Resolution::Expired) => {
                return Ruling::Denied("no approver answered in time".to_owned());
            }
            // The approval was for an action that has changed.
            _ => {}
        }
    }
    Ruling::Held(request_tool_consent(draft, at, wanted, call, decision))
}

/// The calls of the attempt in flight that wait for an approval. A call of an earlier
/// dispatch waits until the agent requests it again.
pub(crate) fn held_calls(run: &Run, at: StepAt, approval: ApprovalId) -> Vec<ToolUse> {
    let calls = run.state(at).calls.iter();
    let held =
        calls.filter(|(id, call)| call.ruling == Ruling::Held(approval) && !id.starts_with(KEPT));
    let wanted = held.map(|(id, call)| ToolUse {
        id: id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone().unwrap_or_default(),
    });
    wanted.collect()
}
