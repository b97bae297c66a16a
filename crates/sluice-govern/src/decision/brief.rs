//! The compact record of a decision in which every gate passed.
//!
//! Every dispatch has a decision, and most are of this kind. The record omits what a
//! reader knows from the journal and what follows from the rest; [`expand`] restores
//! it. All other decisions are recorded in full.
//!
//! INVARIANT: [`expand`] restores what [`Evaluated::to_json`] returns, in both forms.

use super::{Disposition, Evaluated, GateOutcome, GateVerdict};
use crate::canonical::{push_list, push_number, push_text};
use crate::decision::{Constraints, Figure};
use crate::facts::{CallFacts, FlowFacts, ToolFacts, Verb};
use crate::gates::GATES;
use crate::money::Money;
use crate::policy::history::HistoryValues;
use crate::policy::{InputsSeen, PolicyFacts, Principal, Resource, RunSeen, StepSeen};
use crate::registry::{Health, Posture};
use crate::route::Route;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;

/// The field that marks a compact record: the values that gates compared, unless they
/// follow from the facts.
pub const BRIEF: &str = "passed";
/// The default kind of a step.
const COMMAND: &str = "command";

/// What the reader of a record knows from the journal.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// Time of the record.
    pub at_ms: u64,
    /// Id of the run.
    pub run: &'k str,
    /// Workflow of the run.
    pub workflow: &'k str,
    /// Id of the step.
    pub step: &'k str,
    /// Whether the run's definition comes from the registry.
    pub registered: bool,
    /// SHA-256 of the run's definition.
    pub definition: &'k str,
}

/// The policies' view, without known or default values; see [`seen`].
#[derive(Deserialize)]
struct Seen {
    #[serde(default = "dispatch_step")]
    verb: Verb,
    who: Principal<'static>,
    what: Resource<'static>,
    by: String,
    version: Option<u64>,
    #[serde(default)]
    depth: u32,
    #[serde(default = "command")]
    kind: Cow<'static, str>,
    attempt: u32,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    inputs: InputsSeen<'static>,
    cost: Option<u64>,
    #[serde(default)]
    posture: Posture,
    #[serde(default)]
    tools: Vec<String>,
    tool: Option<ToolFacts>,
    #[serde(default)]
    flow: FlowFacts,
    call: Option<CallFacts>,
    input: Option<Map<String, Value>>,
    #[serde(default)]
    history: HistoryValues,
}

const fn dispatch_step() -> Verb {
    Verb::DispatchStep
}

const fn command() -> Cow<'static, str> {
    Cow::Borrowed(COMMAND)
}

/// The policies' view of a step in compact form; `None` if there is no step, or if the
/// form cannot represent it. Written by hand, because every dispatch has one.
pub(crate) fn seen(facts: &PolicyFacts<'_>) -> Option<String> {
    let step = facts.step.as_ref()?;
    if facts.short_of_money {
        return None;
    }
    let mut text = String::with_capacity(384);
    text.push('{');
    if facts.verb != Verb::DispatchStep {
        push_text(&mut text, "\"verb\":\"", facts.verb.as_str());
        text.push(',');
    }
    who(&mut text, &facts.who);
    what(&mut text, &facts.what);
    push_text(&mut text, ",\"by\":\"", &facts.run.initiator);
    if let Some(version) = facts.run.version {
        number(&mut text, ",\"version\":", version);
    }
    if facts.run.depth != 0 {
        number(&mut text, ",\"depth\":", facts.run.depth.into());
    }
    if step.kind != COMMAND {
        push_text(&mut text, ",\"kind\":\"", &step.kind);
    }
    number(&mut text, ",\"attempt\":", step.attempt.into());
    list(&mut text, ",\"capabilities\":", &step.capabilities);
    inputs(&mut text, &facts.inputs);
    if let Some(cost) = facts.cost {
        number(&mut text, ",\"cost\":", cost);
    }
    if facts.posture != Posture::BoundedAutonomous {
        push_text(&mut text, ",\"posture\":\"", facts.posture.as_str());
    }
    list(&mut text, ",\"tools\":", &facts.tools);
    if let Some(tool) = &facts.tool {
        field(&mut text, ",\"tool\":", tool);
    }
    if !facts.flow.is_empty() {
        field(&mut text, ",\"flow\":", &facts.flow);
    }
    if let Some(call) = &facts.call {
        field(&mut text, ",\"call\":", call);
    }
    if let Some(input) = &facts.input {
        field(&mut text, ",\"input\":", input);
    }
    if !facts.history.is_empty() {
        field(&mut text, ",\"history\":", &facts.history);
    }
    text.push('}');
    Some(text)
}

