//! The decision of the gates about a tool call.
//!
//! A call is judged with the labels of everything that the attempt has read so far:
//! after the first tool call, these include untrusted data.

use super::facts::{DecisionFacts, facts, flow, gather_facts, inputs, role};
use crate::id::ApprovalId;
use crate::journal::event::{CallRecord, Record, StepAt};
use crate::money::Money;
use crate::port::adapter::ToolUse;
use crate::run::decide::draft::history::{PastFacts, UsedFacts, now_of_call, past_call};
use crate::run::decide::draft::{Draft, PreparedStep};
use crate::run::seen::shown::arguments;
use crate::run::state::Run;
use crate::tools::names;
use serde_json::json;
use sluice_govern::action::Action;
use sluice_govern::decision::Decision;
use sluice_govern::evaluate;
use sluice_govern::facts::{CallFacts, Facts, Verb, Worst};
use sluice_govern::registry::Posture;

/// Lets the gates decide about a tool call, whose values were seen in `call`. The caller records
/// the decision.
pub(crate) fn judge_tool(
    draft: &Draft<'_>,
    at: StepAt,
    wanted: &ToolUse,
    (call, record): (CallFacts, &CallRecord),
) -> (Decision, Record, UsedFacts) {
    let step = PreparedStep::sent(draft.run, at);
    let gathered = DecisionFacts {
        grant: None,
        gateway: draft.run.state(at).gateway().unwrap_or_default().to_owned(),
        ..gather_facts(draft, &step, role(draft, at), None)
    };
    let arguments = arguments(&wanted.input);
    let tools = [wanted.tool.clone()];
    let authority = draft.given.authority;
    let now = past_call(draft, at, &wanted.tool, record);
    let past = PastFacts::new(draft, now_of_call(draft, at, &wanted.id, &now));
    let facts = facts(draft, &step, &gathered, Vec::new());
    let labels = draft.run.labels_read(at);
    let facts = Facts {
        verb: Verb::UseTool,
        inputs: inputs(draft, &labels),
        flow: flow(draft, Verb::UseTool, &labels),
        object: Some(&wanted.tool),
        call: Some(call),
        tool: authority.catalog().tool(&wanted.tool).map(|tool| &*tool.facts),
        history: authority.policies().has_history().then_some(&past),
        // The attempt already has its slot and its reservation.
        running: 0,
        in_window: 0,
        worst: Worst::Known(Money::ZERO),
        asks: None,
        posture: match facts.posture {
            Posture::ApprovalRequired if needs_no_approval(draft, at, &wanted.tool) => {
                Posture::BoundedAutonomous
            }
            posture => posture,
        },
        action: Action {
            command: "",
            stdin: None,
            env: &[],
            inputs: &arguments,
            memory: None,
            session: None,
            system_prompt: None,
            tools: &tools,
            ..facts.action
        },
        ..facts
    };
    let evaluated = evaluate(&facts, authority.policies());
    let record = Record::new(evaluated.write(None, authority.fabric().epoch));
    let decision = evaluated.decision;
    (decision, record, past.into_used())
}

/// Whether a call needs no approval of its own under the posture `approval_required`: the tool
/// only reads, or the approver of the step has listed it.
fn needs_no_approval(draft: &Draft<'_>, at: StepAt, tool: &str) -> bool {
    let authority = draft.given.authority;
    let agent = draft.run.agent_of(at.step).and_then(|name| authority.agent(name));
    agent.is_some_and(|agent| names(&agent.tools.read_only, tool))
        || authority.catalog().tool(tool).is_some_and(|tool| tool.facts.read_only)
        || draft.run.state(at).granted.is_some_and(|approval| lists(draft.run, approval, tool))
}

/// Whether the approver of a step has added this tool to the ones that it may use.
fn lists(run: &Run, approval: ApprovalId, tool: &str) -> bool {
    let Some(approval) = run.approvals.get(&approval) else { return false };
    let allowed = approval.tightened.as_ref().and_then(|one| one.constraints.tools_allow.as_ref());
    // A list of a policy is in the action already: the approver has not looked at each tool.
    let before = approval.action.as_ref().map(|one| &one.action["constraints"]["tools_allow"]);
    allowed.is_some_and(|allowed| {
        before != Some(&json!(allowed)) && allowed.iter().any(|one| one == tool)
    })
}
