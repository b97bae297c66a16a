//! `sluice runs restart`: a new run with what another has done.

use crate::Exit;
use crate::cli::runs::Restart;
use crate::cmd::renew::{self, Renewal};
use crate::cmd::work::Bench;
use crate::live::confirm;
use crate::out::Out;
use crate::table::Table;
use sluice_core::run::start::Carried;
use sluice_core::run::state::Run;
use sluice_server::refused::{NOT_CONFIRMED, NOTHING_FAILED, RUN_NOT_ENDED, Refused};
use sluice_server::service::find;
use std::collections::BTreeSet;

pub(super) async fn run(args: &Restart, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let row = find::run(&bench.local, &args.run.id).await?;
    let source = find::load(&bench.local, row.run).await?;
    let carried = carried(&source, &args.from)?;
    agree(&source, &carried, args.place.here.yes, out)?;
    let renewal = Renewal::new(&source, "restart", carried);
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
    let carried = carried(source, from)?;
    agree(source, &carried, yes, out)?;
    renew::follow(Renewal::new(source, "restart", carried), bench, out).await
}

fn carried(source: &Run, from: &[String]) -> Result<Carried, Refused> {
    if !source.status.is_terminal() {
        let message = format!("{} has not ended; it is {}", source.id, source.status);
        let remedy =
            format!("`sluice runs cancel {0}` first, or `sluice runs rewind {0}`", source.id);
        return Err(Refused::new(RUN_NOT_ENDED, message, remedy));
    }
    let again: Result<BTreeSet<u32>, Refused> =
        from.iter().map(|name| renew::position(source, name)).collect();
    let carried = Carried::for_restart(source, again?);
    if carried.repeats(&source.definition.plan).is_empty() {
        let message = format!("nothing in {} failed, so nothing would be done again", source.id);
        return Err(Refused::new(NOTHING_FAILED, message, "say where to begin with `--from STEP`"));
    }
    Ok(carried)
}

/// Lists what would be done a second time, and asks whether it may be.
fn agree(source: &Run, carried: &Carried, yes: bool, out: &mut Out) -> anyhow::Result<()> {
    let mut table = Table::plain();
    let mut some = false;
    for position in carried.repeats(&source.definition.plan) {
        let state = &source.steps[position as usize];
        if state.dispatch_no == 0 {
            continue;
        }
        some = true;
        let step = &source.definition.plan.steps[position as usize];
        let agent = state.agent.clone().unwrap_or_default();
        let kind = step.work.kind().to_owned();
        table.row([step.id.clone(), kind, agent, state.status.to_string()]);
    }
    if !some {
        return Ok(());
    }
    let done = table.draw();
    out.note(&format!("done before in {}, and done again:\n{}", source.id, done.trim_end()))?;
    if yes || confirm(out)? {
        return Ok(());
    }
    let message = "nobody agreed that these steps are done again";
    Err(Refused::new(NOT_CONFIRMED, message, "say so with `--yes`").into())
}