fn who(text: &mut String, who: &Principal<'_>) {
    let Principal::Agent { name, role, trust, phase, status, model, capabilities } = who else {
        return field(text, "\"who\":", who);
    };
    push_text(text, "\"who\":{\"agent\":{\"name\":\"", name);
    if let Some(role) = role {
        push_text(text, ",\"role\":\"", role);
    }
    number(text, ",\"trust\":", (*trust).into());
    push_text(text, ",\"phase\":\"", phase);
    push_text(text, ",\"status\":\"", status);
    if let Some(model) = model {
        push_text(text, ",\"model\":\"", model);
    }
    list(text, ",\"capabilities\":", capabilities);
    text.push_str("}}");
}

fn what(text: &mut String, what: &Resource<'_>) {
    let Resource::Gateway { name, provider, environment, min_trust, capabilities, sends_to } = what
    else {
        return field(text, ",\"what\":", what);
    };
    push_text(text, ",\"what\":{\"gateway\":{\"name\":\"", name);
    if !provider.is_empty() {
        push_text(text, ",\"provider\":\"", provider);
    }
    push_text(text, ",\"environment\":\"", environment);
    number(text, ",\"min_trust\":", (*min_trust).into());
    list(text, ",\"capabilities\":", capabilities);
    if let Some(sends_to) = sends_to {
        push_text(text, ",\"sends_to\":\"", sends_to.as_str());
    }
    text.push_str("}}");
}

/// Inputs usually have a source class.
fn inputs(text: &mut String, inputs: &InputsSeen<'_>) {
    let InputsSeen { classes, untrusted, private, age_s } = inputs;
    if classes.is_empty() {
        if *inputs != InputsSeen::default() {
            field(text, ",\"inputs\":", inputs);
        }
        return;
    }
    list(text, ",\"inputs\":{\"classes\":", classes);
    if *untrusted {
        text.push_str(",\"untrusted\":true");
    }
    if *private {
        text.push_str(",\"private\":true");
    }
    if let Some(age_s) = age_s {
        number(text, ",\"age_s\":", *age_s);
    }
    text.push('}');
}

/// Appends a field. `name` includes its quotes and the text before it.
fn field(text: &mut String, name: &str, value: &impl Serialize) {
    text.push_str(name);
    // The texts are short, so an intermediate string costs little.
    text.push_str(&serde_json::to_string(value).expect("a decision is plain data"));
}

fn number(text: &mut String, name: &str, number: u64) {
    text.push_str(name);
    push_number(text, number);
}

/// Appends a list, unless it is empty.
fn list(text: &mut String, name: &str, list: &[impl AsRef<str>]) {
    if !list.is_empty() {
        text.push_str(name);
        push_list(text, list);
    }
}

impl Seen {
    fn expand<'k>(self, known: &Known<'k>) -> PolicyFacts<'k> {
        PolicyFacts {
            at: known.at_ms,
            verb: self.verb,
            who: self.who,
            what: self.what,
            run: RunSeen {
                id: known.run.into(),
                workflow: known.workflow.into(),
                version: self.version,
                initiator: self.by.into(),
                depth: self.depth,
                registered: known.registered,
                definition: known.definition.into(),
            },
            step: Some(StepSeen {
                id: known.step.into(),
                kind: self.kind,
                attempt: self.attempt,
                capabilities: self.capabilities.into(),
            }),
            inputs: self.inputs,
            cost: self.cost,
            posture: self.posture,
            tools: self.tools.into(),
            tool: self.tool.map(Cow::Owned),
            flow: self.flow,
            call: self.call,
            input: self.input.map(Cow::Owned),
            history: self.history,
            short_of_money: false,
        }
    }
}

