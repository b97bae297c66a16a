//! `sluice runs provenance`: traces the sources and consumers of values.

mod mermaid;

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::runs::{Provenance, TraceDirection, TraceFormat};
use crate::out::{Layout, Out};
use crate::table::Table;
use serde::Deserialize;

/// The value flows around a run.
#[derive(Debug, Deserialize)]
struct FlowTrace {
    run_id: String,
    rows: Vec<ValueFlow>,
    /// Whether some runs were not followed or not readable.
    cut: bool,
}

/// A value that went from one step to another.
#[derive(Debug, Deserialize)]
struct ValueFlow {
    source: FlowEnd,
    source_output_path: String,
    target: FlowEnd,
    target_input_path: String,
    transform: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct FlowEnd {
    run_id: String,
    /// Empty for the run as a whole.
    node_id: String,
}

pub(super) async fn run(args: &Provenance, out: &mut Out) -> anyhow::Result<Exit> {
    let direction = match args.direction {
        TraceDirection::Up => "up",
        TraceDirection::Down => "down",
        TraceDirection::Both => "both",
    };
    let mut query = vec![("direction", direction.to_owned()), ("hops", args.hops.to_string())];
    query.extend(args.step.iter().map(|step| ("step", step.clone())));
    let client = backend::read(&args.target.data).await?;
    let answer = client.get(&["runs", &args.run.id, "provenance"], &query).await?;
    client.close().await;
    if args.target.output() == OutputFormat::Json || args.format == TraceFormat::Json {
        out.json(Layout::Line, &answer.raw)?;
        return Ok(Exit::Done);
    }
    let trace: FlowTrace = answer.read()?;
    match args.format {
        TraceFormat::Mermaid => out.print(&mermaid::draw(&trace))?,
        _ if trace.rows.is_empty() => out.note("no values went from one step to another")?,
        _ => out.print(&table(&trace))?,
    }
    if trace.cut {
        out.note("there is more: further runs, or some that cannot be read")?;
    }
    Ok(Exit::Done)
}

fn table(trace: &FlowTrace) -> String {
    // A step, prefixed by its run if that is another one.
    let name = |end: &FlowEnd| match (end.run_id == trace.run_id, end.node_id.is_empty()) {
        (true, _) => end.node_id.clone(),
        (false, true) => end.run_id.clone(),
        (false, false) => format!("{}/{}", end.run_id, end.node_id),
    };
    let mut table = Table::new(&["FROM", "OUTPUT", "TO", "INPUT", "HOW"]);
    for flow in &trace.rows {
        table.row([
            name(&flow.source),
            flow.source_output_path.clone(),
            name(&flow.target),
            flow.target_input_path.clone(),
            flow.transform.clone().unwrap_or_default(),
        ]);
    }
    table.draw()
}
