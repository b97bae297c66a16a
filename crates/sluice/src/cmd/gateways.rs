//! `sluice gateways`.

mod check;

use super::rows::{change, patch, run as rows};
use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::registry::{Gateways, Which};
use crate::cli::rows::ChangeRow;
use crate::out::{Layout, Out};
use serde_json::json;
use sluice_core::visible;
use sluice_govern::registry::{Kind, Row};
use sluice_server::refused::ServiceResult;
use sluice_server::service::registry::RowChange;

/// The name of the only switch.
const ALL: &str = "all";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GatewayState {
    Paused,
    Open,
}

pub(super) async fn run(command: &Gateways, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Gateways::RowCommand(command) => rows(Kind::Gateway, command, out).await,
        Gateways::Pause(args) => set_state(args, GatewayState::Paused, out).await,
        Gateways::Resume(args) => set_state(args, GatewayState::Open, out).await,
        Gateways::Token(args) => token(args, out).await,
        Gateways::Check(args) => check::run(args, out).await,
    }
}

async fn set_state(args: &Which, state: GatewayState, out: &mut Out) -> anyhow::Result<Exit> {
    let paused = state == GatewayState::Paused;
    let Some(name) = &args.name else {
        let edit = |_: &[Row]| -> ServiceResult<RowChange> {
            let body = json!({"held": paused});
            let switch = Row { kind: Kind::Switch, name: ALL.to_owned(), body };
            Ok(RowChange { put: vec![switch], remove: Vec::new() })
        };
        return change(&args.by, &edit, out).await;
    };
    let edit = patch(Kind::Gateway, name, |body| {
        body.insert("paused".to_owned(), paused.into());
        Ok(())
    });
    change(&args.by, &edit, out).await
}

/// Gives a gateway a new token, which is shown once: only its hash is stored.
async fn token(args: &ChangeRow, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.by.data, &args.by).await?;
    let made = client.post(&["gateways", &args.row.name, "token"], &json!({})).await?.data;
    client.close().await;
    match args.by.json.output() {
        OutputFormat::Json => out.json(Layout::Line, &made)?,
        OutputFormat::Text => {
            let token = made["token"].as_str().unwrap_or_default();
            out.print(&format!("{}\n", visible::brief(token)))?;
            out.note("this is shown once; only its SHA-256 is kept")?;
        }
    }
    Ok(Exit::Done)
}
