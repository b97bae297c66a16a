//! Bounds that field schemas and contract fields share.
//!
//! Both formats limit numbers and texts in the same way and differ only in spelling, so the
//! check exists once and the spelling is passed in.

use crate::pattern::Pattern;
use crate::value::compare_numbers;
use crate::violation::{Contradiction, Reason, a};
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Limits on one value; each applies only to its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueBounds<'a> {
    pub(crate) min: Option<&'a Number>,
    pub(crate) max: Option<&'a Number>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<&'a Pattern>,
}

/// What a declared type can contain, for the check of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Numbers,
    Texts,
    Anything,
    Neither,
}

/// How a format spells the bounds on numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spelling {
    pub(crate) min: &'static str,
    pub(crate) max: &'static str,
}

impl ValueBounds<'_> {
    /// The violations of `value`: reasons and messages.
    pub(crate) fn check(&self, value: &Value) -> Vec<(Reason, String)> {
        match value {
            Value::Number(number) => self.check_number(number),
            Value::String(text) => self.check_text(text),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Vec::new(),
        }
    }

    fn check_number(&self, number: &Number) -> Vec<(Reason, String)> {
        let mut found = Vec::new();
        if let Some(min) = self.min
            && compare_numbers(number, min) == Ordering::Less
        {
            let message = format!("is {number}, below the minimum {min}");
            found.push((Reason::BelowMin, message));
        }
        if let Some(max) = self.max
            && compare_numbers(number, max) == Ordering::Greater
        {
            let message = format!("is {number}, above the maximum {max}");
            found.push((Reason::AboveMax, message));
        }
        found
    }

    fn check_text(&self, text: &str) -> Vec<(Reason, String)> {
        let length = || text.chars().count() as u64;
        let mut found = Vec::new();
        if let Some(min) = self.min_length
            && length() < min
        {
            let message = format!("has {}, below the minimum {min}", characters(length()));
            found.push((Reason::TooShort, message));
        }
        if let Some(max) = self.max_length
            && length() > max
        {
            let message = format!("has {}, above the maximum {max}", characters(length()));
            found.push((Reason::TooLong, message));
        }
        if let Some(pattern) = self.pattern
            && !pattern.is_match(text)
        {
            let message = format!("does not match the pattern {}", pattern.as_str());
            found.push((Reason::PatternMismatch, message));
        }
        found
    }

    /// Bounds that exclude each other or do not apply to the type `kind`.
    pub(crate) fn contradictions(
        &self,
        holds: Holds,
        kind: &str,
        spelling: Spelling,
    ) -> Vec<Contradiction> {
        let numbers = [(spelling.min, self.min.is_some()), (spelling.max, self.max.is_some())];
        let texts = [
            ("minLength", self.min_length.is_some()),
            ("maxLength", self.max_length.is_some()),
            ("pattern", self.pattern.is_some()),
        ];
        let misplaced = |(key, set): &(&str, bool), about: &str| {
            let message = format!("`{key}` applies to {about}, not to {}", a(kind));
            set.then(|| Contradiction::new(&[*key], message))
        };
        let mut found = Vec::new();
        if matches!(holds, Holds::Texts | Holds::Neither) {
            found.extend(numbers.iter().filter_map(|key| misplaced(key, "numbers")));
        }
        if matches!(holds, Holds::Numbers | Holds::Neither) {
            found.extend(texts.iter().filter_map(|key| misplaced(key, "text")));
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && compare_numbers(min, max) == Ordering::Greater
        {
            let message = format!("`{}` {min} is above `{}` {max}", spelling.min, spelling.max);
            found.push(Contradiction::new(&[spelling.min], message));
        }
        if let (Some(min), Some(max)) = (self.min_length, self.max_length)
            && min > max
        {
            let message = format!("`minLength` {min} is above `maxLength` {max}");
            found.push(Contradiction::new(&["minLength"], message));
        }
        found
    }
}

fn characters(count: u64) -> String {
    match count {
        1 => "1 character".to_owned(),
        _ => format!("{count} characters"),
    }
}
