//! Commands to a run, wherever it is.

use crate::client::Client;
use crate::live::key;
use crate::local::Local;
use crate::out::Out;
use serde::Deserialize;
use serde_json::Value;
use sluice_core::run::command::Command;
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use sluice_engine::error::Delivered;
use sluice_server::refused;
use sluice_server::service::find;
use std::time::Duration;

/// How long the process that runs it may take to do as it was told.
const PATIENCE_MS: u64 = 5000;
const LOOK_MS: u64 = 50;

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It was done by this process; nobody else has the run.
    Here,
    /// The process that has the run did it.
    There,
    /// The process that has the run has not done it yet.
    Sent,
}

/// What a server says became of a command.
#[derive(Debug, Deserialize)]
pub(super) struct ToldThere {
    pub(super) run_id: String,
    /// Whether it is done; else whoever has the run will see to it.
    done: bool,
    pub(super) status: String,
}

impl ToldThere {
    pub(super) fn became(&self) -> Told {
        if self.done { Told::There } else { Told::Sent }
    }
}

/// Tells a run at a server something.
pub(super) async fn there(
    client: &Client,
    path: &[&str],
    body: &Value,
) -> anyhow::Result<ToldThere> {
    client.post(path, body).await?.read()
}

/// Tells a run something. `applied` says whether that can be seen in it.
pub(super) async fn tell(
    local: &Local,
    run: RunId,
    command: Command,
    applied: impl Fn(&Run) -> bool,
    out: &mut Out,
) -> anyhow::Result<Told> {
    let told = local.engine.command(run, command, &key("tell")).await;
    if told.map_err(|error| refused::command(run, error))? == Delivered::Done {
        return Ok(Told::Here);
    }
    out.note("sent to the process that runs it")?;
    for _ in 0..PATIENCE_MS / LOOK_MS {
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        if applied(&find::load(local, run).await?) {
            return Ok(Told::There);
        }
    }
    out.note("it has not answered yet; the command stays in the run's inbox")?;
    Ok(Told::Sent)
}
