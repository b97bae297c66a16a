//! Registered workflows over HTTP. A version never changes.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing};
use super::route::{Need, Route};
use super::shape::Changes;
use crate::auth::permission::Permission as P;
use crate::refused::{Refused, ServiceResult};
use crate::service::document::{Findings, Input};
use crate::service::flow::FlowDocuments;
use crate::service::registry::{self, ChangeOutcome, Mode, PlannedChange, RowChange, RowEdit};
use crate::service::start::{input, refused_document, with_workflows};
use crate::service::versions::{self, Document};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_core::diagnostic::Diagnostic;
use sluice_core::doc::{self, Registry};
use sluice_core::plan::Plan;
use sluice_core::rows;
use sluice_govern::registry::{Fabric, Kind, Row, WorkflowVersion};
use std::collections::BTreeMap;

pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let write = Need::Permission(P::WorkflowWrite);
    let get = |path| (Method::GET, path);
    let post = |path| (Method::POST, path);
    vec![
        Route::new(get("/api/v1/workflows"), read, "List workflows", list).paged(),
        Route::new(post("/api/v1/workflows"), write, "Add a version of a workflow", put)
            .heavy()
            .with_status(201),
        Route::new(
            post("/api/v1/workflows/validate"),
            read,
            "Check a document without storing it",
            validate,
        )
        .heavy(),
        Route::new(get("/api/v1/workflows/{name}"), read, "Show the newest version", show).heavy(),
        Route::new(
            get("/api/v1/workflows/{name}/versions/{version}"),
            read,
            "Show a version",
            show_version,
        )
        .heavy(),
        Route::new(
            (Method::DELETE, "/api/v1/workflows/{name}/versions/{version}"),
            write,
            "Remove a version",
            remove,
        ),
    ]
}

/// A workflow as lists show it.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkflowShown {
    /// Name of the workflow.
    name: String,
    /// Version numbers, oldest first.
    versions: Vec<u64>,
}

async fn list(request: ApiRequest) -> ServiceResult<Reply<Vec<WorkflowShown>>> {
    let rows = request.organisation.rows().await?;
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let split = rows::names(&rows.rows, Kind::Workflow).filter_map(WorkflowVersion::split);
    for (name, version) in split {
        all.entry(name.to_owned()).or_default().push(version);
    }
    let shown = all.into_iter().map(|(name, mut versions)| {
        versions.sort_unstable();
        WorkflowShown { name, versions }
    });
    Ok(Reply::ok(shown.collect()))
}

/// A version of a workflow.
#[derive(Debug, Serialize, JsonSchema)]
struct VersionShown {
    /// Name of the workflow.
    name: String,
    /// Version number.
    version: u64,
    /// `lobsterx` or `lens`, if the author named a format.
    format: Option<String>,
    /// Source text of the document.
    document: String,
    /// The compiled plan; null if the document no longer fits the registry.
    plan: Option<Value>,
    /// Ids of the steps, wave by wave.
    waves: Vec<Vec<String>>,
    /// Worst-case labels of its data; null without a plan or the right to read the configuration.
    flow: Option<Value>,
}

async fn show(request: ApiRequest) -> ServiceResult<Reply<VersionShown>> {
    version_reply(&request, request.path("name")).await
}

async fn show_version(request: ApiRequest) -> ServiceResult<Reply<VersionShown>> {
    version_reply(&request, &format!("{}@{}", request.path("name"), request.path("version"))).await
}

async fn version_reply(
    request: &ApiRequest,
    reference: &str,
) -> ServiceResult<Reply<VersionShown>> {
    let rows = request.organisation.rows().await?;
    let row = versions::find(&rows.rows, reference)?;
    let (name, version) = WorkflowVersion::split(&row.name).unwrap_or((&row.name, 0));
    let text = row.body["text"].as_str().unwrap_or_default();
    let format = row.body["format"].as_str();
    let (kind, input) = input(name, text, format)?;
    let registry = versions::registry(Registry::default(), &rows.rows)?;
    let registry = with_workflows(registry, &rows.rows);
    let checked = doc::check(&input.bytes, kind, &registry);
    let waves = checked.plan.as_ref().map(waves);
    let plan = checked.plan.as_ref().map(|plan| json!(plan));
    let flow = flow(request, &row.name, text, checked.plan, (&rows.rows, &registry))?;
    Ok(Reply::ok(VersionShown {
        name: name.to_owned(),
        version,
        format: format.map(str::to_owned),
        document: text.to_owned(),
        plan,
        waves: waves.unwrap_or_default(),
        flow,
    }))
}

/// The flow of data through a document, with the rows and tools in force, for callers who may
/// see these.
fn flow<Q, B>(
    request: &ApiRequest<Q, B>,
    name: &str,
    text: &str,
    plan: Option<Plan>,
    (rows, registry): (&[Row], &Registry),
) -> ServiceResult<Option<Value>> {
    let Some(plan) = plan.filter(|_| request.caller.may(P::GovernanceRead)) else {
        return Ok(None);
    };
    let documents = FlowDocuments::registered(name, plan, text, (rows, registry));
    let (fabric, catalog) = (Fabric::read(0, rows), request.service().engine.catalog());
    let picture = documents.analyse(&fabric, &catalog)?.picture();
    Ok(Some(json!(picture)))
}

