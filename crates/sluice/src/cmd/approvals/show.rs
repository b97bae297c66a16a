//! `sluice approvals show`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::approvals::Show;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::journal::event::{ApprovalSource, Resolution};
use sluice_core::outputs::schema::FieldSchema;
use sluice_core::plan::step::Work;
use sluice_core::run::id::ApprovalId;
use sluice_core::run::state::{Approval, Run};
use sluice_core::visible;
use sluice_server::service::{approvals, find};
use std::fmt::Write as _;

pub(super) async fn run(args: &Show, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let (run, id) = find::approval(&local, &args.approval.id).await?;
    local.close().await;
    match args.json.reader() {
        Reader::Program => out.json(Layout::Line, &approvals::shown(&run, id))?,
        Reader::Person => out.print(&text(&run, id))?,
    }
    Ok(Exit::Done)
}

/// The exact action, and what differs from what was agreed to before.
fn action(text: &mut String, asked: &Approval) {
    let Some(one) = &asked.action else { return };
    let _ = writeln!(text, "\ndigest {}", one.digest);
    for reason in &one.reasons {
        let _ = writeln!(text, "because {}", visible::line(reason));
    }
    if let Value::Object(fields) = &one.action {
        let given = |value: &Value| {
            !value.is_null() && value != &json!([]) && value != &json!({}) && value != &json!("")
        };
        let mut table = Table::plain();
        for (name, value) in fields.iter().filter(|(_, value)| given(value)) {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            table.row([format!("  {name}"), shown]);
        }
        text.push_str(&table.draw());
    }
    if !one.changes.is_empty() {
        text.push_str("\nchanged since it was last agreed to\n");
        for change in &one.changes {
            let (before, after) = (change.before.to_string(), change.after.to_string());
            let _ = writeln!(text, "  {}", visible::line(&change.path));
            let _ = writeln!(text, "  - {}", visible::line(&before));
            let _ = writeln!(text, "  + {}", visible::line(&after));
        }
    }
}

fn text(run: &Run, id: ApprovalId) -> String {
    let asked = &run.approvals[&id];
    let step = run.step(asked.at);
    let mut text = format!("{id}\n");
    for line in asked.summary.lines() {
        let _ = writeln!(text, "  {}", visible::line(line));
    }
    let mut facts = Table::plain();
    facts.row(["run".to_owned(), format!("{} ({})", run.id, run.started.workflow)]);
    facts.row(["step".to_owned(), run.name(asked.at)]);
    let status = asked.resolution.map_or("pending", Resolution::as_str);
    let by = asked.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    facts.row(["status".to_owned(), format!("{status}{by}")]);
    if let Some(comment) = &asked.comment {
        facts.row(["comment".to_owned(), comment.clone()]);
    }
    facts.row(["asked".to_owned(), amount::moment(asked.requested_at_ms)]);
    facts.row(["expires".to_owned(), amount::moment(asked.expires_at_ms)]);
    if !asked.approvers.is_empty() {
        facts.row(["approvers".to_owned(), asked.approvers.join(", ")]);
    }
    if matches!(step.work, Work::Approval) {
        for (name, schema) in &step.outputs {
            facts.row(["asks for".to_owned(), format!("{name}: {}", kind(schema))]);
        }
    }
    if asked.quorum > 1 || !asked.votes.is_empty() {
        let names: Vec<&str> = asked.votes.iter().map(|(by, _)| by.as_str()).collect();
        let votes = format!("{} of {} {}", names.len(), asked.quorum, names.join(", "));
        facts.row(["agreed".to_owned(), votes.trim_end().to_owned()]);
    }
    if asked.not_initiator {
        facts.row(["but not".to_owned(), run.started.initiator.clone()]);
    }
    let _ = write!(text, "\n{}", facts.draw());
    action(&mut text, asked);
    if asked.resolution.is_none() {
        text.push('\n');
        let ways: &[&str] = match asked.source {
            ApprovalSource::Escalation => &["retry", "skip", "abort"],
            ApprovalSource::Step | ApprovalSource::Policy => &["approve", "reject --reason TEXT"],
        };
        for way in ways {
            let (word, rest) = way.split_once(' ').unwrap_or((way, ""));
            let _ = writeln!(text, "{}", format!("sluice approvals {word} {id} {rest}").trim_end());
        }
    }
    text
}

fn kind(schema: &FieldSchema) -> String {
    let kind = schema.kind.map_or("any value", |kind| kind.as_str());
    if schema.required { kind.to_owned() } else { format!("{kind}, may be left out") }
}
