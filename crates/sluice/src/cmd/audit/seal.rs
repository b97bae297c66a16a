//! `sluice audit seal`: the newest seal, to be kept elsewhere.

use crate::Exit;
use crate::cli::audit::Seal;
use crate::desk;
use crate::local::Local;
use crate::out::Out;
use anyhow::Context as _;
use serde_json::json;
use sluice_server::refused::{NOT_SEALED, Refused};
use sluice_server::service::audit::packet;
use std::fs::OpenOptions;
use std::io::Write as _;

pub(super) async fn run(args: &Seal, out: &mut Out) -> anyhow::Result<Exit> {
    let (number, text) = match desk::server_for(&args.data)? {
        Some(client) => {
            let made = client.post(&["audit", "seal"], &json!({})).await?.data;
            let text = made["seal"].as_str().unwrap_or_default().to_owned();
            (made["number"].as_u64().unwrap_or_default(), text)
        }
        None => here(args).await?,
    };
    let line = format!("{text}\n");
    match &args.out {
        None => out.print(&line)?,
        Some(path) => {
            let cannot = || format!("cannot write to {}", path.display());
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes())).with_context(cannot)?;
            out.note(&format!("seal {number} was added to {}", path.display()))?;
        }
    }
    Ok(Exit::Done)
}

/// Seals everything in a data directory.
async fn here(args: &Seal) -> anyhow::Result<(u64, String)> {
    let local = Local::look(&args.data).await?;
    local.engine.seal().await?;
    let row = packet::newest(&*local.store).await?;
    local.close().await;
    let row = row.ok_or_else(|| {
        let remedy = "run something first; what is older than hashes is never sealed";
        Refused::new(NOT_SEALED, "there is nothing to seal", remedy)
    })?;
    Ok((row.number, row.text))
}
