//! New runs that are made from others: by restart, by branch.

use super::work::Bench;
use crate::Exit;
use crate::out::Out;
use anyhow::Context as _;
use serde_json::{Map, Value};
use sluice_core::journal::event::Origin;
use sluice_core::run::command::Dispatching;
use sluice_core::run::id::RunId;
use sluice_core::run::start::Carried;
use sluice_core::run::state::Run;
use sluice_core::suggest::suggest;
use sluice_engine::start::Start;
use sluice_server::refused::{self, Refused};

/// A new run in the making.
pub(super) struct Renewal<'a> {
    source: &'a Run,
    kind: &'static str,
    carried: Carried,
    args: Map<String, Value>,
}

impl<'a> Renewal<'a> {
    pub(super) fn new(source: &'a Run, kind: &'static str, carried: Carried) -> Renewal<'a> {
        Renewal { source, kind, carried, args: (*source.started.args).clone() }
    }

    /// With some arguments changed.
    pub(super) fn with_args(mut self, args: Map<String, Value>) -> Renewal<'a> {
        self.args.extend(args);
        self
    }
}

/// Starts it and works on it here.
pub(super) async fn follow(
    renewal: Renewal<'_>,
    bench: Bench<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let (kind, source) = (renewal.kind, renewal.source.id);
    let run = start(renewal, &bench, Dispatching::Allowed).await?;
    out.note(&format!("{run} started, a {kind} of {source}"))?;
    bench.follow(run, 0, out).await
}

/// Starts it and leaves the work to others.
pub(super) async fn note_down(
    renewal: Renewal<'_>,
    bench: Bench<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let (kind, source) = (renewal.kind, renewal.source.id);
    let run = start(renewal, &bench, Dispatching::Deferred).await?;
    out.note(&format!("{run} started, a {kind} of {source}"))?;
    let again = &bench.again.look;
    out.print(&format!("{run} waits; `sluice resume {run}{again}` takes it up\n"))?;
    bench.local.close().await;
    Ok(Exit::Done)
}

async fn start(
    renewal: Renewal<'_>,
    bench: &Bench<'_>,
    dispatching: Dispatching,
) -> anyhow::Result<RunId> {
    let Renewal { source, kind, carried, args } = renewal;
    let begun = &source.started;
    let hash = begun.definition.context("the run names no definition")?;
    let stored = bench.local.engine.definition(hash).await.map_err(refused::load)?;
    let stored = stored.map_err(anyhow::Error::msg)?;
    let mut start = Start::new(stored, args);
    start.children = begun.children.clone();
    start.initiator.clone_from(&bench.who);
    start.default_agent.clone_from(&begun.default_agent);
    start.role_bindings = begun.role_bindings.clone();
    start.origin = Some(Origin { kind: kind.to_owned(), run: source.id, event: source.version });
    start.carried = carried;
    start.agreed = Carried::agreed(source);
    start.dispatching = dispatching;
    Ok(bench.local.engine.start(start).await.map_err(refused::start)?.run)
}

/// A step of a run, by its id.
pub(super) fn position(run: &Run, name: &str) -> Result<u32, Refused> {
    let plan = &run.definition.plan;
    let at = plan.graph.position(name).and_then(|at| u32::try_from(at).ok());
    at.ok_or_else(|| {
        let ids = plan.steps.iter().map(|step| step.id.as_str());
        let remedy = match suggest(name, ids) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("`sluice runs show {}` lists its steps", run.id),
        };
        Refused::new("unknown_step", format!("{} has no step `{name}`", run.id), remedy)
    })
}
