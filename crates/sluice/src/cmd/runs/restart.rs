//! `sluice runs restart`: a new run with what another has done.

use crate::Exit;
use crate::cli::runs::Restart;
use crate::client::Client;
use crate::cmd::errand::Errand;
use crate::cmd::renew;
use crate::cmd::work::Bench;
use crate::desk;
use crate::live::confirm;
use crate::out::Out;
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::run::state::Run;
use sluice_server::refused::{NOT_CONFIRMED, Refused};
use sluice_server::service::course::Renewal;
use sluice_server::service::find;

pub(super) async fn run(args: &Restart, out: &mut Out) -> anyhow::Result<Exit> {
    if let Some(client) = desk::server_for(&args.place.here.data)? {
        return there(&client, args, out).await;
    }
    let Some(bench) = Bench::at(&args.place, out).await? else { return Ok(Exit::Refused) };
    let row = find::run(&bench.local, &args.run.id).await?;
    let source = find::load(&bench.local, row.run).await?;
    let renewal = Renewal::restart(&source, &args.from)?;
    agree(&source, &renewal, args.place.here.yes, out)?;
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
    let renewal = Renewal::restart(source, from)?;
    agree(source, &renewal, yes, out)?;
    renew::follow(renewal, bench, out).await
}

/// The same at a server, which says first what would be done a second time.
async fn there(client: &Client, args: &Restart, out: &mut Out) -> anyhow::Result<Exit> {
    let errand = Errand::new(client, &args.place)?;
    let source = errand.detail(&args.run.id).await?.run_id;
    let preview = json!({"from": args.from, "preview": true});
    let preview = client.post(&["runs", &source, "restart"], &preview).await?.data;
    let repeats: Vec<&Value> = preview["repeats"].as_array().into_iter().flatten().collect();
    let state = client.get(&["runs", &source, "state"], &[]).await?.data;
    let nodes = state["node_results"].as_array().into_iter().flatten();
    let rows = nodes.filter(|node| repeats.contains(&&node["node_id"])).map(|node| {
        let text = |name: &str| node[name].as_str().unwrap_or_default().to_owned();
        [text("node_id"), text("agent"), text("status")]
    });
    confirmed(&source, rows.collect(), args.place.here.yes, out)?;
    errand.renew(&source, "restart", &json!({"from": args.from}), out).await
}

/// Lists what would be done a second time, and asks whether it may be.
fn agree(source: &Run, renewal: &Renewal<'_>, yes: bool, out: &mut Out) -> anyhow::Result<()> {
    let rows = renewal.repeated(source).into_iter().map(|position| {
        let state = &source.steps[position as usize];
        let step = &source.definition.plan.steps[position as usize];
        let agent = state.agent().unwrap_or_default().to_owned();
        [step.id.clone(), agent, state.status().to_string()]
    });
    confirmed(&source.id.to_string(), rows.collect(), yes, out)
}

fn confirmed(
    source: &str,
    repeated: Vec<[String; 3]>,
    yes: bool,
    out: &mut Out,
) -> anyhow::Result<()> {
    if repeated.is_empty() {
        return Ok(());
    }
    let mut table = Table::plain();
    repeated.into_iter().for_each(|row| table.row(row));
    let done = table.draw();
    out.note(&format!("done before in {source}, and done again:\n{}", done.trim_end()))?;
    if yes || confirm(out)? {
        return Ok(());
    }
    let message = "nobody agreed that these steps are done again";
    Err(Refused::new(NOT_CONFIRMED, message, "say so with `--yes`").into())
}
