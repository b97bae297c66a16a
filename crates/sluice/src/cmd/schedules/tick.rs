//! `sluice schedules tick`: the schedules are looked after here.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::schedules::Tick;
use crate::cmd::work::script;
use crate::config;
use crate::desk;
use crate::hands;
use crate::kit;
use crate::local::{self, Local};
use crate::moderation;
use crate::out::{Layout, Out};
use crate::stop::{Signal, Stop};
use serde_json::json;
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::store::Filter;
use sluice_core::run::id::RunId;
use sluice_core::run::status::RunStatus;
use sluice_core::visible;
use sluice_engine::config::Claims;
use sluice_engine::schedule::Starting;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How often the schedules are looked at, in milliseconds.
const LOOK_MS: u64 = 200;

pub(super) async fn run(args: &Tick, out: &mut Out) -> anyhow::Result<Exit> {
    desk::here("`schedules tick`")?;
    local::existing(&args.data)?;
    let script = match &args.mock {
        None => None,
        Some(name) => match script(name, args.json.reader(), out)? {
            Some(script) => Some(script),
            None => return Ok(Exit::Refused),
        },
    };
    let scripted = script.is_some().then(|| hands::MOCK.to_owned());
    let starting = Starting { default_agent: config::agent().or(scripted) };
    let agents = hands::agents(&args.data, script, kit::live(&args.data)?);
    let policies = crate::policies::source()?;
    let moderator = moderation::moderator(args.moderation.as_ref())?;
    let local = Local::under(&args.data, agents, Claims::Own, policies, moderator).await?;
    let mut stop = Stop::listen()?;
    let done = look_after(args, &local, &starting, &mut stop, out).await;
    if !stop.is_final()
        && let Err(signal) = stop.ending(local.close()).await
    {
        return Ok(signal.exit());
    }
    done.map(|()| Exit::Done)
}

/// Looks at the schedules until the time is over, then waits for what was started.
async fn look_after(
    args: &Tick,
    local: &Local,
    starting: &Starting,
    stop: &mut Stop,
    out: &mut Out,
) -> anyhow::Result<()> {
    let until = args.for_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
    let mut open = BTreeSet::new();
    let mut over = false;
    loop {
        // What waits for a run that was started here comes when that has ended.
        let ticked = if over { Default::default() } else { local.engine.tick(starting).await? };
        over |= until.is_some_and(|until| Instant::now() >= until);
        for (schedule, slot_ms, run) in ticked.started {
            told(args, &schedule, slot_ms, run, out)?;
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
                out.note("no more is started; interrupt once more to leave at once")?;
            }
            () = tokio::time::sleep(Duration::from_millis(LOOK_MS)) => {}
        }
    }
}

fn told(
    args: &Tick,
    schedule: &str,
    slot_ms: u64,
    run: RunId,
    out: &mut Out,
) -> anyhow::Result<()> {
    if args.json.reader() == Reader::Program {
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

/// Tells of runs that have ended, or wait for people: nobody here answers.
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
        if args.json.reader() == Reader::Program {
            let line = json!({"run_id": run.to_string(), "status": row.status});
            out.json(Layout::Line, &line)?;
        } else {
            out.print(&format!("{run} {}\n", row.status))?;
        }
        out.flush()?;
    }
    Ok(())
}
