//! `sluice runs retry`.

use crate::Exit;
use crate::cli::runs::Retry;
use crate::client::Client;
use crate::cmd::errand::Errand;
use crate::cmd::told::{self, Told};
use crate::cmd::work::Bench;
use crate::desk;
use crate::out::Out;
use serde_json::json;
use sluice_core::run::status::StepStatus;
use sluice_server::service::{course, find};

pub(super) async fn run(args: &Retry, out: &mut Out) -> anyhow::Result<Exit> {
    if let Some(client) = desk::server_for(&args.place.here.data)? {
        return there(&client, args, out).await;
    }
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let run = find::run(&bench.local, &args.run.id).await?.run;
    let before = find::load(&bench.local, run).await?;
    let retry = course::retry(&before, &bench.who)?;
    bench.has_hands_for(&before, |_, status| status != StepStatus::Completed).await?;
    let reopened = before.reopened;
    let told = told::tell(&bench.local, run, retry, |run| run.reopened > reopened, out).await?;
    if args.place.detach || told != Told::Here {
        let again = &bench.again.look;
        let text = format!("{run} is open again; `sluice resume {run}{again}` takes it up");
        return bench.detach(run, &text, out).await;
    }
    out.note(&format!("{run} is open again"))?;
    bench.follow(run, before.version, out).await
}

async fn there(client: &Client, args: &Retry, out: &mut Out) -> anyhow::Result<Exit> {
    let errand = Errand::new(client, &args.place)?;
    let before = errand.detail(&args.run.id).await?;
    let told = told::there(client, &["runs", &before.run_id, "retry"], &json!({})).await?;
    errand.go_on(&told.run_id, "is open again", before.last_event_id, out).await
}
