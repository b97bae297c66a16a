//! Runs: listed, shown, started, changed in their course.

use super::ask::{Ask, Nothing, bad};
use super::reply::Reply;
use super::route::{Need, Route};
use super::shape::{Event, Provenance, RunDetail, RunState, StepDetail};
use crate::auth::permission::Permission as P;
use crate::limits::{DOCUMENT_BYTES_LIGHT, PAGE, PAGE_MAX};
use crate::refused::{Done, Refused};
use crate::service::course::{self, Renewal};
use crate::service::runs::{self, CheckpointShown, RunShown, Tag, Way};
use crate::service::start::{self, Wish};
use crate::service::{checkpoint, find};
use axum::http::{Method, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluice_core::choice;
use sluice_core::port::store::Filter;
use sluice_core::run::command::{Command, Dispatching};
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use sluice_core::run::status::RunStatus;
use sluice_engine::error::Delivered;
use sluice_engine::provenance::Ask as Trace;
use std::collections::BTreeMap;

/// Farthest that provenance is followed from run to run.
const HOPS_MAX: u32 = 32;

/// The routes of runs.
pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let execute = Need::Permission(P::WorkflowExecute);
    let inline = Need::Permission(P::WorkflowInline);
    let stop = Need::Permission(P::RunCancel);
    let get = |path| (Method::GET, path);
    let post = |path| (Method::POST, path);
    vec![
        Route::new(get("/api/v1/runs"), read, "List runs, newest first", list).paged(),
        Route::new(post("/api/v1/runs"), inline, "Start a run of a document", start_inline)
            .heavy_over(DOCUMENT_BYTES_LIGHT)
            .answering(202),
        Route::new(
            post("/api/v1/workflows/{name}/runs"),
            execute,
            "Start a run of a registered workflow",
            start_named,
        )
        .answering(202),
        Route::new(get("/api/v1/runs/{run}"), read, "Show a run", show),
        Route::new(get("/api/v1/runs/{run}/state"), read, "Everything an inspector shows", state),
        Route::new(get("/api/v1/runs/{run}/tags"), read, "Changes of status", tags).paged(),
        Route::new(get("/api/v1/runs/{run}/journal"), read, "The run's events", journal).paged(),
        Route::new(
            get("/api/v1/runs/{run}/provenance"),
            read,
            "Where values came from and where they went",
            provenance,
        ),
        Route::new(
            get("/api/v1/runs/{run}/checkpoints"),
            read,
            "Places that one can go back to",
            checkpoints,
        )
        .paged(),
        Route::new(get("/api/v1/runs/{run}/steps/{step}"), read, "Show a step", step),
        Route::new(post("/api/v1/runs/{run}/cancel"), stop, "Stop a run for good", cancel),
        Route::new(post("/api/v1/runs/{run}/pause"), stop, "Start nothing more for now", pause),
        Route::new(post("/api/v1/runs/{run}/resume"), execute, "Let a paused run go on", resume),
        Route::new(post("/api/v1/runs/{run}/retry"), execute, "Take a failed run up again", retry),
        Route::new(
            post("/api/v1/runs/{run}/restart"),
            execute,
            "Start a new run that does some steps again",
            restart,
        )
        .answering(202),
        Route::new(
            post("/api/v1/runs/{run}/rewind"),
            execute,
            "Go back to a checkpoint in the same run",
            rewind,
        ),
        Route::new(
            post("/api/v1/runs/{run}/branch"),
            execute,
            "Start a new run from a checkpoint",
            branch,
        )
        .answering(202),
        Route::new(
            post("/api/v1/runs/{run}/assign"),
            execute,
            "Choose who does a step that nobody fits",
            assign,
        ),
    ]
}

/// How lists are cut.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    /// Only in these statuses, by commas.
    status: Option<String>,
    /// Only of this workflow.
    workflow: Option<String>,
    /// Only runs that this one started.
    initiator: Option<String>,
    /// Only runs started at or after this time, in milliseconds since 1970.
    since_ms: Option<u64>,
    /// Only runs started before this time.
    until_ms: Option<u64>,
    /// Only runs whose workflow or initiator has this in it, or whose id begins so.
    text: Option<String>,
    /// Only children of this run.
    parent: Option<String>,
    /// Most to list.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

pub(super) const fn page() -> u16 {
    PAGE
}

/// How many rows are asked for, if so many may be.
pub(super) fn limit(asked: u16) -> Result<usize, Refused> {
    if (1..=PAGE_MAX).contains(&asked) {
        return Ok(usize::from(asked));
    }
    Err(bad(format!("`limit` is from 1 to {PAGE_MAX}")))
}

