//! Back-tests and explanations of policies, and changes of several rows at once.

use super::admission::forbidden;
use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad};
use super::route::{Need, Route};
use super::shape::{BackTest, Changes, StepExplanation};
use super::workflows::change_shown;
use crate::auth::Caller;
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use crate::service::backtest::{With, compare};
use crate::service::document::{Findings, Input};
use crate::service::explain::{self, Selection};
use crate::service::past::Past;
use crate::service::policies::{self, Files};
use crate::service::registry::{self, Mode, PlannedChange, RowChange, RowEdit};
use crate::service::versions::{self, Document};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_core::rows;
use sluice_govern::registry::{Kind, PolicySet, Row};

/// Maximum number of files in a policy set.
const FILES_MAX: usize = 1000;
/// Kinds of rows that pruning never removes: what runs refer to, the switch that only
/// operators turn, and tokens.
const NOT_PRUNED: [Kind; 4] = [Kind::Workflow, Kind::Lens, Kind::Switch, Kind::Token];

pub(super) fn routes() -> Vec<Route> {
    let post = |path| (Method::POST, path);
    vec![
        Route::new(
            post("/api/v1/policies/test"),
            Need::Permission(P::GovernanceRead),
            "Replay past decisions with a policy set",
            test,
        )
        .long(),
        Route::new(
            (Method::GET, "/api/v1/runs/{run}/steps/{step}/policies"),
            Need::Permission(P::GovernanceRead),
            "Explain the decisions about a step",
            explain,
        ),
        Route::new(
            post("/api/v1/apply"),
            Need::Token,
            "Change rows of several kinds atomically",
            apply,
        )
        .heavy(),
    ]
}

/// The policy sets to compare.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestBody {
    /// The new set: file names to texts. Without it, the stored set `set`.
    files: Option<Map<String, Value>>,
    /// A stored set: `active` or `shadow`.
    set: Option<String>,
    /// The set to compare with: file names to texts (default: the set in force at each decision).
    before: Option<Map<String, Value>>,
    /// Only decisions that are at most this old, in seconds.
    since_s: Option<u64>,
    /// Only decisions of this run.
    run: Option<String>,
}

/// The files of a set in a request.
fn sent(files: &Map<String, Value>) -> ServiceResult<Files> {
    if files.is_empty() || files.len() > FILES_MAX {
        return Err(bad(format!("a set has 1 to {FILES_MAX} files")).into());
    }
    let file = |(name, text): (&String, &Value)| {
        let text = text.as_str().ok_or_else(|| bad("each file is a name and its text"))?;
        Ok((name.clone(), text.to_owned()))
    };
    files.iter().map(file).collect()
}

async fn test(request: ApiRequest<Nothing, TestBody>) -> ServiceResult<Reply<BackTest>> {
    let body = &request.body;
    let stored = request.organisation.rows().await?;
    let files = match (&body.files, body.set.as_deref()) {
        (Some(files), None) => sent(files)?,
        (None, Some("active")) => policies::active(&stored.rows)?,
        (None, Some("shadow")) => policies::stored(&stored.rows, PolicySet::Shadow)?,
        _ => {
            return Err(
                bad("either `files`, or `set` with `active` or `shadow`, is required").into()
            );
        }
    };
    let catalog = request.service().engine.catalog();
    let after = match body.files {
        Some(_) => policies::load_new(&files, Some(&catalog)).map_err(|e| policies::refused(&e))?,
        None => policies::load(&files, &catalog)?,
    };
    let past = Past { since: body.since_s.map(|s| s.saturating_mul(1000)), run: body.run.clone() };
    let before = match &body.before {
        Some(files) => Some(policies::load(&sent(files)?, &catalog)?),
        None => None,
    };
    let with = before.as_ref().map_or(With::Then, With::Set);
    let compared = compare(request.service(), &past, with, &after).await?;
    Ok(Reply::ok(BackTest(compared.object())))
}

/// Selects decisions of a step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExplainQuery {
    /// Only the tool call with this number, from 1.
    #[schemars(range(min = 1))]
    call: Option<u64>,
    /// Only decisions of this attempt, from 1.
    #[schemars(range(min = 1))]
    attempt: Option<u64>,
}

async fn explain(request: ApiRequest<ExplainQuery>) -> ServiceResult<Reply<StepExplanation>> {
    let run = super::runs::loaded(&request).await?;
    let ExplainQuery { call, attempt } = request.query;
    let selection = Selection { call, attempt };
    let step = request.path("step");
    Ok(Reply::ok(StepExplanation(
        explain::explain(request.service(), &run, step, selection).await?,
    )))
}

