//! Workflows that can be run by name: versions that never change.

use super::ask::{Ask, Nothing};
use super::reply::Reply;
use super::route::{Need, Route};
use super::shape::Changes;
use crate::auth::permission::Permission as P;
use crate::refused::{Done, Refused};
use crate::service::document::{Findings, Input};
use crate::service::registry::{self, Asked, Mode, Outcome, Wanted, Wish};
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
use sluice_govern::registry::{Kind, Row, WorkflowVersion};
use std::collections::BTreeMap;

/// The routes of workflows.
pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let write = Need::Permission(P::WorkflowWrite);
    let get = |path| (Method::GET, path);
    let post = |path| (Method::POST, path);
    vec![
        Route::new(get("/api/v1/workflows"), read, "List workflows", list).paged(),
        Route::new(post("/api/v1/workflows"), write, "Add a version of a workflow", put)
            .heavy()
            .answering(201),
        Route::new(
            post("/api/v1/workflows/validate"),
            read,
            "Check a document; nothing is kept",
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
    /// Its name.
    name: String,
    /// Its versions, oldest first.
    versions: Vec<u64>,
}

async fn list(ask: Ask) -> Done<Reply<Vec<WorkflowShown>>> {
    let rows = ask.house.rows().await?;
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
    /// Its name.
    name: String,
    /// Its version.
    version: u64,
    /// `lobsterx` or `lens`, where the author said so.
    format: Option<String>,
    /// As it was written.
    document: String,
    /// What it becomes; none if it does not fit the registry any more.
    plan: Option<Value>,
    /// How its steps follow each other: their ids, wave by wave.
    waves: Vec<Vec<String>>,
}

async fn show(ask: Ask) -> Done<Reply<VersionShown>> {
    one(&ask, ask.path("name")).await
}

async fn show_version(ask: Ask) -> Done<Reply<VersionShown>> {
    one(&ask, &format!("{}@{}", ask.path("name"), ask.path("version"))).await
}

async fn one(ask: &Ask, reference: &str) -> Done<Reply<VersionShown>> {
    let rows = ask.house.rows().await?;
    let row = versions::find(&rows.rows, reference)?;
    let (name, version) = WorkflowVersion::split(&row.name).unwrap_or((&row.name, 0));
    let text = row.body["text"].as_str().unwrap_or_default();
    let format = row.body["format"].as_str();
    let (kind, input) = input(name, text, format)?;
    let registry = versions::registry(Registry::default(), &rows.rows)?;
    let checked = doc::check(&input.bytes, kind, &with_workflows(registry, &rows.rows));
    let waves = checked.plan.as_ref().map(waves);
    Ok(Reply::ok(VersionShown {
        name: name.to_owned(),
        version,
        format: format.map(str::to_owned),
        document: text.to_owned(),
        plan: checked.plan.as_ref().map(|plan| json!(plan)),
        waves: waves.unwrap_or_default(),
    }))
}

fn waves(plan: &Plan) -> Vec<Vec<String>> {
    let id = |at: &u32| plan.steps[*at as usize].id.clone();
    plan.graph.layers().iter().map(|wave| wave.iter().map(id).collect()).collect()
}

/// A document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DocumentBody {
    /// Its text: YAML or JSON.
    document: String,
    /// `lobsterx` or `lens`; as the text looks if it is not said.
    format: Option<String>,
}

/// A problem in a document.
#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    /// Which kind.
    code: &'static str,
    /// What is wrong.
    message: String,
    /// Where in the document: `steps[2].when`.
    path: String,
    /// The line, from 1.
    line: u32,
    /// The column, from 1.
    column: u32,
    /// What to do about it.
    hint: Option<String>,
}

impl From<&Diagnostic> for Found {
    fn from(one: &Diagnostic) -> Found {
        Found {
            code: one.code.as_str(),
            message: one.message.clone(),
            path: one.path.clone(),
            line: one.line,
            column: one.column,
            hint: one.hint.clone(),
        }
    }
}

/// What was found in a document.
#[derive(Debug, Serialize, JsonSchema)]
struct ReportShown {
    /// Whether it can be run.
    ok: bool,
    /// What keeps it from that.
    errors: Vec<Found>,
    /// What its author should look at.
    warnings: Vec<Found>,
    /// What it becomes.
    plan: Option<Value>,
    /// How its steps follow each other.
    waves: Vec<Vec<String>>,
}

async fn validate(ask: Ask<Nothing, DocumentBody>) -> Done<Reply<ReportShown>> {
    let rows = ask.house.rows().await?;
    let (kind, input) = input("document", &ask.body.document, ask.body.format.as_deref())?;
    let registry = versions::registry(Registry::default(), &rows.rows)?;
    let checked = doc::check(&input.bytes, kind, &with_workflows(registry, &rows.rows));
    let (errors, warnings): (Vec<_>, Vec<_>) =
        checked.diagnostics.iter().partition(|one| one.is_error());
    let found = |list: Vec<&Diagnostic>| list.into_iter().map(Found::from).collect();
    let waves = checked.plan.as_ref().map(waves);
    Ok(Reply::ok(ReportShown {
        ok: errors.is_empty(),
        errors: found(errors),
        warnings: found(warnings),
        plan: checked.plan.as_ref().map(|plan| json!(plan)),
        waves: waves.unwrap_or_default(),
    }))
}

/// Documents that become versions.
struct Add {
    documents: Vec<Document>,
}

impl Wish for Add {
    fn rows(&self, there: &[Row]) -> Done<Wanted> {
        let put = versions::rows(&self.documents, there)?;
        let after = rows::with(there, &put, &[]);
        let refused: Vec<Findings> = versions::check(&self.documents, &after)?;
        if refused.is_empty() {
            return Ok(Wanted::Rows(Asked { put, remove: Vec::new() }));
        }
        Ok(Wanted::Refused(refused))
    }
}

async fn put(ask: Ask<Nothing, DocumentBody>) -> Done<Reply<Changes>> {
    let (_, input) = input("document", &ask.body.document, ask.body.format.as_deref())?;
    let input: Input = input;
    let wish = Add { documents: vec![Document::new(input)] };
    let by = &ask.caller.name;
    let outcome = registry::change(ask.service(), by, Mode::Write, &wish).await?;
    Ok(Reply::created(Changes(told(&outcome)?)))
}

/// What became of a change.
pub(super) fn told(outcome: &Outcome) -> Result<Value, Refused> {
    match outcome {
        Outcome::Refused(findings) => {
            let all: Vec<Diagnostic> =
                findings.iter().flat_map(|found| found.diagnostics.clone()).collect();
            Err(refused_document(&all))
        }
        Outcome::Done { differences, epoch, mode, warnings } => {
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

async fn remove(ask: Ask) -> Done<Reply<Changes>> {
    let name = format!("{}@{}", ask.path("name"), ask.path("version"));
    let wish = |there: &[Row]| -> Done<Asked> {
        let row = registry::row(there, Kind::Workflow, &name)?;
        Ok(Asked { put: Vec::new(), remove: vec![(Kind::Workflow, row.name.clone())] })
    };
    let outcome = registry::change(ask.service(), &ask.caller.name, Mode::Write, &wish).await?;
    Ok(Reply::ok(Changes(told(&outcome)?)))
}
