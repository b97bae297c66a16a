//! A plan as a Mermaid flowchart.
//!
//! INVARIANT: no text of the document reaches the chart but as an escaped label.

use super::arrows::{arrows, groups, label};
use super::flow::{links, shown};
use sluice_core::flow::FlowPicture;
use sluice_core::plan::Plan;
use sluice_core::plan::step::{Step, Work};
use sluice_core::visible;
use std::fmt::Write as _;

pub(super) fn draw(plan: &Plan, flow: Option<&FlowPicture>) -> String {
    let mut chart = String::from("flowchart TD\n");
    for (at, group) in groups(plan).into_iter().enumerate() {
        let indent = if group.phase.is_some() { "    " } else { "  " };
        if let Some(phase) = group.phase {
            let name = escape(&visible::brief(&phase.name));
            let _ = writeln!(chart, "  subgraph p{at}[\"{name}\"]");
        }
        for (at, step) in group.steps {
            let (open, close) = brackets(step);
            let lines: Vec<String> = label(step).iter().map(|line| escape(line)).collect();
            let _ = writeln!(chart, "{indent}s{at}{open}\"{}\"{close}", lines.join("<br/>"));
        }
        if group.phase.is_some() {
            chart.push_str("  end\n");
        }
    }
    let links = links(flow);
    for arrow in arrows(plan) {
        let labels = links.get(&(arrow.from, arrow.to));
        let texts: Vec<String> =
            arrow.condition.iter().chain(labels).map(|text| escape(text)).collect();
        let text = texts.join("<br/>");
        let text = if text.is_empty() { text } else { format!("|\"{text}\"|") };
        let _ = writeln!(chart, "  s{} -->{text} s{}", arrow.from, arrow.to);
    }
    for (at, step) in flow.iter().flat_map(|flow| &flow.steps).enumerate() {
        for (number, source) in step.sources.iter().enumerate() {
            let (name, labels) = (escape(&visible::brief(&source.name)), shown(&source.labels));
            let _ = writeln!(
                chart,
                "  o{at}_{number}([\"{name}\"]) -.->|\"{}\"| s{at}",
                escape(&labels)
            );
        }
        for (number, one) in step.sinks.iter().enumerate() {
            let labels = shown(&one.labels);
            let carried = if labels.is_empty() {
                String::new()
            } else {
                format!("|\"{}\"|", escape(&labels))
            };
            let name = format!("{} {}, {}", one.kind, visible::brief(&one.name), one.sends_to);
            let _ =
                writeln!(chart, "  s{at} -.->{carried} d{at}_{number}[/\"{}\"/]", escape(&name));
        }
    }
    chart
}

/// An approval step is a rhombus, a step that needs an approval first is a hexagon.
fn brackets(step: &Step) -> (&'static str, &'static str) {
    match &step.work {
        Work::Approval => ("{", "}"),
        Work::Unresolved { .. } => (">", "]"),
        _ if step.approval.is_some() => ("{{", "}}"),
        Work::Workflow(_) => ("[[", "]]"),
        Work::Lens(_) => ("(", ")"),
        Work::Command { .. } => ("[", "]"),
    }
}

/// Writes every character with a meaning in Mermaid, HTML or Markdown as a character code.
pub(in crate::cmd) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | ',' | ':' | '…') {
            escaped.push(c);
        } else {
            let _ = write!(escaped, "#{};", u32::from(c));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        let hostile = "\"] --> s9\n%%{init}%% <img src=x onerror=y> #quot; `*b*`";
        let escaped = escape(hostile);
        assert!(!escaped.contains(['"', '<', '>', '\n', '%', '`', '[', '&', '{']), "{escaped}");
        assert!(escaped.starts_with("#34;#93; --#62; s9#10;"), "{escaped}");
    }
}
