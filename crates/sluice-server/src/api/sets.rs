//! The sets of policies: which are in force, which are only watched, what each says.

use super::ask::Ask;
use super::reply::Reply;
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::policies;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use sluice_govern::policy::{Policies, Rule};
use sluice_govern::registry::PolicySet;

/// The route of sets.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/api/v1/policy-sets"),
            Need::Permission(P::GovernanceRead),
            "The policies in force and those in shadow, as they are read",
            sets,
        )
        .heavy(),
    ]
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
    /// Where it is from: `stored`, `shipped` while nobody has stored one, or `files`
    /// that the server was started with, whatever is stored.
    origin: Origin,
    /// Its files, by name.
    files: Vec<FileShown>,
}

/// Where a set is from.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Stored,
    Shipped,
    Files,
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

fn shown(loaded: &Policies, origin: Origin) -> SetShown {
    let file = |(name, text): &(String, String)| FileShown {
        name: name.clone(),
        text: text.clone(),
        policies: loaded.rules().iter().filter(|rule| rule.file == *name).map(Into::into).collect(),
    };
    SetShown {
        hash: loaded.hash().to_owned(),
        origin,
        files: loaded.files().iter().map(file).collect(),
    }
}

async fn sets(ask: Ask) -> Done<Reply<SetsShown>> {
    if let Some(fixed) = ask.service().engine.fixed_policies() {
        let shadow = fixed.shadow().map(|shadow| shown(shadow, Origin::Files));
        return Ok(Reply::ok(SetsShown { active: shown(&fixed, Origin::Files), shadow }));
    }
    let rows = ask.house.rows().await?;
    let stored = policies::stored(&rows.rows, PolicySet::Active)?;
    let origin = if stored.is_empty() { Origin::Shipped } else { Origin::Stored };
    let active = shown(&policies::load(&policies::active(&rows.rows)?)?, origin);
    let shadow = policies::stored(&rows.rows, PolicySet::Shadow)?;
    let shadow = match shadow.is_empty() {
        true => None,
        false => Some(shown(&policies::load(&shadow)?, Origin::Stored)),
    };
    Ok(Reply::ok(SetsShown { active, shadow }))
}
