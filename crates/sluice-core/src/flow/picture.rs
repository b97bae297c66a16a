//! The flow of data for pictures: where labels begin, which steps they reach, where they leave.

use super::build::Part;
use super::label::LabelSet;
use super::{Destination, Flow, Sink};
use serde::Serialize;
use sluice_govern::facts::{FlowFacts, SendsTo};
use std::collections::BTreeMap;

/// The worst labels of one document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowPicture {
    /// Arguments of the run.
    pub arguments: Vec<FlowSource>,
    /// Steps, in document order.
    pub steps: Vec<FlowStep>,
    /// Data that a step reads from another one.
    pub links: Vec<FlowLink>,
}

/// A place where labels begin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowSource {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: FlowFacts,
}

/// A step with the labels of its data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowStep {
    /// Its id.
    pub id: String,
    /// Labels of everything that it reads.
    pub reads: FlowFacts,
    /// Labels of everything that it returns.
    pub returns: FlowFacts,
    /// Tools, gateways and declarations that add labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<FlowSource>,
    /// Where it sends data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<FlowSink>,
}

/// A place where data leaves a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowSink {
    /// `tool`, `gateway` or `workflow`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Where it sends data.
    pub sends_to: SendsTo,
    /// Labels of the data.
    pub labels: FlowFacts,
}

/// Data that one step reads from another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowLink {
    /// Id of the step that returns it.
    pub from: String,
    /// Id of the step that reads it.
    pub to: String,
    /// Its labels.
    pub labels: FlowFacts,
}

impl<'p> Flow<'p> {
    /// The picture of the document, without the steps of its sub-workflows.
    pub fn picture(&self) -> FlowPicture {
        let main = &self.calls[0];
        let plan = main.plan();
        let mut sources: BTreeMap<u32, Vec<FlowSource>> = BTreeMap::new();
        let mut arguments = Vec::new();
        for node in self.graph.nodes.iter().filter(|node| node.place.call == 0) {
            let labels = self.labels.facts(node.own);
            let source = |name: &str| FlowSource { name: name.to_owned(), labels: labels.clone() };
            match (node.place.step, node.place.part) {
                (None, Part::Argument(name)) => arguments.push(source(name)),
                (Some(at), Part::Tool(name) | Part::Output(name)) if !node.own.is_empty() => {
                    sources.entry(at).or_default().push(source(name));
                }
                _ => {}
            }
        }
        let mut sinks: BTreeMap<u32, Vec<FlowSink>> = BTreeMap::new();
        for sink in self.sinks.iter().filter(|sink| sink.call == 0) {
            sinks.entry(sink.step).or_default().push(self.sink(sink));
        }
        let step = |(at, step): (u32, &crate::plan::step::Step)| FlowStep {
            id: step.id.clone(),
            reads: self.labels.facts(self.graph.value(main.read(at))),
            returns: self.labels.facts(self.graph.value(main.answer(at))),
            sources: sources.remove(&at).unwrap_or_default(),
            sinks: sinks.remove(&at).unwrap_or_default(),
        };
        let steps = (0..).zip(&plan.steps).map(step).collect();
        FlowPicture { arguments, steps, links: self.links() }
    }

    fn sink(&self, sink: &Sink<'p>) -> FlowSink {
        let (kind, name) = match sink.destination {
            Destination::Tool(name) => ("tool", name),
            Destination::Gateway(name) => ("gateway", name),
            Destination::Workflow(name) => ("workflow", name),
        };
        let labels = self.labels_at(sink);
        FlowSink { kind, name: name.to_owned(), sends_to: self.sends_to(sink), labels }
    }

    /// Where a sink sends data; without a declaration, to the outside.
    pub(super) fn sends_to(&self, sink: &Sink<'p>) -> SendsTo {
        let declared = match sink.destination {
            Destination::Tool(name) => {
                self.setting.catalog.tool(name).and_then(|tool| tool.facts.sends_to)
            }
            Destination::Gateway(name) => {
                self.setting.fabric.gateways.get(name).and_then(|gateway| gateway.sends_to)
            }
            Destination::Workflow(_) => Some(SendsTo::None),
        };
        declared.unwrap_or(SendsTo::External)
    }

    /// The labels of data between steps of the document, in document order.
    fn links(&self) -> Vec<FlowLink> {
        let main = &self.calls[0];
        let steps = &main.plan().steps;
        // The results of a sub-workflow come from its step.
        let callers: BTreeMap<u32, u32> =
            (0..).zip(steps).filter_map(|(at, _)| Some((main.child(at)?, at))).collect();
        let mut links: BTreeMap<(u32, u32), LabelSet> = BTreeMap::new();
        for edge in &self.graph.edges {
            let from = self.graph.nodes[edge.from as usize].place;
            let to = self.graph.nodes[edge.to as usize].place;
            let source = if from.call == 0 { from.step } else { callers.get(&from.call).copied() };
            let (Some(source), Some(target), 0) = (source, to.step, to.call) else { continue };
            if source == target || matches!(to.part, Part::Dependencies) {
                continue;
            }
            let labels = links.entry((target, source)).or_default();
            *labels = labels.with(self.graph.carried(edge, &self.labels));
        }
        let links = links.into_iter().map(|((to, from), labels)| FlowLink {
            from: steps[from as usize].id.clone(),
            to: steps[to as usize].id.clone(),
            labels: self.labels.facts(labels),
        });
        links.collect()
    }
}
