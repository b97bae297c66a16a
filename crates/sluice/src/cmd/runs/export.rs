//! `sluice runs export`: everything about a run in one object.

use crate::Exit;
use crate::cli::Reader;
use crate::cli::runs::Export;
use crate::desk::Desk;
use crate::out::{Layout, Out};
use serde_json::Value;
use serde_json::value::RawValue;
use sluice_server::service::{course, export};

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::read(&args.data).await?;
    let exported: Box<RawValue> = match &desk {
        Desk::Here(local) => {
            let run = course::load(local, &args.run.id).await?;
            export::export(local, &run).await?
        }
        Desk::There(client) => client.get(&["runs", &args.run.id, "export"], &[]).await?.raw,
    };
    desk.close().await;
    match args.json.reader() {
        Reader::Program => out.json(Layout::Line, &exported)?,
        Reader::Person => {
            let exported: Value = serde_json::from_str(exported.get())?;
            out.json(Layout::Pretty, &exported)?;
        }
    }
    Ok(Exit::Done)
}
