//! `sluice audit adopt`: authenticates a store with a new key after the loss of the old one.

use crate::Exit;
use crate::backend;
use crate::cli::audit::Adopt;
use crate::data_location::DataLocation;
use crate::local::{self, Local};
use crate::out::Out;
use serde_json::json;
use sluice_core::port::ledger::Entry;
use sluice_server::service::registry::now_ms;

pub(super) async fn run(args: &Adopt, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`audit adopt`")?;
    local::existing(&args.data)?;
    let doubts = DataLocation::resolve(&args.data)?.adopt().await?;
    let local = Local::open_existing(&args.data).await?;
    let dir = local::directory(&args.data).display().to_string();
    let entry = Entry {
        at_ms: now_ms(),
        category: "security",
        what: "store_adopted".to_owned(),
        actor: local::principal(args.name.who.as_deref()),
        resource_type: "store".to_owned(),
        resource_id: dir.clone(),
        event: None,
        detail: json!({
            "runs_in_doubt": doubts.runs.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "writers_in_doubt": doubts.entries.keys().map(ToString::to_string).collect::<Vec<_>>(),
        }),
    };
    local.store.record(local.engine.node(), vec![entry]).await?;
    local.close().await;
    out.print(&format!("`{dir}` is authenticated with its `seal.key`\n"))?;
    if !doubts.runs.is_empty() {
        out.note(&format!(
            "{} runs do not fit their hashes: `sluice audit verify`",
            doubts.runs.len()
        ))?;
    }
    Ok(Exit::Done)
}
