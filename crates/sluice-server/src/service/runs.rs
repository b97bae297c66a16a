//! Runs: listed, shown, read.

use super::{Service, approvals, checkpoint, find};
use crate::refused::{self, Done, Failure, Refused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sluice_core::journal::envelope::{Seen, Shown, timestamp};
use sluice_core::plan::step::Step;
use sluice_core::port::store::{Filter, RunRow};
use sluice_core::run::projection::project;
use sluice_core::run::state::Run;
use sluice_engine::provenance::{Ask, Direction};

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunShown {
    /// Its id.
    pub run_id: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version, if it has one.
    pub version: Option<u64>,
    /// What it is doing.
    pub status: String,
    /// When it was started.
    pub started_at: String,
    /// When it ended.
    pub completed_at: Option<String>,
    /// The run that started it.
    pub parent_run_id: Option<String>,
    /// Who started it.
    pub initiator: String,
    /// The process that works on it.
    pub owner: Option<String>,
}

impl From<&RunRow> for RunShown {
    fn from(row: &RunRow) -> RunShown {
        RunShown {
            run_id: row.run.to_string(),
            workflow: row.workflow.clone(),
            version: row.version,
            status: row.status.to_string(),
            started_at: timestamp(row.started_at_ms),
            completed_at: row.ended_at_ms.map(timestamp),
            parent_run_id: row.parent.map(|parent| parent.to_string()),
            initiator: row.initiator.clone(),
            owner: row.owner.map(|owner| owner.to_string()),
        }
    }
}

/// A page of runs, newest first, and where the next one begins.
pub async fn list(service: &Service, filter: Filter) -> Done<(Vec<RunShown>, Option<String>)> {
    let limit = filter.limit;
    let rows = service.store.list(filter).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|row| row.run.to_string());
    Ok((rows.iter().map(RunShown::from).collect(), next))
}

/// A run's projection, as spec 5.3 has it.
pub async fn state(service: &Service, run: &Run) -> Done<Box<RawValue>> {
    let shown = project(run).with_taken(service.store.taken(run.id).await?);
    let text = serde_json::value::to_raw_value(&shown);
    Ok(text.expect("a projection is plain JSON"))
}

/// What a run is: the list's line, and what it was started with.
pub async fn show(service: &Service, row: &RunRow) -> Done<Value> {
    let run = find::load(service, row.run).await?;
    let mut shown = serde_json::to_value(RunShown::from(row)).unwrap_or_default();
    let started = &run.started;
    let rest = json!({
        "initiator": started.initiator,
        "args": *started.args,
        "definition_hash": run.definition.hash,
        "default_agent": started.default_agent,
        "default_model": started.default_model,
        "max_recursion_depth": started.recursion_depth_max,
        "role_bindings": started.role_bindings,
        "trace_id": started.trace_id,
        "root_run_id": started.root.map(|root| root.to_string()),
        "origin": started.origin.as_ref().map(|origin| json!({
            "kind": origin.kind, "run_id": origin.run.to_string(), "event_id": origin.event,
        })),
        "last_event_id": run.version,
        "last_steps": last_steps(&run),
        "steps": steps(&run),
        "approvals": run.approvals.keys().map(|id| approvals::shown(&run, *id)).collect::<Vec<_>>(),
    });
    if let (Value::Object(shown), Value::Object(rest)) = (&mut shown, rest) {
        shown.extend(rest);
    }
    Ok(shown)
}

/// The steps whose texts stand for the result of a run whose document names no
/// outputs: nothing depends on them, and they declare no outputs of their own,
/// which would be in the result already.
pub fn last_steps(run: &Run) -> Vec<&str> {
    let plan = &run.definition.plan;
    if !plan.outputs.is_empty() {
        return Vec::new();
    }
    let last = |(at, step): &(usize, &Step)| {
        plan.graph.dependents(*at).is_empty() && step.outputs.is_empty()
    };
    plan.steps.iter().enumerate().filter(last).map(|(_, step)| step.id.as_str()).collect()
}

