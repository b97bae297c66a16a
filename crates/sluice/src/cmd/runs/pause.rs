//! `sluice runs pause`.

use crate::Exit;
use crate::cli::runs::Told;
use crate::cmd::told::{self, Told as Became};
use crate::desk::{self, Desk};
use crate::local::{self, Again};
use crate::out::Out;
use serde_json::json;
use sluice_core::run::command::Command;
use sluice_core::run::state::{Pause, Run};
use sluice_core::visible;
use sluice_server::service::find;

pub(super) async fn run(args: &Told, out: &mut Out) -> anyhow::Result<Exit> {
    let local = match Desk::write(&args.data).await? {
        Desk::Here(local) => local,
        Desk::There(client) => {
            desk::by_token(&args.name)?;
            let run = super::id(&client, &args.run.id).await?;
            let told = told::there(&client, &["runs", &run, "pause"], &json!({})).await?;
            say(&visible::brief(&told.run_id), told.became(), args, out)?;
            return Ok(Exit::Done);
        }
    };
    let run = find::run(&local, &args.run.id).await?.run;
    let pause = Command::Pause { by: local::who(&args.name) };
    let paused = |run: &Run| run.pause == Some(Pause::Operator);
    let became = told::tell(&local, run, pause, paused, out).await?;
    say(&run.to_string(), became, args, out)?;
    local.close().await;
    Ok(Exit::Done)
}

fn say(run: &str, became: Became, args: &Told, out: &mut Out) -> anyhow::Result<()> {
    let is = if became == Became::Sent { "will be" } else { "is" };
    let again = Again::of(&args.data, None).look;
    out.print(&format!("{run} {is} paused; `sluice runs unpause {run}{again}` lets it go on\n"))
}
