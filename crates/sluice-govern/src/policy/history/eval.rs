//! Evaluates a condition on a list of events.
//!
//! A condition holds at an event if some assignment of its variables satisfies it. The
//! evaluator enumerates assignments from left to right: a field or an equation binds a
//! variable that has no value yet, and compares one that has.
//!
//! INVARIANT: the work is bounded by fuel. The same events and the same fuel give the
//! same answer.

use super::formula::{
    Aggregate, Comparison, EventPattern, Formula, Operand, Since, Span, UNIT, Value,
};
use crate::limits::HISTORY_FUEL;
use std::collections::BTreeSet;

/// The events of a history, oldest first. The last one is the request being decided.
pub trait Events {
    /// The number of events.
    fn count(&self) -> usize;

    /// When an event happened.
    fn at_ms(&self, event: usize) -> u64;

    /// Whether an event is of this action and kind.
    fn is(&self, event: usize, action: &str, kind: &str) -> bool;

    /// Whether a field of an event has this value, or is a set that contains it.
    fn has(&self, event: usize, field: &str, value: &Value) -> bool;

    /// The value of a field; `None` if the event does not have it.
    fn value(&self, event: usize, field: &str) -> Option<Value>;

    /// An attribute of the request: `context.input.amount`, `principal`.
    fn request(&self, path: &str) -> Option<Value>;

    /// The earlier event that is no longer of its kind because of this one: a call that
    /// failed is not effective.
    fn undone_by(&self, event: usize) -> Option<usize> {
        let _ = event;
        None
    }
}

/// The condition needs more steps than it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

type Satisfied = Result<bool, Exhausted>;
type Then<'t, 'e> = &'t mut dyn FnMut(&mut Evaluation<'e>) -> Satisfied;

/// Whether a condition holds at the last event.
pub(crate) fn holds(formula: &Formula, events: &dyn Events) -> Satisfied {
    let Some(last) = events.count().checked_sub(1) else { return Ok(false) };
    Evaluation::new(events).holds(formula, last)
}

/// The value of a count or a sum at the last event.
pub(crate) fn number(operand: &Operand, events: &dyn Events) -> Result<i128, Exhausted> {
    let Some(last) = events.count().checked_sub(1) else { return Ok(0) };
    match Evaluation::new(events).operand(operand, last)? {
        Some(Value::Number(number)) => Ok(number),
        _ => Ok(0),
    }
}

struct Evaluation<'e> {
    events: &'e dyn Events,
    bound: Vec<Option<Value>>,
    fuel: u32,
}

