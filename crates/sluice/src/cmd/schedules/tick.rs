//! `sluice schedules tick`: starts due runs of schedules, and executes them in this process.

use crate::Exit;
use crate::adapters;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::schedules::Tick;
use crate::cmd::local_worker::mock_script;
use crate::config;
use crate::local::{self, Local};
use crate::moderation;
use crate::out::{Layout, Out};
use crate::providers;
use crate::stop::{Signal, StopSignals};
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::store::Filter;
use sluice_core::status::RunStatus;
use sluice_core::visible;
use sluice_engine::config::Claims;
use sluice_engine::schedule::Starting;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// Interval of checks for due slots.
const LOOK_MS: u64 = 200;

pub(super) async fn run(args: &Tick, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`schedules tick`")?;
    local::existing(&args.data)?;
    let Some(script) = mock_script(args.mock.as_ref(), args.json.output(), out)? else {
        return Ok(Exit::Refused);
    };
    let scripted = script.is_some().then(|| adapters::MOCK.to_owned());
    let starting = Starting { default_agent: config::agent().or(scripted) };
    let agents = adapters::agents(&args.data, script, providers::live(&args.data)?);
    let policies = crate::policies::source()?;
    let moderator = moderation::moderator(args.moderation.as_ref())?;
    let local = Local::open_with(&args.data, agents, Claims::Own, policies, moderator).await?;
    let mut stop = StopSignals::listen()?;
    let done = tick(args, &local, &starting, &mut stop, out).await;
    if !stop.is_final()
        && let Err(signal) = stop.ending(local.close()).await
    {
        return Ok(signal.exit());
    }
    done.map(|()| Exit::Done)
}

/// Starts due runs until the time is over, then waits for them to end.
async fn tick(
    args: &Tick,
    local: &Local,
    starting: &Starting,
    stop: &mut StopSignals,
    out: &mut Out,
) -> anyhow::Result<()> {
    let until = args.for_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
    let mut open = BTreeSet::new();
    let mut over = false;
    loop {
        // A slot that waits for a run of this process becomes due when that run has ended.
        let ticked = if over { Default::default() } else { local.engine.tick(starting).await? };
        over |= until.is_some_and(|until| Instant::now() >= until);
        for (schedule, slot_ms, run) in ticked.started {
            print_started(args, &schedule, slot_ms, run, out)?;
            open.insert(run);
        }
        ended(args, local, &mut open, out).await?;
        if over && open.is_empty() {
            return Ok(());
        }
        tokio::select! {
            biased;
            signal = stop.next() => {
                if over || signal == Signal::Terminate {
                    return Ok(());
                }
                over = true;
                out.note("no further run is started; interrupt again to end at once")?;
            }
            () = tokio::time::sleep(Duration::from_millis(LOOK_MS)) => {}
        }
    }
}

fn print_started(
    args: &Tick,
    schedule: &str,
    slot_ms: u64,
    run: RunId,
    out: &mut Out,
) -> anyhow::Result<()> {
    if args.json.output() == OutputFormat::Json {
        let slot_at = timestamp(slot_ms);
        let run_id = run.to_string();
        let line = json!({"schedule": schedule, "slot_at": slot_at, "run_id": run_id});
        out.json(Layout::Line, &line)?;
    } else {
        let schedule = visible::brief(schedule).into_owned();
        out.print(&format!("{schedule}  {}  {run} started\n", amount::moment(slot_ms)))?;
    }
    out.flush()
}

/// Prints runs that have ended, or wait for an approval, which this command does not give.
async fn ended(
    args: &Tick,
    local: &Local,
    open: &mut BTreeSet<RunId>,
    out: &mut Out,
) -> anyhow::Result<()> {
    for run in open.clone() {
        let filter = Filter { run: Some(run), limit: 1, ..Filter::default() };
        let Some(row) = local.store.list(filter).await?.into_iter().next() else { continue };
        let recovers = row.status == RunStatus::Failed && row.due_at_ms.is_some();
        let settled = row.status.is_terminal() && !recovers;
        if !settled && row.status != RunStatus::Paused {
            continue;
        }
        open.remove(&run);
        if args.json.output() == OutputFormat::Json {
            let line = json!({"run_id": run.to_string(), "status": row.status});
            out.json(Layout::Line, &line)?;
        } else {
            out.print(&format!("{run} {}\n", row.status))?;
        }
        out.flush()?;
    }
    Ok(())
}
