//! New runs that are made from others: by restart, by branch.

use super::work::Bench;
use crate::Exit;
use crate::out::Out;
use sluice_core::run::command::Dispatching;
use sluice_server::service::course::Renewal;

/// Starts it and works on it here.
pub(super) async fn follow(
    renewal: Renewal<'_>,
    bench: Bench<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let (kind, source) = (renewal.kind, renewal.source());
    let run = renewal.start(&bench.local, &bench.who, Dispatching::Allowed).await?;
    out.note(&format!("{run} started, a {kind} of {source}"))?;
    bench.follow(run, 0, out).await
}

/// Starts it and leaves the work to others.
pub(super) async fn note_down(
    renewal: Renewal<'_>,
    bench: Bench<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let (kind, source) = (renewal.kind, renewal.source());
    let run = renewal.start(&bench.local, &bench.who, Dispatching::Deferred).await?;
    out.note(&format!("{run} started, a {kind} of {source}"))?;
    let text = format!("{run} waits; `sluice resume {run}{}` takes it up", bench.again.look);
    bench.detach(run, &text, out).await
}
