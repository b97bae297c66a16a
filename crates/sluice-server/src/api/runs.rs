//! Runs over HTTP: list, show, start, and change their course.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad, trace};
use super::route::{Need, Route};
use super::shape::{Event, Provenance, RunDetail, RunState, StepDetail};
use crate::auth::permission::Permission as P;
use crate::limits::{DOCUMENT_BYTES_LIGHT, PAGE, PAGE_MAX};
use crate::refused::{Refused, ServiceResult};
use crate::service::course::{self, Renewal};
use crate::service::runs::{self, CheckpointShown, RunShown, Tag, TraceDirection};
use crate::service::start::{self, StartRequest};
use crate::service::{checkpoint, find};
use axum::http::{Method, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluice_core::choice;
use sluice_core::id::RunId;
use sluice_core::port::store::Filter;
use sluice_core::run::command::Command;
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_engine::error::Delivered;
use sluice_engine::provenance::Ask as Trace;
use std::collections::BTreeMap;

/// Maximum number of runs that provenance is followed through.
const HOPS_MAX: u32 = 32;

pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let execute = Need::Permission(P::WorkflowExecute);
    let inline = Need::Permission(P::WorkflowInline);
    let get = |path| (Method::GET, path);
    let post = |path| (Method::POST, path);
    let mut all = vec![
        Route::new(get("/api/v1/runs"), read, "List runs, newest first", list).paged(),
        Route::new(post("/api/v1/runs"), inline, "Start a run of a document", start_inline)
            .heavy_over(DOCUMENT_BYTES_LIGHT)
            .with_status(202),
        Route::new(
            post("/api/v1/workflows/{name}/runs"),
            execute,
            "Start a run of a registered workflow",
            start_named,
        )
        .with_status(202),
        Route::new(get("/api/v1/runs/{run}"), read, "Show a run", show),
        Route::new(get("/api/v1/runs/{run}/state"), read, "Show the full state of a run", state),
        Route::new(get("/api/v1/runs/{run}/tags"), read, "List status changes", tags).paged(),
        Route::new(get("/api/v1/runs/{run}/journal"), read, "List the events of a run", journal)
            .paged(),
        Route::new(
            get("/api/v1/runs/{run}/provenance"),
            read,
            "Trace the provenance of values",
            provenance,
        ),
        Route::new(
            get("/api/v1/runs/{run}/checkpoints"),
            read,
            "List the checkpoints of a run",
            checkpoints,
        )
        .paged(),
        Route::new(get("/api/v1/runs/{run}/steps/{step}"), read, "Show a step", step),
    ];
    all.extend(command_routes());
    all
}

/// The routes that change the course of a run.
fn command_routes() -> Vec<Route> {
    let execute = Need::Permission(P::WorkflowExecute);
    let stop = Need::Permission(P::RunCancel);
    let post = |path| (Method::POST, path);
    vec![
        Route::new(post("/api/v1/runs/{run}/cancel"), stop, "Cancel a run", cancel),
        Route::new(
            post("/api/v1/runs/{run}/pause"),
            stop,
            "Pause a run: no further step starts",
            pause,
        ),
        Route::new(post("/api/v1/runs/{run}/resume"), execute, "Resume a paused run", resume),
        Route::new(post("/api/v1/runs/{run}/retry"), execute, "Retry a failed run", retry),
        Route::new(
            post("/api/v1/runs/{run}/restart"),
            execute,
            "Start a new run that repeats some steps",
            restart,
        )
        .with_status(202),
        Route::new(
            post("/api/v1/runs/{run}/rewind"),
            execute,
            "Rewind a run to a checkpoint",
            rewind,
        ),
        Route::new(
            post("/api/v1/runs/{run}/branch"),
            execute,
            "Start a new run from a checkpoint",
            branch,
        )
        .with_status(202),
        Route::new(
            post("/api/v1/runs/{run}/assign"),
            execute,
            "Assign an agent to a step that has none",
            assign,
        ),
    ]
}

