//! `sluice audit export`: a run's packet.

use crate::Exit;
use crate::backend;
use crate::cli::audit::Export;
use crate::out::Out;
use anyhow::Context as _;
use sluice_core::evidence::packet::Packet;
use std::path::PathBuf;

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.data).await?;
    let packet = client.text(&["runs", &args.run, "audit"]).await?;
    client.close().await;
    let packet = Packet::parse(&packet).context("the server does not send a packet")?;
    let missing = packet.verify(&[packet.seal.key]).context("the packet is not valid")?.len();
    let run = packet.run;
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{run}.packet")));
    std::fs::write(&path, format!("{}\n", packet.text()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let (events, seal) = (packet.events.len(), packet.seal.number);
    out.print(&format!("{}: {run}, {events} events, under seal {seal}\n", path.display()))?;
    if missing > 0 {
        out.note(&format!("{missing} policy sets that decisions name are not in this store"))?;
    }
    Ok(Exit::Done)
}