impl<'e> Evaluation<'e> {
    fn new(events: &'e dyn Events) -> Evaluation<'e> {
        Evaluation { events, bound: Vec::new(), fuel: HISTORY_FUEL }
    }

    fn get(&self, variable: usize) -> Option<&Value> {
        self.bound.get(variable)?.as_ref()
    }

    /// Sets a variable; returns its value before.
    fn set(&mut self, variable: usize, value: Option<Value>) -> Option<Value> {
        if self.bound.len() <= variable {
            self.bound.resize(variable + 1, None);
        }
        std::mem::replace(&mut self.bound[variable], value)
    }

    fn burn(&mut self) -> Result<(), Exhausted> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Exhausted)?;
        Ok(())
    }

    fn holds(&mut self, formula: &Formula, at: usize) -> Satisfied {
        self.each(formula, at, &mut |_| Ok(true))
    }

    /// Calls `then` for each assignment that satisfies the formula, until it returns true.
    fn each(&mut self, formula: &Formula, at: usize, then: Then<'_, 'e>) -> Satisfied {
        self.burn()?;
        match formula {
            Formula::And(parts) => self.all(parts, at, then),
            Formula::Not(inner) => Ok(!self.holds(inner, at)? && then(self)?),
            Formula::Formerly(window, body) => {
                for event in (0..=at).rev() {
                    if self.is_within(at, event, *window)? && self.each(body, event, then)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Formula::Previous(window, body) => {
                let Some(event) = at.checked_sub(1) else { return Ok(false) };
                Ok(self.is_within(at, event, *window)? && self.each(body, event, then)?)
            }
            Formula::Since(since) => self.since(since, at, then),
            Formula::Event(pattern) => self.event(pattern, at, then),
            Formula::Compare(op, left, right) => self.compare(*op, (left, right), at, then),
            Formula::Exists(variable, body) => {
                let before = self.set(*variable, None);
                let found = self.each(body, at, then);
                self.set(*variable, before);
                found
            }
            Formula::Timepoint(variable) => self.bind(*variable, number_of(at), then),
        }
    }

    fn all(&mut self, parts: &[Formula], at: usize, then: Then<'_, 'e>) -> Satisfied {
        match parts {
            [] => then(self),
            [first, rest @ ..] => self.each(first, at, &mut |inner| inner.all(rest, at, then)),
        }
    }

    fn since(&mut self, since: &Since, at: usize, then: Then<'_, 'e>) -> Satisfied {
        for event in (0..=at).rev() {
            if !self.is_within(at, event, since.window)? {
                continue;
            }
            let found = self.each(&since.right, event, &mut |inner| {
                for later in event + 1..=at {
                    if !inner.holds(&since.left, later)? {
                        return Ok(false);
                    }
                }
                then(inner)
            })?;
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an event lies in the window that ends at another event, bounds included.
    fn is_within(&mut self, at: usize, event: usize, window: Span) -> Satisfied {
        self.burn()?;
        let age_ms = self.events.at_ms(at).checked_sub(self.events.at_ms(event));
        Ok(age_ms.is_some_and(|age_ms| age_ms <= window.ms))
    }

    fn event(&mut self, pattern: &EventPattern, at: usize, then: Then<'_, 'e>) -> Satisfied {
        if !self.events.is(at, &pattern.action, &pattern.kind) {
            return Ok(false);
        }
        let mut fresh = Vec::new();
        let matches = pattern.fields.iter().all(|(field, operand)| match operand {
            Operand::Any => self.events.value(at, field).is_some(),
            Operand::Value(value) => self.events.has(at, field, value),
            Operand::Request(path) => {
                let value = self.events.request(path);
                value.is_some_and(|value| self.events.has(at, field, &value))
            }
            Operand::Variable(variable) => match self.get(*variable).cloned() {
                Some(value) => self.events.has(at, field, &value),
                None => self.events.value(at, field).is_some_and(|value| {
                    self.set(*variable, Some(value));
                    fresh.push(*variable);
                    true
                }),
            },
            Operand::Count(_) | Operand::Sum(..) => false,
        });
        let found = if matches { then(self) } else { Ok(false) };
        for variable in fresh {
            self.set(variable, None);
        }
        found
    }

    fn compare(
        &mut self,
        op: Comparison,
        (left, right): (&Operand, &Operand),
        at: usize,
        then: Then<'_, 'e>,
    ) -> Satisfied {
        let values = (self.operand(left, at)?, self.operand(right, at)?);
        match (values, left, right) {
            ((Some(left), Some(right)), ..) => Ok(op.holds(&left, &right) && then(self)?),
            ((Some(value), None), _, Operand::Variable(variable))
            | ((None, Some(value)), Operand::Variable(variable), _)
                if op == Comparison::Equal =>
            {
                self.bind(*variable, value, then)
            }
            _ => Ok(false),
        }
    }

    fn bind(&mut self, variable: usize, value: Value, then: Then<'_, 'e>) -> Satisfied {
        match self.get(variable) {
            Some(known) => Ok(*known == value && then(self)?),
            None => {
                self.set(variable, Some(value));
                let found = then(self);
                self.set(variable, None);
                found
            }
        }
    }

    fn operand(&mut self, operand: &Operand, at: usize) -> Result<Option<Value>, Exhausted> {
        Ok(match operand {
            Operand::Value(value) => Some(value.clone()),
            Operand::Request(path) => self.events.request(path),
            Operand::Variable(variable) => self.get(*variable).cloned(),
            Operand::Any => None,
            Operand::Count(aggregate) => {
                let rows = self.rows(aggregate, at)?;
                Some(Value::Number(i128::try_from(rows.len()).unwrap_or(i128::MAX / UNIT) * UNIT))
            }
            Operand::Sum(of, aggregate) => {
                let column = aggregate.over.iter().position(|variable| variable == of);
                let rows = self.rows(aggregate, at)?;
                let values = rows.iter().filter_map(|row| match row.get(column?)? {
                    Some(Value::Number(number)) => Some(*number),
                    _ => None,
                });
                Some(Value::Number(values.fold(0, i128::saturating_add)))
            }
        })
    }

    /// The different assignments of an aggregate.
    fn rows(
        &mut self,
        aggregate: &Aggregate,
        at: usize,
    ) -> Result<BTreeSet<Vec<Option<Value>>>, Exhausted> {
        let before: Vec<_> =
            aggregate.over.iter().map(|variable| self.set(*variable, None)).collect();
        let mut rows = BTreeSet::new();
        self.each(&aggregate.body, at, &mut |inner| {
            inner.burn()?;
            rows.insert(aggregate.over.iter().map(|one| inner.get(*one).cloned()).collect());
            Ok(false)
        })?;
        for (variable, value) in aggregate.over.iter().zip(before) {
            self.set(*variable, value);
        }
        Ok(rows)
    }
}

fn number_of(event: usize) -> Value {
    Value::Number(i128::try_from(event).unwrap_or(i128::MAX))
}
