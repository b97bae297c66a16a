//! Tool calls inside a step: each is decided, recorded, and allowed once.
//!
//! The step must name the tool, and the constraints of its dispatch must allow it; then
//! the gates decide, by the policies in force now. If they require an approval, the
//! attempt waits for it, and the gates decide again after the answer.

use crate::canonical;
use crate::id::ApprovalId;
use crate::journal::event::{CallRecord, LogLine, Ruling, StepAt, StepEvent, ToolRequest};
use crate::limits::TOOL_INPUT_BYTES_MAX;
use crate::origin::FlowLabels;
use crate::port::adapter::ToolUse;
use crate::run::decide::admit::tool::judge_tool;
use crate::run::decide::draft::Draft;
use crate::run::decide::draft::history::{UsedFacts, call_record, take_of_call};
use crate::run::decide::people::approval::request_tool_consent;
use crate::run::decide::people::tool::{HeldCall, consent, held_calls, out_of_bounds};
use crate::run::seen::shown::arguments;
use serde_json::Value;
use sluice_govern::decision::{Decision, Disposition};

/// Decides whether the attempt in flight may call a tool.
pub(crate) fn use_tool(draft: &mut Draft<'_>, at: StepAt, wanted: ToolUse) {
    // A repeated request was already decided.
    if draft.run.state(at).calls.contains_key(&wanted.id) {
        return;
    }
    let digest = call_digest(&wanted);
    let record = call_record(draft, &wanted);
    let (ruling, used) = match out_of_bounds(draft, at, &wanted) {
        Some(why) => (Ruling::Denied(why), UsedFacts::new()),
        None => rule(draft, at, (&wanted, &record), &digest),
    };
    record_ruling(draft, at, Ruled { wanted, record, digest, ruling, used });
}

/// Lets the gates decide, and people if the gates require it.
fn rule(
    draft: &mut Draft<'_>,
    at: StepAt,
    (wanted, facts): (&ToolUse, &CallRecord),
    digest: &str,
) -> (Ruling, UsedFacts) {
    let call = draft.run.labelled_call(at, &arguments(&wanted.input));
    let (decision, record, used) = judge_tool(draft, at, wanted, (call.clone(), facts));
    draft.require_rows_to_wait();
    draft.record(at, StepEvent::GovernanceDecided(record));
    let ruling = match decision.disposition {
        Disposition::Allow => {
            draft.guards.require_rows();
            Ruling::Allowed(None)
        }
        Disposition::Block => Ruling::Denied(why_blocked(&decision)),
        Disposition::Hold => {
            consent(draft, at, HeldCall { wanted, digest, call: &call }, &decision)
        }
    };
    (ruling, used)
}

/// Decides again about the calls that waited for an approval which is now resolved.
pub(super) fn rule_on_held_calls(draft: &mut Draft<'_>, at: StepAt, approval: ApprovalId) {
    let held = held_calls(draft.run, at, approval);
    if !draft.run.index.in_flight.contains_key(&at) {
        return;
    }
    for (number, wanted) in held.into_iter().enumerate() {
        let digest = call_digest(&wanted);
        let record = call_record(draft, &wanted);
        let (mut ruling, used) = rule(draft, at, (&wanted, &record), &digest);
        // A consent is for one call: every further one needs its own.
        if number > 0 && ruling == Ruling::Allowed(Some(approval)) {
            let call = draft.run.labelled_call(at, &arguments(&wanted.input));
            let (decision, ..) = judge_tool(draft, at, &wanted, (call.clone(), &record));
            ruling = Ruling::Held(request_tool_consent(draft, at, &wanted, &call, &decision));
        }
        record_ruling(draft, at, Ruled { wanted, record, digest, ruling, used });
    }
}

/// A call with the decision about it.
struct Ruled {
    wanted: ToolUse,
    record: CallRecord,
    digest: String,
    ruling: Ruling,
    /// Facts about history that the decision relies on.
    used: UsedFacts,
}

fn record_ruling(draft: &mut Draft<'_>, at: StepAt, ruled: Ruled) {
    let Ruled { wanted: call, mut record, digest, ruling, used } = ruled;
    take_of_call(draft, at, (&call, &mut record), &ruling, &used);
    let too_long = canonical::to_string(&call.input).len() > TOOL_INPUT_BYTES_MAX;
    let input = if too_long { Value::Null } else { call.input };
    let labels = match ruling {
        Ruling::Allowed(_) => answer_labels(draft, &call.tool),
        Ruling::Denied(_) | Ruling::Held(_) => FlowLabels::default(),
    };
    let request =
        ToolRequest { id: call.id, tool: call.tool, input, digest, ruling, labels, record };
    draft.log(at, LogLine::Tool(Box::new(request)));
}

/// The named labels of a tool's answers, as the operator declares them.
fn answer_labels(draft: &Draft<'_>, tool: &str) -> FlowLabels {
    let Some(tool) = draft.given.authority.catalog().tool(tool) else {
        return FlowLabels::unknown();
    };
    let (origins, secrecy) = (tool.origins.iter(), tool.secrecy.iter());
    FlowLabels::of(origins.map(|name| &**name), secrecy.map(|name| &**name))
}

/// SHA-256 of tool and input.
fn call_digest(wanted: &ToolUse) -> String {
    canonical::sha256_hex(&(&wanted.tool, &wanted.input), 256)
}

fn why_blocked(decision: &Decision) -> String {
    let message = decision.gates.iter().rev().find_map(|verdict| verdict.message.as_deref());
    message.unwrap_or("the gates said no").to_owned()
}
