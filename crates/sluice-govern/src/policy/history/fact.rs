//! Facts about history, and the tests of policies on them.
//!
//! A clause is a conjunction. Each part asks for one fact, a number or whether something
//! holds, and tests it. A fact has the canonical text of its condition as its name, so
//! that two policies with different limits share it, and a recorded decision can be
//! replayed under a policy with another limit.

use super::clause::HistoryScope;
use super::formula::{
    Aggregate, Comparison, EventPattern, Formula, Operand, Since, Span, UNIT, Value,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// The values of facts, by their names.
pub type HistoryValues = BTreeMap<Arc<str>, HistoryValue>;

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryValue {
    /// A count or a sum, in ten-thousandths.
    Number(i128),
    /// Whether a condition holds.
    Holds(bool),
    /// Not known, for this reason. A policy that needs it cannot be evaluated.
    Unknown(String),
}

/// A fact that some policy tests.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryFact {
    /// Its name: the scope and the canonical text of the condition.
    pub name: Arc<str>,
    /// The events that it is about.
    pub scope: HistoryScope,
    pub(super) what: FactForm,
    /// The values above which some test has another result.
    pub(super) limits: Vec<i128>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum FactForm {
    /// Events of one pattern in a window.
    Occurrences(Occurrences),
    /// An event, and none of another pattern after it.
    Unbroken(Box<Unbroken>),
    /// A count or a sum of another form.
    Number(Operand),
    /// Any other condition.
    Holds(Formula),
}

/// The events of a pattern without variables in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Occurrences {
    pub(super) pattern: EventPattern,
    pub(super) window: Span,
    /// The field whose values are added; `None` counts events.
    pub(super) sum: Option<Arc<str>>,
    /// Whether only the existence of an event is asked.
    pub(super) any: bool,
}

/// `!broken_by since within window anchor`, for patterns without variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unbroken {
    pub(super) anchor: Occurrences,
    pub(super) broken_by: Occurrences,
}

/// A test of a fact.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FactTest {
    pub(super) fact: Arc<str>,
    pub(super) negated: bool,
    /// The comparison of a number; `None` for a condition that holds or not.
    pub(super) compare: Option<(Comparison, i128)>,
}

/// A clause of a policy, as tests of facts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clause {
    pub(super) unless: bool,
    pub(super) tests: Vec<FactTest>,
}

impl Clause {
    /// Whether the clause lets its policy match.
    pub(crate) fn holds(&self, values: &HistoryValues) -> Result<bool, String> {
        let mut unknown = None;
        for test in &self.tests {
            match test.holds(values) {
                Ok(true) => {}
                Ok(false) => return Ok(self.unless),
                Err(why) => unknown = Some(why),
            }
        }
        unknown.map_or(Ok(!self.unless), Err)
    }

    /// The names of the facts that it tests.
    pub(crate) fn facts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.tests.iter().map(|test| &test.fact)
    }
}

impl FactTest {
    fn holds(&self, values: &HistoryValues) -> Result<bool, String> {
        let holds = match (values.get(&self.fact), self.compare) {
            (Some(HistoryValue::Number(number)), Some((op, limit))) => {
                op.holds(&Value::Number(*number), &Value::Number(limit))
            }
            (Some(HistoryValue::Holds(holds)), None) => *holds,
            (Some(HistoryValue::Unknown(why)), _) => return Err(why.clone()),
            _ => return Err(format!("the decision has no value of {}", self.fact)),
        };
        Ok(holds != self.negated)
    }
}

/// The tests of a condition, and the facts that they need.
pub(super) fn tests(scope: HistoryScope, formula: &Formula) -> Vec<(FactTest, HistoryFact)> {
    match formula {
        Formula::And(parts) => parts.iter().flat_map(|part| tests(scope, part)).collect(),
        Formula::Not(inner) if !matches!(**inner, Formula::And(_)) => {
            let mut tests = tests(scope, inner);
            for (test, _) in &mut tests {
                test.negated = !test.negated;
            }
            tests
        }
        other => vec![test(scope, other)],
    }
}

fn test(scope: HistoryScope, formula: &Formula) -> (FactTest, HistoryFact) {
    let (what, compare) = match formula {
        Formula::Compare(op, number, Operand::Value(Value::Number(limit)))
            if is_aggregate(number) =>
        {
            (number_of(number), Some((*op, *limit)))
        }
        Formula::Compare(op, Operand::Value(Value::Number(limit)), number)
            if is_aggregate(number) =>
        {
            (number_of(number), Some((op.turned(), *limit)))
        }
        Formula::Formerly(window, body) => {
            let occurrences = existence(*window, body).map(FactForm::Occurrences);
            (occurrences.unwrap_or_else(|| FactForm::Holds(formula.clone())), None)
        }
        Formula::Since(since) => {
            let unbroken = unbroken(since).map(|unbroken| FactForm::Unbroken(Box::new(unbroken)));
            (unbroken.unwrap_or_else(|| FactForm::Holds(formula.clone())), None)
        }
        _ => (FactForm::Holds(formula.clone()), None),
    };
    let name: Arc<str> = format!("{scope}: {what}").into();
    let test = FactTest { fact: Arc::clone(&name), negated: false, compare };
    let limits = compare.map_or(Vec::new(), |(op, limit)| limits(op, limit));
    (test, HistoryFact { name, scope, what, limits })
}

