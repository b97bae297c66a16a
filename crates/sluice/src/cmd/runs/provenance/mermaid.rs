//! Crossings as a Mermaid flowchart: a box for each run, an arrow for each value.
//!
//! INVARIANT: no text of the document reaches the chart but as an escaped label.

use crate::cmd::plan::mermaid::escape;
use sluice_core::run::id::RunId;
use sluice_core::run::provenance::{Crossing, Place};
use sluice_engine::provenance::Trace;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) fn draw(here: RunId, trace: &Trace) -> String {
    let ends = |crossing: &Crossing| [crossing.source.clone(), crossing.target.clone()];
    let mut places: Vec<Place> = trace.crossings.iter().flat_map(ends).collect();
    places.sort();
    places.dedup();
    let numbers: BTreeMap<&Place, usize> = places.iter().zip(0..).collect();
    let mut chart = String::from("flowchart LR\n");
    let mut runs: Vec<RunId> = places.iter().map(|place| place.run).collect();
    runs.dedup();
    for (at, run) in runs.iter().enumerate() {
        let here = if *run == here { " (this run)" } else { "" };
        let _ = writeln!(chart, "  subgraph r{at}[\"{run}{}\"]", escape(here));
        for place in places.iter().filter(|place| place.run == *run) {
            let name = if place.node.is_empty() { "the run" } else { &place.node };
            let _ = writeln!(chart, "    n{}[\"{}\"]", numbers[place], escape(name));
        }
        chart.push_str("  end\n");
    }
    for crossing in &trace.crossings {
        let how = crossing.transform.as_ref().map(|how| format!(", {how}")).unwrap_or_default();
        let label =
            format!("{} to {}{how}", crossing.source_output_path, crossing.target_input_path);
        let (from, to) = (numbers[&crossing.source], numbers[&crossing.target]);
        let _ = writeln!(chart, "  n{from} -->|\"{}\"| n{to}", escape(&label));
    }
    chart
}
