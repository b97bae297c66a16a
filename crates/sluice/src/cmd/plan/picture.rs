//! A small plan drawn with characters.
//!
//! Only arrows that no longer path implies are drawn: with all of them, even small plans are
//! unreadable.

use ascii_dag::{Graph, RenderOptions};
use sluice_core::plan::Plan;

/// Larger plans are not drawn.
const STEPS_MAX: usize = 30;
/// Widest picture, in characters; a terminal would wrap a wider one.
const WIDTH_MAX: usize = 100;

/// The picture, if it shows more than the list of waves.
pub(super) fn draw(plan: &Plan) -> Option<String> {
    let a_chain = plan.graph.layers().iter().all(|wave| wave.len() == 1);
    if a_chain || plan.steps.len() > STEPS_MAX || plan.graph.edge_count() == 0 {
        return None;
    }
    let mut graph = Graph::new();
    for (at, step) in plan.steps.iter().enumerate() {
        graph.add_node(at, step.id.as_str());
    }
    for (from, to) in needed(plan) {
        graph.add_edge(from, to, None);
    }
    let drawn = graph.compute_layout().render_string(&RenderOptions::plain());
    let lines: Vec<&str> = drawn.lines().map(str::trim_end).collect();
    let fits = lines.iter().all(|line| line.chars().count() <= WIDTH_MAX);
    fits.then(|| lines.join("\n").trim_end().to_owned())
}

/// The dependencies that no longer path implies.
fn needed(plan: &Plan) -> Vec<(usize, usize)> {
    let graph = &plan.graph;
    // Ancestors of each step as a bit set: there are few steps.
    let mut before = vec![0u64; plan.steps.len()];
    let mut needed = Vec::new();
    for to in graph.layers().iter().flatten().map(|at| *at as usize) {
        let direct = graph.dependencies(to);
        let implied = direct.iter().fold(0, |bits, from| bits | before[*from as usize]);
        let kept = direct.iter().filter(|from| implied & (1 << **from) == 0);
        needed.extend(kept.map(|from| (*from as usize, to)));
        before[to] = direct.iter().fold(implied, |bits, from| bits | 1 << *from);
    }
    needed
}
