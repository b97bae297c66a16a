//! `sluice runs branch`: a new run from a checkpoint of another.

use crate::Exit;
use crate::cli::runs::Branch;
use crate::cmd::renew::{self, Renewal};
use crate::cmd::work::Bench;
use crate::out::Out;
use serde_json::{Map, Value};
use sluice_core::run::start::Carried;
use sluice_core::run::state::Run;
use sluice_core::run::status::StepStatus;
use sluice_server::refused::Refused;
use sluice_server::service::checkpoint;
use sluice_server::service::find;
use std::collections::BTreeMap;

pub(super) async fn run(args: &Branch, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let row = find::run(&bench.local, &args.run.id).await?;
    let now = find::load(&bench.local, row.run).await?;
    let source = checkpoint::at(&bench.local, &now, args.at).await?;
    let carried = Carried::for_branch(&source, &changes(&source, &args.set)?);
    let renewal = Renewal::new(&source, "branch", carried).with_args(args.given.args());
    if args.place.detach {
        return renew::note_down(renewal, bench, out).await;
    }
    renew::follow(renewal, bench, out).await
}

/// Outputs that are taken to have been others, by step.
fn changes(
    source: &Run,
    set: &[(String, String)],
) -> Result<BTreeMap<u32, Map<String, Value>>, Refused> {
    let mut changes: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
    for (place, text) in set {
        let Some((step, output)) = place.split_once('.') else {
            let message = format!("`{place}` does not name an output");
            return Err(Refused::new("bad_reference", message, "write it as STEP.OUTPUT=JSON"));
        };
        let position = renew::position(source, step)?;
        if source.steps[position as usize].status != StepStatus::Completed {
            let message = format!("step `{step}` was not completed at this checkpoint");
            let remedy = "take a later checkpoint, or leave this `--set` out";
            return Err(Refused::new("bad_reference", message, remedy));
        }
        // What is no JSON is meant as text.
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.clone()));
        changes.entry(position).or_default().insert(output.to_owned(), value);
    }
    Ok(changes)
}
