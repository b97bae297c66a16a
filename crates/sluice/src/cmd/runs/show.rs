//! `sluice runs show`.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::runs::Show;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use sluice_core::run::projection::node::NodeResult;
use sluice_core::run::projection::{Projection, project};
use sluice_core::run::state::Run;
use sluice_core::visible;
use sluice_server::service::checkpoint::{self, Checkpoint};
use sluice_server::service::find;
use std::fmt::Write as _;

pub(super) async fn run(args: &Show, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let row = find::run(&local, &args.run.id).await?;
    let run = find::load(&local, row.run).await?;
    let shown = project(&run).with_taken(local.store.taken(run.id).await?);
    match args.json.reader() {
        Reader::Program => out.json(Layout::Line, &shown)?,
        Reader::Person => {
            let checkpoints = checkpoint::list(&local, &run).await?;
            let at_work = if row.owner.is_some() { ", a process works on it" } else { "" };
            out.print(&head(&run, &shown, at_work))?;
            out.print(&steps(&shown))?;
            out.print(&questions(&run))?;
            out.print(&marks(&checkpoints))?;
        }
    }
    local.close().await;
    Ok(Exit::Done)
}

fn head(run: &Run, shown: &Projection<'_>, at_work: &str) -> String {
    let version = shown.version.map(|version| format!("@{version}")).unwrap_or_default();
    let workflow = visible::brief(shown.workflow);
    let why = shown.pause_reason.map(|why| format!(" ({why})")).unwrap_or_default();
    let mut text =
        format!("{}  {workflow}{version}\n{}{why}{at_work}\n", shown.run_id, shown.status);
    let mut facts = Table::plain();
    facts.row(["started".to_owned(), amount::moment(shown.started_at.0)]);
    if let (Some(end), Some(ms)) = (shown.completed_at, shown.duration_ms) {
        let took = format!("{}, after {}", amount::moment(end.0), amount::time(ms));
        facts.row(["ended".to_owned(), took]);
    }
    let tokens = shown.input_tokens.saturating_add(shown.output_tokens);
    let spent = amount::spent(0, tokens, shown.cost);
    if !spent.is_empty() {
        facts.row(["spent".to_owned(), spent.join(", ")]);
    }
    if let (Some(code), Some(message)) = (shown.error_code, shown.error_message) {
        facts.row(["error".to_owned(), format!("{code}: {message}")]);
    }
    if let Some(parent) = shown.parent_run_id {
        facts.row(["parent".to_owned(), parent.to_string()]);
    }
    if let Some(origin) = &run.started.origin {
        facts.row(["made by".to_owned(), format!("{} of {}", origin.kind, origin.run)]);
    }
    text.push_str(&facts.draw());
    text
}

fn steps(shown: &Projection<'_>) -> String {
    let mut table = Table::new(&["STEP", "STATUS", "TIME", "ATTEMPTS", "TOKENS", "COST", ""]);
    for node in &shown.node_results {
        let tokens = node.input_tokens.saturating_add(node.output_tokens);
        let some = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        let cost = amount::spent(0, 0, node.cost).pop().unwrap_or_default();
        table.row([
            node.node_id.clone().into_owned(),
            node.status.to_string(),
            node.duration_ms.map(amount::time).unwrap_or_default(),
            some(node.attempts.into()),
            some(tokens),
            cost,
            remark(node),
        ]);
    }
    format!("\n{}", table.draw())
}

fn remark(node: &NodeResult<'_>) -> String {
    if let (Some(code), Some(message)) = (node.error_code, node.error_message) {
        return format!("{code}: {message}");
    }
    let text = node.skip_reason.or(node.unblock_hint.as_deref());
    text.unwrap_or_default().to_owned()
}

fn questions(run: &Run) -> String {
    if run.approvals.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["APPROVAL", "STEP", "STATUS", "ABOUT"]);
    for (id, asked) in &run.approvals {
        let status = match (asked.resolution, &asked.by) {
            (None, _) => "pending".to_owned(),
            (Some(resolution), None) => resolution.as_str().to_owned(),
            (Some(resolution), Some(by)) => format!("{} by {by}", resolution.as_str()),
        };
        table.row([id.to_string(), run.name(asked.at), status, asked.summary.clone()]);
    }
    format!("\n{}", table.draw())
}

fn marks(checkpoints: &[Checkpoint]) -> String {
    let mut text = String::new();
    if checkpoints.is_empty() {
        return text;
    }
    let mut table = Table::new(&["CHECKPOINT", "AT", "STEP", ""]);
    for one in checkpoints {
        let undone = if one.undone { ", undone since" } else { "" };
        table.row([
            one.number.to_string(),
            amount::moment(one.at_ms),
            one.step.clone(),
            format!("{}{undone}", one.word),
        ]);
    }
    let _ = write!(text, "\n{}", table.draw());
    text
}
