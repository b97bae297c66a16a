//! `sluice audit export`: a run's packet.

use crate::Exit;
use crate::cli::audit::Export;
use crate::desk::Desk;
use crate::out::Out;
use anyhow::Context as _;
use sluice_core::evidence::packet::Packet;
use sluice_server::service::audit::packet;
use sluice_server::service::find;
use std::path::PathBuf;

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::read(&args.data).await?;
    let (packet, lacking) = match &desk {
        Desk::Here(local) => {
            let run = find::run(local, &args.run).await?.run;
            packet::packet(local, run).await?
        }
        Desk::There(client) => {
            let packet = client.text(&["runs", &args.run, "audit"]).await?;
            let packet = Packet::parse(&packet).context("the server sends no packet")?;
            let lacking = packet.verify(&[packet.seal.key]).context("the packet does not hold")?;
            let lacking = lacking.len();
            (packet, lacking)
        }
    };
    desk.close().await;
    let run = packet.run;
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
