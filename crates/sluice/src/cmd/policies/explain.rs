//! `sluice policies explain`.

use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::registry::Explain;
use crate::out::{Layout, Out, harmless};
use crate::table::Table;
use crate::values::block;
use serde_json::Value;
use sluice_core::visible;

/// Longest value that a line shows, in characters.
const VALUE_CHARS_MAX: usize = 200;

pub(super) async fn run(args: &Explain, out: &mut Out) -> anyhow::Result<Exit> {
    let query = [("call", args.call), ("attempt", args.attempt)];
    let query: Vec<(&str, String)> =
        query.into_iter().filter_map(|(name, n)| Some((name, n?.to_string()))).collect();
    let client = backend::read(&args.target.data).await?;
    let path = ["runs", &args.run.id, "steps", &args.step, "policies"];
    let explained = client.get(&path, &query).await?.data;
    client.close().await;
    if args.target.output() == OutputFormat::Json {
        out.json(Layout::Line, &explained)?;
        return Ok(Exit::Done);
    }
    let decisions = list(&explained["decisions"]);
    if decisions.is_empty() {
        out.note("the step has no such decision")?;
    }
    for (at, decision) in decisions.iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        out.print(&format!("{gap}{}", draw(decision)))?;
    }
    Ok(Exit::Done)
}

fn draw(decision: &Value) -> String {
    let mut text = head(decision);
    if decision["policies_stored"] == false {
        text.push_str(&not_stored(&decision["policy_hash"]));
    }
    if decision["because"].is_string() && list(&decision["policies"]).is_empty() {
        text.push_str(&format!("  {}\n", line(&decision["because"])));
    }
    for policy in list(&decision["policies"]) {
        text.push_str(&draw_policy(policy, ""));
    }
    let shadow = &decision["shadow"];
    if shadow.is_object() {
        text.push_str(&format!("  in shadow: {}\n", line(&shadow["disposition"])));
        if shadow["policies_stored"] == false {
            text.push_str(&not_stored(&shadow["policy_hash"]));
        }
        for policy in list(&shadow["policies"]) {
            text.push_str(&draw_policy(policy, "shadow/"));
        }
    }
    text.push_str(&history(&decision["history"]));
    text.push_str(&flow(&decision["flow"]));
    text
}

fn head(decision: &Value) -> String {
    let (verb, resource) = (line(&decision["verb"]), line(&decision["resource"]));
    let mut text = format!("{verb} {resource}: {}\n", line(&decision["disposition"]));
    let mut facts = Table::plain();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            facts.row([name.to_owned(), value]);
        }
    };
    let at = decision["at"].as_str().and_then(amount::ms).map(amount::moment).unwrap_or_default();
    fact("event", format!("{}, {at}", decision["event_id"]));
    let number = |name: &str| decision[name].as_u64().map(|n| n.to_string()).unwrap_or_default();
    fact("attempt", number("attempt"));
    fact("call", number("call"));
    let gate = &decision["gate"];
    if gate.is_object() {
        fact("gate", format!("{}: {}", line(&gate["gate"]), line(&gate["message"])));
        fact("to unblock", line(&gate["hint"]));
    }
    let approval = line(&decision["approval_id"]);
    let by = if approval.is_empty() { approval } else { format!(" by approval {approval}") };
    fact("ruling", format!("{}{by}", line(&decision["ruling"])));
    fact("reason", line(&decision["reason"]));
    text.push_str(&facts.draw());
    text
}

fn not_stored(hash: &Value) -> String {
    let hash: String = line(hash).chars().take(12).collect();
    format!("  the policy set of this decision ({hash}) is not stored any more\n")
}

/// A policy, its text, and what it decided on.
fn draw_policy(policy: &Value, before: &str) -> String {
    let name = line(&policy["policy"]);
    let place = match policy["line"].as_u64() {
        Some(at) => format!(" ({}:{at})", line(&policy["file"])),
        None => String::new(),
    };
    let mut text = format!("\n  {before}{name}{place}: {}\n", effect(policy));
    for field in ["description", "error"] {
        if policy[field].is_string() {
            text.push_str(&format!("    {}\n", line(&policy[field])));
        }
    }
    text.push_str(&block("    | ", policy["text"].as_str().unwrap_or_default()));
    let mut rows = Table::plain();
    for value in list(&policy["values"]) {
        let shown = value.get("value").map_or_else(|| "absent".to_owned(), shown);
        rows.row([format!("  {}", line(&value["path"])), shown]);
    }
    for argument in list(&policy["arguments"]) {
        rows.row([format!("  argument {}", line(&argument["argument"])), about(argument)]);
    }
    text.push_str(&rows.draw());
    if policy["hint"].is_string() {
        let verb = if policy["permits"] == true { "would match" } else { "would not match" };
        text.push_str(&format!("    {verb} with {}\n", line(&policy["hint"])));
    }
    text
}

