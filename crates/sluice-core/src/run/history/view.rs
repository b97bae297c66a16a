//! The history of a run as a list of events that ends with the request being decided.

use super::{CallRuling, PastCall, PastEvent, PastKind, RunHistory};
use crate::journal::event::StepAt;
use crate::run::state::Run;
use serde_json::Value as Json;
use sluice_govern::policy::history::{
    ALLOWED, DENIED, DISPATCH_STEP, EFFECTIVE, ERROR, Events, HistoryFact, HistoryScope,
    HistoryValue, REQUEST, RESPONSE, USE_TOOL, Value, read_number,
};
use std::collections::BTreeMap;

/// Deepest level of an argument that is a number.
const DEPTH_MAX: usize = 4;
/// Most numbers of one call.
const NUMBERS_MAX: usize = 32;
/// Longest path of a number, in bytes.
const PATH_BYTES_MAX: usize = 128;

/// The request that is decided, or an event that is about to be recorded.
pub(crate) struct Now<'r> {
    pub(crate) at: StepAt,
    pub(crate) at_ms: u64,
    /// The agent of the step.
    pub(crate) agent: &'r str,
    /// The tool call, if it is one.
    pub(crate) call: Option<&'r PastCall>,
    /// The kinds of events that it is.
    pub(crate) kinds: &'static [&'static str],
    /// PastKind the policies call principal and resource.
    pub(crate) principal: String,
    pub(crate) resource: String,
}

/// Events of a run, or of one conversation, and the request.
pub(crate) struct PastEvents<'r> {
    run: &'r Run,
    /// Positions of the events; `None` means all.
    selected: Option<Vec<usize>>,
    now: &'r Now<'r>,
}

impl<'r> PastEvents<'r> {
    pub(crate) fn of_run(run: &'r Run, now: &'r Now<'r>) -> PastEvents<'r> {
        PastEvents { run, selected: None, now }
    }

    /// The events of the conversation of a step in flight.
    fn of_conversation(run: &'r Run, now: &'r Now<'r>, conversation: u32) -> PastEvents<'r> {
        let events = run.history.events.iter().enumerate();
        let selected = events.filter(|(_, event)| event.conversation == conversation);
        PastEvents { run, selected: Some(selected.map(|(at, _)| at).collect()), now }
    }

    fn history(&self) -> &'r RunHistory {
        &self.run.history
    }

    /// The event at a position; `None` is the request.
    fn event(&self, event: usize) -> Option<&'r PastEvent> {
        let position = match &self.selected {
            None => event,
            Some(selected) => *selected.get(event)?,
        };
        self.history().events.get(position)
    }
}

/// The value of a fact about the run or the conversation.
pub(crate) fn value(run: &Run, now: &Now<'_>, fact: &HistoryFact) -> HistoryValue {
    let history = &run.history;
    let oldest_ms = now.at_ms.saturating_sub(fact.window_ms());
    if history.dropped_at_ms.is_some_and(|at_ms| at_ms >= oldest_ms) {
        let why = format!("the run is too long for {}", fact.name);
        return HistoryValue::Unknown(why);
    }
    let attempt = history.attempts.get(&now.at);
    let (past, conversation) = match (fact.scope, attempt) {
        (HistoryScope::Run | HistoryScope::Agent, _) => (PastEvents::of_run(run, now), 0),
        (HistoryScope::Session, attempt) => {
            // A step that was not sent yet begins a conversation of its own.
            let conversation = attempt.map_or(u32::MAX, |attempt| attempt.conversation);
            (PastEvents::of_conversation(run, now, conversation), conversation)
        }
    };
    match history.cache.0.lock() {
        Ok(mut postings) => fact.evaluate(&past, &mut postings, conversation),
        Err(_) => HistoryValue::Unknown("the cache of the history is broken".to_owned()),
    }
}

