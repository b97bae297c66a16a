//! Questions to people.

use super::ask::{Ask, Nothing, bad};
use super::reply::Reply;
use super::route::{Need, Route};
use super::runs::{ToldShown, tell};
use super::shape::Approval;
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::approvals::{self, Answer};
use crate::service::find;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_core::run::command::Decision;

/// The routes of approvals.
pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::GovernanceRead);
    let answer = Need::Permission(P::GovernanceApprove);
    let get = |path| (Method::GET, path);
    vec![
        Route::new(get("/api/v1/approvals"), read, "List the questions that are open", list)
            .paged(),
        Route::new(get("/api/v1/approvals/{approval}"), read, "Show a question", show),
        Route::new(
            (Method::POST, "/api/v1/approvals/{approval}/resolve"),
            answer,
            "Answer a question",
            resolve,
        ),
    ]
}

async fn list(ask: Ask) -> Done<Reply<Vec<Approval>>> {
    let (open, _) = approvals::open(ask.service()).await?;
    let shown = open.iter().map(|(run, id)| Approval(approvals::shown(run, *id)));
    Ok(Reply::ok(shown.collect()))
}

async fn show(ask: Ask) -> Done<Reply<Approval>> {
    let (run, id) = find::approval(ask.service(), ask.path("approval")).await?;
    Ok(Reply::ok(Approval(approvals::shown(&run, id))))
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResolveBody {
    /// `approve`, `reject`, `retry`, `skip` or `abort`.
    decision: String,
    /// Why; a rejection needs one.
    comment: Option<String>,
    /// Values that the step asks for.
    #[serde(default)]
    values: Map<String, Value>,
    /// What is tightened.
    constraints: Option<Map<String, Value>>,
}

async fn resolve(ask: Ask<Nothing, ResolveBody>) -> Done<Reply<ToldShown>> {
    let body = &ask.body;
    let decision = Decision::parse(&body.decision)
        .ok_or_else(|| bad("`decision` is approve, reject, retry, skip or abort"))?;
    let constraints = match &body.constraints {
        None => None,
        Some(fields) => {
            let read = serde_json::from_value(Value::Object(fields.clone()));
            Some(read.map_err(|why| bad(format!("`constraints`: {why}")))?)
        }
    };
    let (run, approval) = find::whole_approval(ask.service(), ask.path("approval")).await?;
    let (comment, values) = (body.comment.clone(), body.values.clone());
    let answer = Answer { decision, comment, values, constraints };
    let command = approvals::command(approval, answer, &ask.caller);
    tell(&ask, run.id, command).await
}
