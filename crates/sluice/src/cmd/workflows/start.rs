//! `sluice workflows start`: a registered workflow, run at a server or here.

use crate::Exit;
use crate::cli::registry::Start;
use crate::client::{Client, fields, only_here};
use crate::cmd::errand::detach;
use crate::config;
use crate::desk;
use crate::live;
use crate::local::Again;
use crate::out::Out;
use anyhow::Context as _;
use serde_json::{Map, Value, json};
use sluice_core::visible;
use sluice_govern::registry::WorkflowVersion;
use sluice_server::refused::Refused;

pub(super) async fn run(args: &Start, out: &mut Out) -> anyhow::Result<Exit> {
    match desk::server_for(&args.run.here.data)? {
        Some(client) => there(&client, args, out).await,
        None if args.detach => {
            let message = "nobody would do the work: there is no server";
            let remedy = "leave `--detach` out, or name a server with SLUICE_URL or `--url`";
            Err(Refused::new("invalid_request", message, remedy).into())
        }
        None => crate::cmd::run::run(&args.run, out).await,
    }
}

async fn there(client: &Client, args: &Start, out: &mut Out) -> anyhow::Result<Exit> {
    let run = &args.run;
    desk::by_token(&run.here.name)?;
    let given = [
        ("`--registry`", run.registry.file.is_some()),
        ("`--of`", run.of.is_some()),
        ("`--mock`", run.here.mock.is_some()),
        ("`--policies`", !run.here.policies.is_empty()),
        ("`--moderation`", run.here.moderation.is_some()),
        ("`--yes`", run.here.yes),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(only_here(flag).into());
    }
    let reference = run.file.to_string_lossy();
    let (name, version) = match WorkflowVersion::split(&reference) {
        Some((name, version)) => (name, Some(version)),
        None => (&*reference, None),
    };
    let bindings: Map<String, Value> =
        run.bind.iter().map(|(role, agent)| (role.clone(), agent.clone().into())).collect();
    let body = fields([
        ("args", Value::Object(run.given.args())),
        ("version", json!(version)),
        ("default_agent", json!(config::agent())),
        ("default_model", json!(run.model)),
        ("max_recursion_depth", json!(run.max_depth)),
        ("role_bindings", Value::Object(bindings)),
        ("idempotency_key", json!(run.idempotency_key)),
    ]);
    let started = client.post(&["workflows", name, "runs"], &body).await?.data;
    let id = started["run_id"].as_str().context("the server names no run")?;
    let (shown, again) = (visible::brief(id), Again::of(&run.here.data, None).look);
    let word =
        if started["existed"] == true { "was started before with this key" } else { "started" };
    if args.detach {
        return detach(client, id, word, run.here.view, &again, out).await;
    }
    out.note(&format!("{shown} {word}"))?;
    live::follow_there(client, id, 0, run.here.view, &again, out).await
}