/// A whole run id.
pub(super) fn run_id(text: &str) -> Result<RunId, Refused> {
    let bad = || bad(format!("`{}` is no run's id", sluice_core::visible::brief(text)));
    RunId::parse(text).ok_or_else(bad)
}

async fn list(ask: Ask<RunsQuery>) -> Done<Reply<Vec<RunShown>>> {
    let query = &ask.query;
    let words = query.status.iter().flat_map(|list| list.split(','));
    let statuses: Result<Vec<RunStatus>, Refused> = words
        .map(|word| {
            choice::find(word).ok_or_else(|| {
                bad(format!("`{}` is no status of a run", sluice_core::visible::brief(word)))
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
    let (rows, next) = runs::list(ask.service(), filter).await?;
    Ok(Reply::page(rows, next))
}

/// What a run is started with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct StartBody {
    /// The arguments.
    args: Map<String, Value>,
    /// The workflow's version; the newest if none is said.
    version: Option<u64>,
    /// Who does steps that name nobody.
    default_agent: Option<String>,
    /// The model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// How many runs may be above a run that this one starts; never more than is configured.
    max_recursion_depth: Option<u32>,
    /// Which agent stands for which role.
    role_bindings: BTreeMap<String, String>,
    /// The same key within a day means the same run; also as header `Idempotency-Key`.
    idempotency_key: Option<String>,
}

/// A document to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InlineBody {
    /// The document's text.
    document: String,
    /// `lobsterx` or `lens`; as the text looks if it is not said.
    format: Option<String>,
    /// The arguments.
    #[serde(default)]
    args: Map<String, Value>,
    /// Who does steps that name nobody.
    default_agent: Option<String>,
    /// The model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// How many runs may be above a run that this one starts; never more than is configured.
    max_recursion_depth: Option<u32>,
    /// Which agent stands for which role.
    #[serde(default)]
    role_bindings: BTreeMap<String, String>,
    /// The same key within a day means the same run; also as header `Idempotency-Key`.
    idempotency_key: Option<String>,
}

/// A run that was started, or was there before.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StartedShown {
    /// Its id.
    pub(super) run_id: String,
    /// Whether it was started before with the same key.
    pub(super) existed: bool,
}

fn key<Q, B>(ask: &Ask<Q, B>, said: Option<&String>) -> Result<Option<String>, Refused> {
    let header = ask.headers.get("idempotency-key").map(|value| value.to_str());
    let key = match (said, header) {
        (Some(said), _) => Some(said.clone()),
        (None, Some(Ok(header))) => Some(header.to_owned()),
        (None, Some(Err(_))) => return Err(bad("`Idempotency-Key` is no plain text")),
        (None, None) => None,
    };
    start::key(key)
}

/// Adds who starts a run, and by which key and cause.
fn wish<Q, B>(ask: &Ask<Q, B>, given: Wish, said: Option<&String>) -> Result<Wish, Refused> {
    Ok(Wish {
        default_model: start::model(given.default_model)?,
        key: key(ask, said)?,
        initiator: ask.caller.name.clone(),
        trace: start::trace(&ask.headers),
        ..given
    })
}

fn begun(started: sluice_engine::start::StartedRun) -> Reply<StartedShown> {
    let run_id = started.run.to_string();
    let place = format!("/api/v1/runs/{run_id}");
    Reply::accepted(StartedShown { run_id, existed: started.existed })
        .with(header::LOCATION, &place)
}

async fn start_named(ask: Ask<Nothing, StartBody>) -> Done<Reply<StartedShown>> {
    let body = &ask.body;
    let given = Wish {
        args: body.args.clone(),
        default_agent: body.default_agent.clone(),
        default_model: body.default_model.clone(),
        recursion_depth_max: body.max_recursion_depth,
        role_bindings: body.role_bindings.clone(),
        ..Wish::default()
    };
    let wish = wish(&ask, given, body.idempotency_key.as_ref())?;
    let name = ask.path("name");
    let reference = match body.version {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    };
    Ok(begun(start::named(&ask.house, &reference, wish).await?))
}

async fn start_inline(ask: Ask<Nothing, InlineBody>) -> Done<Reply<StartedShown>> {
    let body = &ask.body;
    let given = Wish {
        args: body.args.clone(),
        default_agent: body.default_agent.clone(),
        default_model: body.default_model.clone(),
        recursion_depth_max: body.max_recursion_depth,
        role_bindings: body.role_bindings.clone(),
        ..Wish::default()
    };
    let wish = wish(&ask, given, body.idempotency_key.as_ref())?;
    let started = start::inline(&ask.house, &body.document, body.format.as_deref(), wish).await?;
    Ok(begun(started))
}

async fn loaded<Q, B>(ask: &Ask<Q, B>) -> Done<Run> {
    course::load(ask.service(), ask.path("run")).await
}

/// The run that a request changes, by its whole id.
async fn loaded_whole<Q, B>(ask: &Ask<Q, B>) -> Done<Run> {
    let run = find::whole_run(ask.service(), ask.path("run")).await?.run;
    find::load(ask.service(), run).await
}

async fn show(ask: Ask) -> Done<Reply<RunDetail>> {
    let row = find::run(ask.service(), ask.path("run")).await?;
    Ok(Reply::ok(RunDetail(runs::show(ask.service(), &row).await?)))
}

async fn state(ask: Ask) -> Done<Reply<RunState>> {
    let run = loaded(&ask).await?;
    Ok(Reply::ok(RunState(runs::state(ask.service(), &run).await?)))
}

async fn tags(ask: Ask) -> Done<Reply<Vec<Tag>>> {
    let run = loaded(&ask).await?;
    Ok(Reply::ok(runs::tags(ask.service(), &run).await?))
}

/// Where a journal is read from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    /// The `next_cursor` of the page before: the id of its last event.
    cursor: Option<u64>,
    /// Most to list.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
}

