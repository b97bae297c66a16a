//! Explains the decisions about a step: its dispatches and its tool calls.

use super::Service;
use super::past::PolicyHistory;
use super::runs::for_each_event;
use crate::refused::{self, ServiceResult};
use crate::service::find;
use serde_json::{Map, Value, json};
use sluice_core::journal::envelope::Seen;
use sluice_core::run::state::Run;
use sluice_engine::provenance::{Ask, Direction};
use sluice_govern::policy::PolicyFacts;
use sluice_govern::policy::explain::Explanation;
use std::collections::BTreeMap;

/// How many other runs the path of a label may lead through.
const HOPS_MAX: u32 = 8;

/// Selects decisions of a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection {
    /// Only the tool call with this number, from 1.
    pub call: Option<u64>,
    /// Only decisions of this attempt, from 1.
    pub attempt: Option<u64>,
}

/// A decision about a step, or a tool call that was refused without one.
struct StepDecision {
    event: u64,
    at: Value,
    /// The payload of `governance.decided`; null without a decision.
    record: Value,
    attempt: Option<u64>,
    call: Option<ToolCall>,
}

/// The tool call that a decision is about.
struct ToolCall {
    number: u64,
    /// The payload of the log line with the ruling.
    line: Value,
}

/// Everything in the journal that explains the decisions of a step.
#[derive(Default)]
struct StepRecord {
    decisions: Vec<StepDecision>,
    /// Numbers of the tool calls, by dispatch and id: an id is unique within a dispatch.
    calls: BTreeMap<(u64, String), u64>,
    dispatches: u64,
    /// Labels that answers of tools brought into the step: tool, origins, secrecy.
    answers: Vec<Value>,
    attempt: Option<u64>,
}

impl StepRecord {
    fn add(&mut self, kind: &str, envelope: &Value) {
        let (payload, id) = (&envelope["payload"], envelope["eventId"].as_u64().unwrap_or(0));
        let at = envelope["timestamp"].clone();
        match kind {
            "governance.decided" => {
                self.attempt = payload["facts"]["step"]["attempt"].as_u64().or(self.attempt);
                let (attempt, record) = (self.attempt, payload.clone());
                self.decisions.push(StepDecision { event: id, at, record, attempt, call: None });
            }
            "node.started" => self.dispatches += 1,
            "node.log" if payload.get("ruling").is_some() => self.ruled(id, at, payload),
            _ => {}
        }
    }

    /// A ruling about a tool call follows its decision.
    fn ruled(&mut self, event: u64, at: Value, line: &Value) {
        let next = self.calls.len() as u64 + 1;
        let number = *self.calls.entry(self.key(line)).or_insert(next);
        self.answers(event, line, &line["answerLabels"]);
        let call = Some(ToolCall { number, line: line.clone() });
        match self.decisions.last_mut() {
            Some(last) if last.call.is_none() && is_about(&last.record, &line["tool"]) => {
                last.call = call;
            }
            _ => {
                let (attempt, record) = (self.attempt, Value::Null);
                self.decisions.push(StepDecision { event, at, record, attempt, call });
            }
        }
    }

    fn key(&self, line: &Value) -> (u64, String) {
        (self.dispatches, line["callId"].as_str().unwrap_or_default().to_owned())
    }

    /// Labels that the answer of a call brings into the step, from the ruling on.
    fn answers(&mut self, event: u64, line: &Value, labels: &Value) {
        let call = self.calls.get(&self.key(line)).copied();
        let names = |key: &str| labels[key].as_array().cloned().unwrap_or_default();
        let (origins, secrecy) = (names("origins"), names("secrecy"));
        if !origins.is_empty() || !secrecy.is_empty() {
            self.answers.push(json!({
                "event_id": event, "tool": line["tool"], "call": call,
                "origins": origins, "secrecy": secrecy,
            }));
        }
    }
}

/// Whether a decision is about a call of this tool.
fn is_about(record: &Value, tool: &Value) -> bool {
    record["facts"]["verb"] == "use_tool" && record["facts"]["what"]["tool"] == *tool
}

/// Explains the selected decisions of a step.
pub async fn explain(
    service: &Service,
    run: &Run,
    step: &str,
    selection: Selection,
) -> ServiceResult<Value> {
    find::step(run, step)?;
    let mut record = StepRecord::default();
    for_each_event(service, run, 0, |seen| {
        let Seen::Event(event) = seen else { return };
        let envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
        if envelope["payload"]["nodeId"] == step {
            record.add(&event.kind, &envelope);
        }
    })
    .await?;
    let mut sets = PolicyHistory::default();
    let mut path = None;
    let mut decisions = Vec::new();
    for decision in record.decisions.iter().filter(|one| one.is_selected(selection)) {
        let mut explained = decision.explain(service, &mut sets).await?;
        if explained.reads_flow {
            if path.is_none() {
                path = Some(flow_path(service, run, step).await?);
            }
            explained.object.insert("flow".to_owned(), decision.flow(&path, &record.answers));
        }
        decisions.push(Value::Object(explained.object));
    }
    Ok(json!({"run_id": run.id.to_string(), "node_id": step, "decisions": decisions}))
}

/// An explained decision.
struct ExplainedDecision {
    object: Map<String, Value>,
    /// Whether a policy decided on labels.
    reads_flow: bool,
}