impl Evaluated<'_> {
    /// The record as the text of a JSON object, with the route and the epoch of the
    /// registry.
    pub fn write(&self, route: Option<&Route>, registry: u64) -> String {
        let mut text =
            if self.passed_everything() { self.in_brief(route) } else { self.in_full(route) };
        number(&mut text, ",\"registry\":", registry);
        text.push('}');
        text
    }

    /// Whether every gate passed and there is nothing more to record.
    fn passed_everything(&self) -> bool {
        let decision = &self.decision;
        decision.disposition == Disposition::Allow
            && !self.brief.is_empty()
            && decision.matched.is_empty()
            && decision.shadow.is_none()
            && decision.gates.iter().all(|one| one.outcome == GateOutcome::Pass && !one.observe)
    }

    fn in_brief(&self, route: Option<&Route>) -> String {
        let decision = &self.decision;
        let mut text = String::with_capacity(640 + self.brief.len());
        text.push_str("{\"disposition\":\"allow\",\"passed\":{");
        let explicit = decision.gates.iter().filter(|one| !follows_from_facts(one, &self.facts));
        for (at, verdict) in explicit.enumerate() {
            figures(&mut text, if at == 0 { "\"" } else { ",\"" }, verdict);
        }
        text.push('}');
        let constraints = &decision.constraints;
        if !constraints.bounds_only_cost() || constraints.max_cost != worst(self.facts.cost) {
            field(&mut text, ",\"constraints\":", constraints);
        }
        for (name, digest) in [
            (",\"policyHash\":\"", &decision.policy_hash),
            ("\",\"factsDigest\":\"", &decision.facts_digest),
            ("\",\"actionDigest\":\"", &decision.action_digest),
        ] {
            text.push_str(name);
            text.push_str(digest);
        }
        text.push_str("\",\"facts\":");
        text.push_str(&self.brief);
        if let Some(route) = route {
            match route.layer_to(self.facts.what.name()) {
                Some(layer) => push_text(&mut text, ",\"layer\":\"", layer.as_str()),
                None => field(&mut text, ",\"route\":", route),
            }
        }
        text
    }

    fn in_full(&self, route: Option<&Route>) -> String {
        let mut text = serde_json::to_string(self).expect("a decision is plain data");
        text.pop();
        if let Some(route) = route {
            field(&mut text, ",\"route\":", route);
        }
        if let Some(worst) = worst(self.facts.cost) {
            let _ = write!(text, ",\"worst\":{worst}");
        }
        text
    }
}

/// Appends the values that a gate compared. `before` is the text before its name.
fn figures(text: &mut String, before: &str, verdict: &GateVerdict) {
    text.push_str(before);
    text.push_str(verdict.gate);
    text.push_str("\":");
    let mut before = "{\"";
    for (name, figure) in verdict.figures.all() {
        text.push_str(before);
        text.push_str(name);
        match figure {
            Figure::Number(figure) => number(text, "\":", *figure),
            Figure::Word(figure) => push_text(text, "\":\"", figure),
            Figure::Text(figure) => push_text(text, "\":\"", figure),
            Figure::List(figure) => field(text, "\":", figure),
        }
        before = ",\"";
    }
    text.push_str(if verdict.figures.is_empty() { "{}" } else { "}" });
}

/// The cost ceiling, unless it is zero.
fn worst(cost: Option<u64>) -> Option<Money> {
    cost.filter(|cost| *cost > 0).map(Money::from_micro_cents)
}

/// The constraints that follow from the cost alone.
fn usual(cost: Option<u64>) -> Constraints {
    Constraints { max_cost: worst(cost), ..Constraints::default() }
}

/// Whether the values that a gate compared follow from the facts.
fn follows_from_facts(verdict: &GateVerdict, facts: &PolicyFacts<'_>) -> bool {
    let found = verdict.figures.all();
    match (expected_figures(verdict.gate, facts), found) {
        (None, []) => true,
        (Some([a, b]), [x, y]) => same(a, x) && same(b, y),
        _ => false,
    }
}

