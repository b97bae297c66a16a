//! The conditions of a policy, part by part, as text.

use super::super::request::CedarRequest;
use cedar_policy::{Authorizer, Decision, Policy, PolicyId, PolicySet};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Operators between two values, with their sign.
const BETWEEN: [(&str, &str); 11] = [
    ("==", "=="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("<", "<"),
    (">", ">"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("in", "in"),
    ("||", "||"),
];
/// Operators that are written as methods.
const METHODS: [&str; 5] = ["contains", "containsAll", "containsAny", "hasTag", "getTag"];

/// A part of the conditions of a policy. All parts of `when` must hold, and not all parts
/// of `unless`.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedCondition {
    /// Whether it belongs to `unless`.
    pub unless: bool,
    /// Its text.
    pub text: String,
    /// Whether it holds; absent if it could not be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    #[serde(skip)]
    pub(super) tree: Value,
}

/// Splits `when` and `unless` into the parts that `&&` joins, and evaluates each.
pub(super) fn conditions(
    policy: &Value,
    request: Option<&CedarRequest>,
) -> Vec<ExplainedCondition> {
    let mut all = Vec::new();
    for condition in policy["conditions"].as_array().into_iter().flatten() {
        let unless = condition["kind"] == "unless";
        let mut parts = Vec::new();
        split(&condition["body"], &mut parts);
        for part in parts {
            let holds = request.and_then(|request| holds(part, request));
            all.push(ExplainedCondition { unless, text: text(part), holds, tree: part.clone() });
        }
    }
    all
}

fn split<'t>(tree: &'t Value, parts: &mut Vec<&'t Value>) {
    match tree.get("&&") {
        Some(both) => {
            split(&both["left"], parts);
            split(&both["right"], parts);
        }
        None => parts.push(tree),
    }
}

/// Lets Cedar evaluate a part alone. A part may fail alone where an earlier one protects
/// it: `context has cost && context.cost > 5`.
fn holds(part: &Value, request: &CedarRequest) -> Option<bool> {
    let any = json!({"op": "All"});
    let tree = json!({
        "effect": "permit", "principal": any, "action": any, "resource": any,
        "conditions": [{"kind": "when", "body": part}],
    });
    let policy = Policy::from_json(Some(PolicyId::new("part")), tree).ok()?;
    let set = PolicySet::from_policies([policy]).ok()?;
    let answer = Authorizer::new().is_authorized(&request.request, &set, &request.entities);
    let failed = answer.diagnostics().errors().next().is_some();
    (!failed).then(|| answer.decision() == Decision::Allow)
}

