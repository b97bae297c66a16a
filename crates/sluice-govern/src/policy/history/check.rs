//! Refuses conditions that name what does not exist, reach back without a bound, or can
//! never hold.

use super::clause::HistoryScope;
use super::fact::{Clause, FactForm, HistoryFact};
use super::formula::{Comparison, EventPattern, Formula, Operand, Span, UNIT, Value};
use crate::limits::{HISTORY_WINDOW_MS_MAX, HISTORY_WINDOW_MS_MIN};
use crate::policy::keyword::unknown;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The events of tool calls.
pub const USE_TOOL: &str = "Action::\"use_tool\"";
/// The events of steps.
pub const DISPATCH_STEP: &str = "Action::\"dispatch_step\"";

/// The kinds of events.
pub(super) const KINDS: [&str; 6] = [REQUEST, ALLOWED, DENIED, RESPONSE, ERROR, EFFECTIVE];
/// It was asked for, whatever was decided. The current request is one.
pub const REQUEST: &str = "request";
/// It was allowed.
pub const ALLOWED: &str = "allowed";
/// It was refused.
pub const DENIED: &str = "denied";
/// It ended and succeeded.
pub const RESPONSE: &str = "response";
/// It ended and failed.
pub const ERROR: &str = "error";
/// It was allowed and has not failed: it is in flight or has succeeded. The current
/// request is one.
pub const EFFECTIVE: &str = "effective";

/// The fields of events of tool calls; arguments are `input.NAME`.
const TOOL_FIELDS: [&str; 6] = ["tool", "server", "label", "step", "agent", "amount"];
/// The fields of events of steps.
const STEP_FIELDS: [&str; 2] = ["step", "agent"];
/// FactForm a condition may read of the current request; arguments are `context.input.NAME`.
const REQUEST_PATHS: [&str; 4] = ["context.step.id", "principal", "resource", "context.amount"];

/// The faults of a condition.
pub(super) fn faults(scope: HistoryScope, formula: &Formula) -> Vec<String> {
    let mut faults = Vec::new();
    visit(formula, &mut faults);
    let has_event = mentions_event(formula);
    if !has_event && faults.is_empty() {
        faults.push("the condition is not about any event: write it in a plain `when`".to_owned());
    }
    if scope == HistoryScope::Agent {
        let facts = super::fact::tests(scope, formula);
        let other = facts.iter().find(|(_, fact)| !matches!(fact.what, FactForm::Occurrences(_)));
        if let Some((_, fact)) = other {
            faults.push(format!(
                "only count_within, sum_within and formerly of one event with constant fields \
                 work across runs, not {}: use `when temporal` for this run",
                fact.what
            ));
        }
    }
    faults
}

fn visit(formula: &Formula, faults: &mut Vec<String>) {
    match formula {
        Formula::And(parts) => parts.iter().for_each(|part| visit(part, faults)),
        Formula::Not(inner) | Formula::Exists(_, inner) => visit(inner, faults),
        Formula::Formerly(window, inner) | Formula::Previous(window, inner) => {
            faults.extend(window_fault(*window));
            visit(inner, faults);
        }
        Formula::Since(since) => {
            faults.extend(window_fault(since.window));
            visit(&since.left, faults);
            visit(&since.right, faults);
        }
        Formula::Event(pattern) => event(pattern, faults),
        Formula::Compare(_, left, right) => {
            for operand in [left, right] {
                match operand {
                    Operand::Count(aggregate) | Operand::Sum(_, aggregate) => {
                        visit(&aggregate.body, faults);
                    }
                    other => operand_fault(other, faults),
                }
            }
        }
        Formula::Timepoint(_) => {}
    }
}

fn window_fault(window: Span) -> Option<String> {
    if window.ms < HISTORY_WINDOW_MS_MIN {
        return Some(format!("a window of {window} is empty: the shortest is 1s"));
    }
    (window.ms > HISTORY_WINDOW_MS_MAX).then(|| {
        let longest = Span { ms: HISTORY_WINDOW_MS_MAX };
        format!("a window of {window} is too long: the longest is {longest}")
    })
}

fn event(pattern: &EventPattern, faults: &mut Vec<String>) {
    let fields: &[&str] = match &*pattern.action {
        USE_TOOL => &TOOL_FIELDS,
        DISPATCH_STEP => &STEP_FIELDS,
        other => {
            let known = [USE_TOOL, DISPATCH_STEP];
            return faults.push(format!(
                "there are no events of {other}: expected {} or {}",
                known[0], known[1]
            ));
        }
    };
    if !KINDS.contains(&&*pattern.kind) {
        faults.push(format!("event kind {}", unknown(&pattern.kind, &KINDS)));
    }
    let mut constants = BTreeMap::<&str, &Value>::new();
    for (name, operand) in &pattern.fields {
        let is_argument = &*pattern.action == USE_TOOL && name.starts_with("input.");
        if !is_argument && !fields.contains(&&**name) {
            faults.push(format!("field {}", unknown(name, fields)));
        }
        operand_fault(operand, faults);
        if &**name == "label" && !operand.is_constant() {
            faults.push("a label is compared with a constant text".to_owned());
        }
        if let Operand::Value(value) = operand {
            let other = constants.insert(name, value).filter(|other| *other != value);
            if let Some(other) = other.filter(|_| &**name != "label") {
                faults.push(format!("{name} cannot be {other} and {value}: no event ever matches"));
            }
            if !is_argument && !matches!(value, Value::Text(_)) && &**name != "amount" {
                faults.push(format!("{name} is a text, not {value}"));
            }
            if is_argument && !matches!(value, Value::Number(_)) {
                faults.push(format!(
                    "history keeps only numbers of arguments: {name} is never {value}"
                ));
            }
        }
    }
    if let (Some(Value::Text(tool)), Some(Value::Text(server))) =
        (constants.get("tool"), constants.get("server"))
        && tool.split_once('.').is_none_or(|(of, _)| of != &**server)
    {
        faults.push(format!("tool {tool} is not of server {server}: no event ever matches"));
    }
}

