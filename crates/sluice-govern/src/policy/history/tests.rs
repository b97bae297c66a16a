mod conditions;
mod dogwood;
mod load;

use super::eval::Events;
use super::formula::{UNIT, Value};

/// Events of tool calls, written as lines: `12s use_tool response tool=bank.pay input.amount=5`.
/// The last one is the current request.
pub(super) struct Lines {
    events: Vec<Line>,
    request: Vec<(String, Value)>,
}

struct Line {
    at_ms: u64,
    action: String,
    kinds: Vec<String>,
    fields: Vec<(String, Value)>,
    undoes: Option<usize>,
}

fn value(text: &str) -> Value {
    text.parse::<i128>().map_or_else(|_| Value::Text(text.into()), |n| Value::Number(n * UNIT))
}

impl Lines {
    pub(super) fn new(text: &str) -> Lines {
        let events = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
            let mut words = line.split_whitespace();
            let mut word = || words.next().unwrap_or_default();
            let seconds: u64 = word().trim_end_matches('s').parse().unwrap();
            let action = format!("Action::{:?}", word());
            let kinds = word().split('+').map(str::to_owned).collect();
            let mut fields = Vec::new();
            let mut undoes = None;
            for field in words {
                let (name, text) = field.split_once('=').unwrap();
                match name {
                    "undoes" => undoes = text.parse().ok(),
                    _ => fields.push((name.to_owned(), value(text))),
                }
            }
            Line { at_ms: seconds * 1000, action, kinds, fields, undoes }
        });
        Lines { events: events.collect(), request: Vec::new() }
    }

    fn with(mut self, path: &str, text: &str) -> Lines {
        self.request.push((path.to_owned(), value(text)));
        self
    }

    /// The first events, up to and with one.
    fn until(&self, last: usize) -> Until<'_> {
        Until { lines: self, last }
    }
}

struct Until<'l> {
    lines: &'l Lines,
    last: usize,
}

impl Events for Until<'_> {
    fn count(&self) -> usize {
        self.last + 1
    }

    fn at_ms(&self, event: usize) -> u64 {
        self.lines.at_ms(event)
    }

    fn is(&self, event: usize, action: &str, kind: &str) -> bool {
        let undone = |later: usize| self.lines.undone_by(later) == Some(event);
        let failed = (event..=self.last).any(undone);
        self.lines.is(event, action, kind) && !(kind == "effective" && failed)
    }

    fn has(&self, event: usize, field: &str, value: &Value) -> bool {
        self.lines.has(event, field, value)
    }

    fn value(&self, event: usize, field: &str) -> Option<Value> {
        self.lines.value(event, field)
    }

    fn request(&self, path: &str) -> Option<Value> {
        self.lines.request(path)
    }

    fn undone_by(&self, event: usize) -> Option<usize> {
        self.lines.undone_by(event)
    }
}

impl Events for Lines {
    fn count(&self) -> usize {
        self.events.len()
    }

    fn at_ms(&self, event: usize) -> u64 {
        self.events[event].at_ms
    }

    fn is(&self, event: usize, action: &str, kind: &str) -> bool {
        let line = &self.events[event];
        line.action == action && line.kinds.iter().any(|one| one == kind)
    }

    fn has(&self, event: usize, field: &str, value: &Value) -> bool {
        let mut fields = self.events[event].fields.iter();
        fields.any(|(name, found)| name == field && found == value)
    }

    fn value(&self, event: usize, field: &str) -> Option<Value> {
        let mut fields = self.events[event].fields.iter();
        fields.find(|(name, _)| name == field).map(|(_, value)| value.clone())
    }

    fn request(&self, path: &str) -> Option<Value> {
        self.request.iter().find(|(name, _)| name == path).map(|(_, value)| value.clone())
    }

    fn undone_by(&self, event: usize) -> Option<usize> {
        self.events[event].undoes
    }
}
