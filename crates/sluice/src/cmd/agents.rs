//! `sluice agents`.

use super::rows::{change, patch, run as rows};
use crate::Exit;
use crate::cli::registry::{Agents, Extend, Promote};
use crate::cli::rows::ChangeRow;
use crate::out::Out;
use serde_json::{Map, Value};
use sluice_core::visible;
use sluice_govern::registry::{Agent, AgentStatus, Kind, POC_MS, Phase};
use sluice_server::refused::{NOT_ON_TRIAL, Refused};
use sluice_server::service::registry::now_ms;

pub(super) async fn run(command: &Agents, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Agents::RowCommand(command) => rows(Kind::Agent, command, out).await,
        Agents::Pause(args) => status(args, AgentStatus::Paused, out).await,
        Agents::Resume(args) => status(args, AgentStatus::Idle, out).await,
        Agents::Promote(args) => promote(args, out).await,
        Agents::Extend(args) => extend(args, out).await,
    }
}

async fn status(args: &ChangeRow, status: AgentStatus, out: &mut Out) -> anyhow::Result<Exit> {
    let edit = patch(Kind::Agent, &args.row.name, |body| {
        body.insert("status".to_owned(), status.as_str().into());
        Ok(())
    });
    change(&args.by, &edit, out).await
}

async fn promote(args: &Promote, out: &mut Out) -> anyhow::Result<Exit> {
    let edit = patch(Kind::Agent, &args.row.name, |body| {
        body.insert("phase".to_owned(), args.phase.as_str().into());
        Ok(())
    });
    change(&args.by, &edit, out).await
}

async fn extend(args: &Extend, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.row.name.as_str();
    let edit = patch(Kind::Agent, name, |body| {
        let until_ms = trial_end(body, now_ms()).ok_or_else(|| {
            let message = format!("the agent `{}` is not on trial", visible::brief(name));
            let remedy = format!("`sluice agents promote {name} poc` puts it on trial");
            Refused::new(NOT_ON_TRIAL, message, remedy)
        })?;
        body.insert("poc_until_ms".to_owned(), until_ms.saturating_add(args.by_ms).into());
        Ok(())
    });
    change(&args.by, &edit, out).await
}

/// The end of a trial, at least now; none if the agent is not on trial.
fn trial_end(body: &Map<String, Value>, now_ms: u64) -> Option<u64> {
    let agent: Agent = serde_json::from_value(Value::Object(body.clone())).ok()?;
    if agent.phase != Phase::Poc {
        return None;
    }
    let ends_ms = agent.phase_since_ms.unwrap_or(now_ms).saturating_add(POC_MS);
    Some(ends_ms.max(agent.poc_until_ms.unwrap_or(0)).max(now_ms))
}
