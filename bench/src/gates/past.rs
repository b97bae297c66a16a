//! Decisions about a tool call under policies about history. The history grows by a call
//! before each decision, and is cut to its length now and then.

use super::{facts, step_inputs};
use sluice_govern::decision::Disposition;
use sluice_govern::evaluate;
use sluice_govern::facts::{Facts, Verb};
use sluice_govern::policy::history::{
    Events, History, HistoryFact, HistoryValue, Postings, UNIT, USE_TOOL, Value,
};
use sluice_govern::policy::{DEFAULT, Policies};
use std::cell::RefCell;
use std::time::{Duration, Instant};

const TOOLS: [&str; 4] = ["bank.refund", "bank.pay", "mail.send", "crm.read"];
const LABELS: [&str; 4] = ["refunds", "pays", "sends", "reads"];

/// Counts, sums, existence and `since`, in equal parts. None of them blocks.
fn policies(count: usize) -> anyhow::Result<Policies> {
    let mut text = String::new();
    for number in 0..count {
        let (label, hours) = (LABELS[number % 4], 1 + number % 24);
        let condition = match number / 4 % 4 {
            0 => format!(
                "count_within({hours}h, Action::\"use_tool\"::effective {{ label: \"{label}\" }}) \
                 > {}",
                100_000 + number
            ),
            1 => format!(
                "sum_within(a, {hours}h, Action::\"use_tool\"::response {{ label: \"{label}\", \
                 input.amount: a }}) > {}",
                1_000_000_000 + number
            ),
            2 => format!(
                "formerly within {hours}h Action::\"use_tool\"::error {{ tool: \"other.{number}\" }}"
            ),
            _ => format!(
                "!Action::\"use_tool\"::denied {{}} since within {hours}h \
                 Action::\"use_tool\"::error {{ tool: \"other.{number}\" }}"
            ),
        };
        text.push_str(&format!(
            "@id(\"rule-{number}\")\nforbid (principal, action == Action::\"use_tool\", resource)\n\
             when temporal {{ {condition} }};\n"
        ));
    }
    let files = [(DEFAULT.0.to_owned(), DEFAULT.1.to_owned()), ("house".to_owned(), text)];
    Policies::load(&files).map_err(|errors| anyhow::anyhow!("{errors:?}"))
}

/// Calls that were allowed and have answered, one after the other.
#[derive(Debug)]
struct Calls {
    /// When each event happened; even ones are requests, odd ones their ends.
    at_ms: Vec<u64>,
    postings: RefCell<Postings>,
}

impl History for Calls {
    fn value(&self, fact: &HistoryFact) -> HistoryValue {
        fact.evaluate(self, &mut self.postings.borrow_mut(), 0)
    }
}

impl Events for Calls {
    fn count(&self) -> usize {
        self.at_ms.len() + 1
    }

    fn at_ms(&self, event: usize) -> u64 {
        let last = || self.at_ms.last().map_or(0, |last| last + 1);
        self.at_ms.get(event).copied().unwrap_or_else(last)
    }

    fn is(&self, event: usize, action: &str, kind: &str) -> bool {
        let kinds: &[&str] = match event % 2 {
            0 => &["request", "allowed", "effective"],
            _ => &["response"],
        };
        action == USE_TOOL && kinds.contains(&kind)
    }

    fn has(&self, event: usize, field: &str, value: &Value) -> bool {
        let at = event / 2 % 4;
        match (field, value) {
            ("tool", Value::Text(text)) => **text == *TOOLS[at],
            ("label", Value::Text(text)) => **text == *LABELS[at],
            _ => Events::value(self, event, field).as_ref() == Some(value),
        }
    }

    fn value(&self, _: usize, field: &str) -> Option<Value> {
        (field == "input.amount").then_some(Value::Number(5 * UNIT))
    }

    fn request(&self, _: &str) -> Option<Value> {
        None
    }
}

/// The time of each of many decisions that allow the call, sorted, and the bytes of one.
pub(super) fn decide(
    policy_count: usize,
    events: usize,
    decisions: usize,
) -> anyhow::Result<(Vec<Duration>, usize)> {
    let policies = policies(policy_count)?;
    let step_inputs = step_inputs();
    let base = facts(&step_inputs, Vec::new());
    let start = |events: usize| Calls {
        at_ms: (0..events as u64).map(|at| base.now_ms + at * 1000).collect(),
        postings: RefCell::default(),
    };
    let mut calls = start(events);
    let mut times = Vec::with_capacity(decisions);
    let mut written = 0;
    for _ in 0..decisions {
        let facts = Facts {
            verb: Verb::UseTool,
            object: Some(TOOLS[0]),
            history: Some(&calls),
            ..base.clone()
        };
        let begun = Instant::now();
        let evaluated = evaluate(&facts, &policies);
        let took = begun.elapsed();
        let allowed = evaluated.decision.disposition == Disposition::Allow;
        anyhow::ensure!(allowed, "{evaluated:?}");
        written = evaluated.write(None, 0).len();
        times.push(took);
        if calls.at_ms.len() > events {
            // The next list is built before the clock runs.
            calls = start(events - 20);
            let facts = Facts { verb: Verb::UseTool, history: Some(&calls), ..base.clone() };
            let facts = Facts { object: Some(TOOLS[0]), ..facts };
            let _ = evaluate(&facts, &policies);
        }
        let last_ms = calls.at_ms.last().copied().unwrap_or(base.now_ms);
        calls.at_ms.extend([last_ms + 1000, last_ms + 2000]);
    }
    times.sort_unstable();
    Ok((times, written))
}