/// An expression as Cedar text.
pub(super) fn text(tree: &Value) -> String {
    let Some((operator, operands)) = node(tree) else { return "?".to_owned() };
    let operand = |name: &str| text(&operands[name]);
    let inner = |name: &str| within(&operands[name]);
    if let Some((_, sign)) = BETWEEN.iter().find(|(name, _)| *name == operator) {
        return format!("{} {sign} {}", inner("left"), inner("right"));
    }
    if METHODS.contains(&operator) {
        return format!("{}.{operator}({})", inner("left"), operand("right"));
    }
    match operator {
        "Value" => literal(operands),
        "Var" => operands.as_str().unwrap_or("?").to_owned(),
        "&&" => format!("{} && {}", inner("left"), inner("right")),
        "!" => format!("!{}", inner("arg")),
        "neg" => format!("-{}", inner("arg")),
        "isEmpty" => format!("{}.isEmpty()", inner("arg")),
        "." => member(&inner("left"), &operands["attr"]),
        "has" => format!("{} has {}", inner("left"), name(&operands["attr"])),
        "like" => format!("{} like {}", inner("left"), pattern(&operands["pattern"])),
        "is" => match operands.get("in") {
            Some(group) => {
                format!("{} is {} in {}", inner("left"), word(operands), within(group))
            }
            None => format!("{} is {}", inner("left"), word(operands)),
        },
        "if-then-else" => {
            format!("if {} then {} else {}", inner("if"), inner("then"), inner("else"))
        }
        "Set" => format!("[{}]", list(operands)),
        "Record" => {
            let fields = operands.as_object().into_iter().flatten();
            let fields =
                fields.map(|(key, value)| format!("{}: {}", name(&json!(key)), text(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        function => call(function, operands),
    }
}

/// The operator of an expression and what it applies to.
pub(super) fn node(tree: &Value) -> Option<(&str, &Value)> {
    let (operator, operands) = tree.as_object()?.iter().next()?;
    Some((operator.as_str(), operands))
}

/// An operand, in brackets where it is not one term.
fn within(tree: &Value) -> String {
    let is_term = node(tree).is_some_and(|(operator, _)| {
        let between = BETWEEN.iter().any(|(name, _)| *name == operator);
        !between && !["&&", "has", "like", "is", "if-then-else"].contains(&operator)
    });
    if is_term { text(tree) } else { format!("({})", text(tree)) }
}

fn word(operands: &Value) -> &str {
    operands["entity_type"].as_str().unwrap_or("?")
}

fn list(items: &Value) -> String {
    let items = items.as_array().into_iter().flatten().map(text);
    items.collect::<Vec<_>>().join(", ")
}

fn literal(value: &Value) -> String {
    let entity = value.get("__entity").and_then(Value::as_object);
    let word = |entity: &Map<String, Value>, key: &str| entity[key].as_str().map(str::to_owned);
    match entity {
        Some(entity) => format!(
            "{}::{}",
            word(entity, "type").unwrap_or_default(),
            json!(word(entity, "id").unwrap_or_default())
        ),
        None => value.to_string(),
    }
}

/// A function of an extension: the first operand is the receiver of a method.
fn call(function: &str, operands: &Value) -> String {
    let operands: &[Value] = operands.as_array().map_or(&[], Vec::as_slice);
    match operands {
        [receiver, rest @ ..] if !["decimal", "ip", "datetime", "duration"].contains(&function) => {
            let rest: Vec<String> = rest.iter().map(text).collect();
            format!("{}.{function}({})", within(receiver), rest.join(", "))
        }
        all => {
            let all: Vec<String> = all.iter().map(text).collect();
            format!("{function}({})", all.join(", "))
        }
    }
}

fn member(left: &str, attribute: &Value) -> String {
    let plain = name(attribute);
    if plain.starts_with('"') { format!("{left}[{plain}]") } else { format!("{left}.{plain}") }
}

/// An attribute: an identifier, else a quoted text.
fn name(attribute: &Value) -> String {
    let word = attribute.as_str().unwrap_or("?");
    let is_plain = word.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
        && !word.starts_with(|one: char| one.is_ascii_digit())
        && !word.is_empty();
    if is_plain { word.to_owned() } else { json!(word).to_string() }
}

fn pattern(pattern: &Value) -> String {
    let parts = pattern.as_array().into_iter().flatten().map(|part| match part.get("Literal") {
        Some(literal) => literal.as_str().unwrap_or_default().replace('*', "\\*"),
        None => "*".to_owned(),
    });
    json!(parts.collect::<String>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(condition: &str) -> String {
        let policy = format!("permit (principal, action, resource) when {{ {condition} }};");
        let policy: Policy = policy.parse().unwrap();
        let tree = policy.to_json().unwrap();
        let all = conditions(&tree, None);
        all.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(" && ")
    }

    #[test]
    fn a_condition_is_shown_as_it_was_written() {
        for condition in [
            "context has cost && context.cost > 5",
            "!context.flow.control",
            "context.call.getTag(\"amount\").number.greaterThan(decimal(\"500.0\"))",
            "context.call.to.seen.containsAny([\"stranger\", \"nowhere\"])",
            "resource in Label::\"pays\"",
            "(context.time.hour < 6) || (context.time.hour >= 22)",
            "context.run.workflow like \"pay-*\"",
            "principal is Agent",
            "context.call.to.seen.isEmpty()",
            "(if true then 1 else -2) == 1",
            "context[\"a b\"] == {\"x\": 1}.x",
        ] {
            let expected = condition.replace("{\"x\": 1}", "{x: 1}");
            assert_eq!(shown(condition), expected);
        }
    }
}
