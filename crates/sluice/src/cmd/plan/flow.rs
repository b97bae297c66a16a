//! The flow of data in drawings: origins, labels on arrows, sinks.

use sluice_core::flow::{FlowPicture, FlowSink};
use sluice_core::visible;
use sluice_govern::facts::FlowFacts;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A set of labels in a few words: `web, caller + customer (control)`.
pub(super) fn shown(labels: &FlowFacts) -> String {
    let join = |names: Vec<&str>| names.join(", ");
    let origins = join(labels.origins.iter().map(|name| &**name).collect());
    let secrecy = join(labels.secrecy.iter().map(|name| &**name).collect());
    let mut text = origins;
    if !secrecy.is_empty() {
        let plus = if text.is_empty() { "" } else { " + " };
        let _ = write!(text, "{plus}{secrecy}");
    }
    if labels.control {
        text.push_str(if text.is_empty() { "(control)" } else { " (control)" });
    }
    text
}

/// The labels of the data between two steps, by their positions.
pub(super) fn links(flow: Option<&FlowPicture>) -> BTreeMap<(usize, usize), String> {
    let Some(flow) = flow else { return BTreeMap::new() };
    let steps = flow.steps.iter().enumerate();
    let positions: BTreeMap<&str, usize> = steps.map(|(at, step)| (step.id.as_str(), at)).collect();
    let link = |one: &sluice_core::flow::FlowLink| {
        let ends = (positions.get(one.from.as_str())?, positions.get(one.to.as_str())?);
        Some(((*ends.0, *ends.1), shown(&one.labels))).filter(|(_, text)| !text.is_empty())
    };
    flow.links.iter().filter_map(link).collect()
}

/// What a sink is and what it can be given.
pub(super) fn sink(sink: &FlowSink) -> String {
    let labels = shown(&sink.labels);
    let with = if labels.is_empty() { "no labels".to_owned() } else { labels };
    format!("{} {}, {}: {with}", sink.kind, visible::brief(&sink.name), sink.sends_to)
}

/// The flow of data as text, under the plan.
pub(super) fn draw(flow: &FlowPicture) -> String {
    let mut text = String::from("\nflow of data, in the worst case\n");
    for argument in &flow.arguments {
        let name = visible::brief(&argument.name);
        let _ = writeln!(text, "  args.{name}  {}", shown(&argument.labels));
    }
    for step in &flow.steps {
        let _ = writeln!(text, "  {}", step.id);
        for link in flow.links.iter().filter(|link| link.to == step.id) {
            let labels = shown(&link.labels);
            if !labels.is_empty() {
                let _ = writeln!(text, "    from {}: {labels}", link.from);
            }
        }
        for source in &step.sources {
            let name = visible::brief(&source.name);
            let _ = writeln!(text, "    adds {name}: {}", shown(&source.labels));
        }
        for one in &step.sinks {
            let _ = writeln!(text, "    to {}", sink(one));
        }
        let returns = shown(&step.returns);
        if !returns.is_empty() {
            let _ = writeln!(text, "    returns {returns}");
        }
    }
    text
}