fn operand_fault(operand: &Operand, faults: &mut Vec<String>) {
    if let Operand::Request(path) = operand
        && !path.starts_with("context.input.")
        && !REQUEST_PATHS.contains(&&**path)
    {
        faults.push(unknown(path, &REQUEST_PATHS).replacen(
            "is not one of",
            "is not context.input.NAME or one of",
            1,
        ));
    }
}

fn mentions_event(formula: &Formula) -> bool {
    let operand = |operand: &Operand| match operand {
        Operand::Count(aggregate) | Operand::Sum(_, aggregate) => mentions_event(&aggregate.body),
        _ => false,
    };
    match formula {
        Formula::Event(_) => true,
        Formula::And(parts) => parts.iter().any(mentions_event),
        Formula::Not(inner)
        | Formula::Exists(_, inner)
        | Formula::Formerly(_, inner)
        | Formula::Previous(_, inner) => mentions_event(inner),
        Formula::Since(since) => mentions_event(&since.left) || mentions_event(&since.right),
        Formula::Compare(_, left, right) => operand(left) || operand(right),
        Formula::Timepoint(_) => false,
    }
}

/// The tools, servers and labels that a condition names: the field and the text.
pub(super) fn names(formula: &Formula, found: &mut Vec<(Arc<str>, Arc<str>)>) {
    match formula {
        Formula::And(parts) => parts.iter().for_each(|part| names(part, found)),
        Formula::Not(inner)
        | Formula::Exists(_, inner)
        | Formula::Formerly(_, inner)
        | Formula::Previous(_, inner) => names(inner, found),
        Formula::Since(since) => {
            names(&since.left, found);
            names(&since.right, found);
        }
        Formula::Event(pattern) => {
            found.extend(pattern.fields.iter().filter_map(|(name, operand)| match operand {
                Operand::Value(Value::Text(text)) => Some((Arc::clone(name), Arc::clone(text))),
                _ => None,
            }));
        }
        Formula::Compare(_, left, right) => {
            for operand in [left, right] {
                if let Operand::Count(aggregate) | Operand::Sum(_, aggregate) = operand {
                    names(&aggregate.body, found);
                }
            }
        }
        Formula::Timepoint(_) => {}
    }
}

/// Why no number passes all tests of the clauses of a policy, or every number does.
pub(super) fn contradiction(
    clauses: &[Clause],
    facts: &BTreeMap<Arc<str>, HistoryFact>,
) -> Option<String> {
    let mut bounds = BTreeMap::<&Arc<str>, (i128, i128)>::new();
    for clause in clauses.iter().filter(|clause| !clause.unless || clause.tests.len() == 1) {
        for test in &clause.tests {
            let Some((op, limit)) = test.compare else { continue };
            let negated = test.negated != clause.unless;
            let is_count = facts.get(&test.fact).is_none_or(|fact| is_count(&fact.what));
            let from = if is_count { 0 } else { i128::MIN };
            let op = if negated { opposite(op) } else { op };
            let (least, most) = range(op, limit);
            if is_count && (least <= 0 && most == i128::MAX) && op != Comparison::Unequal {
                return Some(format!("a count is always {} {}", op.sign(), Value::Number(limit)));
            }
            let bound = bounds.entry(&test.fact).or_insert((from, i128::MAX));
            *bound = (bound.0.max(least), bound.1.min(most));
            let step = if is_count { UNIT } else { 1 };
            let first = if is_count {
                bound.0.div_euclid(step) * step + i128::from(bound.0.rem_euclid(step) != 0) * step
            } else {
                bound.0
            };
            if first > bound.1 {
                return Some(format!(
                    "the policy can never match: no value of {} passes",
                    test.fact
                ));
            }
        }
    }
    None
}

fn is_count(what: &FactForm) -> bool {
    match what {
        FactForm::Occurrences(one) => one.sum.is_none(),
        FactForm::Number(operand) => matches!(operand, Operand::Count(_)),
        FactForm::Unbroken(_) | FactForm::Holds(_) => false,
    }
}

const fn opposite(op: Comparison) -> Comparison {
    match op {
        Comparison::Less => Comparison::AtLeast,
        Comparison::AtMost => Comparison::More,
        Comparison::More => Comparison::AtMost,
        Comparison::AtLeast => Comparison::Less,
        Comparison::Equal => Comparison::Unequal,
        Comparison::Unequal => Comparison::Equal,
    }
}

/// The least and the greatest number that pass.
const fn range(op: Comparison, limit: i128) -> (i128, i128) {
    match op {
        Comparison::Less => (i128::MIN, limit - 1),
        Comparison::AtMost => (i128::MIN, limit),
        Comparison::More => (limit + 1, i128::MAX),
        Comparison::AtLeast => (limit, i128::MAX),
        Comparison::Equal => (limit, limit),
        Comparison::Unequal => (i128::MIN, i128::MAX),
    }
}