/// The run's steps as a graph is drawn of them.
fn steps(run: &Run) -> Vec<Value> {
    let plan = &run.definition.plan;
    let name = |at: &u32| plan.steps[*at as usize].id.as_str();
    let step = |(at, step): (usize, &Step)| {
        json!({
            "node_id": step.id,
            "kind": step.work.kind(),
            "wave": plan.graph.layer_of(at),
            "depends_on": plan.graph.dependencies(at).iter().map(name).collect::<Vec<_>>(),
        })
    };
    plan.steps.iter().enumerate().map(step).collect()
}

/// Shows every event of a run to `see`, up to where it was loaded, page by page.
pub async fn each(service: &Service, run: &Run, after: u64, mut see: impl FnMut(Seen)) -> Done<()> {
    let mut after = after;
    while after < run.version {
        let page = service.engine.events(run, after).await.map_err(refused::load)?;
        let Some(last) = page.last() else { break };
        after = last.id();
        page.into_iter().filter(|seen| seen.id() <= run.version).for_each(&mut see);
    }
    Ok(())
}

/// Envelopes after a place, at most so many.
pub async fn journal(
    service: &Service,
    run: &Run,
    after: u64,
    limit: usize,
) -> Done<(Vec<Box<RawValue>>, Option<u64>)> {
    let mut found = Vec::new();
    let (mut cursor, mut full) = (after, false);
    while cursor < run.version && !full {
        let page = service.engine.events(run, cursor).await.map_err(refused::load)?;
        if page.is_empty() {
            break;
        }
        for seen in page {
            if found.len() == limit {
                full = true;
                break;
            }
            cursor = seen.id();
            if let Seen::Event(event) = seen {
                found.push(RawValue::from_string(event.json).map_err(unreadable(run))?);
            }
        }
    }
    Ok((found, full.then_some(cursor)))
}

fn unreadable(run: &Run) -> impl Fn(serde_json::Error) -> Failure + '_ {
    move |error| {
        let message = format!("an event of {} cannot be read: {error}", run.id);
        Refused::new(refused::RUN_UNREADABLE, message, "the journal says more").into()
    }
}

/// A change of status, as `/tags` lists them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tag {
    /// The run.
    pub run_id: String,
    /// The step or instance.
    pub node_id: String,
    /// What happened.
    pub tag: String,
    /// What belongs to it.
    pub metadata: Map<String, Value>,
    /// When.
    pub at: String,
}

/// Changes of status, out of the journal.
pub async fn tags(service: &Service, run: &Run) -> Done<Vec<Tag>> {
    let mut tags = Vec::new();
    each(service, run, 0, |seen| {
        if let Seen::Event(event) = seen {
            tags.extend(tag(run, &event));
        }
    })
    .await?;
    Ok(tags)
}

fn tag(run: &Run, event: &Shown) -> Option<Tag> {
    let (tag, fields): (&str, &[(&str, &str)]) = match event.kind.as_str() {
        "node.started" => ("node_started", &[("attempt", "attempt"), ("wave", "wave")]),
        "node.retried" => {
            ("node_retried", &[("attempt", "attempt"), ("cause", "cause"), ("delay_ms", "delayMs")])
        }
        "moderation.flagged" => ("moderation_flagged", &[("phase", "phase")]),
        "contract.violated" => ("contract_violated", &[("phase", "phase"), ("errors", "errors")]),
        "node.timed_out" => ("timed_out", &[("timeout_ms", "timeoutMs")]),
        "node.failed" => {
            ("node_failed", &[("error_code", "errorCode"), ("error_message", "errorMessage")])
        }
        "node.completed" => (
            "node_completed",
            &[
                ("duration_ms", "durationMs"),
                ("input_tokens", "inputTokens"),
                ("output_tokens", "outputTokens"),
            ],
        ),
        "node.cancelled" => ("node_cancelled", &[]),
        _ => return None,
    };
    let envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
    let payload = &envelope["payload"];
    let node_id = payload["nodeId"].as_str().unwrap_or_default().to_owned();
    let mut metadata: Map<String, Value> = Map::new();
    for (name, field) in fields {
        metadata.insert((*name).to_owned(), payload[*field].clone());
    }
    if tag == "timed_out" && metadata["timeout_ms"].is_null() {
        let timeout = run.find(&node_id).map(|at| run.step(at).timeout_ms);
        metadata.insert("timeout_ms".to_owned(), json!(timeout));
    }
    let (run_id, at) = (run.id.to_string(), timestamp(event.at_ms));
    Some(Tag { run_id, node_id, tag: tag.to_owned(), metadata, at })
}