/// Selects runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    /// Only these statuses, separated by commas.
    status: Option<String>,
    /// Only this workflow.
    workflow: Option<String>,
    /// Only runs that this principal started.
    initiator: Option<String>,
    /// Only runs started at or after this time, in milliseconds since 1970.
    since_ms: Option<u64>,
    /// Only runs started before this time.
    until_ms: Option<u64>,
    /// Only runs whose workflow or initiator contains this text, or whose id begins with it.
    text: Option<String>,
    /// Only children of this run.
    parent: Option<String>,
    /// Maximum number of runs.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

pub(super) const fn page() -> u16 {
    PAGE
}

/// Checks the size of a page.
pub(super) fn limit(requested: u16) -> Result<usize, Refused> {
    if (1..=PAGE_MAX).contains(&requested) {
        return Ok(usize::from(requested));
    }
    Err(bad(format!("`limit` must be between 1 and {PAGE_MAX}")))
}

/// Parses a complete run id.
pub(super) fn run_id(text: &str) -> Result<RunId, Refused> {
    let bad = || bad(format!("`{}` is not a run id", sluice_core::visible::brief(text)));
    RunId::parse(text).ok_or_else(bad)
}

async fn list(request: ApiRequest<RunsQuery>) -> ServiceResult<Reply<Vec<RunShown>>> {
    let query = &request.query;
    let words = query.status.iter().flat_map(|list| list.split(','));
    let statuses: Result<Vec<RunStatus>, Refused> = words
        .map(|word| {
            choice::find(word).ok_or_else(|| {
                bad(format!("`{}` is not a status of a run", sluice_core::visible::brief(word)))
            })
        })
        .collect();
    let filter = Filter {
        statuses: statuses?,
        workflow: query.workflow.clone(),
        initiator: query.initiator.clone(),
        since_ms: query.since_ms,
        until_ms: query.until_ms,
        text: query.text.clone(),
        parent: query.parent.as_deref().map(run_id).transpose()?,
        before: query.cursor.as_deref().map(run_id).transpose()?,
        limit: limit(query.limit)?,
        ..Filter::default()
    };
    let (rows, next) = runs::list(request.service(), filter).await?;
    Ok(Reply::page(rows, next))
}

/// A start request for a registered workflow.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct StartBody {
    /// Arguments of the workflow.
    args: Map<String, Value>,
    /// Version of the workflow (default: the newest).
    version: Option<u64>,
    /// Agent of steps that name none.
    default_agent: Option<String>,
    /// Model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// How many ancestors a run that this one starts may have; at most the configured limit.
    max_recursion_depth: Option<u32>,
    /// Agents by role.
    role_bindings: BTreeMap<String, String>,
    /// The same key within a day returns the same run; also as header `Idempotency-Key`.
    idempotency_key: Option<String>,
}

/// A start request for a document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InlineBody {
    /// Source text of the document.
    document: String,
    /// `lobsterx` or `lens` (default: detected from the text).
    format: Option<String>,
    /// Arguments of the workflow.
    #[serde(default)]
    args: Map<String, Value>,
    /// Agent of steps that name none.
    default_agent: Option<String>,
    /// Model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// How many ancestors a run that this one starts may have; at most the configured limit.
    max_recursion_depth: Option<u32>,
    /// Agents by role.
    #[serde(default)]
    role_bindings: BTreeMap<String, String>,
    /// The same key within a day returns the same run; also as header `Idempotency-Key`.
    idempotency_key: Option<String>,
}

/// A started run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StartedShown {
    /// Id of the run.
    pub(super) run_id: String,
    /// Whether the run was started before with the same key.
    pub(super) existed: bool,
}

fn key<Q, B>(request: &ApiRequest<Q, B>, sent: Option<&String>) -> Result<Option<String>, Refused> {
    let header = request.headers.get("idempotency-key").map(|value| value.to_str());
    let key = match (sent, header) {
        (Some(sent), _) => Some(sent.clone()),
        (None, Some(Ok(header))) => Some(header.to_owned()),
        (None, Some(Err(_))) => return Err(bad("`Idempotency-Key` is not plain text")),
        (None, None) => None,
    };
    start::key(key)
}

