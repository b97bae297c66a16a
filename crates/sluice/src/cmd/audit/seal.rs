//! `sluice audit seal`: the newest seal, to be kept elsewhere.

use crate::Exit;
use crate::cli::audit::Seal;
use crate::client::only_here;
use crate::desk;
use crate::local::Local;
use crate::out::Out;
use anyhow::Context as _;
use sluice_server::refused::{NOT_SEALED, Refused};
use sluice_server::service::audit::packet;
use std::fs::OpenOptions;
use std::io::Write as _;

pub(super) async fn run(args: &Seal, out: &mut Out) -> anyhow::Result<Exit> {
    if desk::server()?.is_some() {
        return Err(only_here("`audit seal`").into());
    }
    let local = Local::look(&args.data).await?;
    local.engine.seal().await?;
    let row = packet::newest(&*local.store).await?;
    local.close().await;
    let Some(row) = row else {
        let remedy = "run something first; what is older than hashes is never sealed";
        return Err(Refused::new(NOT_SEALED, "there is nothing to seal", remedy).into());
    };
    let line = format!("{}\n", row.text);
    match &args.out {
        None => out.print(&line)?,
        Some(path) => {
            let cannot = || format!("cannot write to {}", path.display());
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes())).with_context(cannot)?;
            out.note(&format!("seal {} was added to {}", row.number, path.display()))?;
        }
    }
    Ok(Exit::Done)
}
