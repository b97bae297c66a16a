//! `sluice resume`: continues an unfinished run in this process. The result of a run that
//! has ended is printed again.

use super::local_worker::LocalWorker;
use crate::Exit;
use crate::cli::run::Resume;
use crate::local;
use crate::out::Out;
use sluice_core::run::state::Pause;
use sluice_server::refused::{RUN_PAUSED, Refused};
use sluice_server::service::find;

pub(super) async fn run(args: &Resume, out: &mut Out) -> anyhow::Result<Exit> {
    local::existing(&args.options.data)?;
    let Some(worker) = LocalWorker::open(&args.options, out).await? else {
        return Ok(Exit::Refused);
    };
    let row = find::run(&worker.local, &args.run).await?;
    let run = find::load(&worker.local, row.run).await?;
    if run.status.is_terminal() && run.recovers_at_ms().is_none() {
        // A script that resumes after a crash need not know whether the run had just
        // ended: it gets the same result.
        out.note(&format!("{} has ended already", run.id))?;
        return worker.follow(run.id, run.version, out).await;
    }
    if row.owner.is_some() {
        return Err(Refused::owned(run.id).into());
    }
    if run.pause == Some(Pause::Operator) {
        let message = format!("{} is paused by an operator", run.id);
        let remedy = format!("`sluice runs unpause {}` first", run.id);
        return Err(Refused::new(RUN_PAUSED, message, remedy).into());
    }
    worker.check_agents(&run, |_, status| !status.is_settled()).await?;
    let taken = worker.local.engine.take_up(run.id).await;
    taken.map_err(|error| crate::refused::claim(run.id, error))?;
    out.note(&format!("{} continues", run.id))?;
    worker.follow(run.id, run.version, out).await
}
