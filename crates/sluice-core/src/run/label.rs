//! The labels of values that steps read, and of the decision that a step runs.

use super::state::Run;
use crate::edge::key::OutputKey;
use crate::expr::Expr;
use crate::journal::event::{Provenance, SkipCause, StepAt, StepOutcome};
use crate::label::label;
use crate::origin::{FieldLabels, FlowLabels, Labels, PassedLabels, SourceClass};
use crate::path::{Path, Segment};
use crate::plan::step::{Edge, EdgeCondition, Items, Work};

/// Where a path of an expression or a template leads.
pub(crate) enum ValueSource<'p> {
    /// To an argument; without a name to all of them.
    Argument(Option<&'p str>),
    /// To a step of the run: one of its outputs, or without a name all of them.
    Step(u32, Option<&'p str>),
}

impl Run {
    /// The labels of everything that the attempt of a step may have read by now: its
    /// inputs, and the answers of its tools. A tool counts from the moment its call is
    /// allowed: when an agent on another machine reads the answer, the engine cannot know.
    pub(crate) fn labels_read(&self, at: StepAt) -> Labels {
        let state = self.state(at);
        let inputs = state.prepared.as_ref().map(|prepared| prepared.labels.clone());
        let inputs = inputs.unwrap_or_default();
        if state.used_tools { inputs.with(&Labels::of_tools(&state.tool_labels)) } else { inputs }
    }

    /// Where a path leads; `None` for a name that is local to its step. In the order of
    /// [`locate`](crate::scope::locate), except that a local name can hide a source.
    pub(crate) fn source_of<'p>(&self, path: &'p Path) -> Option<ValueSource<'p>> {
        let head = path.head();
        if let Some(step) = self.position(head) {
            return Some(ValueSource::Step(step, output_of(path)));
        }
        if head == "args" {
            return Some(ValueSource::Argument(key(path.rest().first())));
        }
        let variables = &self.index.variables;
        if let Some(name) = path.dotted()
            && let Some(writer) = variables.get(name)
        {
            return Some(ValueSource::Step(*writer, Some(name)));
        }
        if let Some(writer) = variables.get(head) {
            return Some(ValueSource::Step(*writer, Some(head)));
        }
        let is_argument = self.started.args.contains_key(head);
        is_argument.then_some(ValueSource::Argument(Some(head)))
    }

    /// The position of the step with this id.
    pub(crate) fn position(&self, id: &str) -> Option<u32> {
        u32::try_from(self.definition.plan.graph.position(id)?).ok()
    }

    /// The labels of what a path leads to.
    pub(crate) fn labels_of(&self, source: &ValueSource<'_>) -> Labels {
        match source {
            ValueSource::Argument(name) => self.argument_labels(*name),
            ValueSource::Step(step, output) => self.output_labels(*step, *output),
        }
    }

    /// The labels of an argument; without a name, of all of them.
    pub(crate) fn argument_labels(&self, name: Option<&str>) -> Labels {
        let passed = &self.started.passed;
        let mut own = FlowLabels::default();
        match name {
            Some(name) => self.declared_argument(name, &mut own),
            None => {
                for name in self.started.args.keys() {
                    self.declared_argument(name, &mut own);
                }
            }
        }
        let own = Labels::of_flow(SourceClass::Caller, self.started_at_ms, own);
        if self.is_passed() {
            let passed_flow = name.and_then(|name| passed.field_labels.get(name));
            own.with(&narrowed(&passed.labels, passed_flow))
        } else {
            own
        }
    }

    /// Whether another run passed the arguments, and reported their labels.
    fn is_passed(&self) -> bool {
        self.started.passed != PassedLabels::default()
    }

    /// Adds the labels that an argument declares. An argument of the caller has the origin
    /// `caller` if it declares none.
    fn declared_argument(&self, name: &str, labels: &mut FlowLabels) {
        let args = &self.definition.plan.args;
        let declared = args.get(name).or_else(|| {
            // A lens document may spell it in another way.
            let name = (!args.is_empty()).then(|| label(name))?;
            args.iter().find(|(one, _)| label(one) == name).map(|(_, declared)| declared)
        });
        let (origin, sensitive) =
            declared.map_or((&[][..], &[][..]), |one| (&one.origin[..], &one.sensitive[..]));
        labels.join(&FlowLabels::declared(origin, sensitive));
        if origin.is_empty() && !self.is_passed() {
            labels.join(&FlowLabels::caller());
        }
    }

    /// The labels of an output of a step; without a name, of all of them. A value that is
    /// missing because its step was skipped has the label of that decision.
    pub(crate) fn output_labels(&self, step: u32, output: Option<&str>) -> Labels {
        match self.steps[step as usize].outcome() {
            Some(outcome) => {
                let at = StepAt::whole(step);
                let own = output.and_then(|output| self.own_labels(at, outcome, output));
                narrowed(&outcome.labels, own)
            }
            None if self.is_controlled(step) => Labels::default().renamed(FlowLabels::controlled()),
            None => Labels::default(),
        }
    }

    /// The named labels of an output that differ from those of the whole result. An input that
    /// passes through has those of its source.
    pub(crate) fn own_labels<'r>(
        &'r self,
        at: StepAt,
        outcome: &'r StepOutcome,
        output: &str,
    ) -> Option<&'r FlowLabels> {
        if let Some(own) = outcome.field_labels.get(output) {
            return Some(own);
        }
        let plan = self.step(at);
        let passes = plan.inputs.contains_key(output)
            && !plan.outputs.contains_key(output)
            && !matches!(plan.work, Work::Workflow(_));
        let prepared = self.state(at).prepared.as_ref().filter(|_| passes)?;
        Some(prepared.field_labels.get(output).unwrap_or(&prepared.labels.flow))
    }

    /// The result of a step with the named labels of every output, as another run carries it
    /// over.
    pub(crate) fn carried_labels(&self, step: u32, outcome: &StepOutcome) -> FieldLabels {
        let at = StepAt::whole(step);
        let inputs = self.step(at).inputs.keys();
        let passed = inputs
            .filter_map(|name| Some((name.clone(), self.own_labels(at, outcome, name)?.clone())));
        let own = outcome.field_labels.iter().map(|(name, own)| (name.clone(), own.clone()));
        FieldLabels::new(passed.chain(own), &outcome.labels.flow)
    }

    /// The named labels of a value that a step has read or, from a child run, returned.
    pub(crate) fn provenance_labels(&self, at: StepAt, from: &Provenance) -> FlowLabels {
        let path = |path: &str| Path::parse(path).ok();
        let labels = match from.source_run {
            None => {
                let step = self.position(&from.source_node);
                let below = path(&format!("x.{}", from.source_output_path));
                let output = below.as_ref().and_then(output_of);
                step.map(|step| self.output_labels(step, output))
            }
            Some(_) if from.target_input_path.starts_with("outputs") => {
                let below = path(&format!("x.{}", from.target_input_path));
                let output = below.as_ref().and_then(output_of);
                Some(self.output_labels(at.step, output))
            }
            Some(_) => {
                let below = path(&from.source_output_path);
                let name = below.as_ref().and_then(|below| key(below.rest().first()));
                Some(self.argument_labels(name))
            }
        };
        labels.unwrap_or_default().flow
    }

    /// The labels that a child run of a step gets with its arguments.
    pub fn passed_labels(&self, at: StepAt) -> PassedLabels {
        let Some(prepared) = &self.state(at).prepared else { return PassedLabels::default() };
        let field_labels = prepared.field_labels.clone();
        PassedLabels { labels: prepared.labels.clone(), field_labels }
    }

    /// The labels of the value of an edge.
    pub(crate) fn edge_labels(&self, edge: &Edge) -> Labels {
        let Some(step) = self.position(&edge.source) else { return Labels::default() };
        let key = OutputKey::parse(&edge.source_output_key);
        self.output_labels(step, key.field())
    }

    /// Whether an untrusted value decided that a step was executed or skipped.
    fn is_controlled(&self, step: u32) -> bool {
        let state = &self.steps[step as usize];
        match (state.outcome(), state.phase.skip()) {
            (Some(outcome), _) => outcome.labels.flow.is_controlled(),
            (None, Some(skip)) => skip.control,
            (None, None) => {
                let prepared = state.prepared.as_ref();
                prepared.is_some_and(|prepared| prepared.labels.flow.is_controlled())
            }
        }
    }

    /// Whether an untrusted value decides that a step runs, and with which items.
    pub(crate) fn is_guarded(&self, step: u32) -> bool {
        self.started.passed.labels.flow.is_controlled()
            || self.condition_is_untrusted(step)
            || self.items_labels(step).flow.is_untrusted()
            || self.dependencies_are_controlled(step)
    }

    /// Whether the skip of a step was decided by an untrusted value.
    pub(crate) fn skip_is_controlled(&self, step: u32, cause: SkipCause) -> bool {
        let of_itself = cause == SkipCause::Condition && self.condition_is_untrusted(step);
        of_itself
            || self.started.passed.labels.flow.is_controlled()
            || self.dependencies_are_controlled(step)
    }

    fn dependencies_are_controlled(&self, step: u32) -> bool {
        let dependencies = self.definition.plan.graph.dependencies(step as usize);
        !dependencies.is_empty() && dependencies.iter().all(|one| self.is_controlled(*one))
    }

    /// Whether the condition of a step, or of an edge to it, reads an untrusted value.
    fn condition_is_untrusted(&self, step: u32) -> bool {
        let step = &self.definition.plan.steps[step as usize];
        let decides = |labels: &Labels| labels.flow.is_untrusted() || labels.flow.is_controlled();
        let reads = |path: &Path| {
            let source = self.source_of(path);
            source.is_some_and(|source| decides(&self.labels_of(&source)))
        };
        let condition = step.condition.iter().flat_map(Expr::references);
        if condition.map(|one| &one.path).any(reads) {
            return true;
        }
        step.edges.iter().any(|edge| match &edge.condition {
            None => false,
            Some(EdgeCondition::Test(_)) => decides(&self.edge_labels(edge)),
            Some(EdgeCondition::Expression { expr }) => {
                decides(&self.edge_labels(edge)) || expr.references().any(|one| reads(&one.path))
            }
        })
    }

    /// The labels of the items of a `for_each` step.
    pub(crate) fn items_labels(&self, step: u32) -> Labels {
        let each = self.definition.plan.steps[step as usize].for_each.as_ref();
        let source = match each.map(|each| &each.items) {
            Some(Items::From(path)) => self.source_of(path),
            Some(Items::List(_)) | None => None,
        };
        source.map(|source| self.labels_of(&source)).unwrap_or_default()
    }
}

/// The labels of a field of a value.
fn narrowed(whole: &Labels, field: Option<&FlowLabels>) -> Labels {
    match field {
        Some(flow) => whole.clone().renamed(flow.clone()),
        None => whole.clone(),
    }
}

/// The output that a path into a step reads; `None` if it may read several, or its text.
fn output_of(path: &Path) -> Option<&str> {
    let (first, below) = path.rest().split_first()?;
    match key(Some(first))? {
        "outputs" => key(below.first()),
        "stdout" | "json" => None,
        name => Some(name),
    }
}

fn key(segment: Option<&Segment>) -> Option<&str> {
    match segment? {
        Segment::Key(name) => Some(name),
        Segment::Index(_) => None,
    }
}
