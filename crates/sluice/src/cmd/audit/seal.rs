//! `sluice audit seal`: seals everything and prints the newest seal.

use crate::Exit;
use crate::backend::{self, Identity};
use crate::cli::audit::Seal;
use crate::out::Out;
use crate::seal_file;
use anyhow::Context as _;
use serde_json::json;
use std::fs::OpenOptions;

pub(super) async fn run(args: &Seal, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.data, Identity::default()).await?;
    let made = client.post(&["audit", "seal"], &json!({})).await?.data;
    client.close().await;
    let number = made["number"].as_u64().unwrap_or_default();
    let text = made["seal"].as_str().unwrap_or_default();
    match &args.out {
        None => out.print(&format!("{text}\n"))?,
        Some(path) => {
            let cannot = || format!("cannot write to {}", path.display());
            let is_torn = seal_file::ends_in_mid_line(path).with_context(cannot)?;
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.and_then(|file| seal_file::append_line(&file, text, is_torn))
                .with_context(cannot)?;
            out.note(&format!("seal {number} was added to {}", path.display()))?;
        }
    }
    Ok(Exit::Done)
}
