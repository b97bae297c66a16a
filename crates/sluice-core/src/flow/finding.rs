//! Policies that can stop an action of a plan, each with the ways of the labels to it.

use super::label::{Label, LabelSet};
use super::witness::{Hop, WayTrees};
use super::{Destination, Flow, Sink};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, LineIndex, Problem, Problems};
use crate::doc::camel_case;
use crate::node::{Kind, Node};
use crate::span::Span;
use crate::yaml;
use serde::Serialize;
use sluice_govern::facts::{FlowFacts, Verb};
use sluice_govern::policy::{Policies, Rule, WorstCase, WorstResource};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of findings of one analysis.
const FINDINGS_MAX: usize = 200;

/// A policy that can stop an action of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowFinding {
    /// The document that the action is in.
    pub document: String,
    /// The problem at the action.
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    /// Name of the policy.
    pub policy: String,
    /// The ways of the labels that the policy is about.
    pub ways: Vec<FlowWay>,
}

/// The way of one label to an action.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowWay {
    /// The label.
    pub label: String,
    /// The places that it passes.
    pub hops: Vec<FlowHop>,
}

/// A place that a label passes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowHop {
    /// The document.
    pub document: String,
    /// The path of the value.
    pub path: String,
    /// Counted from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What happens there.
    pub what: String,
}

/// What decides the rules that match a sink.
type Known<'p> = (LabelSet, Destination<'p>, Option<&'p str>, &'p str, Option<&'p str>);

impl<'p> Flow<'p> {
    /// The policies that can stop an action of the plan, by document and place.
    pub fn findings(&self, policies: &Policies) -> Vec<FlowFinding> {
        let (mut places, mut trees) = (Places::default(), WayTrees::default());
        let mut answers: BTreeMap<Known<'p>, Vec<&Rule>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        let by_step = policies.worst_matches_read_steps();
        for sink in &self.sinks {
            let (document, step) = self.step_of(sink);
            let workflow = document.definition.plan.name.as_str();
            let value = self.graph.value(sink.slot);
            let id = by_step.then_some(step.id.as_str());
            let key = (value, sink.destination, sink.agent, workflow, id);
            let matching = answers.entry(key).or_insert_with(|| {
                let flow = self.labels.facts(value);
                policies.worst_matches(&self.case(sink, &flow))
            });
            for rule in matching.iter().copied() {
                let dispatch = !matches!(sink.destination, Destination::Tool(_));
                let consented = dispatch && step.approval.is_some();
                let stops = rule.blocks() || (rule.holds() && !consented);
                let what = (!dispatch).then_some(sink.destination);
                let new = stops && seen.insert((&rule.name, &document.name, &step.id, what));
                if new && found.len() < FINDINGS_MAX {
                    found.push(self.finding((sink, rule), policies, &mut places, &mut trees));
                }
            }
        }
        found.sort_by(|a, b| {
            let place = |one: &FlowFinding| (one.diagnostic.line, one.diagnostic.column);
            (&a.document, place(a)).cmp(&(&b.document, place(b)))
        });
        found
    }

