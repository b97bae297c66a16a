//! `sluice approvals show`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::approvals::Show;
use crate::find;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use crate::visible;
use serde_json::{Value, json};
use sluice_core::journal::envelope::timestamp;
use sluice_core::journal::event::{ApprovalSource, Resolution};
use sluice_core::outputs::schema::FieldSchema;
use sluice_core::plan::step::Work;
use sluice_core::run::id::ApprovalId;
use sluice_core::run::state::Run;
use std::fmt::Write as _;

pub(super) async fn run(args: &Show, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let (run, id) = find::approval(&local, &args.approval.id).await?;
    local.close().await;
    match args.json.reader() {
        Reader::Program => out.json(Layout::Line, &object(&run, id))?,
        Reader::Person => out.print(&text(&run, id))?,
    }
    Ok(Exit::Done)
}

/// A question, for programs.
pub(super) fn object(run: &Run, id: ApprovalId) -> Value {
    let asked = &run.approvals[&id];
    json!({
        "approval_id": id.to_string(),
        "run_id": run.id.to_string(),
        "workflow": run.started.workflow,
        "node_id": run.name(asked.at),
        "source": asked.source.as_str(),
        "summary": asked.summary,
        "approvers": asked.approvers,
        "status": asked.resolution.map_or("pending", Resolution::as_str),
        "requested_at": timestamp(asked.requested_at_ms),
        "expires_at": timestamp(asked.expires_at_ms),
        "by": asked.by,
        "comment": asked.comment,
    })
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
    let _ = write!(text, "\n{}", facts.draw());
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
