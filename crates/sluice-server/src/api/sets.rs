//! The active and the shadow policy set, with the policies in each.

use super::reply::Reply;
use super::request::ApiRequest;
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use crate::service::policies;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use sluice_govern::policy::{Policies, Rule};
use sluice_govern::registry::PolicySet;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/api/v1/policy-sets"),
            Need::Permission(P::GovernanceRead),
            "Show the active and the shadow policy set",
            sets,
        )
        .heavy(),
    ]
}

/// The policy sets.
#[derive(Debug, Serialize, JsonSchema)]
struct SetsShown {
    /// The set in force.
    active: SetShown,
    /// The set that is evaluated and recorded, but never enforced.
    shadow: Option<SetShown>,
}

/// A policy set.
#[derive(Debug, Serialize, JsonSchema)]
struct SetShown {
    /// SHA-256 of the names and texts of its files, as in decisions.
    hash: String,
    /// `stored`; `shipped` if no set is stored; or `files` if the server was started with a
    /// set, which takes precedence over the stored one.
    origin: Origin,
    /// Files, ordered by name.
    files: Vec<FileShown>,
}

/// The origin of a policy set.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Stored,
    Shipped,
    Files,
}

/// A file of a policy set.
#[derive(Debug, Serialize, JsonSchema)]
struct FileShown {
    /// Name of the file.
    name: String,
    /// Content of the file.
    text: String,
    /// The policies in the file, in order.
    policies: Vec<PolicyShown>,
}

/// A policy.
#[derive(Debug, Serialize, JsonSchema)]
struct PolicyShown {
    /// Name of the policy, as in decisions and in the audit.
    name: String,
    /// The line on which it begins, counted from 1.
    line: usize,
    /// `permit` or `forbid`.
    effect: &'static str,
    /// What a forbid does when it matches: `block`, `require_approval`, `warn` or `log`.
    action: Option<&'static str>,
    /// How strictly a forbid is enforced: `hard`, `soft` or `audit`.
    enforcement: Option<&'static str>,
    /// Category, if the policy names one.
    category: Option<String>,
    /// Approvers; if empty, everyone with the permission to approve.
    approvers: Vec<String>,
    /// Description, if the policy has one.
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

async fn sets(request: ApiRequest) -> ServiceResult<Reply<SetsShown>> {
    if let Some(fixed) = request.service().engine.fixed_policies() {
        let shadow = fixed.shadow().map(|shadow| shown(shadow, Origin::Files));
        return Ok(Reply::ok(SetsShown { active: shown(&fixed, Origin::Files), shadow }));
    }
    let rows = request.organisation.rows().await?;
    let stored = policies::stored(&rows.rows, PolicySet::Active)?;
    let origin = if stored.is_empty() { Origin::Shipped } else { Origin::Stored };
    let catalog = request.service().engine.catalog();
    let active = shown(&policies::load(&policies::active(&rows.rows)?, &catalog)?, origin);
    let shadow = policies::stored(&rows.rows, PolicySet::Shadow)?;
    let shadow = match shadow.is_empty() {
        true => None,
        false => Some(shown(&policies::load(&shadow, &catalog)?, Origin::Stored)),
    };
    Ok(Reply::ok(SetsShown { active, shadow }))
}
