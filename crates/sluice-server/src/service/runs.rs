//! Lists and shows runs and their journals.

use super::{Service, approvals, checkpoint, find};
use crate::refused::{self, Failure, Refused, ServiceResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sluice_core::journal::envelope::{Seen, Shown, timestamp};
use sluice_core::plan::step::Step;
use sluice_core::port::store::{Filter, RunRow};
use sluice_core::run::projection::labels::step_labels;
use sluice_core::run::projection::{child_wait, project};
use sluice_core::run::state::Run;
use sluice_engine::provenance::{Ask, Direction};
use std::collections::{BTreeMap, VecDeque};

/// Most child runs that are loaded to show what a run waits for.
const CHILDREN_LOADED_MAX: usize = 32;

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunShown {
    /// Id of the run.
    pub run_id: String,
    /// Name of the workflow.
    pub workflow: String,
    /// Version of the workflow, if it has one.
    pub version: Option<u64>,
    /// Status of the run.
    pub status: String,
    /// When the run was started.
    pub started_at: String,
    /// When the run ended.
    pub completed_at: Option<String>,
    /// The run that started this one.
    pub parent_run_id: Option<String>,
    /// The principal that started the run.
    pub initiator: String,
    /// The node that owns the run.
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

/// A page of runs, newest first, and the cursor of the next page.
pub async fn list(
    service: &Service,
    filter: Filter,
) -> ServiceResult<(Vec<RunShown>, Option<String>)> {
    let limit = filter.limit;
    let rows = service.store.list(filter).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|row| row.run.to_string());
    Ok((rows.iter().map(RunShown::from).collect(), next))
}

/// A run's projection, as spec 5.3 has it.
pub async fn state(service: &Service, run: &Run) -> ServiceResult<Box<RawValue>> {
    let waits = child_waits(service, run).await;
    let taken = service.store.taken(run.id).await?;
    let shown = project(run).with_taken(taken).with_child_waits(&waits);
    let text = serde_json::value::to_raw_value(&shown);
    Ok(text.expect("a projection is plain JSON"))
}

/// What steps of a run wait for in their child runs, by step. Only a bounded number of child
/// runs is looked at, and one that cannot be loaded, or does not exist yet, waits for nothing.
pub async fn child_waits(service: &Service, run: &Run) -> BTreeMap<String, String> {
    let mut waits = BTreeMap::new();
    let mut children = VecDeque::from(child_wait::children(run));
    for _ in 0..CHILDREN_LOADED_MAX {
        let Some((step, child)) = children.pop_front() else { break };
        if waits.contains_key(&step) {
            continue;
        }
        let Ok(child) = find::load(service, child).await else { continue };
        match child_wait::gate_wait(&child) {
            Some(wait) => drop(waits.insert(step, wait)),
            None => {
                let below = child_wait::children(&child).into_iter();
                children.extend(below.map(|(_, run)| (step.clone(), run)));
            }
        }
    }
    waits
}

/// A run as lists show it, and what it was started with.
pub async fn show(service: &Service, row: &RunRow) -> ServiceResult<Value> {
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

/// The steps whose texts are the result of a run whose document names no outputs: no
/// step depends on them, and they declare no outputs, which would be in the result
/// already.
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

/// The steps of a run with their dependencies, for drawing a graph.
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

/// Passes every event of a run to `see`, up to the version that was loaded.
pub(crate) async fn for_each_event(
    service: &Service,
    run: &Run,
    after: u64,
    mut see: impl FnMut(Seen),
) -> ServiceResult<()> {
    let mut after = after;
    while after < run.version {
        let page = service.engine.events(run, after).await.map_err(refused::load)?;
        let Some(last) = page.last() else { break };
        after = last.id();
        page.into_iter().filter(|seen| seen.id() <= run.version).for_each(&mut see);
    }
    Ok(())
}

/// At most `limit` events after an event id, and the cursor of the next page.
pub async fn journal(
    service: &Service,
    run: &Run,
    after: u64,
    limit: usize,
) -> ServiceResult<(Vec<Box<RawValue>>, Option<u64>)> {
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
        Refused::new(refused::RUN_UNREADABLE, message, "`sluice audit verify` checks the journal")
            .into()
    }
}

/// A status change, as `/tags` lists them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tag {
    /// Id of the run.
    pub run_id: String,
    /// Id of the step or instance.
    pub node_id: String,
    /// The kind of change, such as `node_started`.
    pub tag: String,
    /// Details of the change.
    pub metadata: Map<String, Value>,
    /// When it happened.
    pub at: String,
}