/// What a policy did.
fn effect(policy: &Value) -> String {
    if policy["error"].is_string() {
        return "could not be evaluated, which blocks".to_owned();
    }
    if policy["permits"] == true {
        return "permits it, but did not match".to_owned();
    }
    let enforcement = line(&policy["enforcement"]);
    let action = match policy["action"].as_str().unwrap_or_default() {
        "block" => "forbids it",
        "require_approval" => "requires an approval",
        "warn" => "warns",
        "log" => "is logged",
        other => other,
    };
    let strictly = if enforcement == "hard" { String::new() } else { format!(" ({enforcement})") };
    format!("matched, {action}{strictly}")
}

/// The value of an argument, where it was seen, and its labels.
pub(in crate::cmd) fn about(argument: &Value) -> String {
    let mut parts = vec![argument.get("value").map_or_else(|| "not recorded".to_owned(), shown)];
    let names = [
        ("role", "role"),
        ("seen", "seen in"),
        ("mentions", "mentions addresses seen in"),
        ("carries", "repeats text of"),
        ("origins", "from"),
        ("secrecy", "contains"),
    ];
    for (name, words) in names {
        match &argument[name] {
            Value::String(text) => parts.push(format!("{words} {}", visible::brief(text))),
            Value::Array(all) if !all.is_empty() => {
                let all: Vec<String> = all.iter().map(line).collect();
                parts.push(format!("{words} {}", all.join(", ")));
            }
            _ => {}
        }
    }
    if argument["truncated"] == true {
        parts.push("policies do not see all of it".to_owned());
    }
    parts.join("; ")
}

fn history(history: &Value) -> String {
    let mut rows = Table::plain();
    for (name, value) in history.as_object().into_iter().flatten() {
        rows.row([visible::brief(name).into_owned(), shown(value)]);
    }
    let rows = rows.draw();
    if rows.is_empty() { rows } else { format!("\n  history\n{rows}") }
}

/// The labels of the action, and how they reached the step.
fn flow(flow: &Value) -> String {
    if !flow.is_object() {
        return String::new();
    }
    let words = |names: &Value| list(names).iter().map(line).collect::<Vec<_>>().join(", ");
    let mut rows = Table::plain();
    for (name, value) in [("origins", &flow["origins"]), ("secrecy", &flow["secrecy"])] {
        if !list(value).is_empty() {
            rows.row([name.to_owned(), words(value)]);
        }
    }
    let flags = [("control", &flow["control"]), ("untrusted", &flow["inputs"]["untrusted"])];
    for (name, _) in flags.into_iter().filter(|(_, value)| **value == true) {
        rows.row([name.to_owned(), "yes".to_owned()]);
    }
    for one in list(&flow["path"]) {
        let end = |end: &Value, path: &Value| match (line(&end["node_id"]), line(path)) {
            (node, path) if node.is_empty() => format!("run {}.{path}", line(&end["run_id"])),
            (node, path) => format!("{node}.{path}"),
        };
        let from = end(&one["source"], &one["source_output_path"]);
        let to = end(&one["target"], &one["target_input_path"]);
        let labels = [words(&one["origins"]), words(&one["secrecy"])];
        let labels: Vec<&str> =
            labels.iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
        rows.row(["path".to_owned(), format!("{from} -> {to}"), labels.join("; ")]);
    }
    for one in list(&flow["answers"]) {
        let labels = [words(&one["origins"]), words(&one["secrecy"])];
        let labels: Vec<&str> =
            labels.iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
        let answer = format!("answer of {} (call {})", line(&one["tool"]), one["call"]);
        rows.row(["path".to_owned(), answer, labels.join("; ")]);
    }
    let rows = rows.draw();
    if rows.is_empty() { rows } else { format!("\n  flow\n{rows}") }
}

/// The values of a decision on one line: what policies read, and where it was seen.
pub(super) fn brief_values(decision: &Value) -> String {
    let short = |path: &str| {
        let path = path.strip_prefix("context.").unwrap_or(path);
        visible::brief(path).into_owned()
    };
    let values = list(&decision["values"]).iter().map(|one| {
        let value = one.get("value").map_or_else(|| "absent".to_owned(), shown);
        format!("{} = {value}", short(one["path"].as_str().unwrap_or_default()))
    });
    let arguments = list(&decision["arguments"]).iter();
    let arguments = arguments.map(|one| format!("{}: {}", line(&one["argument"]), about(one)));
    values.chain(arguments).collect::<Vec<_>>().join(", ")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn shown(value: &Value) -> String {
    let text = harmless(value.to_string());
    let cut: String = text.chars().take(VALUE_CHARS_MAX).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

/// A text on one line; empty if the value is not one.
fn line(value: &Value) -> String {
    visible::brief(value.as_str().unwrap_or_default()).into_owned()
}
