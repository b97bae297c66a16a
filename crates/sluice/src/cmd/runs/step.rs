//! `sluice runs show RUN STEP`: everything about one step.

mod decision;

use crate::amount;
use crate::table::Table;
use crate::values::{answered, block, failure, named, violations};
use serde_json::{Number, Value};
use sluice_core::money::Money;
use sluice_core::visible;

pub(super) fn draw(step: &Value) -> String {
    let node = &step["node"];
    let mut text = head(step, node);
    section(&mut text, "inputs", &all_named(&node["inputs"]));
    section(&mut text, "prompt", &block("  ", words(&node["prompt"])));
    section(&mut text, "answer", &answer(&node["output"]));
    section(&mut text, "outputs", &all_named(&node["outputs"]));
    section(&mut text, "labels", &labels(&step["labels"]));
    let attempts = attempts(&step["attempts"]);
    section(&mut text, "attempts", &drawn(&attempts));
    for one in attempts.iter().filter(|one| !one.answer.is_empty()) {
        section(&mut text, &format!("attempt {} answered", one.number), &block("  ", &one.answer));
    }
    section(&mut text, "decisions", &decision::draw(step));
    section(&mut text, "logs", &logs(&step["logs"]));
    text
}

fn section(text: &mut String, heading: &str, content: &str) {
    if !content.is_empty() {
        text.push_str(&format!("\n{heading}\n{content}"));
    }
}

fn head(step: &Value, node: &Value) -> String {
    let word = |name: &str| words(&node[name]);
    let (run, id) = (visible::brief(words(&step["run_id"])), visible::brief(word("node_id")));
    let mut facts = Table::plain();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            facts.row([name.to_owned(), value]);
        }
    };
    fact("waits for", word("unblock_hint").to_owned());
    fact("agent", word("agent").to_owned());
    fact("member", word("member").to_owned());
    fact("gateway", word("gateway").to_owned());
    fact("model", words(&node["provider_route"]["model"]).to_owned());
    fact("started", moment(&node["started_at"]));
    let took = node["duration_ms"].as_u64().map(|ms| format!(", after {}", amount::time(ms)));
    let ended = moment(&node["completed_at"]);
    fact("ended", if ended.is_empty() { ended } else { ended + &took.unwrap_or_default() });
    fact("spent", spent(node, "input_tokens", "output_tokens").join(", "));
    if !node["error_code"].is_null() {
        fact("error", failure(word("error_code"), word("error_message")));
    }
    // A message of its own contains them.
    if word("error_code") == word("error_message") {
        for violation in violations(&node["contract_errors"]) {
            fact("violation", violation);
        }
    }
    fact("skipped", word("skip_reason").to_owned());
    format!("{run}  {id}\n{}\n{}", visible::brief(word("status")), facts.draw())
}

/// Tokens and cost of a step or of one of its events.
fn spent(of: &Value, read: &str, written: &str) -> Vec<String> {
    let number = |name: &str| of[name].as_u64().unwrap_or(0);
    let cost = of["cost"].as_number().and_then(|cost: &Number| Money::from_usd(cost).ok());
    amount::spent(0, number(read).saturating_add(number(written)), cost.unwrap_or(Money::ZERO))
}

fn all_named(values: &Value) -> String {
    let values = values.as_object().into_iter().flatten();
    values.map(|(name, value)| named(name, value)).collect()
}

fn answer(output: &Value) -> String {
    match output {
        Value::Null => String::new(),
        Value::String(text) => block("  ", text),
        other => block("  ", &other.to_string()),
    }
}

/// The labels of the whole result, then those of fields that differ.
fn labels(labels: &Value) -> String {
    let mut table = Table::plain();
    let fields = labels["fields"].as_object().into_iter().flatten();
    let fields = fields.map(|(name, own)| (visible::brief(name).into_owned(), own));
    for (name, own) in std::iter::once(("all".to_owned(), labels)).chain(fields) {
        let list = |key: &str| {
            let names = own[key].as_array().into_iter().flatten().map(words);
            names.collect::<Vec<_>>().join(", ")
        };
        let flags = ["control", "untrusted", "private"];
        let flags: Vec<&str> = flags.into_iter().filter(|flag| own[flag] == true).collect();
        let [origins, secrecy] = [("from ", list("origins")), ("contains ", list("secrecy"))]
            .map(|(what, names)| if names.is_empty() { names } else { format!("{what}{names}") });
        let all = [origins, secrecy, flags.join(", ")];
        let all: Vec<&str> = all.iter().map(String::as_str).filter(|one| !one.is_empty()).collect();
        if !all.is_empty() {
            table.row([name, visible::brief(&all.join("; ")).into_owned()]);
        }
    }
    table.draw()
}

/// One dispatch of the step, and its result.
struct Attempt<'a> {
    number: u64,
    started: &'a Value,
    gateway: &'a str,
    result: String,
    took: String,
    spent: String,
    /// The answer of a failed attempt.
    answer: String,
}

/// Groups the events of the step by dispatch: each begins with `node.started`.
fn attempts(events: &Value) -> Vec<Attempt<'_>> {
    let mut all: Vec<Attempt<'_>> = Vec::new();
    for event in events.as_array().into_iter().flatten() {
        let (kind, payload) = (words(&event["type"]), &event["payload"]);
        if kind == "node.started" {
            all.push(Attempt {
                number: payload["attempt"].as_u64().unwrap_or(0),
                started: &event["timestamp"],
                gateway: words(&payload["gateway"]),
                result: String::new(),
                took: String::new(),
                spent: String::new(),
                answer: String::new(),
            });
            continue;
        }
        // A step may fail or be cancelled before its first dispatch.
        let Some(last) = all.last_mut().filter(|last| last.result.is_empty()) else { continue };
        let when = |value: &Value| value.as_str().and_then(amount::ms);
        if let (Some(from), Some(to)) = (when(last.started), when(&event["timestamp"])) {
            last.took = amount::time(to.saturating_sub(from));
        }
        last.result = result(kind, payload);
        last.spent = spent(payload, "inputTokens", "outputTokens").join(", ");
        last.answer = answered(&payload["answer"]);
    }
    all
}

fn result(kind: &str, payload: &Value) -> String {
    let why = |[code, message]: [&str; 2]| failure(words(&payload[code]), words(&payload[message]));
    match kind {
        "node.completed" => "completed".to_owned(),
        "node.retried" => format!("failed, {}", why(["cause", "errorMessage"])),
        "node.timed_out" => format!("timed out, {}", why(["errorCode", "errorMessage"])),
        "node.cancelled" => format!("cancelled, {}", why(["code", "reason"])),
        // The failure waits for an approval.
        "approval.requested" => format!("failed, {}; held", why(["errorCode", "errorMessage"])),
        _ => format!("failed, {}", why(["errorCode", "errorMessage"])),
    }
}

fn drawn(attempts: &[Attempt<'_>]) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let mut table = Table::plain();
    for one in attempts {
        table.row([
            one.number.to_string(),
            moment(one.started),
            one.gateway.to_owned(),
            one.took.clone(),
            one.spent.clone(),
            one.result.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    table.draw()
}

fn logs(events: &Value) -> String {
    let events = events.as_array().into_iter().flatten();
    let line = |event: &Value| {
        let text = block("  ", words(&event["payload"]["text"]));
        text + &block("    ", &answered(&event["payload"]["content"]))
    };
    events.map(line).collect()
}

fn moment(value: &Value) -> String {
    value.as_str().and_then(amount::ms).map(amount::moment).unwrap_or_default()
}

/// A text; empty if the value is not one.
fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