impl StepDecision {
    fn is_selected(&self, selection: Selection) -> bool {
        let call = self.call.as_ref().map(|call| call.number);
        selection.call.is_none_or(|number| call == Some(number))
            && selection.attempt.is_none_or(|number| self.attempt == Some(number))
    }

    async fn explain(
        &self,
        service: &Service,
        sets: &mut PolicyHistory,
    ) -> ServiceResult<ExplainedDecision> {
        let mut object = self.head();
        let mut reads_flow = false;
        if self.record.is_null() {
            return Ok(ExplainedDecision { object, reads_flow });
        }
        let facts = serde_json::from_value::<PolicyFacts<'static>>(self.record["facts"].clone());
        let facts = facts.ok();
        let (set, of_set) = explain_set(service, sets, &self.record, facts.as_ref()).await?;
        reads_flow |= of_set;
        object.extend(set);
        let shadow = &self.record["shadow"];
        if shadow.is_object() {
            let (mut set, of_set) = explain_set(service, sets, shadow, facts.as_ref()).await?;
            reads_flow |= of_set;
            set.insert("disposition".to_owned(), shadow["disposition"].clone());
            object.insert("shadow".to_owned(), Value::Object(set));
        }
        let history = &self.record["facts"]["history"];
        if history.is_object() {
            object.insert("history".to_owned(), history.clone());
        }
        Ok(ExplainedDecision { object, reads_flow })
    }

    /// What was decided, and by which gate.
    fn head(&self) -> Map<String, Value> {
        let facts = &self.record["facts"];
        let what = facts["what"].as_object().and_then(|what| what.values().next());
        let name = what.map(|what| what.get("name").unwrap_or(what).clone());
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("event_id", self.event.into());
        put("at", self.at.clone());
        put("attempt", self.attempt.into());
        put("verb", if facts.is_null() { "use_tool".into() } else { facts["verb"].clone() });
        let disposition = &self.record["disposition"];
        let refused = disposition.is_null();
        put("disposition", if refused { "block".into() } else { disposition.clone() });
        put("gate", gate(&self.record));
        match &self.call {
            Some(ToolCall { number, line }) => {
                put("resource", line["tool"].clone());
                put("call", (*number).into());
                put("call_id", line["callId"].clone());
                put("ruling", line["ruling"].clone());
                put("approval_id", line["approvalId"].clone());
                put("reason", line["reason"].clone());
                put("input", line["input"].clone());
            }
            None => {
                put("resource", name.into());
            }
        }
        object.retain(|_, value| !value.is_null());
        object
    }

    /// The labels of the action, and how they reached the step.
    fn flow(&self, path: &Option<Value>, answers: &[Value]) -> Value {
        let labels = &self.record["facts"]["flow"];
        let names = |key: &str| labels[key].as_array().cloned().unwrap_or_default();
        // What was called later brought no labels into this decision.
        let is_earlier = |one: &&Value| one["event_id"].as_u64() < Some(self.event);
        let answers: Vec<&Value> = answers.iter().filter(is_earlier).collect();
        json!({
            "origins": names("origins"), "secrecy": names("secrecy"),
            "control": labels["control"] == true,
            "inputs": self.record["facts"]["inputs"],
            "path": path, "answers": answers,
        })
    }
}

/// The verdict of the gate that blocked the action or requires an approval.
fn gate(record: &Value) -> Value {
    let gates = record["gates"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocked_by = &record["blockedBy"]["gate"];
    let decides = |one: &&Value| match blocked_by.as_str() {
        Some(name) => one["gate"] == name,
        None => one["outcome"] == "hold",
    };
    gates.iter().find(decides).cloned().unwrap_or_default()
}

/// Explains what one set decided. `record` has its hash and the policies that matched.
async fn explain_set(
    service: &Service,
    sets: &mut PolicyHistory,
    record: &Value,
    facts: Option<&PolicyFacts<'_>>,
) -> ServiceResult<(Map<String, Value>, bool)> {
    let hash = record["policyHash"].as_str().unwrap_or_default();
    let set = match facts {
        Some(_) => sets.get(service, hash).await?,
        None => None,
    };
    let mut object = Map::new();
    object.insert("policy_hash".to_owned(), hash.into());
    object.insert("policies_stored".to_owned(), set.is_some().into());
    let (policies, reads_flow) = match (set, facts) {
        (Some(set), Some(facts)) => {
            let Explanation { policies, replayed } = set.explain(facts);
            if let Some(because) = replayed.because {
                object.insert("because".to_owned(), because.into());
            }
            let reads_flow = policies.iter().any(|policy| policy.reads_flow);
            (serde_json::to_value(policies).unwrap_or_default(), reads_flow)
        }
        // Without the set, only what the decision itself recorded is known.
        _ => {
            let matched = record["matched"].as_array().cloned().unwrap_or_default();
            let matched = matched.into_iter().map(|mut policy| {
                policy["matched"] = true.into();
                policy
            });
            (matched.collect(), false)
        }
    };
    object.insert("policies".to_owned(), policies);
    Ok((object, reads_flow))
}

/// The values that reached the step, the first source first.
async fn flow_path(service: &Service, run: &Run, step: &str) -> ServiceResult<Value> {
    let ask = Ask {
        step: Some(step.to_owned()),
        direction: Direction::Up,
        hops_max: HOPS_MAX,
        steps_max: u32::MAX,
    };
    let trace = service.engine.provenance(run.id, &ask).await.map_err(refused::load)?;
    let mut rows = trace.rows();
    rows.reverse();
    Ok(Value::Array(rows))
}