/// A row to write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RowBody {
    /// Kind of the row: `agent`, `gateway`, …
    kind: String,
    /// Name of the row.
    name: String,
    /// Fields of the row.
    body: Map<String, Value>,
}

/// A document to add as a workflow version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileBody {
    /// File name; its extension selects the format.
    name: String,
    /// Content of the file.
    text: String,
}

/// A row to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemovedRow {
    /// Kind of the row.
    kind: String,
    /// Name of the row.
    name: String,
}

/// A change of several rows.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ApplyBody {
    /// Rows to write.
    rows: Vec<RowBody>,
    /// Documents to add as workflow versions.
    documents: Vec<FileBody>,
    /// Rows to remove.
    remove: Vec<RemovedRow>,
    /// Also remove every row that is not named, except workflows, lenses, switches and tokens.
    prune: bool,
    /// Only report what would change.
    dry_run: bool,
    /// Refuse with `registry_busy` unless the registry is in this epoch.
    epoch: Option<u64>,
}

/// The change of a request, parsed.
struct SetupChange {
    put: Vec<Row>,
    documents: Vec<Document>,
    remove: Vec<(Kind, String)>,
    prune: bool,
    epoch: Option<u64>,
}

impl RowEdit for SetupChange {
    fn rows(&self, stored: &[Row]) -> ServiceResult<PlannedChange> {
        let mut put = self.put.clone();
        put.extend(versions::rows(&self.documents, stored)?);
        let mut remove = self.remove.clone();
        if self.prune {
            let surplus = |row: &&Row| {
                let named = rows::find(&put, row.kind, &row.name).is_some();
                !named && !NOT_PRUNED.contains(&row.kind)
            };
            remove.extend(stored.iter().filter(surplus).map(|row| (row.kind, row.name.clone())));
        }
        let after = rows::with(stored, &put, &remove);
        let refused: Vec<Findings> = versions::check(&self.documents, &after)?;
        if !refused.is_empty() {
            return Ok(PlannedChange::Refused(refused));
        }
        Ok(PlannedChange::Rows(RowChange { put, remove }))
    }

    fn epoch(&self) -> Option<u64> {
        self.epoch
    }
}

/// Parses a kind that this route can change: tokens and workflows have their own routes.
fn kind(word: &str) -> ServiceResult<Kind> {
    let found = Kind::parse(word).filter(|kind| !matches!(kind, Kind::Token | Kind::Workflow));
    let bad = || {
        bad(format!(
            "`{}` is not a kind of row that can be applied",
            sluice_core::visible::brief(word)
        ))
    };
    Ok(found.ok_or_else(bad)?)
}

/// Refuses kinds that the caller may not change.
fn permitted(caller: &Caller, kinds: impl Iterator<Item = Kind>) -> ServiceResult<()> {
    for kind in kinds {
        let need = super::rows::write_permission(kind);
        if !caller.may(need) {
            return Err(forbidden(need).into());
        }
    }
    Ok(())
}

async fn apply(request: ApiRequest<Nothing, ApplyBody>) -> ServiceResult<Reply<Changes>> {
    let body = &request.body;
    let (put, documents, remove) = (Vec::new(), Vec::new(), Vec::new());
    let mut change = SetupChange { put, documents, remove, prune: body.prune, epoch: body.epoch };
    let stored = request.organisation.rows().await?;
    for row in &body.rows {
        let kind = kind(&row.kind)?;
        change.put.extend(super::rows::parse_row(&stored.rows, kind, &row.name, &row.body)?);
    }
    for file in &body.documents {
        let (name, bytes) = (file.name.clone(), file.text.clone().into_bytes());
        change.documents.push(Document::new(Input { name, bytes }));
    }
    for gone in &body.remove {
        change.remove.push((kind(&gone.kind)?, gone.name.clone()));
    }
    let kinds = change.put.iter().map(|row| row.kind).chain(change.remove.iter().map(|one| one.0));
    permitted(&request.caller, kinds)?;
    if !change.documents.is_empty() {
        permitted(&request.caller, std::iter::once(Kind::Workflow))?;
    }
    if change.prune {
        permitted(&request.caller, Kind::ALL.into_iter().filter(|one| !NOT_PRUNED.contains(one)))?;
    }
    let mode = if body.dry_run { Mode::Look } else { Mode::Write };
    let outcome = registry::change(request.service(), &request.caller, mode, &change).await?;
    Ok(Reply::ok(Changes(change_shown(&outcome)?)))
}
