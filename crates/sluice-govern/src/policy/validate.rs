//! Validates policies against our schema. Rules about the arguments of one tool are validated
//! against a variant of it, in which `context.input` has the types of the tool's definition.

use super::input::InputType;
use super::needs::paths_of;
use super::number;
use super::rule::{Rule, What};
use crate::facts::Verb;
use cedar_policy::{Policy, PolicySet, Schema, ValidationMode, Validator};
use std::sync::LazyLock;

/// What policies may refer to, as far as it is the same for all of them.
pub(super) const SCHEMA: &str = include_str!("../../policies/schema.cedarschema");
/// The line of the schema that becomes the typed arguments of one tool.
const TOOL_INPUT: &str = "    // input: the arguments, in a rule about one tool\n";

/// Validates policies that read no arguments of one tool.
static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| validator(SCHEMA).expect("our schema is well formed"));

/// Which arguments a policy reads through `context.input`.
pub(super) enum InputUse {
    None,
    /// Those of this tool.
    Tool(String),
    /// The policy does not say of which tool.
    Unclear,
}

impl InputUse {
    pub(super) fn of(rule: &Rule, policy: &Policy) -> InputUse {
        if !paths_of(policy).iter().any(|path| is_input(path)) {
            return InputUse::None;
        }
        match &rule.scope.what {
            What::One(kind, name)
                if kind == "Tool" && rule.scope.verbs.contains(&Verb::UseTool) =>
            {
                InputUse::Tool(name.clone())
            }
            _ => InputUse::Unclear,
        }
    }
}

fn is_input(path: &str) -> bool {
    path.strip_prefix("context.input").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The names below `context.input` that a policy reads, without the fields of records in them.
pub(super) fn arguments_of(policy: &Policy) -> Vec<String> {
    let paths = paths_of(policy);
    let below = paths.iter().filter_map(|path| path.strip_prefix("context.input."));
    below.filter_map(|path| path.split('.').next()).map(str::to_owned).collect()
}

/// The schema in which `context.input` has a type.
pub(super) fn typed_schema(input: &InputType) -> String {
    SCHEMA.replace(TOOL_INPUT, &format!("    input: {},\n", input.cedar(1)))
}

fn validator(text: &str) -> Result<Validator, String> {
    let (schema, _) = Schema::from_cedarschema_str(text).map_err(|error| error.to_string())?;
    Ok(Validator::new(schema))
}

/// The errors and warnings about policies, by the number that is their id. A warning is an
/// error too: a policy that can never match, or confusable characters, are mistakes.
pub(super) fn validate<'p>(
    policies: impl Iterator<Item = &'p Policy>,
    input: Option<&InputType>,
) -> Vec<(usize, String)> {
    let set = PolicySet::from_policies(policies.cloned()).expect("a number is given once");
    let typed = match input.map(|input| validator(&typed_schema(input))).transpose() {
        Ok(typed) => typed,
        Err(error) => {
            let message = format!("Cedar cannot represent the definition of the tool: {error}");
            return set.policies().map(|policy| (number(policy.id()), message.clone())).collect();
        }
    };
    let result = typed.as_ref().unwrap_or(&VALIDATOR).validate(&set, ValidationMode::Strict);
    let errors = result.validation_errors().map(|e| (e.policy_id().to_string(), e.to_string()));
    let warnings = result.validation_warnings().map(|w| (w.policy_id().to_string(), w.to_string()));
    let mut found: Vec<(usize, String)> = errors
        .chain(warnings)
        .map(|(id, message)| {
            let prefix = format!("for policy `{id}`, ");
            let message = message.strip_prefix(&prefix).unwrap_or(&message);
            // The same mistake is found once per action; once is enough.
            let message = message.split(" for Action::").next().unwrap_or(message).to_owned();
            (id.parse().expect("ids are numbers"), message)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}
