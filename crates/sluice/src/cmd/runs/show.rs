//! `sluice runs show`.

use super::{failure, step};
use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::runs::RunsShow;
use crate::client::Client;
use crate::out::{Layout, Out};
use crate::picture::{Picture, StepPicture};
use crate::table::Table;
use crate::values::failure;
use serde::Deserialize as _;
use serde_json::Value;
use serde_json::value::RawValue;
use sluice_core::visible;
use sluice_server::service::runs::CheckpointShown;

/// Everything that is shown of a run; for programs, the state alone.
struct RunView {
    state: Box<RawValue>,
    detail: Value,
    approvals: Vec<Value>,
    checkpoints: Vec<CheckpointShown>,
}

pub(super) async fn run(args: &RunsShow, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    if let Some(step) = &args.step {
        return one_step(client, args, step, out).await;
    }
    let shown = load(&client, &args.run.id, args.target.output()).await?;
    client.close().await;
    if args.target.output() == OutputFormat::Json {
        out.json(Layout::Line, &shown.state)?;
        return Ok(Exit::Done);
    }
    let value: Value = serde_json::from_str(shown.state.get())?;
    let picture = Picture::deserialize(&value)?;
    out.print(&head(&picture, &shown.detail))?;
    out.print(&steps(&picture))?;
    out.print(&failure::draw(&value["failure_snapshot"]))?;
    out.print(&approvals(&shown.approvals))?;
    out.print(&marks(&shown.checkpoints))?;
    Ok(Exit::Done)
}

async fn one_step(
    client: Client,
    args: &RunsShow,
    name: &str,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let shown = client.get(&["runs", &args.run.id, "steps", name], &[]).await?.data;
    client.close().await;
    match args.target.output() {
        OutputFormat::Json => out.json(Layout::Line, &shown)?,
        OutputFormat::Text => out.print(&step::draw(&shown))?,
    }
    Ok(Exit::Done)
}

async fn load(client: &Client, id: &str, output: OutputFormat) -> anyhow::Result<RunView> {
    let state = client.get(&["runs", id, "state"], &[]).await?.raw;
    if output == OutputFormat::Json {
        let (approvals, checkpoints) = (Vec::new(), Vec::new());
        return Ok(RunView { state, detail: Value::Null, approvals, checkpoints });
    }
    let detail = client.get(&["runs", id], &[]).await?.data;
    let approvals = detail["approvals"].as_array().cloned().unwrap_or_default();
    let checkpoints = client.get(&["runs", id, "checkpoints"], &[]).await?.read()?;
    Ok(RunView { state, detail, approvals, checkpoints })
}

fn head(shown: &Picture, detail: &Value) -> String {
    let version = shown.version.map(|version| format!("@{version}")).unwrap_or_default();
    let workflow = visible::brief(&shown.workflow);
    let why = shown.pause_reason.as_ref().map(|why| format!(" ({})", visible::brief(why)));
    let why = why.unwrap_or_default();
    let at_work = if detail["owner"].is_null() { "" } else { ", a process works on it" };
    let id = visible::brief(&shown.run_id);
    let mut text = format!("{id}  {workflow}{version}\n{}{why}{at_work}\n", shown.status);
    let mut facts = Table::plain();
    facts.row(["started".to_owned(), amount::moment(shown.started_at)]);
    if let (Some(end), Some(ms)) = (shown.completed_at, shown.duration_ms) {
        let took = format!("{}, after {}", amount::moment(end), amount::time(ms));
        facts.row(["ended".to_owned(), took]);
    }
    let spent = amount::spent(0, shown.tokens(), shown.cost);
    if !spent.is_empty() {
        facts.row(["spent".to_owned(), spent.join(", ")]);
    }
    if let (Some(code), Some(message)) = (&shown.error_code, &shown.error_message) {
        facts.row(["error".to_owned(), failure(code, message)]);
    }
    if let Some(parent) = &shown.parent_run_id {
        facts.row(["parent".to_owned(), parent.clone()]);
    }
    let origin = &detail["origin"];
    if let (Some(kind), Some(run)) = (origin["kind"].as_str(), origin["run_id"].as_str()) {
        facts.row(["made by".to_owned(), format!("{kind} of {run}")]);
    }
    text.push_str(&facts.draw());
    text
}

fn steps(shown: &Picture) -> String {
    let mut table = Table::new(&["STEP", "STATUS", "TIME", "ATTEMPTS", "TOKENS", "COST", ""]);
    for node in &shown.node_results {
        let some = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        let cost = amount::spent(0, 0, node.cost).pop().unwrap_or_default();
        table.row([
            node.node_id.clone(),
            node.status.to_string(),
            node.duration_ms.map(amount::time).unwrap_or_default(),
            some(node.attempts.into()),
            some(node.tokens()),
            cost,
            remark(node),
        ]);
    }
    format!("\n{}", table.draw())
}

fn remark(node: &StepPicture) -> String {
    if let (Some(code), Some(message)) = (&node.error_code, &node.error_message) {
        return failure(code, message);
    }
    node.skip_reason.clone().or(node.unblock_hint.clone()).unwrap_or_default()
}

fn approvals(all: &[Value]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["APPROVAL", "STEP", "STATUS", "ABOUT"]);
    for approval in all {
        let text = |name: &str| approval[name].as_str().unwrap_or_default().to_owned();
        let status = match (text("status"), approval["by"].as_str()) {
            (status, Some(by)) if status != "pending" => format!("{status} by {by}"),
            (status, _) => status,
        };
        table.row([text("approval_id"), text("node_id"), status, text("summary")]);
    }
    format!("\n{}", table.draw())
}

fn marks(checkpoints: &[CheckpointShown]) -> String {
    if checkpoints.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["CHECKPOINT", "AT", "STEP", ""]);
    for one in checkpoints {
        let undone = if one.undone { ", undone since" } else { "" };
        table.row([
            one.number.to_string(),
            amount::ms(&one.at).map(amount::moment).unwrap_or_default(),
            one.node_id.clone(),
            format!("{}{undone}", one.what),
        ]);
    }
    format!("\n{}", table.draw())
}
