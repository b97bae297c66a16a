//! `sluice runs branch`: a new run from a checkpoint of another.

use crate::Exit;
use crate::cli::runs::Branch;
use crate::cmd::renew;
use crate::cmd::work::Bench;
use crate::out::Out;
use sluice_server::service::course::{self, Renewal};
use sluice_server::service::{checkpoint, find};

pub(super) async fn run(args: &Branch, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let row = find::run(&bench.local, &args.run.id).await?;
    let now = find::load(&bench.local, row.run).await?;
    let source = checkpoint::at(&bench.local, &now, args.at).await?;
    // What is no JSON is meant as text.
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| text.clone().into());
    let set = args.set.iter().map(|(place, text)| (place.as_str(), value(text)));
    let changes = course::changes(&source, set)?;
    let renewal = Renewal::branch(&source, args.given.args(), &changes);
    if args.place.detach {
        return renew::note_down(renewal, bench, out).await;
    }
    renew::follow(renewal, bench, out).await
}
