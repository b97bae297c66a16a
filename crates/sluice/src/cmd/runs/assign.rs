//! `sluice runs assign`: somebody is chosen for a step that nobody fits.

use crate::Exit;
use crate::cli::runs::Assign;
use crate::cmd::told::{self, Told as Became};
use crate::desk::{self, Desk};
use crate::local::{self, Again};
use crate::out::Out;
use serde_json::json;
use sluice_core::run::command::Command;
use sluice_core::run::state::Run;
use sluice_core::visible;
use sluice_server::service::{course, find};

pub(super) async fn run(args: &Assign, out: &mut Out) -> anyhow::Result<Exit> {
    let told = &args.told;
    let local = match Desk::write(&told.data).await? {
        Desk::Here(local) => local,
        Desk::There(client) => {
            desk::by_token(&told.name)?;
            let body = json!({"step": args.step, "whom": args.whom});
            let run = super::id(&client, &told.run.id).await?;
            let became = told::there(&client, &["runs", &run, "assign"], &body).await?.became();
            let is = if became == Became::Sent { "will be" } else { "is" };
            let (step, whom) = (visible::brief(&args.step), visible::brief(&args.whom));
            out.print(&format!("{step} {is} {whom}'s\n"))?;
            return Ok(Exit::Done);
        }
    };
    let run = find::run(&local, &told.run.id).await?.run;
    let before = find::load(&local, run).await?;
    let step = course::position(&before, &args.step)?;
    let whom = args.whom.clone();
    let assign = Command::Assign { by: local::who(&told.name), step, whom };
    let assigned = |run: &Run| run.steps[step as usize].assigned.is_some();
    let became = told::tell(&local, run, assign, assigned, out).await?;
    let is = if became == Became::Sent { "will be" } else { "is" };
    let again = Again::of(&told.data, None).work;
    let (step, whom) = (visible::brief(&args.step), visible::brief(&args.whom));
    out.print(&format!(
        "{step} {is} {whom}'s; `sluice resume {run}{again}` takes the run up where nobody has it\n"
    ))?;
    local.close().await;
    Ok(Exit::Done)
}