/// The status changes of a run, from its journal.
pub async fn tags(service: &Service, run: &Run) -> ServiceResult<Vec<Tag>> {
    let mut tags = Vec::new();
    for_each_event(service, run, 0, |seen| {
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

/// A point of a run to which it can be rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointShown {
    /// Counted from 1; 0 is the beginning of the run.
    pub number: usize,
    /// The event that made the checkpoint.
    pub event_id: u64,
    /// When the event was written.
    pub at: String,
    /// The step that was completed or skipped.
    pub node_id: String,
    /// `completed` or `skipped`.
    pub what: String,
    /// Whether the step went back to pending afterwards.
    pub undone: bool,
}

/// The checkpoints of a run, oldest first.
pub async fn checkpoints(service: &Service, run: &Run) -> ServiceResult<Vec<CheckpointShown>> {
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

/// The provenance of values: where they came from and which steps consumed them.
pub async fn provenance(service: &Service, run: &Run, ask: &Ask) -> ServiceResult<Value> {
    if let Some(step) = &ask.step {
        find::step(run, step)?;
    }
    let trace = service.engine.provenance(run.id, ask).await.map_err(refused::load)?;
    Ok(json!({"run_id": run.id.to_string(), "rows": trace.rows(), "cut": trace.cut}))
}

/// The direction in which provenance is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceDirection {
    /// To the sources of values.
    Up,
    /// To the consumers of values.
    Down,
    /// To sources and consumers.
    #[default]
    Both,
}

impl From<TraceDirection> for Direction {
    fn from(direction: TraceDirection) -> Direction {
        match direction {
            TraceDirection::Up => Direction::Up,
            TraceDirection::Down => Direction::Down,
            TraceDirection::Both => Direction::Both,
        }
    }
}

/// Everything about one step: its projection, attempts, decisions and logs.
pub async fn step(service: &Service, run: &Run, name: &str) -> ServiceResult<Value> {
    let at = find::step(run, name)?;
    let projection = project(run);
    let node = projection.node_results.iter().find(|node| node.node_id == name);
    let node = serde_json::to_value(node).unwrap_or_default();
    let mut lists: [Vec<Value>; 4] = Default::default();
    for_each_event(service, run, 0, |seen| {
        let Seen::Event(event) = seen else { return };
        if event.kind == "node.stream.delta" {
            return;
        }
        let envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
        let payload = &envelope["payload"];
        let place = match event.kind.as_str() {
            "node.started" | "node.retried" | "node.completed" | "node.failed"
            | "node.timed_out" | "node.cancelled" => 0,
            // A failure that is skipped, or that waits for an approval, ends an attempt.
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
    let conversation = |one: &'_ Value| {
        let own = one.pointer("/payload/conversation");
        own.or_else(|| one.pointer("/payload/answer/conversation")).cloned()
    };
    let newest = attempts.iter().rev().find_map(conversation);
    let conversation = newest.unwrap_or_else(|| json!([]));
    Ok(json!({
        "run_id": run.id.to_string(),
        "node": node,
        "labels": step_labels(run, at),
        "attempts": attempts,
        "decisions": decisions,
        "logs": logs,
        "conversation": conversation,
        "others": others,
    }))
}