/// Adds the caller, the idempotency key and the trace to a start request.
fn with_context<Q, B>(
    request: &ApiRequest<Q, B>,
    start: StartRequest,
    idempotency_key: Option<&String>,
) -> Result<StartRequest, Refused> {
    Ok(StartRequest {
        default_model: start::model(start.default_model)?,
        key: key(request, idempotency_key)?,
        initiator: request.caller.name.clone(),
        trace: trace(&request.headers),
        ..start
    })
}

fn started_reply(started: sluice_engine::start::StartedRun) -> Reply<StartedShown> {
    let run_id = started.run.to_string();
    let location = format!("/api/v1/runs/{run_id}");
    Reply::accepted(StartedShown { run_id, existed: started.existed })
        .with(header::LOCATION, &location)
}

async fn start_named(
    request: ApiRequest<Nothing, StartBody>,
) -> ServiceResult<Reply<StartedShown>> {
    let body = &request.body;
    let start = StartRequest {
        args: body.args.clone(),
        default_agent: body.default_agent.clone(),
        default_model: body.default_model.clone(),
        recursion_depth_max: body.max_recursion_depth,
        role_bindings: body.role_bindings.clone(),
        ..StartRequest::default()
    };
    let start = with_context(&request, start, body.idempotency_key.as_ref())?;
    let name = request.path("name");
    let reference = match body.version {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    };
    Ok(started_reply(start::start_workflow(&request.organisation, &reference, start).await?))
}

async fn start_inline(
    request: ApiRequest<Nothing, InlineBody>,
) -> ServiceResult<Reply<StartedShown>> {
    let body = &request.body;
    let start = StartRequest {
        args: body.args.clone(),
        default_agent: body.default_agent.clone(),
        default_model: body.default_model.clone(),
        recursion_depth_max: body.max_recursion_depth,
        role_bindings: body.role_bindings.clone(),
        ..StartRequest::default()
    };
    let start = with_context(&request, start, body.idempotency_key.as_ref())?;
    let started =
        start::start_document(&request.organisation, &body.document, body.format.as_deref(), start)
            .await?;
    Ok(started_reply(started))
}

pub(super) async fn loaded<Q, B>(request: &ApiRequest<Q, B>) -> ServiceResult<Run> {
    course::load(request.service(), request.path("run")).await
}

/// The run that a request changes, by its complete id.
async fn loaded_whole<Q, B>(request: &ApiRequest<Q, B>) -> ServiceResult<Run> {
    let run = find::whole_run(request.service(), request.path("run")).await?.run;
    find::load(request.service(), run).await
}

async fn show(request: ApiRequest) -> ServiceResult<Reply<RunDetail>> {
    let row = find::run(request.service(), request.path("run")).await?;
    Ok(Reply::ok(RunDetail(runs::show(request.service(), &row).await?)))
}

async fn state(request: ApiRequest) -> ServiceResult<Reply<RunState>> {
    let run = loaded(&request).await?;
    Ok(Reply::ok(RunState(runs::state(request.service(), &run).await?)))
}

async fn tags(request: ApiRequest) -> ServiceResult<Reply<Vec<Tag>>> {
    let run = loaded(&request).await?;
    Ok(Reply::ok(runs::tags(request.service(), &run).await?))
}

/// A page of a journal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    /// The `next_cursor` of the previous page: the id of its last event.
    cursor: Option<u64>,
    /// Maximum number of events.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
}

async fn journal(request: ApiRequest<JournalQuery>) -> ServiceResult<Reply<Vec<Event>>> {
    let run = loaded(&request).await?;
    let (after, limit) = (request.query.cursor.unwrap_or(0), limit(request.query.limit)?);
    let (events, next) = runs::journal(request.service(), &run, after, limit).await?;
    let events = events.into_iter().map(Event).collect();
    Ok(Reply::page(events, next.map(|next| next.to_string())))
}