fn waves(plan: &Plan) -> Vec<Vec<String>> {
    let id = |at: &u32| plan.steps[*at as usize].id.clone();
    plan.graph.layers().iter().map(|wave| wave.iter().map(id).collect()).collect()
}

/// A workflow document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DocumentBody {
    /// Source text: YAML or JSON.
    document: String,
    /// `lobsterx` or `lens` (default: detected from the text).
    format: Option<String>,
}

/// A problem in a document.
#[derive(Debug, Serialize, JsonSchema)]
struct DocumentProblem {
    /// Stable code of the problem.
    code: &'static str,
    /// What is wrong.
    message: String,
    /// Path in the document, such as `steps[2].when`.
    path: String,
    /// Line, counted from 1.
    line: u32,
    /// Column, counted from 1.
    column: u32,
    /// What to do about it.
    hint: Option<String>,
}

impl From<&Diagnostic> for DocumentProblem {
    fn from(one: &Diagnostic) -> DocumentProblem {
        DocumentProblem {
            code: one.code.as_str(),
            message: one.message.clone(),
            path: one.path.clone(),
            line: one.line,
            column: one.column,
            hint: one.hint.clone(),
        }
    }
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
struct ReportShown {
    /// Whether the document can be run.
    ok: bool,
    /// Errors, which prevent a run.
    errors: Vec<DocumentProblem>,
    /// Warnings for the author.
    warnings: Vec<DocumentProblem>,
    /// The compiled plan; null if there are errors.
    plan: Option<Value>,
    /// Ids of the steps, wave by wave.
    waves: Vec<Vec<String>>,
    /// Worst-case labels of its data; null without a plan or the right to read the configuration.
    flow: Option<Value>,
}

async fn validate(request: ApiRequest<Nothing, DocumentBody>) -> ServiceResult<Reply<ReportShown>> {
    let rows = request.organisation.rows().await?;
    let (kind, input) = input("document", &request.body.document, request.body.format.as_deref())?;
    let registry = versions::registry(Registry::default(), &rows.rows)?;
    let registry = with_workflows(registry, &rows.rows);
    let checked = doc::check(&input.bytes, kind, &registry);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        checked.diagnostics.iter().partition(|one| one.is_error());
    let found = |list: Vec<&Diagnostic>| list.into_iter().map(DocumentProblem::from).collect();
    let waves = checked.plan.as_ref().map(waves);
    let plan = checked.plan.as_ref().map(|plan| json!(plan));
    let (ok, errors, warnings) = (errors.is_empty(), found(errors), found(warnings));
    let (text, rows) = (&request.body.document, (&*rows.rows, &registry));
    let flow = flow(&request, "document", text, checked.plan, rows)?;
    let waves = waves.unwrap_or_default();
    Ok(Reply::ok(ReportShown { ok, errors, warnings, plan, waves, flow }))
}

/// Adds documents as versions.
struct AddVersions {
    documents: Vec<Document>,
}

impl RowEdit for AddVersions {
    fn rows(&self, stored: &[Row]) -> ServiceResult<PlannedChange> {
        let put = versions::rows(&self.documents, stored)?;
        let after = rows::with(stored, &put, &[]);
        let refused: Vec<Findings> = versions::check(&self.documents, &after)?;
        if refused.is_empty() {
            return Ok(PlannedChange::Rows(RowChange { put, remove: Vec::new() }));
        }
        Ok(PlannedChange::Refused(refused))
    }
}

async fn put(request: ApiRequest<Nothing, DocumentBody>) -> ServiceResult<Reply<Changes>> {
    let (_, input) = input("document", &request.body.document, request.body.format.as_deref())?;
    let input: Input = input;
    let edit = AddVersions { documents: vec![Document::new(input)] };
    let outcome = registry::change(request.service(), &request.caller, Mode::Write, &edit).await?;
    Ok(Reply::created(Changes(change_shown(&outcome)?)))
}

/// The result of a change as a JSON object.
pub(super) fn change_shown(outcome: &ChangeOutcome) -> Result<Value, Refused> {
    match outcome {
        ChangeOutcome::Refused(findings) => {
            let all: Vec<Diagnostic> =
                findings.iter().flat_map(|found| found.diagnostics.clone()).collect();
            Err(refused_document(&all))
        }
        ChangeOutcome::Done { differences, epoch, mode, warnings } => {
            let changes: Vec<Value> = differences
                .iter()
                .map(|one| {
                    json!({
                        "change": one.word(),
                        "kind": one.kind.as_str(),
                        "name": one.name,
                        "fields": one.fields(),
                    })
                })
                .collect();
            let dry_run = *mode == Mode::Look;
            let warnings = warnings.shown();
            Ok(json!({
                "changes": changes, "epoch": epoch, "dry_run": dry_run, "warnings": warnings,
            }))
        }
    }
}

async fn remove(request: ApiRequest) -> ServiceResult<Reply<Changes>> {
    let name = format!("{}@{}", request.path("name"), request.path("version"));
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let row = registry::row(stored, Kind::Workflow, &name)?;
        Ok(RowChange { put: Vec::new(), remove: vec![(Kind::Workflow, row.name.clone())] })
    };
    let outcome = registry::change(request.service(), &request.caller, Mode::Write, &edit).await?;
    Ok(Reply::ok(Changes(change_shown(&outcome)?)))
}
