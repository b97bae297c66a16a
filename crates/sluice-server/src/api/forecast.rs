//! What would come of a run, before it is started.

use super::ask::{Ask, Nothing};
use super::reply::Reply;
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::forecast::{self, ForecastShown};
use crate::service::start::{self, Wish};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The routes of forecasts.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/api/v1/workflows/{name}/forecast"),
            Need::Permission(P::WorkflowExecute),
            "Say what the gates would decide of a run; nothing is started",
            named,
        )
        .heavy(),
    ]
}

/// What a run would be started with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ForecastBody {
    /// The arguments.
    args: Map<String, Value>,
    /// The workflow's version; the newest if none is said.
    version: Option<u64>,
    /// Who does steps that name nobody.
    default_agent: Option<String>,
    /// The model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// Which agent stands for which role.
    role_bindings: BTreeMap<String, String>,
}

async fn named(ask: Ask<Nothing, ForecastBody>) -> Done<Reply<ForecastShown>> {
    let body = &ask.body;
    let wish = Wish {
        args: body.args.clone(),
        default_agent: body.default_agent.clone(),
        default_model: start::model(body.default_model.clone())?,
        role_bindings: body.role_bindings.clone(),
        initiator: ask.caller.name.clone(),
        ..Wish::default()
    };
    let name = ask.path("name");
    let reference = match body.version {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    };
    Ok(Reply::ok(forecast::named(&ask.house, &reference, wish).await?))
}