async fn journal(ask: Ask<JournalQuery>) -> Done<Reply<Vec<Event>>> {
    let run = loaded(&ask).await?;
    let (after, limit) = (ask.query.cursor.unwrap_or(0), limit(ask.query.limit)?);
    let (events, next) = runs::journal(ask.service(), &run, after, limit).await?;
    let events = events.into_iter().map(Event).collect();
    Ok(Reply::page(events, next.map(|next| next.to_string())))
}

/// Which values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraceQuery {
    /// Only those of this step.
    step: Option<String>,
    /// Which way.
    #[serde(default)]
    direction: Way,
    /// How far from run to run.
    #[serde(default = "hops")]
    #[schemars(range(min = 0, max = 32))]
    hops: u32,
    /// How many steps away: 1 is what went straight to the step or from it. All if it is not said.
    #[schemars(range(min = 1))]
    steps: Option<u32>,
}

const fn hops() -> u32 {
    8
}

async fn provenance(ask: Ask<TraceQuery>) -> Done<Reply<Provenance>> {
    if ask.query.hops > HOPS_MAX {
        return Err(bad(format!("`hops` is at most {HOPS_MAX}")).into());
    }
    if ask.query.steps == Some(0) {
        return Err(bad("`steps` is at least 1").into());
    }
    let run = loaded(&ask).await?;
    let TraceQuery { step, direction, hops, steps } = &ask.query;
    let trace = Trace {
        step: step.clone(),
        direction: (*direction).into(),
        hops_max: *hops,
        steps_max: steps.unwrap_or(u32::MAX),
    };
    Ok(Reply::ok(Provenance(runs::provenance(ask.service(), &run, &trace).await?)))
}

async fn checkpoints(ask: Ask) -> Done<Reply<Vec<CheckpointShown>>> {
    let run = loaded(&ask).await?;
    Ok(Reply::ok(runs::checkpoints(ask.service(), &run).await?))
}

async fn step(ask: Ask) -> Done<Reply<StepDetail>> {
    let run = loaded(&ask).await?;
    Ok(Reply::ok(StepDetail(runs::step(ask.service(), &run, ask.path("step")).await?)))
}

/// What became of something a run was told.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToldShown {
    /// The run.
    pub(super) run_id: String,
    /// Whether it is done; else the process that has the run will see to it.
    pub(super) done: bool,
    /// What the run is doing now.
    pub(super) status: String,
}

/// Tells a run something, and says what it is doing then.
pub(super) async fn tell<Q, B>(
    ask: &Ask<Q, B>,
    run: RunId,
    command: Command,
) -> Done<Reply<ToldShown>> {
    Ok(Reply::ok(told(ask, run, command).await?))
}

async fn told<Q, B>(ask: &Ask<Q, B>, run: RunId, command: Command) -> Done<ToldShown> {
    let delivered = course::tell(ask.service(), run, command, &ask.request_id).await?;
    let now = find::load(ask.service(), run).await?;
    Ok(ToldShown {
        run_id: run.to_string(),
        done: delivered == Delivered::Done,
        status: now.status.to_string(),
    })
}

/// Why.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct CancelBody {
    /// For the journal.
    reason: Option<String>,
}

async fn cancel(ask: Ask<Nothing, CancelBody>) -> Done<Reply<ToldShown>> {
    let run = find::whole_run(ask.service(), ask.path("run")).await?.run;
    let reason = ask.body.reason.clone().unwrap_or_else(|| "cancelled over the API".to_owned());
    let by = ask.caller.name.clone();
    tell(&ask, run, Command::Cancel { by, reason }).await
}

