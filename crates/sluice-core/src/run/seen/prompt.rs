//! What the author of a document and the caller of a run wrote for a step.
//!
//! A value of another step is left out of the text: it has the class of its own source.

use crate::path::{Path, Segment};
use crate::plan::step::{Step, Work};
use crate::run::state::Run;
use crate::scope::{Scope, StepView};
use crate::template::Template;
use serde_json::{Map, Value};

/// The values that the caller wrote, as templates read them.
pub(super) struct CallerValues {
    args: Value,
}

/// The names of one step.
struct CallerScope<'a> {
    caller: &'a CallerValues,
    run: &'a Run,
    step: &'a Step,
}

impl CallerValues {
    /// The arguments of the run that the caller wrote.
    pub(super) fn new(run: &Run, is_prompt: impl Fn(&str) -> bool) -> CallerValues {
        let args = run.started.args.iter().filter(|(name, _)| is_prompt(name));
        let args: Map<String, Value> =
            args.map(|(name, value)| (name.clone(), value.clone())).collect();
        CallerValues { args: Value::Object(args) }
    }

    /// The arguments as JSON; empty if there are none.
    pub(super) fn args(&self) -> String {
        match &self.args {
            Value::Object(args) if !args.is_empty() => self.args.to_string(),
            _ => String::new(),
        }
    }

    /// The prompt of a step, with `gap` for each value of another step.
    pub(super) fn text(&self, run: &Run, step: u32, gap: &str) -> String {
        let step = &run.definition.plan.steps[step as usize];
        let scope = CallerScope { caller: self, run, step };
        let render =
            |template: &Template| template.render_known(&scope, |path| scope.knows(path), gap);
        match &step.work {
            Work::Command { command } => render(command),
            Work::Workflow(work) => {
                let templates = work.args.values().flat_map(|tree| tree.templates());
                templates.map(render).collect::<Vec<_>>().join("\n")
            }
            Work::Lens(work) => {
                let overrides = work.param_overrides.values().map(Value::to_string);
                let literals = std::iter::once(work.template.literals(gap));
                literals.chain(overrides).collect::<Vec<_>>().join("\n")
            }
            Work::Approval | Work::Unresolved { .. } => String::new(),
        }
    }
}

impl CallerScope<'_> {
    /// Whether a path reads only what the caller wrote.
    fn knows(&self, path: &Path) -> bool {
        let plan = &self.run.definition.plan;
        let head = path.head();
        let is_step = plan.graph.position(head).is_some();
        let is_input = self.step.inputs.contains_key(head);
        let is_item = self.step.for_each.is_some() && matches!(head, "item" | "index");
        if is_step || is_input || is_item {
            return false;
        }
        if head == "args" {
            let Some(Segment::Key(name)) = path.rest().first() else { return false };
            return self.caller.args.get(name).is_some();
        }
        let is_variable = |step: &Step| {
            step.outputs.contains_key(head)
                || path.dotted().is_some_and(|key| step.outputs.contains_key(key))
        };
        !plan.steps.iter().any(is_variable) && self.caller.args.get(head).is_some()
    }
}

impl Scope for CallerScope<'_> {
    fn step(&self, _: &str) -> Option<StepView<'_>> {
        None
    }

    fn local(&self, _: &str) -> Option<&Value> {
        None
    }

    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn args(&self) -> Option<&Value> {
        Some(&self.caller.args)
    }
}
