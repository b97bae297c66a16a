//! A plan as a Graphviz graph.
//!
//! INVARIANT: no text of the document reaches the graph but inside a quoted string.

use super::arrows::{arrows, groups, label};
use super::flow::{links, shown};
use sluice_core::flow::FlowPicture;
use sluice_core::plan::Plan;
use sluice_core::plan::step::{Step, Work};
use sluice_core::visible;
use std::fmt::Write as _;

pub(super) fn draw(plan: &Plan, flow: Option<&FlowPicture>) -> String {
    let mut graph =
        String::from("digraph plan {\n  rankdir=TB;\n  node [fontname=\"sans-serif\"];\n");
    for (at, group) in groups(plan).into_iter().enumerate() {
        let indent = if group.phase.is_some() { "    " } else { "  " };
        if let Some(phase) = group.phase {
            let name = escape(&visible::brief(&phase.name));
            let _ = writeln!(graph, "  subgraph cluster_{at} {{\n    label=\"{name}\";");
        }
        for (at, step) in group.steps {
            let lines: Vec<String> = label(step).iter().map(|line| escape(line)).collect();
            let lines = lines.join("\\n");
            let _ = writeln!(graph, "{indent}s{at} [{}, label=\"{lines}\"];", shape(step));
        }
        if group.phase.is_some() {
            graph.push_str("  }\n");
        }
    }
    let links = links(flow);
    for arrow in arrows(plan) {
        let labels = links.get(&(arrow.from, arrow.to));
        let texts: Vec<String> =
            arrow.condition.iter().chain(labels).map(|text| escape(text)).collect();
        let text = texts.join("\\n");
        let text = if text.is_empty() { text } else { format!(" [label=\"{text}\"]") };
        let _ = writeln!(graph, "  s{} -> s{}{text};", arrow.from, arrow.to);
    }
    for (at, step) in flow.iter().flat_map(|flow| &flow.steps).enumerate() {
        for (number, source) in step.sources.iter().enumerate() {
            let name = escape(&visible::brief(&source.name));
            let labels = escape(&shown(&source.labels));
            let _ = writeln!(graph, "  o{at}_{number} [shape=ellipse, label=\"{name}\"];");
            let _ =
                writeln!(graph, "  o{at}_{number} -> s{at} [style=dashed, label=\"{labels}\"];");
        }
        for (number, one) in step.sinks.iter().enumerate() {
            let name = format!("{} {}, {}", one.kind, visible::brief(&one.name), one.sends_to);
            let (name, labels) = (escape(&name), escape(&shown(&one.labels)));
            let _ = writeln!(graph, "  d{at}_{number} [shape=cds, label=\"{name}\"];");
            let _ =
                writeln!(graph, "  s{at} -> d{at}_{number} [style=dashed, label=\"{labels}\"];");
        }
    }
    graph.push_str("}\n");
    graph
}

fn shape(step: &Step) -> &'static str {
    match &step.work {
        Work::Approval => "shape=diamond",
        Work::Unresolved { .. } => "shape=box, style=dashed",
        _ if step.approval.is_some() => "shape=hexagon",
        Work::Workflow(_) => "shape=box, peripheries=2",
        Work::Lens(_) => "shape=box, style=rounded",
        Work::Command { .. } => "shape=box",
    }
}

/// Escapes quotes, backslashes and ampersands, which would begin an entity. `label` has escaped
/// line breaks already.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        assert_eq!(escape(r#"a"]; x [label="\N &lt;"#), r#"a\"]; x [label=\"\\N &amp;lt;"#);
    }
}
