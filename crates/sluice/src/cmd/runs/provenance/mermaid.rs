//! Value flows as a Mermaid flowchart: a box for each run, an arrow for each value.
//!
//! INVARIANT: no text of the document reaches the chart but as an escaped label.

use super::{FlowEnd, FlowTrace, ValueFlow};
use crate::cmd::plan::mermaid::escape;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) fn draw(trace: &FlowTrace) -> String {
    let ends_of = |flow: &ValueFlow| [flow.source.clone(), flow.target.clone()];
    let mut ends: Vec<FlowEnd> = trace.rows.iter().flat_map(ends_of).collect();
    ends.sort();
    ends.dedup();
    let numbers: BTreeMap<&FlowEnd, usize> = ends.iter().zip(0..).collect();
    let mut chart = String::from("flowchart LR\n");
    let mut runs: Vec<&str> = ends.iter().map(|end| end.run_id.as_str()).collect();
    runs.dedup();
    for (at, run) in runs.iter().enumerate() {
        let this = if *run == trace.run_id { " (this run)" } else { "" };
        let _ = writeln!(chart, "  subgraph r{at}[\"{}{}\"]", escape(run), escape(this));
        for end in ends.iter().filter(|end| end.run_id == *run) {
            let name = if end.node_id.is_empty() { "the run" } else { &end.node_id };
            let _ = writeln!(chart, "    n{}[\"{}\"]", numbers[end], escape(name));
        }
        chart.push_str("  end\n");
    }
    for flow in &trace.rows {
        let how = flow.transform.as_ref().map(|how| format!(", {how}")).unwrap_or_default();
        let label = format!("{} to {}{how}", flow.source_output_path, flow.target_input_path);
        let (from, to) = (numbers[&flow.source], numbers[&flow.target]);
        let _ = writeln!(chart, "  n{from} -->|\"{}\"| n{to}", escape(&label));
    }
    chart
}
