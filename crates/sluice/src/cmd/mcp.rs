//! `sluice mcp`: serves tools to an agent on standard input and output.
//!
//! On a data directory the agent acts as its owner. With a server, every message is forwarded
//! under the configured token.

mod forward;

use super::local_worker::mock_script;
use crate::Exit;
use crate::adapters::{self, Shell};
use crate::backend::{self, Identity};
use crate::cli::OutputFormat;
use crate::cli::mcp::Mcp;
use crate::client::{Client, only_local};
use crate::config;
use crate::keyring;
use crate::local::{self, Local};
use crate::moderation;
use crate::organisation;
use crate::out::Out;
use crate::providers;
use crate::stop::StopSignals;
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_engine::schedule::Starting;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::app::{App, Settings};
use sluice_server::auth::Caller;
use sluice_server::mcp::stdio;
use sluice_server::organisation::Organisation;
use sluice_server::service::RowOrigin;
use sluice_server::service::Service;
use std::sync::Arc;

pub(super) async fn run(args: &Mcp, out: &mut Out) -> anyhow::Result<Exit> {
    let identity = Identity { roles: &args.role, ..Identity::from(&args.name) };
    match backend::server_for(&args.data, &identity)? {
        Some(_) if args.work => Err(only_local("`--work`").into()),
        Some(Client::Http(client)) => forward::run(client, out).await,
        _ => serve(args, &identity, out).await,
    }
}

/// Serves tools on a data directory.
async fn serve(args: &Mcp, identity: &Identity<'_>, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(script) = mock_script(args.mock.as_ref(), OutputFormat::Text, out)? else {
        return Ok(Exit::Refused);
    };
    let local = open(args, script).await?;
    let app =
        App::new(Settings::default(), Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
    let organisation = Organisation::open(organisation::DEFAULT, Service::clone(&local)).await?;
    let organisation = app.add(organisation);
    let caller = Caller::owner(&identity.principal(), local::roles(&args.role));
    let mut stop = StopSignals::listen()?;
    let serving = stdio::serve(app.clone(), organisation, caller);
    let served = tokio::select! {
        served = serving => served,
        _ = stop.next() => Ok(()),
    };
    app.stop().cancel();
    if let Err(signal) = stop.ending(local.close()).await {
        return Ok(signal.exit());
    }
    served?;
    Ok(Exit::Done)
}

/// Opens the directory, to execute runs or only to record requests.
async fn open(args: &Mcp, script: Option<Script>) -> anyhow::Result<Local> {
    let policies = crate::policies::source()?;
    if !args.work {
        local::existing(&args.data)?;
        // The process that claims a run checks its agents.
        let any_agent = Arc::new(MockAdapter::new(Script::default()));
        let agents = Agents::new().with_fallback(any_agent);
        let local = Local::open_with(&args.data, agents, Claims::None, policies, None).await?;
        return Ok(asked_by_agents(local, args));
    }
    let shell = if args.shell { Shell::beside(0) } else { Shell::Off };
    let scripted = script.is_some().then(|| adapters::MOCK.to_owned());
    let agents = adapters::served(&args.data, script, shell, providers::live(&args.data)?);
    let moderator = moderation::moderator(None)?;
    let local = Local::open_with(&args.data, agents, Claims::All, policies, moderator).await?;
    local.engine.keep_schedules(Starting { default_agent: config::agent().or(scripted) });
    Ok(asked_by_agents(local, args))
}

/// An agent is not the operator: rows it writes may only name declared secrets.
fn asked_by_agents(local: Local, args: &Mcp) -> Local {
    local.with_origin(RowOrigin::Server, keyring::for_data(&args.data))
}
