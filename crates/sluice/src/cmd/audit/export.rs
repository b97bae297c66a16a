//! `sluice audit export`: a run's packet.

use crate::Exit;
use crate::cli::audit::Export;
use crate::local::Local;
use crate::out::Out;
use anyhow::Context as _;
use sluice_server::service::audit::packet;
use sluice_server::service::find;
use std::path::PathBuf;

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let run = find::run(&local, &args.run).await?.run;
    let (packet, lacking) = packet::packet(&local, run).await?;
    local.close().await;
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{run}.packet")));
    std::fs::write(&path, format!("{}\n", packet.text()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let (events, seal) = (packet.events.len(), packet.seal.number);
    out.print(&format!("{}: {run}, {events} events, under seal {seal}\n", path.display()))?;
    if lacking > 0 {
        out.note(&format!("{lacking} policy sets that decisions name are not in this store"))?;
    }
    Ok(Exit::Done)
}
