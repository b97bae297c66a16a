//! `sluice approvals show`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::approvals::Show;
use crate::desk::Desk;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::money::Money;
use sluice_core::visible;
use sluice_server::service::{approvals, find};
use std::fmt::Write as _;

pub(super) async fn run(args: &Show, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::read(&args.data).await?;
    let asked = match &desk {
        Desk::Here(local) => {
            let (run, id) = find::approval(local, &args.approval.id).await?;
            approvals::shown(&run, id)
        }
        Desk::There(client) => client.get(&["approvals", &args.approval.id], &[]).await?.data,
    };
    desk.close().await;
    match args.json.reader() {
        Reader::Program => out.json(Layout::Line, &asked)?,
        Reader::Person => out.print(&text(&asked))?,
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

/// The exact action, and what differs from what was agreed to before.
fn action(text: &mut String, asked: &Value) {
    let Value::Object(fields) = &asked["action"] else { return };
    let _ = writeln!(text, "\ndigest {}", visible::line(word(asked, "digest")));
    for reason in words(asked, "reasons") {
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
    let changes = list(asked, "changes");
    if !changes.is_empty() {
        text.push_str("\nchanged since it was last agreed to\n");
        for change in changes {
            let (before, after) = (change["before"].to_string(), change["after"].to_string());
            let _ = writeln!(text, "  {}", visible::line(word(change, "path")));
            let _ = writeln!(text, "  - {}", visible::line(&before));
            let _ = writeln!(text, "  + {}", visible::line(&after));
        }
    }
}

/// A field of the action for people: amounts in dollars, all else as it is.
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

fn facts(asked: &Value) -> String {
    let moment = |name: &str| amount::ms(word(asked, name)).map(amount::moment).unwrap_or_default();
    let mut facts = Table::plain();
    let run = format!("{} ({})", word(asked, "run_id"), word(asked, "workflow"));
    facts.row(["run".to_owned(), run]);
    facts.row(["step".to_owned(), word(asked, "node_id").to_owned()]);
    let by = asked["by"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
    facts.row(["status".to_owned(), format!("{}{by}", word(asked, "status"))]);
    if let Some(comment) = asked["comment"].as_str() {
        facts.row(["comment".to_owned(), comment.to_owned()]);
    }
    facts.row(["asked".to_owned(), moment("requested_at")]);
    facts.row(["expires".to_owned(), moment("expires_at")]);
    let approvers = words(asked, "approvers");
    if !approvers.is_empty() {
        facts.row(["approvers".to_owned(), approvers.join(", ")]);
    }
    for value in list(asked, "asks_for") {
        let choices: Vec<String> = list(value, "enum").iter().map(ToString::to_string).collect();
        let kind = match choices.as_slice() {
            [] => value["type"].as_str().unwrap_or("any value").to_owned(),
            choices => choices.join(" | "),
        };
        let rest = if value["required"] == true { "" } else { ", may be left out" };
        facts.row(["asks for".to_owned(), format!("{}: {kind}{rest}", word(value, "name"))]);
    }
    let (votes, quorum) = (words(asked, "votes"), asked["quorum"].as_u64().unwrap_or(1));
    if quorum > 1 || !votes.is_empty() {
        let agreed = format!("{} of {quorum} {}", votes.len(), votes.join(", "));
        facts.row(["agreed".to_owned(), agreed.trim_end().to_owned()]);
    }
    if asked["not_initiator"] == true {
        let mut initiators = vec![word(asked, "initiator")];
        initiators.extend(words(asked, "on_behalf_of"));
        facts.row(["but not".to_owned(), initiators.join(", ")]);
    }
    facts.draw()
}

fn text(asked: &Value) -> String {
    let id = visible::brief(word(asked, "approval_id"));
    let mut text = format!("{id}\n");
    for line in word(asked, "summary").lines() {
        let _ = writeln!(text, "  {}", visible::line(line));
    }
    let _ = write!(text, "\n{}", facts(asked));
    action(&mut text, asked);
    if asked["status"] == "pending" {
        text.push('\n');
        let ways: &[&str] = match word(asked, "source") {
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
