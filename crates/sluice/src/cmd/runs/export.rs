//! `sluice runs export`: everything about a run in one object.

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::runs::Export;
use crate::out::{Layout, Out};

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let exported = client.get(&["runs", &args.run.id, "export"], &[]).await?;
    client.close().await;
    match args.target.output() {
        OutputFormat::Json => out.json(Layout::Line, &exported.raw)?,
        OutputFormat::Text => out.json(Layout::Pretty, &exported.data)?,
    }
    Ok(Exit::Done)
}
