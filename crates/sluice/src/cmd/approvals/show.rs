//! `sluice approvals show`.

use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::approvals::ApprovalsShow;
use crate::out::{Layout, Out};
use crate::table::Table;
use crate::values::block;
use serde_json::{Value, json};
use sluice_core::money::Money;
use sluice_core::visible;
use std::fmt::Write as _;

pub(super) async fn run(args: &ApprovalsShow, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let approval = client.get(&["approvals", &args.approval.id], &[]).await?.data;
    client.close().await;
    match args.target.output() {
        OutputFormat::Json => out.json(Layout::Line, &approval)?,
        OutputFormat::Text => out.print(&text(&approval))?,
    }
    Ok(Exit::Done)
}

fn word<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn words<'v>(value: &'v Value, name: &str) -> Vec<&'v str> {
    list(value, name).iter().filter_map(Value::as_str).collect()
}

/// The tool call, with the places where each value was seen.
fn call(text: &mut String, call: &Value) {
    if !call.is_object() {
        return;
    }
    let _ = writeln!(text, "\ncalls {}", visible::line(word(call, "tool")));
    let mut table = Table::plain();
    for argument in list(call, "arguments") {
        let value = match &argument["value"] {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        table.row([
            format!("  {}", word(argument, "path")),
            value,
            word(argument, "places").to_owned(),
        ]);
    }
    text.push_str(&table.draw());
    let asked = word(call, "asked_for");
    if !asked.is_empty() {
        let _ = write!(text, "asked for\n{}", block("  ", asked));
    }
}

/// The action, and its changes since the last approval.
fn action(text: &mut String, approval: &Value) {
    let Value::Object(fields) = &approval["action"] else { return };
    let _ = writeln!(text, "\ndigest {}", visible::line(word(approval, "digest")));
    for reason in words(approval, "reasons") {
        let _ = writeln!(text, "because {}", visible::line(reason));
    }
    let given = |value: &Value| {
        !value.is_null() && value != &json!([]) && value != &json!({}) && value != &json!("")
    };
    let mut table = Table::plain();
    for (name, value) in fields.iter().filter(|(_, value)| given(value)) {
        table.row([format!("  {name}"), field(name, value)]);
    }
    text.push_str(&table.draw());
    let changes = list(approval, "changes");
    if !changes.is_empty() {
        text.push_str("\nchanged since the last approval\n");
        for change in changes {
            let (before, after) = (change["before"].to_string(), change["after"].to_string());
            let _ = writeln!(text, "  {}", visible::line(word(change, "path")));
            let _ = writeln!(text, "  - {}", visible::line(&before));
            let _ = writeln!(text, "  + {}", visible::line(&after));
        }
    }
}

/// A field of the action as text; amounts are in dollars.
fn field(name: &str, value: &Value) -> String {
    match (name, value) {
        ("cost_ceiling" | "max_cost", Value::Number(amount)) => match amount.as_u64() {
            Some(micro_cents) => format!("${}", Money::from_micro_cents(micro_cents)),
            None => amount.to_string(),
        },
        ("constraints", Value::Object(bounds)) => {
            let bounds =
                bounds.iter().map(|(name, value)| format!("{name}={}", field(name, value)));
            bounds.collect::<Vec<_>>().join(", ")
        }
        (_, Value::String(text)) => text.clone(),
        (_, value) => value.to_string(),
    }
}

fn facts(approval: &Value) -> String {
    let moment =
        |name: &str| amount::ms(word(approval, name)).map(amount::moment).unwrap_or_default();
    let mut facts = Table::plain();
    let run = format!("{} ({})", word(approval, "run_id"), word(approval, "workflow"));
    facts.row(["run".to_owned(), run]);
    facts.row(["step".to_owned(), word(approval, "node_id").to_owned()]);
    let by = approval["by"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
    facts.row(["status".to_owned(), format!("{}{by}", word(approval, "status"))]);
    if let Some(comment) = approval["comment"].as_str() {
        facts.row(["comment".to_owned(), comment.to_owned()]);
    }
    facts.row(["requested".to_owned(), moment("requested_at")]);
    facts.row(["expires".to_owned(), moment("expires_at")]);
    let approvers = words(approval, "approvers");
    if !approvers.is_empty() {
        facts.row(["approvers".to_owned(), approvers.join(", ")]);
    }
    for value in list(approval, "asks_for") {
        let choices: Vec<String> = list(value, "enum").iter().map(ToString::to_string).collect();
        let kind = match choices.as_slice() {
            [] => value["type"].as_str().unwrap_or("any value").to_owned(),
            choices => choices.join(" | "),
        };
        let rest = if value["required"] == true { "" } else { ", optional" };
        facts.row(["value".to_owned(), format!("{}: {kind}{rest}", word(value, "name"))]);
    }
    let (votes, quorum) = (words(approval, "votes"), approval["quorum"].as_u64().unwrap_or(1));
    if quorum > 1 || !votes.is_empty() {
        let agreed = format!("{} of {quorum} {}", votes.len(), votes.join(", "));
        facts.row(["votes".to_owned(), agreed.trim_end().to_owned()]);
    }
    if approval["not_initiator"] == true {
        let mut initiators = vec![word(approval, "initiator")];
        initiators.extend(words(approval, "on_behalf_of"));
        facts.row(["but not".to_owned(), initiators.join(", ")]);
    }
    facts.draw()
}

fn text(approval: &Value) -> String {
    let id = visible::brief(word(approval, "approval_id"));
    let mut text = format!("{id}\n");
    for line in word(approval, "summary").lines() {
        let _ = writeln!(text, "  {}", visible::line(line));
    }
    let _ = write!(text, "\n{}", facts(approval));
    call(&mut text, &approval["call"]);
    action(&mut text, approval);
    if approval["status"] == "pending" {
        text.push('\n');
        let ways: &[&str] = match word(approval, "source") {
            "escalation" => &["retry", "skip", "abort"],
            _ => &["approve", "reject --reason TEXT"],
        };
        for way in ways {
            let (word, rest) = way.split_once(' ').unwrap_or((way, ""));
            let _ = writeln!(text, "{}", format!("sluice approvals {word} {id} {rest}").trim_end());
        }
    }
    text
}
