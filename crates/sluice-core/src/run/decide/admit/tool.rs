//! The decision of the gates about a tool call.
//!
//! A call is judged with the labels of everything that the attempt has read so far:
//! after the first tool call, these include untrusted data.

use super::facts::{DecisionFacts, facts, flow, gather_facts, inputs, role};
use crate::journal::event::{Record, StepAt};
use crate::money::Money;
use crate::port::adapter::ToolUse;
use crate::run::decide::draft::{Draft, PreparedStep};
use serde_json::{Map, Value};
use sluice_govern::action::Action;
use sluice_govern::decision::Decision;
use sluice_govern::evaluate;
use sluice_govern::facts::{Facts, Verb, Worst};
use sluice_govern::registry::Posture;

/// Lets the gates decide about a tool call. The caller records the decision.
pub(crate) fn judge_tool(draft: &Draft<'_>, at: StepAt, wanted: &ToolUse) -> (Decision, Record) {
    let step = PreparedStep::sent(draft.run, at);
    let gathered = DecisionFacts {
        grant: None,
        gateway: draft.run.state(at).gateway().unwrap_or_default().to_owned(),
        ..gather_facts(draft, &step, role(draft, at), None)
    };
    let arguments = match &wanted.input {
        Value::Object(input) => input.clone(),
        other => Map::from_iter([("input".to_owned(), other.clone())]),
    };
    let tools = [wanted.tool.clone()];
    let facts = facts(draft, &step, &gathered, Vec::new());
    let labels = draft.run.labels_read(at);
    let facts = Facts {
        verb: Verb::UseTool,
        inputs: inputs(draft, &labels),
        flow: flow(draft, Verb::UseTool, &labels),
        object: Some(&wanted.tool),
        // The attempt already has its slot and its reservation.
        running: 0,
        in_window: 0,
        worst: Worst::Known(Money::ZERO),
        asks: None,
        posture: match facts.posture {
            // The step was approved, and the call is part of it.
            Posture::ApprovalRequired => Posture::BoundedAutonomous,
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
    let authority = draft.given.authority;
    let evaluated = evaluate(&facts, authority.policies());
    let record = Record::new(evaluated.write(None, authority.fabric().epoch));
    (evaluated.decision, record)
}
