//! What would have changed the answer of a policy.

use super::super::history::Clause;
use super::condition::{ExplainedCondition, node, text};
use serde_json::Value;

/// Comparisons, and the words for their opposite.
const OPPOSITES: [(&str, &str); 10] = [
    (">", "at most"),
    ("greaterThan", "at most"),
    (">=", "less than"),
    ("greaterThanOrEqual", "less than"),
    ("<", "at least"),
    ("lessThan", "at least"),
    ("<=", "more than"),
    ("lessThanOrEqual", "more than"),
    ("==", "other than"),
    ("!=", "equal to"),
];

/// With which values a policy that matched would not have.
pub(super) fn without_match(
    conditions: &[ExplainedCondition],
    history: &[Clause],
) -> Option<String> {
    let when = conditions.iter().filter(|one| !one.unless && one.holds != Some(false));
    let mut ways: Vec<String> = when.filter_map(|one| opposite(&one.tree)).collect();
    let missing = conditions.iter().filter(|one| one.unless && one.holds != Some(true));
    let missing: Vec<&str> = missing.map(|one| one.text.as_str()).collect();
    if !missing.is_empty() {
        ways.push(format!("`{}`", missing.join(" && ")));
    }
    let facts = history.iter().flat_map(Clause::facts);
    ways.extend(facts.map(|name| format!("another value of `{name}`")));
    (!ways.is_empty()).then(|| ways.join(", or "))
}

/// With which values a policy that did not match would have.
pub(super) fn with_match(conditions: &[ExplainedCondition]) -> Option<String> {
    let missing = conditions.iter().filter(|one| !one.unless && one.holds != Some(true));
    let mut missing: Vec<String> = missing.map(|one| format!("`{}`", one.text)).collect();
    let unless = conditions.iter().filter(|one| one.unless);
    if unless.clone().next().is_some() && unless.clone().all(|one| one.holds == Some(true)) {
        missing.extend(unless.filter_map(|one| opposite(&one.tree)));
    }
    (!missing.is_empty()).then(|| missing.join(" and "))
}

/// Words for the opposite of a condition; `None` for one that only asks whether a value
/// exists, or which action it is.
fn opposite(tree: &Value) -> Option<String> {
    let (operator, operands) = node(tree)?;
    let sides = || match operands {
        Value::Array(sides) => (text(&sides[0]), sides.get(1).map(number).unwrap_or_default()),
        _ => (text(&operands["left"]), number(&operands["right"])),
    };
    if let Some((_, words)) = OPPOSITES.iter().find(|(name, _)| *name == operator) {
        let (left, right) = sides();
        return Some(format!("`{left}` {words} {right}"));
    }
    match operator {
        "has" | "hasTag" | "is" => None,
        "contains" | "containsAny" => {
            let (left, right) = sides();
            Some(format!("`{left}` without {right}"))
        }
        "containsAll" => {
            let (left, right) = sides();
            Some(format!("`{left}` without one of {right}"))
        }
        "||" => {
            let both = [opposite(&operands["left"])?, opposite(&operands["right"])?];
            Some(both.join(" and "))
        }
        "!" => Some(format!("`{}`", text(&operands["arg"]))),
        "in" if text(&operands["left"]) == "resource" => {
            Some(format!("a resource that is not in {}", number(&operands["right"])))
        }
        _ => Some(format!("not `{}`", text(tree))),
    }
}

/// A literal without the name of its extension: `500` for `decimal("500.0")`.
fn number(tree: &Value) -> String {
    let decimal = tree.get("decimal").and_then(|operands| operands[0]["Value"].as_str());
    match decimal {
        Some(digits) if digits.contains('.') => {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Some(digits) => digits.to_owned(),
        None => text(tree),
    }
}
