//! Approvals over HTTP.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad};
use super::route::{Need, Route};
use super::runs::{CommandShown, send_command};
use super::shape::Approval;
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use crate::service::approvals::{self, ApprovalAnswer};
use crate::service::find;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_core::run::command::Decision;

pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::GovernanceRead);
    let approve = Need::Permission(P::GovernanceApprove);
    let get = |path| (Method::GET, path);
    vec![
        Route::new(get("/api/v1/approvals"), read, "List the open approvals", list).paged(),
        Route::new(get("/api/v1/approvals/{approval}"), read, "Show an approval", show),
        Route::new(
            (Method::POST, "/api/v1/approvals/{approval}/resolve"),
            approve,
            "Resolve an approval",
            resolve,
        ),
    ]
}

async fn list(request: ApiRequest) -> ServiceResult<Reply<Vec<Approval>>> {
    let (open, _) = approvals::open(request.service()).await?;
    let shown = open.iter().map(|(run, id)| Approval(approvals::shown(run, *id)));
    Ok(Reply::ok(shown.collect()))
}

async fn show(request: ApiRequest) -> ServiceResult<Reply<Approval>> {
    let (run, id) = find::approval(request.service(), request.path("approval")).await?;
    Ok(Reply::ok(Approval(approvals::shown(&run, id))))
}

/// The decision of an approver.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResolveBody {
    /// `approve`, `reject`, `retry`, `skip` or `abort`.
    decision: String,
    /// Reason; required for a rejection.
    comment: Option<String>,
    /// Values that the approval step needs.
    #[serde(default)]
    values: Map<String, Value>,
    /// Constraints to tighten.
    constraints: Option<Map<String, Value>>,
}

async fn resolve(request: ApiRequest<Nothing, ResolveBody>) -> ServiceResult<Reply<CommandShown>> {
    let body = &request.body;
    let decision = Decision::parse(&body.decision)
        .ok_or_else(|| bad("`decision` is approve, reject, retry, skip or abort"))?;
    let constraints = match &body.constraints {
        None => None,
        Some(fields) => {
            let read = serde_json::from_value(Value::Object(fields.clone()));
            Some(read.map_err(|why| bad(format!("`constraints`: {why}")))?)
        }
    };
    let (run, approval) = find::whole_approval(request.service(), request.path("approval")).await?;
    let (comment, values) = (body.comment.clone(), body.values.clone());
    let answer = ApprovalAnswer { decision, comment, values, constraints };
    let command = approvals::command(approval, answer, &request.caller);
    send_command(&request, run.id, command).await
}