    fn case<'c>(&'c self, sink: &Sink<'p>, flow: &'c FlowFacts) -> WorstCase<'c> {
        let (document, step) = self.step_of(sink);
        let (verb, resource) = match sink.destination {
            Destination::Tool(name) => {
                let tool = self.setting.catalog.tool(name).map(|tool| &*tool.facts);
                (Verb::UseTool, WorstResource::Tool(name, tool))
            }
            Destination::Gateway(name) => (Verb::DispatchStep, WorstResource::Gateway(name)),
            Destination::Workflow(name) => (Verb::StartRun, WorstResource::Workflow(name)),
        };
        WorstCase {
            verb,
            agent: sink.agent.filter(|name| !name.is_empty()),
            role: step.role.as_deref(),
            resource,
            sends_to: self.sends_to(sink),
            workflow: &document.definition.plan.name,
            step: &step.id,
            flow,
        }
    }

    fn finding(
        &self,
        (sink, rule): (&Sink<'p>, &Rule),
        policies: &Policies,
        places: &mut Places<'p>,
        trees: &mut WayTrees,
    ) -> FlowFinding {
        let flow = self.labels_at(sink);
        let least = policies.sufficient_labels(rule, &self.case(sink, &flow));
        let ways: Vec<FlowWay> = labels(&least)
            .map(|label| FlowWay {
                label: label.to_string(),
                hops: self.witness(sink, &label, trees).iter().map(|hop| places.hop(hop)).collect(),
            })
            .collect();
        let end = self.place_of(sink);
        let (_, step) = self.step_of(sink);
        let action = match sink.destination {
            Destination::Tool(name) => format!("`{}` can call `{name}`", step.id),
            Destination::Gateway(name) => format!("`{}` can be sent to gateway `{name}`", step.id),
            Destination::Workflow(name) => format!("`{}` can start workflow `{name}`", step.id),
        };
        let with: Vec<String> = labels(&least).map(|label| label.to_string()).collect();
        let with =
            if with.is_empty() { String::new() } else { format!(" with {}", with.join(" and ")) };
        let verdict = if rule.holds() { "needs an approval for" } else { "forbids" };
        let about = rule.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        let message = format!("{action}{with}, which policy {} {verdict}{about}", rule.name);
        let code = if rule.static_error { Code::ForbiddenFlow } else { Code::PossibleFlow };
        FlowFinding {
            document: end.document.to_owned(),
            diagnostic: places.diagnostic(&end, code, message),
            policy: rule.name.clone(),
            ways,
        }
    }
}

fn labels(flow: &FlowFacts) -> impl Iterator<Item = Label> {
    let origins = flow.origins.iter().map(|name| Label::Origin(name.clone()));
    let secrecy = flow.secrecy.iter().map(|name| Label::Secret(name.clone()));
    origins.chain(secrecy).chain(flow.control.then_some(Label::Control))
}

/// The positions of values in the documents.
#[derive(Default)]
struct Places<'p>(BTreeMap<&'p str, Text<'p>>);

/// The text of a document, read for positions.
struct Text<'p> {
    root: Option<Node<'p>>,
    lines: LineIndex<'p>,
}

impl<'p> Places<'p> {
    fn hop(&mut self, hop: &Hop<'p>) -> FlowHop {
        let at = self.diagnostic(hop, Code::PossibleFlow, String::new());
        FlowHop {
            document: hop.document.to_owned(),
            path: at.path,
            line: at.line,
            column: at.column,
            what: hop.what.clone(),
        }
    }

    fn diagnostic(&mut self, hop: &Hop<'p>, code: Code, message: String) -> Diagnostic {
        let read = self.0.entry(hop.document).or_insert_with(|| Text {
            root: yaml::parse(hop.text, &mut Problems::default()),
            lines: LineIndex::new(hop.text),
        });
        let (span, path) = match &read.root {
            Some(root) => locate(root, &hop.path),
            None => (Span::default(), String::new()),
        };
        read.lines.place(Problem::new(code, span, message).at_path(path))
    }
}

/// The innermost part of a document that its text contains.
fn locate(root: &Node<'_>, keys: &[String]) -> (Span, String) {
    let (mut at, mut path) = (root, String::new());
    for key in keys {
        let index = key.parse().ok();
        if let Some(below) = at.get(key).or_else(|| at.get(&camel_case(key))) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
            at = below;
        } else if let Some((index, below)) = index.and_then(|index| Some((index, at.item(index)?)))
        {
            path.push_str(&format!("[{index}]"));
            at = below;
        } else if let Some(index) = edge_position(at, key) {
            path.push_str(&format!("[{index}]"));
            at = at.item(index).unwrap_or(at);
        }
    }
    (at.span, path)
}

/// The position of an edge by its id. An edge without one has its position as its id.
fn edge_position(edges: &Node<'_>, id: &str) -> Option<usize> {
    let Kind::List(items) = &edges.kind else { return None };
    let has_id = |edge: &Node<'_>| matches!(edge.get("id").map(|id| &id.kind), Some(Kind::Text(text)) if text == id);
    let number = || id.strip_prefix("edge_")?.trim_end_matches('_').parse().ok();
    items.iter().position(has_id).or_else(number)
}
