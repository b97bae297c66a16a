//! The flow of data along the edges of a lens workflow.

use super::{Builder, Field, Site};
use crate::label::label;
use crate::plan::step::{EdgeCondition, Step, Work};
use crate::template::lens::LensTemplate;

impl<'p> Builder<'p> {
    /// What a node reads through its edges, and from the inputs of the run.
    pub(super) fn connect_labels(&mut self, call: u32, at: u32, step: &'p Step) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = |field| Site { call, step: Some(at), field };
        let child = matches!(step.work, Work::Workflow(_));
        for (number, edge) in (0..).zip(&step.edges) {
            let carried = self.carried(call, edge);
            let field = Field::Edge(number);
            match &edge.condition {
                Some(EdgeCondition::Expression { expr }) => {
                    for reference in expr.references().filter(|one| one.path.head() != "value") {
                        for from in self.sources(call, None, &reference.path) {
                            self.graph.decide(from, slots.control, site(field));
                        }
                    }
                }
                Some(EdgeCondition::Test(_)) | None => {}
            }
            if edge.condition.is_some() {
                for from in &carried {
                    self.graph.decide(*from, slots.control, site(field));
                }
            }
            if !child && !edge.target_param_label.trim().is_empty() {
                for from in carried {
                    self.graph.link(from, slots.sent, site(field));
                }
            }
        }
        if let Work::Workflow(work) = &step.work {
            for (name, tree) in &work.label_args {
                for one in tree.templates().into_iter().flat_map(LensTemplate::placeholders) {
                    self.pass_label(call, at, step, name, &one.label);
                }
            }
            return;
        }
        // Every node sees all inputs of the run, unless it overrides them.
        let overrides: Vec<String> = match &step.work {
            Work::Lens(work) => work.param_overrides.keys().map(|name| label(name)).collect(),
            _ => Vec::new(),
        };
        let plan = self.calls[call as usize].plan();
        let declared = plan.args.keys().filter(|name| !overrides.contains(&label(name)));
        let inputs: Vec<_> = declared.filter_map(|name| self.argument(call, name)).collect();
        let undeclared = self.calls[call as usize].undeclared;
        for from in inputs.into_iter().chain(undeclared) {
            self.graph.link(from, slots.sent, site(Field::Step));
        }
    }

    /// Passes a label of a node to an argument of its sub-workflow.
    fn pass_label(&mut self, call: u32, at: u32, step: &'p Step, name: &'p str, wanted: &str) {
        let edges = step.edges.iter().filter(|edge| label(&edge.target_param_label) == wanted);
        let mut sources: Vec<_> = edges.flat_map(|edge| self.carried(call, edge)).collect();
        let plan = self.calls[call as usize].plan();
        let root = plan.args.keys().find(|arg| label(arg) == wanted);
        sources.extend(
            root.map_or(self.calls[call as usize].undeclared, |arg| self.argument(call, arg)),
        );
        for from in sources {
            self.pass(call, at, name, from);
        }
    }
}
