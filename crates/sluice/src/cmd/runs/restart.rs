//! `sluice runs restart`: a new run with what another has done.

use crate::Exit;
use crate::cli::runs::Restart;
use crate::cmd::renew;
use crate::cmd::work::Bench;
use crate::live::confirm;
use crate::out::Out;
use crate::table::Table;
use sluice_core::run::state::Run;
use sluice_server::refused::{NOT_CONFIRMED, Refused};
use sluice_server::service::course::Renewal;
use sluice_server::service::find;

pub(super) async fn run(args: &Restart, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let row = find::run(&bench.local, &args.run.id).await?;
    let source = find::load(&bench.local, row.run).await?;
    let renewal = Renewal::restart(&source, &args.from)?;
    agree(&source, &renewal, args.place.here.yes, out)?;
    if args.place.detach {
        return renew::note_down(renewal, bench, out).await;
    }
    renew::follow(renewal, bench, out).await
}

/// The same, for a caller that has the run and works here.
pub(in crate::cmd) async fn again(
    source: &Run,
    from: &[String],
    bench: Bench<'_>,
    yes: bool,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let renewal = Renewal::restart(source, from)?;
    agree(source, &renewal, yes, out)?;
    renew::follow(renewal, bench, out).await
}

/// Lists what would be done a second time, and asks whether it may be.
fn agree(source: &Run, renewal: &Renewal<'_>, yes: bool, out: &mut Out) -> anyhow::Result<()> {
    let mut table = Table::plain();
    let repeated = renewal.repeated();
    if repeated.is_empty() {
        return Ok(());
    }
    for position in repeated {
        let state = &source.steps[position as usize];
        let step = &source.definition.plan.steps[position as usize];
        let agent = state.agent.clone().unwrap_or_default();
        let kind = step.work.kind().to_owned();
        table.row([step.id.clone(), kind, agent, state.status.to_string()]);
    }
    let done = table.draw();
    out.note(&format!("done before in {}, and done again:\n{}", source.id, done.trim_end()))?;
    if yes || confirm(out)? {
        return Ok(());
    }
    let message = "nobody agreed that these steps are done again";
    Err(Refused::new(NOT_CONFIRMED, message, "say so with `--yes`").into())
}
