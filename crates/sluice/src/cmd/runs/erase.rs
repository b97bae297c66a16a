//! `sluice runs erase`.

use crate::Exit;
use crate::backend;
use crate::cli::runs::Erase;
use crate::out::Out;
use serde_json::json;
use sluice_core::visible;

pub(super) async fn run(args: &Erase, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.command.data, &args.command.name).await?;
    let run = super::id(&client, &args.command.run.id).await?;
    let body = json!({"events": args.event, "reason": args.reason});
    let gone = client.post(&["runs", &run, "erase"], &body).await?.data;
    client.close().await;
    let run = visible::brief(&run);
    out.print(&match gone["payloads"].as_u64().unwrap_or(0) {
        0 => format!("{run} has nothing left to erase\n"),
        1 => format!("1 payload of {run} erased; its hashes and figures stay\n"),
        count => format!("{count} payloads of {run} erased; its hashes and figures stay\n"),
    })?;
    Ok(Exit::Done)
}
