//! Rows of the registry: what an operator sets up.

use super::ask::{Ask, Nothing, bad};
use super::reply::Reply;
use super::route::{Need, Route};
use super::shape::{Changes, RowShown};
use super::workflows::told;
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::registry::{self, Asked, Mode, now_ms};
use crate::service::rows::{self, Manner};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_govern::registry::{Kind, Row};

/// What stands for a secret that is never shown.
const REDACTED: &str = "[redacted]";
/// Fields whose values are never shown.
const SECRET: [&str; 2] = ["secret", "token_sha256"];
/// The only name of a switch.
const ALL: &str = "all";

/// The kinds that have routes: where all are, where one is, who may look, who
/// may change.
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
        Kind::Envelope,
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

/// The routes of rows.
pub(super) fn routes() -> Vec<Route> {
    let mut all = Vec::new();
    for (kind, many, one, read, write) in KINDS {
        let (read, write) = (Need::Permission(read), Need::Permission(write));
        let routes = [
            Route::new((Method::GET, many), read, "List them", move |ask| list(kind, ask)).paged(),
            Route::new((Method::GET, one), read, "Show one", move |ask| show(kind, ask)),
            Route::new((Method::PUT, one), write, "Make one, or write it anew", move |ask| {
                put(kind, Manner::Whole, ask)
            })
            .heavy(),
            Route::new((Method::PATCH, one), write, "Change fields of one", move |ask| {
                put(kind, Manner::Parts, ask)
            })
            .heavy(),
            Route::new((Method::DELETE, one), write, "Remove one", move |ask| remove(kind, ask)),
        ];
        all.extend(routes);
    }
    all.push(Route::new(
        (Method::POST, "/api/v1/budgets/{name}/reopen"),
        Need::Permission(P::GovernanceWrite),
        "Accept what was spent beyond a budget",
        reopen,
    ));
    all
}

/// What whoever changes rows of a kind must be allowed.
pub(super) fn write_permission(kind: Kind) -> P {
    let found = KINDS.iter().find(|(one, ..)| *one == kind);
    found.map_or(P::WorkflowWrite, |(.., write)| *write)
}

/// A row as a setup would write it. What was never shown stays as it is there.
pub(super) fn written(
    there: &[Row],
    kind: Kind,
    name: &str,
    body: &Map<String, Value>,
) -> Done<Vec<Row>> {
    if kind == Kind::Switch {
        return Ok(vec![switch_row(name, body)?]);
    }
    let mut body = body.clone();
    let before = sluice_core::rows::find(there, kind, name).map(|row| &row.body);
    for field in SECRET {
        if body.get(field) != Some(&REDACTED.into()) {
            continue;
        }
        match before.and_then(|before| before.get(field)) {
            // A token is kept by itself.
            Some(value) if field != "token_sha256" => body.insert(field.to_owned(), value.clone()),
            _ => body.shift_remove(field),
        };
    }
    if kind == Kind::Gateway && body.contains_key("token_sha256") {
        return Err(bad("a gateway's token is made by the server").into());
    }
    Ok(rows::wanted(&[], (kind, name), &body, Manner::Whole)?.put)
}

/// What a row says, without its secrets.
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

async fn told_of(ask: &Ask, row: &Row) -> Done<RowShown> {
    if row.kind == Kind::Envelope {
        let figures = rows::figures(ask.service(), row).await?;
        return Ok(shown(figures.object(row)));
    }
    Ok(shown(rows::object(&rows::at(row, now_ms()))))
}

async fn list(kind: Kind, ask: Ask) -> Done<Reply<Vec<RowShown>>> {
    let there = ask.house.rows().await?;
    let mut found = Vec::new();
    for row in there.rows.iter().filter(|row| row.kind == kind) {
        found.push(told_of(&ask, row).await?);
    }
    Ok(Reply::ok(found))
}

async fn show(kind: Kind, ask: Ask) -> Done<Reply<RowShown>> {
    let there = ask.house.rows().await?;
    let row = registry::row(&there.rows, kind, ask.path("name"))?;
    Ok(Reply::ok(told_of(&ask, row).await?))
}

/// The fields of a row.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
struct Fields(Map<String, Value>);

async fn put(kind: Kind, manner: Manner, ask: Ask<Nothing, Fields>) -> Done<Reply<Changes>> {
    let mut sent = ask.body.0.clone();
    // What was never shown cannot be sent back.
    sent.retain(|field, value| !(SECRET.contains(&field.as_str()) && value == REDACTED));
    if kind == Kind::Gateway && sent.contains_key("token_sha256") {
        return Err(bad("a gateway's token is made by the server").into());
    }
    let (name, by) = (ask.path("name"), &ask.caller.name);
    let outcome = if kind == Kind::Switch {
        let switch = switch_row(name, &sent)?;
        let wish = |_: &[Row]| -> Done<Asked> {
            Ok(Asked { put: vec![switch.clone()], remove: Vec::new() })
        };
        registry::change(ask.service(), by, Mode::Write, &wish).await?
    } else {
        rows::put(ask.service(), by, (kind, name), &sent, manner).await?
    };
    Ok(Reply::ok(Changes(told(&outcome)?)))
}

/// The switch for everything.
fn switch_row(name: &str, sent: &Map<String, Value>) -> Done<Row> {
    let held = sent.get("held").and_then(Value::as_bool).filter(|_| sent.len() == 1);
    let Some(held) = held.filter(|_| name == ALL) else {
        return Err(bad("the switch `all` has one field, `held`: true or false").into());
    };
    let body = serde_json::json!({"held": held});
    Ok(Row { kind: Kind::Switch, name: ALL.to_owned(), body })
}

async fn remove(kind: Kind, ask: Ask) -> Done<Reply<Changes>> {
    let (name, by) = (ask.path("name"), &ask.caller.name);
    let outcome = rows::remove(ask.service(), by, kind, name).await?;
    Ok(Reply::ok(Changes(told(&outcome)?)))
}

async fn reopen(ask: Ask) -> Done<Reply<Changes>> {
    let outcome = rows::reopen(ask.service(), (&ask.caller.name).into(), ask.path("name")).await?;
    Ok(Reply::ok(Changes(told(&outcome)?)))
}