/// Selects values to trace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraceQuery {
    /// Only values of this step.
    step: Option<String>,
    /// The direction to follow.
    #[serde(default)]
    direction: TraceDirection,
    /// How many runs to follow values through.
    #[serde(default = "hops")]
    #[schemars(range(min = 0, max = 32))]
    hops: u32,
    /// How many steps to follow values through; 1 means direct neighbours (default: all).
    #[schemars(range(min = 1))]
    steps: Option<u32>,
}

const fn hops() -> u32 {
    8
}

async fn provenance(request: ApiRequest<TraceQuery>) -> ServiceResult<Reply<Provenance>> {
    if request.query.hops > HOPS_MAX {
        return Err(bad(format!("`hops` is at most {HOPS_MAX}")).into());
    }
    if request.query.steps == Some(0) {
        return Err(bad("`steps` is at least 1").into());
    }
    let run = loaded(&request).await?;
    let TraceQuery { step, direction, hops, steps } = &request.query;
    let trace = Trace {
        step: step.clone(),
        direction: (*direction).into(),
        hops_max: *hops,
        steps_max: steps.unwrap_or(u32::MAX),
    };
    Ok(Reply::ok(Provenance(runs::provenance(request.service(), &run, &trace).await?)))
}

async fn checkpoints(request: ApiRequest) -> ServiceResult<Reply<Vec<CheckpointShown>>> {
    let run = loaded(&request).await?;
    Ok(Reply::ok(runs::checkpoints(request.service(), &run).await?))
}

async fn step(request: ApiRequest) -> ServiceResult<Reply<StepDetail>> {
    let run = loaded(&request).await?;
    Ok(Reply::ok(StepDetail(runs::step(request.service(), &run, request.path("step")).await?)))
}

/// The result of a command to a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CommandShown {
    /// Id of the run.
    pub(super) run_id: String,
    /// Whether the command was executed; if not, the node that owns the run will execute it.
    pub(super) done: bool,
    /// Current status of the run.
    pub(super) status: String,
}

/// Sends a command to a run, and reports its status afterwards.
pub(super) async fn send_command<Q, B>(
    request: &ApiRequest<Q, B>,
    run: RunId,
    command: Command,
) -> ServiceResult<Reply<CommandShown>> {
    Ok(Reply::ok(deliver(request, run, command).await?))
}

async fn deliver<Q, B>(
    request: &ApiRequest<Q, B>,
    run: RunId,
    command: Command,
) -> ServiceResult<CommandShown> {
    let delivered =
        course::send_command(request.service(), run, command, &request.request_id).await?;
    let now = find::load(request.service(), run).await?;
    Ok(CommandShown {
        run_id: run.to_string(),
        done: delivered == Delivered::Done,
        status: now.status.to_string(),
    })
}

/// The reason of a cancellation.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct CancelBody {
    /// Reason, for the journal.
    reason: Option<String>,
}

async fn cancel(request: ApiRequest<Nothing, CancelBody>) -> ServiceResult<Reply<CommandShown>> {
    let run = find::whole_run(request.service(), request.path("run")).await?.run;
    let reason = request.body.reason.clone().unwrap_or_else(|| "cancelled over the API".to_owned());
    let by = request.caller.name.clone();
    send_command(&request, run, Command::Cancel { by, reason }).await
}

async fn pause(request: ApiRequest) -> ServiceResult<Reply<CommandShown>> {
    let run = find::whole_run(request.service(), request.path("run")).await?.run;
    send_command(&request, run, Command::Pause { by: request.caller.name.clone() }).await
}

async fn resume(request: ApiRequest) -> ServiceResult<Reply<CommandShown>> {
    let run = find::whole_run(request.service(), request.path("run")).await?.run;
    send_command(&request, run, Command::Unpause { by: request.caller.name.clone() }).await
}

async fn retry(request: ApiRequest) -> ServiceResult<Reply<CommandShown>> {
    let run = loaded_whole(&request).await?;
    let command = course::retry(&run, &request.caller.name)?;
    send_command(&request, run.id, command).await
}

/// The steps to repeat.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RestartBody {
    /// Steps to repeat, with all that depend on them (default: those that failed).
    from: Vec<String>,
    /// Only report which steps would be repeated.
    preview: bool,
}

