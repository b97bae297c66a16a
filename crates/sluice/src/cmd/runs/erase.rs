//! `sluice runs erase`.

use crate::Exit;
use crate::cli::runs::Erase;
use crate::desk::{self, Desk};
use crate::local;
use crate::out::Out;
use anyhow::Context as _;
use serde_json::json;
use sluice_core::visible;
use sluice_server::service::{erase, find};

pub(super) async fn run(args: &Erase, out: &mut Out) -> anyhow::Result<Exit> {
    let (id, name) = (&args.told.run.id, &args.told.name);
    let desk = Desk::write(&args.told.data).await?;
    let (run, count) = match &desk {
        Desk::Here(local) => {
            let row = find::run(local, id).await?;
            let actor = local::who(name);
            let count = erase::erase(local, &row, &args.event, &actor, &args.reason).await?;
            (row.run.to_string(), count as u64)
        }
        Desk::There(client) => {
            desk::by_token(name)?;
            let body = json!({"events": args.event, "reason": args.reason});
            let run = super::id(client, id).await?;
            let gone = client.post(&["runs", &run, "erase"], &body).await?.data;
            let run = gone["run_id"].as_str().context("the server names no run")?;
            (run.to_owned(), gone["payloads"].as_u64().unwrap_or(0))
        }
    };
    desk.close().await;
    let run = visible::brief(&run);
    out.print(&match count {
        0 => format!("nothing of {run} was left to erase\n"),
        1 => format!("1 payload of {run} erased; its hashes and figures stay\n"),
        _ => format!("{count} payloads of {run} erased; its hashes and figures stay\n"),
    })?;
    Ok(Exit::Done)
}