fn same(
    (name, usual): (&str, ExpectedFigure<'_>),
    (found, figure): &(&'static str, Figure),
) -> bool {
    let equal = match usual {
        ExpectedFigure::Number(number) => *figure == Figure::Number(number),
        ExpectedFigure::Text(text) => figure.is(text),
    };
    name == *found && equal
}

/// A value that follows from the facts.
#[derive(Clone, Copy)]
enum ExpectedFigure<'f> {
    Number(u64),
    Text(&'f str),
}

/// The values that a gate compares according to the facts; `None` if there are none.
fn expected_figures<'f>(
    gate: &str,
    facts: &'f PolicyFacts<'_>,
) -> Option<[(&'static str, ExpectedFigure<'f>); 2]> {
    let Principal::Agent { trust, phase, status, .. } = &facts.who else { return None };
    let Resource::Gateway { name, min_trust, .. } = &facts.what else { return None };
    match gate {
        "gateway_health" => Some([
            ("gateway", ExpectedFigure::Text(name)),
            ("health", ExpectedFigure::Text(Health::Healthy.as_str())),
        ]),
        "agent_status" => {
            Some([("status", ExpectedFigure::Text(status)), ("phase", ExpectedFigure::Text(phase))])
        }
        "trust_level" => Some([
            ("trust", ExpectedFigure::Number(u64::from(*trust))),
            ("minimum", ExpectedFigure::Number(u64::from(*min_trust))),
        ]),
        _ => None,
    }
}

/// The full record of a decision, from either form.
pub fn expand(record: Map<String, Value>, known: &Known<'_>) -> Map<String, Value> {
    let Some(Value::Object(passed)) = record.get(BRIEF) else { return record };
    let facts = record
        .get("facts")
        .cloned()
        .and_then(|facts| Some(serde_json::from_value::<Seen>(facts).ok()?.expand(known)));
    // An erased payload cannot be restored.
    let Some(facts) = facts else { return record };
    let mut whole = Map::new();
    let keep = |whole: &mut Map<String, Value>, name: &str, value: Option<Value>| {
        if let Some(value) = value {
            whole.insert(name.to_owned(), value);
        }
    };
    let field = |name: &str| record.get(name).cloned();
    keep(&mut whole, "disposition", field("disposition"));
    keep(&mut whole, "gates", Some(gates(passed, &facts)));
    let usual = usual(facts.cost);
    let usual = (!usual.is_empty()).then(|| json!(usual));
    keep(&mut whole, "constraints", field("constraints").or(usual));
    for name in ["policyHash", "factsDigest", "actionDigest"] {
        keep(&mut whole, name, field(name));
    }
    keep(&mut whole, "facts", Some(json!(facts)));
    let route = field("layer").map(|layer| json!({"gateway": facts.what.name(), "layer": layer}));
    keep(&mut whole, "route", field("route").or(route));
    let worst = worst(facts.cost).map(|worst| worst.to_string());
    keep(&mut whole, "worst", worst.and_then(|worst| serde_json::from_str(&worst).ok()));
    for (name, value) in record {
        let known = [BRIEF, "layer"].contains(&name.as_str());
        if !known && !whole.contains_key(&name) {
            whole.insert(name, value);
        }
    }
    whole
}

fn gates(passed: &Map<String, Value>, facts: &PolicyFacts<'_>) -> Value {
    let gate = |gate: &crate::gates::Gate| {
        let mut verdict = json!({"gate": gate.name, "outcome": "pass"});
        let figures = passed.get(gate.name).cloned().or_else(|| {
            let figures = expected_figures(gate.name, facts)?.map(|(name, usual)| {
                let value = match usual {
                    ExpectedFigure::Number(number) => json!(number),
                    ExpectedFigure::Text(text) => json!(text),
                };
                (name.to_owned(), value)
            });
            Some(Value::Object(figures.into_iter().collect()))
        });
        match figures {
            Some(Value::Object(figures)) if figures.is_empty() => {}
            Some(figures) => verdict["figures"] = figures,
            None => {}
        }
        verdict
    };
    GATES.iter().map(gate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_written_as_json_writes_them() {
        for kind in 0..16_u8 {
            let has = |bit: u8| kind & bit != 0;
            let seen = InputsSeen {
                classes: if has(1) { vec!["agent".into(), "too\"l".into()] } else { Vec::new() },
                untrusted: has(2),
                private: has(4),
                age_s: has(8).then_some(3),
            };
            let mut text = String::new();
            inputs(&mut text, &seen);
            let written = serde_json::to_string(&seen).unwrap();
            let expected = if kind == 0 { String::new() } else { format!(",\"inputs\":{written}") };
            assert_eq!(text, expected);
        }
    }
}
