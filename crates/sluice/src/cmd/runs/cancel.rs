//! `sluice runs cancel`.

use crate::Exit;
use crate::cli::runs::Cancel;
use crate::cmd::told;
use crate::desk::{self, Desk};
use crate::local;
use crate::out::Out;
use serde_json::json;
use sluice_core::run::command::Command;
use sluice_core::run::status::RunStatus;
use sluice_core::visible;
use sluice_server::service::find;

pub(super) async fn run(args: &Cancel, out: &mut Out) -> anyhow::Result<Exit> {
    let local = match Desk::write(&args.told.data).await? {
        Desk::Here(local) => local,
        Desk::There(client) => {
            desk::by_token(&args.told.name)?;
            let reason = json!({"reason": args.reason});
            let run = super::id(&client, &args.told.run.id).await?;
            let path = ["runs", &run, "cancel"];
            let told = told::there(&client, &path, &reason).await?;
            say(&visible::brief(&told.run_id), &told.status, out)?;
            return Ok(Exit::Done);
        }
    };
    let run = find::run(&local, &args.told.run.id).await?.run;
    let by = local::who(&args.told.name);
    let cancel = Command::Cancel { by, reason: args.reason.clone() };
    told::tell(&local, run, cancel, |run| run.status.is_terminal(), out).await?;
    let now = find::load(&local, run).await?;
    say(&run.to_string(), now.status.as_str(), out)?;
    local.close().await;
    Ok(Exit::Done)
}

fn say(run: &str, status: &str, out: &mut Out) -> anyhow::Result<()> {
    if status == RunStatus::Cancelled.as_str() {
        return out.print(&format!("{run} is cancelled\n"));
    }
    let status = visible::brief(status);
    out.print(&format!("{run} is being cancelled; it is {status}\n"))
}
