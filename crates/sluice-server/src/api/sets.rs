//! The sets of policies: which are in force, which are only watched, what each says.

use super::ask::Ask;
use super::reply::Reply;
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::policies::{self, Files};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use sluice_govern::policy::Rule;
use sluice_govern::registry::PolicySet;

/// The route of sets.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(
        (Method::GET, "/api/v1/policy-sets"),
        Need::Permission(P::GovernanceRead),
        "The policies in force and those in shadow, as they are read",
        sets,
    )]
}

/// The sets there are.
#[derive(Debug, Serialize, JsonSchema)]
struct SetsShown {
    /// The one in force.
    active: SetShown,
    /// The one that is evaluated and recorded beside it, never enforced.
    shadow: Option<SetShown>,
}

/// A set.
#[derive(Debug, Serialize, JsonSchema)]
struct SetShown {
    /// SHA-256 over names and texts of its files, as decisions name it.
    hash: String,
    /// Whether nobody stored one, and it is what Sluice ships with.
    shipped: bool,
    /// Its files, by name.
    files: Vec<FileShown>,
}

/// A file of a set.
#[derive(Debug, Serialize, JsonSchema)]
struct FileShown {
    /// Its name.
    name: String,
    /// Its text.
    text: String,
    /// The policies in it, in order.
    policies: Vec<PolicyShown>,
}

/// A policy.
#[derive(Debug, Serialize, JsonSchema)]
struct PolicyShown {
    /// Its name in decisions and in the audit.
    name: String,
    /// The line it begins on, from 1.
    line: usize,
    /// `permit` or `forbid`.
    effect: &'static str,
    /// What a forbid does when it matches: `block`, `require_approval`, `warn` or `log`.
    action: Option<&'static str>,
    /// How much a forbid counts: `hard`, `soft` or `audit`.
    enforcement: Option<&'static str>,
    /// What it is about, where it says so.
    category: Option<String>,
    /// Who may agree; nobody named means anybody who may approve.
    approvers: Vec<String>,
    /// Why it is there.
    description: Option<String>,
}

impl From<&Rule> for PolicyShown {
    fn from(rule: &Rule) -> PolicyShown {
        let forbids = !rule.permits;
        let category = rule.category.map(|one| serde_json::to_value(one).unwrap_or_default());
        PolicyShown {
            name: rule.name.clone(),
            line: rule.line,
            effect: if forbids { "forbid" } else { "permit" },
            action: forbids.then(|| rule.consequence.as_str()),
            enforcement: forbids.then(|| rule.enforcement.as_str()),
            category: category.and_then(|word| word.as_str().map(str::to_owned)),
            approvers: rule.approvers.clone(),
            description: rule.description.clone(),
        }
    }
}

fn shown(files: &Files, stored: &Files) -> Done<SetShown> {
    let loaded = policies::load(files)?;
    let file = |(name, text): &(String, String)| FileShown {
        name: name.clone(),
        text: text.clone(),
        policies: loaded.rules().iter().filter(|rule| rule.file == *name).map(Into::into).collect(),
    };
    Ok(SetShown {
        hash: loaded.hash().to_owned(),
        shipped: stored.is_empty(),
        files: files.iter().map(file).collect(),
    })
}

async fn sets(ask: Ask) -> Done<Reply<SetsShown>> {
    let rows = ask.house.rows().await?.rows.clone();
    let stored = policies::stored(&rows, PolicySet::Active)?;
    let shadow = policies::stored(&rows, PolicySet::Shadow)?;
    Ok(Reply::ok(SetsShown {
        active: shown(&policies::active(&rows)?, &stored)?,
        shadow: if shadow.is_empty() { None } else { Some(shown(&shadow, &shadow)?) },
    }))
}
