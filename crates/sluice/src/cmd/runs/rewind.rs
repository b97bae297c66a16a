//! `sluice runs rewind`: back to a checkpoint in the same run.

use crate::Exit;
use crate::cli::runs::Rewind;
use crate::client::Client;
use crate::cmd::errand::Errand;
use crate::cmd::told::{self, Told};
use crate::cmd::work::Bench;
use crate::desk;
use crate::out::Out;
use serde_json::json;
use sluice_core::run::state::Run;
use sluice_server::service::{course, find};

pub(super) async fn run(args: &Rewind, out: &mut Out) -> anyhow::Result<Exit> {
    if let Some(client) = desk::server_for(&args.place.here.data)? {
        return there(&client, args, out).await;
    }
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let run = find::run(&bench.local, &args.run.id).await?.run;
    let before = find::load(&bench.local, run).await?;
    let (rewind, keep) = course::rewind(&bench.local, &before, args.to, &bench.who).await?;
    bench.has_hands_for(&before, |position, _| !keep.contains(&position)).await?;
    let generations = generations(&before);
    let moved = |run: &Run| self::generations(run) > generations;
    let told = told::tell(&bench.local, run, rewind, moved, out).await?;
    let to = args.to;
    if args.place.detach || told != Told::Here {
        let again = &bench.again.look;
        let next = match told {
            Told::Here => format!("`sluice resume {run}{again}` takes it up"),
            Told::There | Told::Sent => format!("`sluice runs watch {run}{again}` follows it"),
        };
        let text = format!("{run} is back at checkpoint {to}; {next}");
        return bench.detach(run, &text, out).await;
    }
    out.note(&format!("{run} is back at checkpoint {to}"))?;
    bench.follow(run, before.version, out).await
}

fn generations(run: &Run) -> u64 {
    run.steps.iter().map(|step| u64::from(step.generation)).sum()
}

async fn there(client: &Client, args: &Rewind, out: &mut Out) -> anyhow::Result<Exit> {
    let errand = Errand::new(client, &args.place)?;
    let before = errand.detail(&args.run.id).await?;
    let (path, to) = (["runs", &before.run_id, "rewind"], args.to);
    let told = told::there(client, &path, &json!({"to": to})).await?;
    let word = format!("is back at checkpoint {to}");
    errand.go_on(&told.run_id, &word, before.last_event_id, out).await
}
