//! Policies tried on the past, and whole setups applied.

use super::ask::{Ask, Nothing, bad};
use super::gate::forbidden;
use super::reply::Reply;
use super::route::{Need, Route};
use super::shape::{BackTest, Changes};
use super::workflows::told;
use crate::auth::Caller;
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::backtest::{With, compare};
use crate::service::document::{Findings, Input};
use crate::service::past::Past;
use crate::service::policies::{self, Files};
use crate::service::registry::{self, Asked, Mode, Wanted, Wish};
use crate::service::versions::{self, Document};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_core::rows;
use sluice_govern::registry::{Kind, PolicySet, Row};

/// Most policy files of a set that is sent.
const FILES_MAX: usize = 1000;
/// Kinds of rows that pruning leaves alone: what runs refer to, what only operators
/// turn, and who may ask.
const NOT_PRUNED: [Kind; 4] = [Kind::Workflow, Kind::Lens, Kind::Switch, Kind::Token];

/// The routes of policies and setups.
pub(super) fn routes() -> Vec<Route> {
    let post = |path| (Method::POST, path);
    vec![
        Route::new(
            post("/api/v1/policies/test"),
            Need::Permission(P::GovernanceRead),
            "Try policies on what was decided before",
            test,
        )
        .long(),
        Route::new(
            post("/api/v1/apply"),
            Need::Token,
            "Change rows of several kinds, all together or not at all",
            apply,
        )
        .heavy(),
    ]
}

/// Policies to try.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestBody {
    /// The set by files: name to text. Without it, the set that is named.
    files: Option<Map<String, Value>>,
    /// `active` or `shadow`.
    set: Option<String>,
    /// Compare with these instead of what was in force: name to text.
    before: Option<Map<String, Value>>,
    /// Only decisions that are no older than this, in seconds.
    since_s: Option<u64>,
    /// Only decisions of this run.
    run: Option<String>,
}

/// A set that was sent.
fn sent(files: &Map<String, Value>) -> Done<Files> {
    if files.is_empty() || files.len() > FILES_MAX {
        return Err(bad(format!("a set has 1 to {FILES_MAX} files")).into());
    }
    let file = |(name, text): (&String, &Value)| {
        let text = text.as_str().ok_or_else(|| bad("each file is a name and its text"))?;
        Ok((name.clone(), text.to_owned()))
    };
    files.iter().map(file).collect()
}

async fn test(ask: Ask<Nothing, TestBody>) -> Done<Reply<BackTest>> {
    let body = &ask.body;
    let there = ask.house.rows().await?;
    let files = match (&body.files, body.set.as_deref()) {
        (Some(files), None) => sent(files)?,
        (None, Some("active")) => policies::active(&there.rows)?,
        (None, Some("shadow")) => policies::stored(&there.rows, PolicySet::Shadow)?,
        _ => return Err(bad("say `files`, or `set` as `active` or `shadow`").into()),
    };
    let after = policies::load(&files)?;
    let past = Past { since: body.since_s.map(|s| s.saturating_mul(1000)), run: body.run.clone() };
    let before = match &body.before {
        Some(files) => Some(policies::load(&sent(files)?)?),
        None => None,
    };
    let with = before.as_ref().map_or(With::Then, With::Set);
    let compared = compare(ask.service(), &past, with, &after).await?;
    Ok(Reply::ok(BackTest(compared.object())))
}

/// A row that is written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RowBody {
    /// What it is: `agent`, `gateway`, …
    kind: String,
    /// Its name.
    name: String,
    /// What it says.
    body: Map<String, Value>,
}

/// A document that becomes a version of a workflow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileBody {
    /// Its file name, which may tell its format.
    name: String,
    /// Its text.
    text: String,
}

/// A row that goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GoneBody {
    /// What it is.
    kind: String,
    /// Its name.
    name: String,
}

/// Rows as they should be.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ApplyBody {
    /// Rows that are written.
    rows: Vec<RowBody>,
    /// Documents that become versions of workflows.
    documents: Vec<FileBody>,
    /// Rows that go.
    remove: Vec<GoneBody>,
    /// Also remove every row that is not named, but for workflows, lenses, switches and tokens.
    prune: bool,
    /// Only say what would change.
    dry_run: bool,
}

/// Everything that is asked for, read.
struct Whole {
    put: Vec<Row>,
    documents: Vec<Document>,
    remove: Vec<(Kind, String)>,
    prune: bool,
}

impl Wish for Whole {
    fn rows(&self, there: &[Row]) -> Done<Wanted> {
        let mut put = self.put.clone();
        put.extend(versions::rows(&self.documents, there)?);
        let mut remove = self.remove.clone();
        if self.prune {
            let spare = |row: &&Row| {
                let named = rows::find(&put, row.kind, &row.name).is_some();
                !named && !NOT_PRUNED.contains(&row.kind)
            };
            remove.extend(there.iter().filter(spare).map(|row| (row.kind, row.name.clone())));
        }
        let after = rows::with(there, &put, &remove);
        let refused: Vec<Findings> = versions::check(&self.documents, &after)?;
        if !refused.is_empty() {
            return Ok(Wanted::Refused(refused));
        }
        Ok(Wanted::Rows(Asked { put, remove }))
    }
}

/// A kind that can be changed here: tokens are made where their secrets are.
fn kind(word: &str) -> Done<Kind> {
    let found = Kind::parse(word).filter(|kind| !matches!(kind, Kind::Token | Kind::Workflow));
    let bad = || bad(format!("`{}` is no kind of row", sluice_core::visible::brief(word)));
    Ok(found.ok_or_else(bad)?)
}

/// Refuses kinds that the caller may not change.
fn permitted(caller: &Caller, kinds: impl Iterator<Item = Kind>) -> Done<()> {
    for kind in kinds {
        let need = super::rows::write_permission(kind);
        if !caller.may(need) {
            return Err(forbidden(need).into());
        }
    }
    Ok(())
}

async fn apply(ask: Ask<Nothing, ApplyBody>) -> Done<Reply<Changes>> {
    let body = &ask.body;
    let mut whole =
        Whole { put: Vec::new(), documents: Vec::new(), remove: Vec::new(), prune: body.prune };
    let there = ask.house.rows().await?;
    for row in &body.rows {
        let kind = kind(&row.kind)?;
        whole.put.extend(super::rows::written(&there.rows, kind, &row.name, &row.body)?);
    }
    for file in &body.documents {
        let (name, bytes) = (file.name.clone(), file.text.clone().into_bytes());
        whole.documents.push(Document::new(Input { name, bytes }));
    }
    for gone in &body.remove {
        whole.remove.push((kind(&gone.kind)?, gone.name.clone()));
    }
    let kinds = whole.put.iter().map(|row| row.kind).chain(whole.remove.iter().map(|one| one.0));
    permitted(&ask.caller, kinds)?;
    if !whole.documents.is_empty() {
        permitted(&ask.caller, std::iter::once(Kind::Workflow))?;
    }
    if whole.prune {
        permitted(&ask.caller, Kind::ALL.into_iter().filter(|one| !NOT_PRUNED.contains(one)))?;
    }
    let mode = if body.dry_run { Mode::Look } else { Mode::Write };
    let outcome = registry::change(ask.service(), &ask.caller.name, mode, &whole).await?;
    Ok(Reply::ok(Changes(told(&outcome)?)))
}
