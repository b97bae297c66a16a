//! Policies about what happened before.
//!
//! A policy has `when temporal { .. }` clauses next to its Cedar conditions. Loading takes
//! them out of the text and turns them into tests of facts. The caller of
//! [`evaluate`](crate::evaluate) supplies a [`History`], which knows the values of facts;
//! the values that the policies in scope need are part of
//! [`PolicyFacts`](super::PolicyFacts), and so of the recorded decision.
//!
//! INVARIANT: windows are bounded, and so is the work for one fact.
//!
//! INVARIANT: a fact without a known value makes its policy fail, and so blocks.

mod check;
mod clause;
mod eval;
mod fact;
mod formula;
mod lexer;
mod parse;
mod postings;

pub use check::{ALLOWED, DENIED, DISPATCH_STEP, EFFECTIVE, ERROR, REQUEST, RESPONSE, USE_TOOL};
pub use clause::HistoryScope;
pub use eval::Events;
pub(super) use fact::Clause;
pub use fact::{HistoryFact, HistoryValue, HistoryValues, read_number};
pub use formula::{UNIT, Value};
pub use postings::Postings;

use crate::facts::Verb;
use fact::{FactForm, Occurrences};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Knows what happened before a decision.
pub trait History: fmt::Debug {
    /// The value of a fact.
    fn value(&self, fact: &HistoryFact) -> HistoryValue;
}

/// The facts that the policies of a set need, by their names.
pub(super) type HistoryFacts = BTreeMap<Arc<str>, HistoryFact>;

/// A policy without its clauses.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// The text for Cedar; `None` if the policy has no clauses.
    pub(super) rest: Option<String>,
    written: Vec<clause::WrittenClause>,
}

/// A fault of a clause: lines after the start of the policy, and the message.
pub(super) type ClauseFault = (usize, String);

/// Takes the clauses out of the text of a policy.
pub(super) fn split(text: &str) -> Result<Split, ClauseFault> {
    let Some((rest, written)) = clause::take_out(text)? else { return Ok(Split::default()) };
    Ok(Split { rest: Some(rest), written })
}

impl Split {
    /// The tools, servers and labels that the clauses name: the field and the name.
    pub(super) fn names(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let mut found = Vec::new();
        for one in &self.written {
            check::names(&one.formula, &mut found);
        }
        found
    }

    /// The clauses as tests, with their facts; or the faults.
    pub(super) fn compile(
        &self,
        verbs: &[Verb],
        facts: &mut HistoryFacts,
    ) -> Result<Vec<Clause>, Vec<ClauseFault>> {
        let mut faults = Vec::new();
        let mut clauses = Vec::new();
        let has_history = |verb: &Verb| matches!(verb, Verb::UseTool | Verb::DispatchStep);
        if !self.written.is_empty() && !verbs.iter().all(has_history) {
            let message = "a policy about history names its action: \
                           action == Action::\"use_tool\" or Action::\"dispatch_step\"";
            faults.push((0, message.to_owned()));
        }
        for one in &self.written {
            let found = check::faults(one.scope, &one.formula);
            faults.extend(found.into_iter().map(|fault| (one.line, fault)));
            let mut tests = Vec::new();
            for (test, fact) in fact::tests(one.scope, &one.formula) {
                let known = facts
                    .entry(Arc::clone(&fact.name))
                    .or_insert_with(|| HistoryFact { limits: Vec::new(), ..fact.clone() });
                known.limits.extend(fact.limits);
                tests.push(test);
            }
            clauses.push(Clause { unless: one.unless, tests });
        }
        let line = self.written.first().map_or(0, |one| one.line);
        faults.extend(check::contradiction(&clauses, facts).map(|fault| (line, fault)));
        if faults.is_empty() { Ok(clauses) } else { Err(faults) }
    }
}

impl HistoryFact {
    /// The value at the last of the events. `conversation` tells postings of different
    /// lists of events apart.
    pub fn evaluate(
        &self,
        events: &dyn Events,
        postings: &mut Postings,
        conversation: u32,
    ) -> HistoryValue {
        let too_much = || HistoryValue::Unknown(format!("{} takes too many steps", self.name));
        match &self.what {
            FactForm::Occurrences(of) => match self.missing(events) {
                Some(why) => HistoryValue::Unknown(why),
                None => self.of_sum(postings.sum((&self.name, conversation), of, events)),
            },
            FactForm::Unbroken(of) => {
                let anchor = postings.newest((&self.name, conversation), &of.anchor, events);
                let broken_by: Arc<str> = [&self.name, " broken by"].concat().into();
                let broken = postings.newest((&broken_by, conversation), &of.broken_by, events);
                HistoryValue::Holds(anchor.is_some_and(|at| broken.is_none_or(|by| by <= at)))
            }
            FactForm::Number(operand) => {
                eval::number(operand, events).map_or_else(|_| too_much(), HistoryValue::Number)
            }
            FactForm::Holds(formula) => {
                eval::holds(formula, events).map_or_else(|_| too_much(), HistoryValue::Holds)
            }
        }
    }

    /// Why the sum is not known: the current request is one of its events, but has no
    /// number to add.
    pub fn missing(&self, events: &dyn Events) -> Option<String> {
        let FactForm::Occurrences(Occurrences { sum: Some(field), pattern, .. }) = &self.what
        else {
            return None;
        };
        let last = events.count().checked_sub(1)?;
        let value = events.value(last, field);
        let is_amount = matches!(value, Some(Value::Number(number)) if number >= 0);
        (!is_amount && postings::is_match(pattern, events, last)).then(|| {
            format!("{field} of the call is not a positive number, so its sum is not known")
        })
    }

    /// FactForm an event adds to the count or the sum; `None` if it does not match. Facts
    /// across runs always have this form.
    pub fn contribution(&self, events: &dyn Events, event: usize) -> Option<i128> {
        match &self.what {
            FactForm::Occurrences(of) => postings::contribution(of, events, event),
            FactForm::Unbroken(_) | FactForm::Number(_) | FactForm::Holds(_) => None,
        }
    }

    /// The value for a count or a sum.
    pub fn of_sum(&self, sum: i128) -> HistoryValue {
        match &self.what {
            FactForm::Occurrences(of) if of.any => HistoryValue::Holds(sum > 0),
            _ => HistoryValue::Number(sum),
        }
    }

    /// The action and the kind of the events that are counted.
    pub fn counts(&self) -> Option<(&str, &str)> {
        match &self.what {
            FactForm::Occurrences(of) => Some((&of.pattern.action, &of.pattern.kind)),
            FactForm::Unbroken(_) | FactForm::Number(_) | FactForm::Holds(_) => None,
        }
    }

    /// How far back it looks.
    pub fn window_ms(&self) -> u64 {
        match &self.what {
            FactForm::Occurrences(of) => of.window.ms,
            FactForm::Unbroken(of) => of.anchor.window.ms,
            FactForm::Number(operand) => formula::reach_of(operand),
            FactForm::Holds(formula) => formula::reach(formula),
        }
    }

    /// The greatest value at which every test has the same result as at this one.
    pub fn highest_like(&self, value: i128) -> Option<i128> {
        let of_existence = matches!(&self.what, FactForm::Occurrences(of) if of.any).then_some(0);
        let limits = self.limits.iter().copied().chain(of_existence);
        limits.filter(|limit| *limit >= value).min()
    }
}

#[cfg(test)]
mod tests;
