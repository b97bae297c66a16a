//! CRUD routes for the rows of the registry.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad};
use super::route::{Need, Route};
use super::shape::{Changes, RowShown};
use super::workflows::change_shown;
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use crate::service::registry::{self, Mode, RowChange, now_ms};
use crate::service::rows::{self, Manner};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_govern::registry::{Kind, Row};

/// Shown instead of a secret.
const REDACTED: &str = "[redacted]";
/// Fields whose values are never shown.
const SECRET: [&str; 2] = ["secret", "token_sha256"];
/// The only name of a switch.
const ALL: &str = "all";

/// The kinds that have routes: collection path, item path, and the permissions to read and
/// to write.
const KINDS: [(Kind, &str, &str, P, P); 17] = [
    (Kind::Agent, "/api/v1/agents", "/api/v1/agents/{name}", P::GovernanceRead, P::AgentWrite),
    (
        Kind::Gateway,
        "/api/v1/gateways",
        "/api/v1/gateways/{name}",
        P::GovernanceRead,
        P::GatewayWrite,
    ),
    (Kind::Role, "/api/v1/roles", "/api/v1/roles/{name}", P::GovernanceRead, P::GovernanceWrite),
    (
        Kind::Deployment,
        "/api/v1/deployments",
        "/api/v1/deployments/{name}",
        P::GovernanceRead,
        P::GovernanceWrite,
    ),
    (
        Kind::Policy,
        "/api/v1/policies",
        "/api/v1/policies/{name}",
        P::GovernanceRead,
        P::GovernanceWrite,
    ),
    (
        Kind::Budget,
        "/api/v1/budgets",
        "/api/v1/budgets/{name}",
        P::GovernanceRead,
        P::GovernanceWrite,
    ),
    (Kind::Price, "/api/v1/prices", "/api/v1/prices/{name}", P::GovernanceRead, P::GovernanceWrite),
    (Kind::Library, "/api/v1/library", "/api/v1/library/{name}", P::WorkflowRead, P::WorkflowWrite),
    (Kind::Lens, "/api/v1/lenses", "/api/v1/lenses/{name}", P::WorkflowRead, P::WorkflowWrite),
    (Kind::Team, "/api/v1/teams", "/api/v1/teams/{name}", P::WorkflowRead, P::WorkflowWrite),
    (
        Kind::Schedule,
        "/api/v1/schedules",
        "/api/v1/schedules/{name}",
        P::WorkflowRead,
        P::WorkflowWrite,
    ),
    (
        Kind::Webhook,
        "/api/v1/webhooks",
        "/api/v1/webhooks/{name}",
        P::GovernanceRead,
        P::GovernanceWrite,
    ),
    (Kind::Hook, "/api/v1/hooks", "/api/v1/hooks/{name}", P::WorkflowRead, P::WorkflowWrite),
    (Kind::Note, "/api/v1/notes", "/api/v1/notes/{name}", P::GovernanceRead, P::AgentWrite),
    (Kind::Memory, "/api/v1/memories", "/api/v1/memories/{name}", P::GovernanceRead, P::AgentWrite),
    (
        Kind::Instruction,
        "/api/v1/instructions",
        "/api/v1/instructions/{name}",
        P::GovernanceRead,
        P::AgentWrite,
    ),
    (
        Kind::Switch,
        "/api/v1/switches",
        "/api/v1/switches/{name}",
        P::GovernanceRead,
        P::GovernanceWrite,
    ),
];

pub(super) fn routes() -> Vec<Route> {
    let mut all = Vec::new();
    for (kind, many, one, read, write) in KINDS {
        let (read, write) = (Need::Permission(read), Need::Permission(write));
        let routes = [
            Route::new((Method::GET, many), read, "List all rows of this kind", move |request| {
                list(kind, request)
            })
            .paged(),
            Route::new((Method::GET, one), read, "Show a row", move |request| show(kind, request)),
            Route::new((Method::PUT, one), write, "Create or replace a row", move |request| {
                put(kind, Manner::Whole, request)
            })
            .heavy(),
            Route::new((Method::PATCH, one), write, "Update fields of a row", move |request| {
                put(kind, Manner::Parts, request)
            })
            .heavy(),
            Route::new((Method::DELETE, one), write, "Remove a row", move |request| {
                remove(kind, request)
            }),
        ];
        all.extend(routes);
    }
    all.push(Route::new(
        (Method::POST, "/api/v1/budgets/{name}/reopen"),
        Need::Permission(P::GovernanceWrite),
        "Accept the overrun of a budget, which reopens it",
        reopen,
    ));
    all
}

/// The permission that is needed to change rows of a kind.
pub(super) fn write_permission(kind: Kind) -> P {
    let found = KINDS.iter().find(|(one, ..)| *one == kind);
    found.map_or(P::WorkflowWrite, |(.., write)| *write)
}

