//! `sluice runs provenance`: where values came from, and where they went.

mod mermaid;

use crate::Exit;
use crate::cli::Reader;
use crate::cli::runs::{Provenance, Shape, Way};
use crate::client::Client;
use crate::desk::Desk;
use crate::local::Local;
use crate::out::{Layout, Out};
use crate::table::Table;
use anyhow::Context as _;
use serde_json::{Value, json};
use sluice_core::run::id::RunId;
use sluice_core::run::provenance::{Crossing, Place};
use sluice_engine::provenance::{Ask, Direction, Trace};
use sluice_server::refused;
use sluice_server::service::find;

pub(super) async fn run(args: &Provenance, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::read(&args.data).await?;
    let (id, trace) = match &desk {
        Desk::Here(local) => here(local, args).await?,
        Desk::There(client) => there(client, args).await?,
    };
    desk.close().await;
    let shape = if args.json.reader() == Reader::Program { Shape::Json } else { args.format };
    match shape {
        Shape::Json => {
            let (rows, cut) = (trace.rows(), trace.cut);
            let answer = json!({"run_id": id.to_string(), "rows": rows, "cut": cut});
            out.json(Layout::Line, &answer)?;
        }
        Shape::Mermaid => out.print(&mermaid::draw(id, &trace))?,
        Shape::Table => {
            if trace.crossings.is_empty() {
                out.note("no values crossed from one step to another")?;
            } else {
                out.print(&table(id, &trace))?;
            }
        }
    }
    if trace.cut && shape != Shape::Json {
        out.note("there is more: further runs, or some that cannot be read")?;
    }
    Ok(Exit::Done)
}

async fn here(local: &Local, args: &Provenance) -> anyhow::Result<(RunId, Trace)> {
    let id = find::run(local, &args.run.id).await?.run;
    let run = find::load(local, id).await?;
    if let Some(step) = &args.step {
        find::step(&run, step)?;
    }
    let direction = match args.direction {
        Way::Up => Direction::Up,
        Way::Down => Direction::Down,
        Way::Both => Direction::Both,
    };
    let (step, hops_max) = (args.step.clone(), args.hops.into());
    let ask = Ask { step, direction, hops_max, steps_max: u32::MAX };
    Ok((id, local.engine.provenance(id, &ask).await.map_err(refused::load)?))
}

async fn there(client: &Client, args: &Provenance) -> anyhow::Result<(RunId, Trace)> {
    let direction = match args.direction {
        Way::Up => "up",
        Way::Down => "down",
        Way::Both => "both",
    };
    let mut query = vec![("direction", direction.to_owned()), ("hops", args.hops.to_string())];
    query.extend(args.step.iter().map(|step| ("step", step.clone())));
    let said = client.get(&["runs", &args.run.id, "provenance"], &query).await?.data;
    let read = || -> Option<(RunId, Trace)> {
        let rows = said["rows"].as_array()?;
        let crossings = rows.iter().map(crossing).collect::<Option<_>>()?;
        let places = rows.iter().flat_map(|row| [&row["source"], &row["target"]]);
        let workflow = |place: &Value| {
            let run = RunId::parse(place["run_id"].as_str()?)?;
            Some((run, place["workflow"].as_str()?.to_owned()))
        };
        let workflows = places.filter_map(workflow).collect();
        let trace = Trace { crossings, workflows, cut: said["cut"] == true };
        Some((RunId::parse(said["run_id"].as_str()?)?, trace))
    };
    read().context("the server shows values that cannot be read")
}

fn crossing(row: &Value) -> Option<Crossing> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let place = |name: &str| {
        let run = RunId::parse(row[name]["run_id"].as_str()?)?;
        Some(Place { run, node: text(&row[name]["node_id"])? })
    };
    Some(Crossing {
        source: place("source")?,
        source_output_path: text(&row["source_output_path"])?,
        target: place("target")?,
        target_input_path: text(&row["target_input_path"])?,
        transform: text(&row["transform"]),
    })
}

/// A step, with its run where that is another one.
fn shown(here: RunId, place: &Place) -> String {
    match (place.run == here, place.node.is_empty()) {
        (true, _) => place.node.clone(),
        (false, true) => place.run.to_string(),
        (false, false) => format!("{}/{}", place.run, place.node),
    }
}

fn table(here: RunId, trace: &Trace) -> String {
    let mut table = Table::new(&["FROM", "OUTPUT", "TO", "INPUT", "HOW"]);
    for crossing in &trace.crossings {
        table.row([
            shown(here, &crossing.source),
            crossing.source_output_path.clone(),
            shown(here, &crossing.target),
            crossing.target_input_path.clone(),
            crossing.transform.clone().unwrap_or_default(),
        ]);
    }
    table.draw()
}
