//! `sluice runs`.

mod assign;
mod branch;
mod cancel;
mod elide;
mod erase;
mod export;
mod failure;
mod list;
mod logs;
mod pause;
mod provenance;
pub(super) mod restart;
mod retry;
mod rewind;
mod show;
mod step;
mod unpause;
mod watch;

use crate::Exit;
use crate::cli::runs::Runs;
use crate::client::Client;
use crate::out::Out;
use anyhow::Context as _;

pub(super) async fn run(command: &Runs, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Runs::List(args) => list::run(args, out).await,
        Runs::Show(args) => show::run(args, out).await,
        Runs::Logs(args) => logs::run(args, out).await,
        Runs::Watch(args) => watch::run(args, out).await,
        Runs::Cancel(args) => cancel::run(args, out).await,
        Runs::Pause(args) => pause::run(args, out).await,
        Runs::Unpause(args) => unpause::run(args, out).await,
        Runs::Retry(args) => retry::run(args, out).await,
        Runs::Restart(args) => restart::run(args, out).await,
        Runs::Rewind(args) => rewind::run(args, out).await,
        Runs::Branch(args) => branch::run(args, out).await,
        Runs::Provenance(args) => provenance::run(args, out).await,
        Runs::Export(args) => export::run(args, out).await,
        Runs::Assign(args) => assign::run(args, out).await,
        Runs::Erase(args) => erase::run(args, out).await,
        Runs::Elide(args) => elide::run(args, out).await,
    }
}

/// Resolves a unique prefix of a run's id.
async fn id(client: &Client, text: &str) -> anyhow::Result<String> {
    let detail = client.get(&["runs", text], &[]).await?.data;
    let id = detail["run_id"].as_str().context("the server shows a run without its id")?;
    Ok(id.to_owned())
}
