//! `sluice runs branch`: a new run from a checkpoint of another.

use crate::Exit;
use crate::cli::runs::Branch;
use crate::client::Client;
use crate::cmd::errand::Errand;
use crate::cmd::renew;
use crate::cmd::work::Bench;
use crate::desk;
use crate::out::Out;
use serde_json::{Map, Value, json};
use sluice_server::service::course::{self, Renewal};
use sluice_server::service::{checkpoint, find};

pub(super) async fn run(args: &Branch, out: &mut Out) -> anyhow::Result<Exit> {
    if let Some(client) = desk::server_for(&args.place.here.data)? {
        return there(&client, args, out).await;
    }
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let row = find::run(&bench.local, &args.run.id).await?;
    let now = find::load(&bench.local, row.run).await?;
    let source = checkpoint::at(&bench.local, &now, args.at).await?;
    let set = args.set.iter().map(|(place, text)| (place.as_str(), value(text)));
    let changes = course::changes(&source, set)?;
    let renewal = Renewal::branch(&source, args.given.args(), &changes);
    if args.place.detach {
        return renew::note_down(renewal, bench, out).await;
    }
    renew::follow(renewal, bench, out).await
}

async fn there(client: &Client, args: &Branch, out: &mut Out) -> anyhow::Result<Exit> {
    let errand = Errand::new(client, &args.place)?;
    let set: Map<String, Value> =
        args.set.iter().map(|(place, text)| (place.clone(), value(text))).collect();
    let body = json!({"at": args.at, "args": args.given.args(), "set": set});
    errand.renew(&args.run.id, "branch", &body, out).await
}

/// What is no JSON is meant as text.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