const fn is_aggregate(operand: &Operand) -> bool {
    matches!(operand, Operand::Count(_) | Operand::Sum(..))
}

/// The values above which a comparison has another result.
fn limits(op: Comparison, limit: i128) -> Vec<i128> {
    match op {
        Comparison::More | Comparison::AtMost => vec![limit],
        Comparison::AtLeast | Comparison::Less => vec![limit - 1],
        Comparison::Equal | Comparison::Unequal => vec![limit - 1, limit],
    }
}

/// The existence of an event of a pattern without variables.
fn existence(window: Span, body: &Formula) -> Option<Occurrences> {
    let pattern = closed(body)?.clone();
    Some(Occurrences { pattern, window, sum: None, any: true })
}

fn unbroken(since: &Since) -> Option<Unbroken> {
    let Formula::Not(left) = &since.left else { return None };
    Some(Unbroken {
        anchor: existence(since.window, &since.right)?,
        broken_by: existence(since.window, left)?,
    })
}

/// The pattern of a body that is one event without variables.
fn closed(body: &Formula) -> Option<&EventPattern> {
    let Formula::Event(pattern) = body else { return None };
    let is_closed = pattern.fields.iter().all(|(_, operand)| operand.is_constant());
    is_closed.then_some(pattern)
}

/// A count or sum, as occurrences of a pattern where it has that form.
fn number_of(operand: &Operand) -> FactForm {
    occurrences(operand).map_or_else(|| FactForm::Number(operand.clone()), FactForm::Occurrences)
}

fn occurrences(operand: &Operand) -> Option<Occurrences> {
    let (of, Aggregate { over, body }) = match operand {
        Operand::Count(aggregate) => (None, &**aggregate),
        Operand::Sum(of, aggregate) => (Some(*of), &**aggregate),
        _ => return None,
    };
    let Formula::Formerly(window, body) = body else { return None };
    let Formula::And(parts) = &**body else { return None };
    let [Formula::Event(pattern), Formula::Timepoint(time)] = &parts[..] else { return None };
    let is_plain = match of {
        None => over[..] == [*time],
        Some(of) => over.len() == 2 && over.contains(time) && over.contains(&of),
    };
    let mut pattern = pattern.clone();
    let sum = of.and_then(|of| {
        let at = pattern.fields.iter().position(|(_, one)| *one == Operand::Variable(of))?;
        Some(pattern.fields.remove(at).0)
    });
    let is_closed = pattern.fields.iter().all(|(_, operand)| operand.is_constant());
    (is_plain && is_closed && sum.is_some() == of.is_some()).then_some(Occurrences {
        pattern,
        window: *window,
        sum,
        any: false,
    })
}

impl Display for FactForm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FactForm::Occurrences(one) => write!(f, "{one}"),
            FactForm::Unbroken(one) => {
                let Unbroken { anchor, broken_by } = &**one;
                let Occurrences { pattern, window, .. } = anchor;
                write!(f, "!{} since within {window} {pattern}", broken_by.pattern)
            }
            FactForm::Number(operand) => write!(f, "{operand}"),
            FactForm::Holds(formula) => write!(f, "{formula}"),
        }
    }
}

impl Display for Occurrences {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Occurrences { pattern, window, sum, any } = self;
        match sum {
            None if *any => write!(f, "formerly within {window} {pattern}"),
            None => write!(f, "count_within({window}, {pattern})"),
            Some(field) => write!(f, "sum_within({field}, {window}, {pattern})"),
        }
    }
}

impl Serialize for HistoryValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            HistoryValue::Holds(holds) => serializer.serialize_bool(*holds),
            HistoryValue::Unknown(why) => serializer.collect_map([("unknown", why)]),
            HistoryValue::Number(number) => match i64::try_from(number / UNIT) {
                Ok(whole) if number % UNIT == 0 => serializer.serialize_i64(whole),
                _ => serializer.collect_str(&Value::Number(*number)),
            },
        }
    }
}

impl<'de> Deserialize<'de> for HistoryValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Holds(bool),
            Whole(i64),
            Decimal(String),
            Unknown { unknown: String },
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Holds(holds) => HistoryValue::Holds(holds),
            Form::Whole(whole) => HistoryValue::Number(i128::from(whole) * UNIT),
            Form::Unknown { unknown } => HistoryValue::Unknown(unknown),
            Form::Decimal(text) => match read_number(&text) {
                Some(number) => HistoryValue::Number(number),
                None => HistoryValue::Unknown(format!("{text:?} is not a number")),
            },
        })
    }
}

/// A decimal number in ten-thousandths. More digits after the point are rounded away
/// from zero, so that a sum is never too small.
pub fn read_number(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || !is_plain(whole) || !is_plain(fraction) {
        return None;
    }
    let (kept, cut) = fraction.split_at(fraction.len().min(4));
    let more = i128::from(cut.bytes().any(|byte| byte != b'0'));
    let fraction: i128 = format!("{kept:0<4}").parse().ok()?;
    Some(sign * (whole.parse::<i128>().ok()? * UNIT + fraction + more))
}
