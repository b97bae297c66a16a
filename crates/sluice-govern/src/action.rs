//! The exact action to be dispatched, and its digest.

mod diff;

pub use diff::{Difference, diff};

use crate::canonical::{self, push_list, push_number, push_text};
use crate::decision::Constraints;
use crate::money::Money;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A dispatch as it would be sent. People approve its canonical JSON. The fields are in
/// alphabetical order, so canonical JSON needs no sorting. Long values are borrowed,
/// because every dispatch builds an action and keeps it only if it needs an approval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Action<'a> {
    /// The agent that would receive the command.
    pub agent: &'a str,
    /// The rendered instruction.
    pub command: &'a str,
    /// Constraints on the agent.
    pub constraints: Constraints,
    /// Cost ceiling; `None` if unknown.
    pub cost_ceiling: Option<Money>,
    /// Working directory of a shell command.
    pub cwd: Option<&'a str>,
    /// SHA-256 of the plan.
    pub definition: &'a str,
    /// Environment variables of a shell command.
    pub env: &'a [(String, String)],
    /// The gateway. Fixed when an approval is requested.
    pub gateway: &'a str,
    /// Inputs of a sub-workflow, or of an approval step.
    pub inputs: &'a Map<String, Value>,
    /// Context from the memory profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
    /// SHA-256 over the policies that matched the action. Editing other policies does
    /// not change it.
    pub policies: Cow<'a, str>,
    /// The provider session that it continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a str>,
    /// Standard input of a shell command.
    pub stdin: Option<&'a str>,
    /// The step; `step[3]` for an instance.
    pub step: &'a str,
    /// System prompt, if there is more than the engine's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<&'a str>,
    /// Tools that it may use.
    pub tools: &'a [String],
    /// The name of the run's workflow.
    pub workflow: &'a str,
}

impl Action<'_> {
    /// The canonical JSON.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(640 + self.command.len());
        push_text(&mut out, "{\"agent\":\"", self.agent);
        push_text(&mut out, ",\"command\":\"", self.command);
        constraints(&mut out, &self.constraints);
        out.push_str(",\"cost_ceiling\":");
        match self.cost_ceiling {
            Some(ceiling) => push_number(&mut out, ceiling.micro_cents()),
            None => out.push_str("null"),
        }
        text(&mut out, ",\"cwd\":", self.cwd);
        push_text(&mut out, ",\"definition\":\"", self.definition);
        if self.env.is_empty() {
            out.push_str(",\"env\":[]");
        } else {
            value(&mut out, ",\"env\":", &self.env);
        }
        push_text(&mut out, ",\"gateway\":\"", self.gateway);
        if self.inputs.is_empty() {
            out.push_str(",\"inputs\":{}");
        } else {
            value(&mut out, ",\"inputs\":", self.inputs);
        }
        if let Some(memory) = self.memory {
            push_text(&mut out, ",\"memory\":\"", memory);
        }
        text(&mut out, ",\"model\":", self.model);
        push_text(&mut out, ",\"policies\":\"", &self.policies);
        if let Some(session) = self.session {
            push_text(&mut out, ",\"session\":\"", session);
        }
        text(&mut out, ",\"stdin\":", self.stdin);
        push_text(&mut out, ",\"step\":\"", self.step);
        if let Some(prompt) = self.system_prompt {
            push_text(&mut out, ",\"system_prompt\":\"", prompt);
        }
        out.push_str(",\"tools\":");
        push_list(&mut out, self.tools);
        push_text(&mut out, ",\"workflow\":\"", self.workflow);
        out.push('}');
        out
    }

    /// SHA-256 of the canonical JSON, in hexadecimal.
    pub fn digest(&self) -> String {
        canonical::hex(self.text().as_bytes())
    }

    /// The action as a JSON value, to be stored with an approval request.
    pub fn value(&self) -> Value {
        serde_json::to_value(self).expect("an action is plain data")
    }
}

/// Writes a text field or null.
fn text(out: &mut String, name: &str, value: Option<&str>) {
    out.push_str(name);
    match value {
        None => out.push_str("null"),
        Some(text) => push_text(out, "\"", text),
    }
}

/// Most constraints bound only the cost.
fn constraints(out: &mut String, bounds: &Constraints) {
    match bounds.max_cost {
        Some(max_cost) if bounds.bounds_only_cost() => {
            out.push_str(",\"constraints\":{\"max_cost\":");
            push_number(out, max_cost.micro_cents());
            out.push('}');
        }
        _ => value(out, ",\"constraints\":", bounds),
    }
}

/// Writes any other field.
fn value(out: &mut String, name: &str, value: &impl Serialize) {
    out.push_str(name);
    out.push_str(&canonical::to_string(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_text_is_the_canonical_json(
            texts in prop::collection::vec(".{0,12}", 7),
            some in prop::option::of(".{0,5}"),
            env in prop::collection::vec((".{0,3}", ".{0,3}"), 0..3),
            cost in prop::option::of(any::<u64>()),
            bare: bool,
        ) {
            let mut inputs = Map::new();
            inputs.insert(texts[0].clone(), texts[1].clone().into());
            inputs.insert(texts[1].clone(), serde_json::json!({"b": [1], "a": null}));
            let tools: Vec<String> = some.iter().chain(&texts[2..3]).cloned().collect();
            let tools = if bare { Vec::new() } else { tools };
            let constraints = Constraints {
                tools_deny: tools.clone(),
                max_cost: cost.map(Money::from_micro_cents),
                ..Constraints::default()
            };
            let action = Action {
                agent: &texts[0],
                command: &texts[1],
                constraints,
                cost_ceiling: cost.map(Money::from_micro_cents),
                cwd: some.as_deref(),
                definition: &texts[2],
                env: &env,
                gateway: &texts[3],
                inputs: &inputs,
                memory: some.as_deref(),
                model: some.as_deref(),
                policies: Cow::Borrowed(&texts[4]),
                session: some.as_deref(),
                stdin: some.as_deref(),
                step: &texts[5],
                system_prompt: some.as_deref(),
                tools: &tools,
                workflow: &texts[6],
            };
            prop_assert_eq!(action.text(), canonical::to_string(&action));
            prop_assert_eq!(action.digest(), canonical::sha256_hex(&action.value(), 0));
        }
    }
}