/// A row to write, as in a setup file. A redacted secret keeps its stored value.
pub(super) fn parse_row(
    stored: &[Row],
    kind: Kind,
    name: &str,
    body: &Map<String, Value>,
) -> ServiceResult<Vec<Row>> {
    if kind == Kind::Switch {
        return Ok(vec![switch_row(name, body)?]);
    }
    let mut body = body.clone();
    let before = sluice_core::rows::find(stored, kind, name).map(|row| &row.body);
    for field in SECRET {
        let stored = before.and_then(|before| before.get(field));
        // The operator's commands are shown the stored value and send it back.
        let is_unchanged = stored.is_some() && body.get(field) == stored;
        if body.get(field) != Some(&REDACTED.into()) && !is_unchanged {
            continue;
        }
        match stored {
            // The registry itself keeps a token that is not sent.
            Some(value) if field != "token_sha256" => body.insert(field.to_owned(), value.clone()),
            _ => body.shift_remove(field),
        };
    }
    if kind == Kind::Gateway && body.contains_key("token_sha256") {
        return Err(bad(
            "the server creates the token of a gateway: POST /api/v1/gateways/{name}/token",
        )
        .into());
    }
    Ok(rows::write_of(&[], (kind, name), &body, Manner::Whole)?.put)
}

/// The fields of a row, without its secrets.
pub(super) fn redacted(mut body: Value) -> Value {
    if let Value::Object(fields) = &mut body {
        for field in SECRET {
            if let Some(value) = fields.get_mut(field) {
                *value = REDACTED.into();
            }
        }
    }
    body
}

fn shown(object: Value) -> RowShown {
    RowShown(redacted(object))
}

async fn row_shown(request: &ApiRequest, row: &Row) -> ServiceResult<RowShown> {
    if row.kind == Kind::Budget {
        let figures = rows::figures(request.service(), row).await?;
        return Ok(shown(figures.object(row)));
    }
    Ok(shown(rows::object(&rows::at(row, now_ms()))))
}

async fn list(kind: Kind, request: ApiRequest) -> ServiceResult<Reply<Vec<RowShown>>> {
    let stored = request.organisation.rows().await?;
    let mut found = Vec::new();
    for row in stored.rows.iter().filter(|row| row.kind == kind) {
        found.push(row_shown(&request, row).await?);
    }
    Ok(Reply::ok(found))
}

async fn show(kind: Kind, request: ApiRequest) -> ServiceResult<Reply<RowShown>> {
    let stored = request.organisation.rows().await?;
    let row = registry::row(&stored.rows, kind, request.path("name"))?;
    Ok(Reply::ok(row_shown(&request, row).await?))
}

/// The fields of a row.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
struct RowFields(Map<String, Value>);

async fn put(
    kind: Kind,
    manner: Manner,
    request: ApiRequest<Nothing, RowFields>,
) -> ServiceResult<Reply<Changes>> {
    let mut sent = request.body.0.clone();
    // A redacted secret keeps its stored value.
    sent.retain(|field, value| !(SECRET.contains(&field.as_str()) && value == REDACTED));
    if kind == Kind::Gateway && sent.contains_key("token_sha256") {
        return Err(bad(
            "the server creates the token of a gateway: POST /api/v1/gateways/{name}/token",
        )
        .into());
    }
    let (name, by) = (request.path("name"), &request.caller);
    let outcome = if kind == Kind::Switch {
        let switch = switch_row(name, &sent)?;
        let edit = |_: &[Row]| -> ServiceResult<RowChange> {
            Ok(RowChange { put: vec![switch.clone()], remove: Vec::new() })
        };
        registry::change(request.service(), by, Mode::Write, &edit).await?
    } else {
        rows::put(request.service(), by, (kind, name), &sent, manner).await?
    };
    Ok(Reply::ok(Changes(change_shown(&outcome)?)))
}

/// The row of the switch that holds all runs.
fn switch_row(name: &str, sent: &Map<String, Value>) -> ServiceResult<Row> {
    let held = sent.get("held").and_then(Value::as_bool).filter(|_| sent.len() == 1);
    let Some(held) = held.filter(|_| name == ALL) else {
        return Err(bad("the only switch is `all`, with one field, `held`: true or false").into());
    };
    let body = serde_json::json!({"held": held});
    Ok(Row { kind: Kind::Switch, name: ALL.to_owned(), body })
}

async fn remove(kind: Kind, request: ApiRequest) -> ServiceResult<Reply<Changes>> {
    let (name, by) = (request.path("name"), &request.caller);
    let outcome = rows::remove(request.service(), by, kind, name).await?;
    Ok(Reply::ok(Changes(change_shown(&outcome)?)))
}

async fn reopen(request: ApiRequest) -> ServiceResult<Reply<Changes>> {
    let outcome =
        rows::reopen(request.service(), (&request.caller).into(), request.path("name")).await?;
    Ok(Reply::ok(Changes(change_shown(&outcome)?)))
}