impl Events for PastEvents<'_> {
    fn count(&self) -> usize {
        1 + self.selected.as_ref().map_or(self.history().events.len(), Vec::len)
    }

    fn at_ms(&self, event: usize) -> u64 {
        let last = || self.history().events.last().map_or(0, |last| last.at_ms);
        self.event(event).map_or_else(|| self.now.at_ms.max(last()), |event| event.at_ms)
    }

    fn is(&self, event: usize, action: &str, kind: &str) -> bool {
        let Some(past) = self.event(event) else {
            let own = if self.now.call.is_some() { USE_TOOL } else { DISPATCH_STEP };
            return action == own && self.now.kinds.contains(&kind);
        };
        let (of, is_kind) = match &past.what {
            PastKind::Called { ruling, first, .. } => (
                USE_TOOL,
                match kind {
                    REQUEST => *first,
                    ALLOWED => *ruling == CallRuling::Allowed,
                    DENIED => *ruling == CallRuling::Denied,
                    EFFECTIVE => *ruling == CallRuling::Allowed && !past.failed,
                    _ => false,
                },
            ),
            PastKind::Ended { failed, .. } => {
                (USE_TOOL, kind == if *failed { ERROR } else { RESPONSE })
            }
            PastKind::StepStarted => (
                DISPATCH_STEP,
                matches!(kind, REQUEST | ALLOWED) || kind == EFFECTIVE && !past.failed,
            ),
            PastKind::StepEnded { failed, .. } => {
                (DISPATCH_STEP, kind == if *failed { ERROR } else { RESPONSE })
            }
        };
        is_kind && action == of
    }

    fn has(&self, event: usize, field: &str, value: &Value) -> bool {
        match (self.subject(event), field, value) {
            ((_, Some(call)), "label", Value::Text(label)) => call.record.labels.contains(label),
            ((_, Some(call)), "tool", Value::Text(tool)) => call.tool == *tool,
            _ => self.value(event, field).as_ref() == Some(value),
        }
    }

    fn value(&self, event: usize, field: &str) -> Option<Value> {
        let (at, call) = self.subject(event);
        let text = |text: &str| Some(Value::Text(text.into()));
        match field {
            "step" => text(&self.run.step(at).id),
            "agent" => match call {
                Some(call) => text(&call.agent),
                None => text(self.run.agent_of(at.step).unwrap_or_default()),
            },
            "tool" => text(&call?.tool),
            "server" => text(call?.tool.split_once('.').map_or("", |(server, _)| server)),
            "label" => call?.record.labels.first().map(|label| Value::Text(label.clone())),
            "amount" => call?.record.amount.map(number),
            field => {
                let path = field.strip_prefix("input.")?;
                call?.record.numbers.get(path).copied().map(number)
            }
        }
    }

    fn request(&self, path: &str) -> Option<Value> {
        let last = self.count() - 1;
        match path {
            "principal" => Some(Value::Text(self.now.principal.as_str().into())),
            "resource" => Some(Value::Text(self.now.resource.as_str().into())),
            "context.step.id" => self.value(last, "step"),
            path => self.value(last, path.strip_prefix("context.")?),
        }
    }

    fn undone_by(&self, event: usize) -> Option<usize> {
        let past = self.event(event)?;
        let (PastKind::Ended { failed: true, allowed: number, .. }
        | PastKind::StepEnded { failed: true, started: number }) = &past.what
        else {
            return None;
        };
        let position = self.history().position(*number)?;
        match &self.selected {
            None => Some(position),
            Some(selected) => selected.binary_search(&position).ok(),
        }
    }
}

impl PastEvents<'_> {
    fn subject(&self, event: usize) -> (StepAt, Option<&PastCall>) {
        match self.event(event) {
            None => (self.now.at, self.now.call),
            Some(past) => match &past.what {
                PastKind::Called { call, .. } | PastKind::Ended { call, .. } => {
                    (past.at, Some(call))
                }
                PastKind::StepStarted | PastKind::StepEnded { .. } => (past.at, None),
            },
        }
    }
}

fn number(value: i64) -> Value {
    Value::Number(value.into())
}

/// The numbers among the arguments of a call, by their paths. A text that is a number is
/// one too.
pub(crate) fn numbers(input: &Json) -> BTreeMap<String, i64> {
    let mut numbers = BTreeMap::new();
    collect(input, "", DEPTH_MAX, &mut numbers);
    numbers
}

fn collect(value: &Json, path: &str, depth: usize, numbers: &mut BTreeMap<String, i64>) {
    if numbers.len() >= NUMBERS_MAX || path.len() > PATH_BYTES_MAX {
        return;
    }
    let found = match value {
        Json::Object(fields) if depth > 0 => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                collect(value, &format!("{path}{dot}{name}"), depth - 1, numbers);
            }
            return;
        }
        Json::Number(number) => read_number(&number.to_string()),
        Json::String(text) => read_number(text),
        _ => None,
    };
    // An amount that does not fit is as large as possible, never absent.
    let clamped = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
    numbers.extend(found.map(|number| (path.to_owned(), clamped(number))));
}
