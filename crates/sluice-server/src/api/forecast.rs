//! Forecasts over HTTP.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing};
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use crate::service::forecast::{self, ForecastShown};
use crate::service::start::{self, StartRequest};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/api/v1/workflows/{name}/forecast"),
            Need::Permission(P::WorkflowExecute),
            "Forecast the decisions of the gates about a run, without starting it",
            forecast_workflow,
        )
        .heavy(),
    ]
}

/// The start request to forecast.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ForecastBody {
    /// Arguments of the workflow.
    args: Map<String, Value>,
    /// Version of the workflow (default: the newest).
    version: Option<u64>,
    /// Agent of steps that name none.
    default_agent: Option<String>,
    /// Model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// Agents by role.
    role_bindings: BTreeMap<String, String>,
}

async fn forecast_workflow(
    request: ApiRequest<Nothing, ForecastBody>,
) -> ServiceResult<Reply<ForecastShown>> {
    let body = &request.body;
    let start = StartRequest {
        args: body.args.clone(),
        default_agent: body.default_agent.clone(),
        default_model: start::model(body.default_model.clone())?,
        role_bindings: body.role_bindings.clone(),
        initiator: request.caller.name.clone(),
        ..StartRequest::default()
    };
    let name = request.path("name");
    let reference = match body.version {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    };
    Ok(Reply::ok(forecast::forecast_workflow(&request.organisation, &reference, start).await?))
}