/// A place that one can go back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointShown {
    /// From 1; 0 is the run's beginning.
    pub number: usize,
    /// The event that made it.
    pub event_id: u64,
    /// When.
    pub at: String,
    /// Which step.
    pub node_id: String,
    /// `completed` or `skipped`.
    pub what: String,
    /// Whether the step went back to pending later.
    pub undone: bool,
}

/// The places that one can go back to, oldest first.
pub async fn checkpoints(service: &Service, run: &Run) -> Done<Vec<CheckpointShown>> {
    let all = checkpoint::list(service, run).await?;
    let shown = all.into_iter().map(|one| CheckpointShown {
        number: one.number,
        event_id: one.event,
        at: timestamp(one.at_ms),
        node_id: one.step,
        what: one.word.to_owned(),
        undone: one.undone,
    });
    Ok(shown.collect())
}

/// Where values came from, and where they went.
pub async fn provenance(service: &Service, run: &Run, ask: &Ask) -> Done<Value> {
    if let Some(step) = &ask.step {
        find::step(run, step)?;
    }
    let trace = service.engine.provenance(run.id, ask).await.map_err(refused::load)?;
    Ok(json!({"run_id": run.id.to_string(), "rows": trace.rows(), "cut": trace.cut}))
}

/// Which way provenance is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// To where values came from.
    Up,
    /// To where they went.
    Down,
    /// Both.
    #[default]
    Both,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Direction {
        match way {
            Way::Up => Direction::Up,
            Way::Down => Direction::Down,
            Way::Both => Direction::Both,
        }
    }
}

/// Everything about one step: what the projection says, its attempts, what was
/// decided about it, what it logged.
pub async fn step(service: &Service, run: &Run, name: &str) -> Done<Value> {
    find::step(run, name)?;
    let projection = project(run);
    let node = projection.node_results.iter().find(|node| node.node_id == name);
    let node = serde_json::to_value(node).unwrap_or_default();
    let mut lists: [Vec<Value>; 4] = Default::default();
    each(service, run, 0, |seen| {
        let Seen::Event(event) = seen else { return };
        if event.kind == "node.stream.delta" {
            return;
        }
        let envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
        let payload = &envelope["payload"];
        let place = match event.kind.as_str() {
            "node.started" | "node.retried" | "node.completed" | "node.failed"
            | "node.timed_out" | "node.cancelled" => 0,
            // A failure that is skipped, or that a person is asked about, ends an attempt.
            "node.skipped" | "approval.requested" if payload.get("errorCode").is_some() => 0,
            "governance.decided" => 1,
            "node.log" => 2,
            _ => 3,
        };
        if payload["nodeId"] == name {
            lists[place].push(envelope);
        }
    })
    .await?;
    let [attempts, decisions, logs, others] = lists;
    let said = |one: &'_ Value| {
        let own = one.pointer("/payload/conversation");
        own.or_else(|| one.pointer("/payload/answer/conversation")).cloned()
    };
    let newest = attempts.iter().rev().find_map(said);
    let conversation = newest.unwrap_or_else(|| json!([]));
    Ok(json!({
        "run_id": run.id.to_string(),
        "node": node,
        "attempts": attempts,
        "decisions": decisions,
        "logs": logs,
        "conversation": conversation,
        "others": others,
    }))
}