async fn pause(ask: Ask) -> Done<Reply<ToldShown>> {
    let run = find::whole_run(ask.service(), ask.path("run")).await?.run;
    tell(&ask, run, Command::Pause { by: ask.caller.name.clone() }).await
}

async fn resume(ask: Ask) -> Done<Reply<ToldShown>> {
    let run = find::whole_run(ask.service(), ask.path("run")).await?.run;
    tell(&ask, run, Command::Unpause { by: ask.caller.name.clone() }).await
}

async fn retry(ask: Ask) -> Done<Reply<ToldShown>> {
    let run = loaded_whole(&ask).await?;
    let command = course::retry(&run, &ask.caller.name)?;
    tell(&ask, run.id, command).await
}

/// Where a restart begins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RestartBody {
    /// Steps that are done again, with all that depend on them; those that failed if none is named.
    from: Vec<String>,
    /// Only say what would be done a second time.
    preview: bool,
}

/// A new run out of another, or what it would repeat.
#[derive(Debug, Serialize, JsonSchema)]
struct RenewedShown {
    /// The new run; none in a preview.
    run_id: Option<String>,
    /// Steps that are done a second time.
    repeats: Vec<String>,
}

async fn renewed<Q, B>(
    ask: &Ask<Q, B>,
    now: &Run,
    renewal: Renewal<'_>,
    preview: bool,
) -> Done<Reply<RenewedShown>> {
    let name = |at: u32| now.definition.plan.steps[at as usize].id.clone();
    let repeats = renewal.repeated(now).into_iter().map(name).collect();
    let run_id = if preview {
        None
    } else {
        let by = &ask.caller.name;
        Some(renewal.start(ask.service(), by, Dispatching::Allowed).await?.to_string())
    };
    Ok(Reply::accepted(RenewedShown { run_id, repeats }))
}

async fn restart(ask: Ask<Nothing, RestartBody>) -> Done<Reply<RenewedShown>> {
    let source = loaded_whole(&ask).await?;
    let renewal = Renewal::restart(&source, &ask.body.from)?;
    renewed(&ask, &source, renewal, ask.body.preview).await
}

/// Where to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RewindBody {
    /// The checkpoint; 0 is the run's beginning.
    to: usize,
    /// Only say what would be done a second time.
    #[serde(default)]
    preview: bool,
}

/// A run that went back, or what it would do again.
#[derive(Debug, Serialize, JsonSchema)]
struct RewoundShown {
    /// The run.
    run_id: String,
    /// Whether it is done; never in a preview.
    done: bool,
    /// What the run is doing now.
    status: String,
    /// Steps that are done a second time.
    repeats: Vec<String>,
}

async fn rewind(ask: Ask<Nothing, RewindBody>) -> Done<Reply<RewoundShown>> {
    let run = loaded_whole(&ask).await?;
    let by = &ask.caller.name;
    let (command, keep) = course::rewind(ask.service(), &run, ask.body.to, by).await?;
    let repeats = course::given_up(&run, &keep);
    if ask.body.preview {
        let (run_id, status) = (run.id.to_string(), run.status.to_string());
        return Ok(Reply::ok(RewoundShown { run_id, done: false, status, repeats }));
    }
    let ToldShown { run_id, done, status } = told(&ask, run.id, command).await?;
    Ok(Reply::ok(RewoundShown { run_id, done, status, repeats }))
}

/// What a branch is made from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BranchBody {
    /// The checkpoint; 0 is the run's beginning.
    at: usize,
    /// Arguments that are others.
    #[serde(default)]
    args: Map<String, Value>,
    /// Outputs that are taken to have been others: `STEP.OUTPUT` to a value.
    #[serde(default)]
    set: Map<String, Value>,
    /// Only say what would be done a second time.
    #[serde(default)]
    preview: bool,
}

async fn branch(ask: Ask<Nothing, BranchBody>) -> Done<Reply<RenewedShown>> {
    let now = loaded_whole(&ask).await?;
    let body = &ask.body;
    let source = checkpoint::at(ask.service(), &now, body.at).await?;
    let set = body.set.iter().map(|(place, value)| (place.as_str(), value.clone()));
    let changes = course::changes(&source, set)?;
    let renewal = Renewal::branch(&source, body.args.clone(), &changes);
    renewed(&ask, &now, renewal, body.preview).await
}

/// Who does which step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AssignBody {
    /// The step.
    step: String,
    /// A member of the team, or an agent.
    whom: String,
}

async fn assign(ask: Ask<Nothing, AssignBody>) -> Done<Reply<ToldShown>> {
    let run = loaded_whole(&ask).await?;
    let step = course::position(&run, &ask.body.step)?;
    let (by, whom) = (ask.caller.name.clone(), ask.body.whom.clone());
    tell(&ask, run.id, Command::Assign { by, step, whom }).await
}
