//! A plan as a Graphviz graph.
//!
//! INVARIANT: no text of the document reaches the graph but inside a quoted string.

use super::arrows::{arrows, groups, label};
use sluice_core::plan::Plan;
use sluice_core::plan::step::{Step, Work};
use sluice_core::visible;
use std::fmt::Write as _;

pub(super) fn draw(plan: &Plan) -> String {
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
    for arrow in arrows(plan) {
        let condition =
            arrow.condition.map(|condition| format!(" [label=\"{}\"]", escape(&condition)));
        let condition = condition.unwrap_or_default();
        let _ = writeln!(graph, "  s{} -> s{}{condition};", arrow.from, arrow.to);
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
