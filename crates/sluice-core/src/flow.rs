//! Information flow before anything runs: the labels that data can have in the worst case at
//! every place of a plan.
//!
//! Each step, argument and tool has slots in a graph, and labels flow along its edges until
//! nothing changes. A step with tools can read every answer of its tools, and send everything
//! that it has read with any of them. What is not declared has the worst class of its kind.
//!
//! INVARIANT: an action of a run never has a label that the analysis of its plan with the same
//! rows does not give to it.

mod build;
mod finding;
mod graph;
mod label;
mod picture;
#[cfg(test)]
mod tests;
mod witness;

pub use finding::{FlowFinding, FlowHop, FlowWay};
pub use picture::{FlowLink, FlowPicture, FlowSink, FlowSource, FlowStep};

use crate::run::definition::Definition;
use build::{Call, Place, Site};
use graph::{Graph, Slot};
use label::Labels;
use sluice_govern::catalog::Catalog;
use sluice_govern::facts::FlowFacts;
use sluice_govern::registry::Fabric;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A document of an analysis.
#[derive(Debug)]
pub struct FlowDocument {
    /// The name of its file or row.
    pub name: String,
    /// Its plan and its text.
    pub definition: Arc<Definition>,
}

/// What an analysis knows besides the document.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'p> {
    /// Rows of the registry.
    pub fabric: &'p Fabric,
    /// Declared tools.
    pub catalog: &'p Catalog,
    /// Sub-workflows by reference: `name` or `name@version`.
    pub children: &'p BTreeMap<String, FlowDocument>,
    /// The agent of steps that name none.
    pub default_agent: Option<&'p str>,
}

impl<'p> Setting<'p> {
    fn child(&self, name: &str, version: Option<u64>) -> Option<&'p FlowDocument> {
        match version {
            Some(version) => self.children.get(&format!("{name}@{version}")),
            None => self.children.get(name),
        }
    }
}

/// There are more labels than an analysis can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the workflow and the registry use more than {} labels", label::LABELS_MAX)]
pub struct TooManyLabels;

/// Where a step sends data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Destination<'p> {
    /// A tool.
    Tool(&'p str),
    /// A gateway that may execute the step.
    Gateway(&'p str),
    /// A workflow, as a child run.
    Workflow(&'p str),
}

/// A place where data leaves a step.
#[derive(Debug, Clone, Copy)]
struct Sink<'p> {
    call: u32,
    step: u32,
    slot: Slot,
    destination: Destination<'p>,
    /// The agent that sends it.
    agent: Option<&'p str>,
}

/// The worst labels of a document.
#[derive(Debug)]
pub struct Flow<'p> {
    setting: Setting<'p>,
    labels: Labels,
    graph: Graph<Place<'p>, Site<'p>>,
    calls: Vec<Call<'p>>,
    sinks: Vec<Sink<'p>>,
}

impl<'p> Flow<'p> {
    /// Analyses a document with everything that it refers to.
    pub fn analyse(
        main: &'p FlowDocument,
        setting: Setting<'p>,
    ) -> Result<Flow<'p>, TooManyLabels> {
        let build::Builder { labels, mut graph, calls, sinks, .. } = build::build(main, setting);
        if labels.overflowed {
            return Err(TooManyLabels);
        }
        graph.solve(&labels);
        Ok(Flow { setting, labels, graph, calls, sinks })
    }

    /// The labels that data at a sink can have.
    fn labels_at(&self, sink: &Sink<'p>) -> FlowFacts {
        self.labels.facts(self.graph.value(sink.slot))
    }
}
