//! `sluice workflows start`: runs a registered workflow, at a server or in this process.

use crate::Exit;
use crate::backend::{self, Identity};
use crate::cli::registry::Start;
use crate::client::{Client, fields, only_local};
use crate::cmd::run_commands::CommandDelivery;
use crate::cmd::run_host::detached;
use crate::config;
use crate::live;
use crate::local::Again;
use crate::out::Out;
use anyhow::Context as _;
use serde_json::{Map, Value, json};
use sluice_core::visible;
use sluice_govern::registry::WorkflowVersion;
use sluice_server::refused::Refused;

pub(super) async fn run(args: &Start, out: &mut Out) -> anyhow::Result<Exit> {
    let options = &args.run.options;
    match backend::server_for(&options.data, &Identity::from(&options.name))? {
        Some(client) => start(&client, args, out).await,
        None if args.detach => {
            let message = "without a server, no process would do the work of the run";
            let remedy = "leave `--detach` out, or name a server with SLUICE_URL or `--url`";
            Err(Refused::new("invalid_request", message, remedy).into())
        }
        None => crate::cmd::run::run(&args.run, out).await,
    }
}

/// Starts the run at a server.
async fn start(client: &Client, args: &Start, out: &mut Out) -> anyhow::Result<Exit> {
    let run = &args.run;
    let given = [
        ("`--registry`", run.registry.file.is_some()),
        ("`--of`", run.of.is_some()),
        ("`--mock`", run.options.mock.is_some()),
        ("`--policies`", !run.options.policies.is_empty()),
        ("`--moderation`", run.options.moderation.is_some()),
        ("`--yes`", run.options.yes),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(only_local(flag).into());
    }
    let reference = run.file.to_string_lossy();
    let (name, version) = match WorkflowVersion::split(&reference) {
        Some((name, version)) => (name, Some(version)),
        None => (&*reference, None),
    };
    let bindings: Map<String, Value> =
        run.bind.iter().map(|(role, agent)| (role.clone(), agent.clone().into())).collect();
    let body = fields([
        ("args", Value::Object(run.inputs.args())),
        ("version", json!(version)),
        ("default_agent", json!(config::agent())),
        ("default_model", json!(run.model)),
        ("max_recursion_depth", json!(run.max_depth)),
        ("role_bindings", Value::Object(bindings)),
        ("idempotency_key", json!(run.idempotency_key)),
    ]);
    let started = client.post(&["workflows", name, "runs"], &body).await?.data;
    let id = started["run_id"].as_str().context("the server names no run")?;
    let (shown, again) = (visible::brief(id), Again::from_options(&run.options.data, None).look);
    let word =
        if started["existed"] == true { "was started before with this key" } else { "started" };
    if args.detach {
        detached(client, id, word, CommandDelivery::Remote, (run.options.view, &again), out)
            .await?;
        return Ok(Exit::Done);
    }
    out.note(&format!("{shown} {word}"))?;
    live::watch(client, id, 0, run.options.view, &again, out).await
}
