//! `sluice runs export`: everything about a run in one object.

use crate::Exit;
use crate::cli::Reader;
use crate::cli::runs::Export;
use crate::desk::Desk;
use crate::out::{Layout, Out};
use serde_json::Value;
use sluice_server::service::{course, export};

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::look(&args.data).await?;
    let exported: Value = match &desk {
        Desk::Here(local) => {
            let run = course::load(local, &args.run.id).await?;
            serde_json::from_str(export::export(local, &run).await?.get())?
        }
        Desk::There(client) => client.get(&["runs", &args.run.id, "export"], &[]).await?.data,
    };
    desk.close().await;
    let layout = match args.json.reader() {
        Reader::Person => Layout::Pretty,
        Reader::Program => Layout::Line,
    };
    out.json(layout, &exported)?;
    Ok(Exit::Done)
}