/// A new run that is derived from an existing one.
#[derive(Debug, Serialize, JsonSchema)]
struct DerivedRunShown {
    /// Id of the new run; null in a preview.
    run_id: Option<String>,
    /// Steps that are executed a second time.
    repeats: Vec<String>,
}

async fn derive<Q, B>(
    request: &ApiRequest<Q, B>,
    now: &Run,
    renewal: Renewal<'_>,
    preview: bool,
) -> ServiceResult<Reply<DerivedRunShown>> {
    let name = |at: u32| now.definition.plan.steps[at as usize].id.clone();
    let repeats = renewal.repeated(now).into_iter().map(name).collect();
    let run_id = if preview {
        None
    } else {
        let by = &request.caller.name;
        let work = request.service().engine.dispatching();
        Some(renewal.start(request.service(), by, work).await?.to_string())
    };
    Ok(Reply::accepted(DerivedRunShown { run_id, repeats }))
}

async fn restart(
    request: ApiRequest<Nothing, RestartBody>,
) -> ServiceResult<Reply<DerivedRunShown>> {
    let source = loaded_whole(&request).await?;
    let renewal = Renewal::restart(&source, &request.body.from)?;
    derive(&request, &source, renewal, request.body.preview).await
}

/// The target of a rewind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RewindBody {
    /// Number of the checkpoint; 0 is the beginning of the run.
    to: usize,
    /// Only report which steps would be repeated.
    #[serde(default)]
    preview: bool,
}

/// The result of a rewind.
#[derive(Debug, Serialize, JsonSchema)]
struct RewoundShown {
    /// Id of the run.
    run_id: String,
    /// Whether the run was rewound; always false in a preview.
    done: bool,
    /// Current status of the run.
    status: String,
    /// Steps that are executed a second time.
    repeats: Vec<String>,
}

async fn rewind(request: ApiRequest<Nothing, RewindBody>) -> ServiceResult<Reply<RewoundShown>> {
    let run = loaded_whole(&request).await?;
    let by = &request.caller.name;
    let (command, keep) = course::rewind(request.service(), &run, request.body.to, by).await?;
    let repeats = course::repeated_steps(&run, &keep);
    if request.body.preview {
        let (run_id, status) = (run.id.to_string(), run.status.to_string());
        return Ok(Reply::ok(RewoundShown { run_id, done: false, status, repeats }));
    }
    let CommandShown { run_id, done, status } = deliver(&request, run.id, command).await?;
    Ok(Reply::ok(RewoundShown { run_id, done, status, repeats }))
}

/// The start of a branch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BranchBody {
    /// Number of the checkpoint; 0 is the beginning of the run.
    at: usize,
    /// Arguments to change.
    #[serde(default)]
    args: Map<String, Value>,
    /// Outputs to override: `STEP.OUTPUT` to a value.
    #[serde(default)]
    set: Map<String, Value>,
    /// Only report which steps would be repeated.
    #[serde(default)]
    preview: bool,
}

async fn branch(request: ApiRequest<Nothing, BranchBody>) -> ServiceResult<Reply<DerivedRunShown>> {
    let now = loaded_whole(&request).await?;
    let body = &request.body;
    let source = checkpoint::at(request.service(), &now, body.at).await?;
    let set = body.set.iter().map(|(place, value)| (place.as_str(), value.clone()));
    let changes = course::changes(&source, set)?;
    let renewal = Renewal::branch(&source, body.args.clone(), &changes);
    derive(&request, &now, renewal, body.preview).await
}

/// An assignment of a step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AssignBody {
    /// Id of the step.
    step: String,
    /// A member of the team, or an agent.
    whom: String,
}

async fn assign(request: ApiRequest<Nothing, AssignBody>) -> ServiceResult<Reply<CommandShown>> {
    let run = loaded_whole(&request).await?;
    let step = course::position(&run, &request.body.step)?;
    let (by, whom) = (request.caller.name.clone(), request.body.whom.clone());
    send_command(&request, run.id, Command::Assign { by, step, whom }).await
}
