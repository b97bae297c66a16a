//! `sluice mcp`: agents use Sluice through tools, at standard input and output.
//!
//! On a data directory the caller is whoever owns it. With a server, every message
//! goes there, under the token.

mod forward;

use super::work::script;
use crate::Exit;
use crate::cli::Reader;
use crate::cli::mcp::Mcp;
use crate::client::only_here;
use crate::config;
use crate::desk;
use crate::hands::{self, Shell};
use crate::keyring;
use crate::kit;
use crate::local::{self, Local};
use crate::moderation;
use crate::organisation;
use crate::out::Out;
use crate::stop::Stop;
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_engine::schedule::Starting;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::app::{App, Settings};
use sluice_server::auth::Caller;
use sluice_server::house::House;
use sluice_server::mcp::stdio;
use sluice_server::service::RowOrigin;
use sluice_server::service::Service;
use std::sync::Arc;

pub(super) async fn run(args: &Mcp, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(client) = desk::server_for(&args.data)? else { return here(args, out).await };
    desk::by_token(&args.name)?;
    if args.work {
        return Err(only_here("`--work`").into());
    }
    if !args.role.is_empty() {
        return Err(only_here("`--role`").into());
    }
    forward::run(client, out).await
}

/// On a data directory.
async fn here(args: &Mcp, out: &mut Out) -> anyhow::Result<Exit> {
    let script = match &args.mock {
        None => None,
        Some(name) => match script(name, Reader::Person, out)? {
            Some(script) => Some(script),
            None => return Ok(Exit::Refused),
        },
    };
    let local = open(args, script).await?;
    let app =
        App::new(Settings::default(), Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
    let house = House::open(organisation::DEFAULT, Service::clone(&local)).await?;
    let house = app.add(house);
    let caller = Caller::owner(&local::who(&args.name), local::roles(&args.role));
    let mut stop = Stop::listen()?;
    let serving = stdio::serve(app.clone(), house, caller);
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

/// The directory, to work in it or to note things down.
async fn open(args: &Mcp, script: Option<Script>) -> anyhow::Result<Local> {
    let policies = crate::policies::source()?;
    if !args.work {
        local::existing(&args.data)?;
        // Whether there are agents for a run is for whoever does the work to see.
        let anybody = Arc::new(MockAdapter::new(Script::default()));
        let agents = Agents::new().with_fallback(anybody);
        let local = Local::under(&args.data, agents, Claims::None, policies, None).await?;
        return Ok(asked_by_agents(local, args));
    }
    let shell = if args.shell { Shell::On } else { Shell::Off };
    let scripted = script.is_some().then(|| hands::MOCK.to_owned());
    let agents = hands::served(&args.data, script, shell, kit::live(&args.data)?);
    let moderator = moderation::moderator(None)?;
    let local = Local::under(&args.data, agents, Claims::All, policies, moderator).await?;
    local.engine.keep_schedules(Starting { default_agent: config::agent().or(scripted) });
    Ok(asked_by_agents(local, args))
}

/// What agents ask for is no command of the operator: rows they write name declared
/// secrets alone.
fn asked_by_agents(local: Local, args: &Mcp) -> Local {
    local.by(RowOrigin::Server, keyring::of(&args.data))
}
