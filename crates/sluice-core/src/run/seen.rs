//! Where the values of a call were seen, as far as the journal tells.
//!
//! The fold notes every source of values in the order of the journal: prompts, outputs of
//! steps, answers of tools, comments of people. Their texts are indexed when a decision first
//! needs them, so that a run whose policies never ask does no work.
//!
//! INVARIANT: the sources, and so the facts about a call, are a pure function of the journal. A
//! text that the journal does not have, because an adapter did not report it or because it was
//! erased, may be anything.

mod labels;
mod prompt;
pub(crate) mod shown;
mod written;

pub(crate) use written::WrittenSeen;

use super::state::Run;
use crate::id::ApprovalId;
use crate::journal::event::{Completed, EndedCall, Path, StepAt, StepOutcome};
use crate::limits::SEEN_CONTENT_BYTES_MAX;
use crate::plan::step::Work;
use crate::port::adapter::ToolContent;
use crate::run::state::StepState;
use crate::seen::{AnswerSeen, SeenCall, SeenIndex};
use prompt::CallerValues;
use serde_json::{Map, Value};
use sluice_govern::facts::{ArgumentFacts, SeenIn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of the source that an argument of the run is, by its position.
const fn argument_source(position: u32) -> u32 {
    u32::MAX - position
}

/// The sources of values of a run, and the index of their texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeenLog {
    /// In the order of the journal; the first is source 1.
    sources: Vec<SeenSource>,
    /// Tool calls that were allowed and have not answered.
    open: Vec<OpenCall>,
    /// Length of all answers of tools that are kept.
    content_bytes: usize,
    index: SeenIndex,
    /// How many sources the index has; `None` if it does not have the arguments either.
    indexed: Option<usize>,
}

/// Where values were seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SeenSource {
    /// What the author of the document and the caller wrote for a step.
    Prompt(u32),
    /// The output of a step that a person, a shell or a gateway made.
    Output(OutputSeen),
    /// The answer of a tool, with the step that called it.
    Answer(StepAt, Arc<EndedCall>),
    /// The comment of a person on an approval.
    Comment(ApprovalId),
}

/// The output of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutputSeen {
    step: u32,
    /// Whether a person made it.
    by_person: bool,
    outcome: Arc<StepOutcome>,
}

/// A tool call that was allowed and has not answered.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct OpenCall {
    at: StepAt,
    dispatch_no: u32,
    id: String,
}

impl PartialEq for SeenLog {
    /// Compares what the fold made. The index follows from it.
    fn eq(&self, other: &SeenLog) -> bool {
        let SeenLog { sources, open, content_bytes, index: _, indexed: _ } = self;
        (sources, open, content_bytes) == (&other.sources, &other.open, &other.content_bytes)
    }
}

impl SeenLog {
    fn push(&mut self, source: SeenSource) {
        self.sources.push(source);
    }
}

impl Run {
    /// Notes the prompt of a step that is dispatched.
    pub(super) fn prompt_seen(&mut self, at: StepAt) {
        let source = SeenSource::Prompt(at.step);
        if self.state(at).dispatch_no == 0 && self.seen.sources.last() != Some(&source) {
            self.seen.push(source);
        }
    }

    /// Notes the output of a step. What a model makes of values that the index has is not a
    /// source: its own words were seen nowhere.
    pub(super) fn output_seen(&mut self, at: StepAt, completed: &Completed) {
        let by_person = matches!(self.step(at).work, Work::Approval);
        if at.item.is_some() || (completed.carried.is_none() && is_made_here(self.state(at))) {
            return;
        }
        let outcome = Arc::clone(&completed.outcome);
        let by_person = by_person && completed.carried.is_none();
        self.seen.push(SeenSource::Output(OutputSeen { step: at.step, by_person, outcome }));
    }

    /// Notes that a tool may be called: until it has answered, its answer is unknown.
    pub(super) fn call_allowed(&mut self, at: StepAt, id: &str) {
        let dispatch_no = self.state(at).dispatch_no;
        self.seen.open.push(OpenCall { at, dispatch_no, id: id.to_owned() });
    }

    /// Notes the answer of a tool.
    pub(super) fn tool_answered(&mut self, at: StepAt, call: &Arc<EndedCall>) {
        if let Some(known) = self.state_mut(at).calls.get_mut(&call.ended.id) {
            known.answered = true;
            known.taken.clear();
        }
        let dispatch_no = self.state(at).dispatch_no;
        let is_it = |open: &OpenCall| {
            (open.at, open.dispatch_no, &open.id) == (at, dispatch_no, &call.ended.id)
        };
        self.seen.open.retain(|open| !is_it(open));
        let bytes = call.ended.content.as_ref().map_or(0, ToolContent::bytes);
        let call = if self.seen.content_bytes + bytes > SEEN_CONTENT_BYTES_MAX {
            let mut without = (**call).clone();
            without.ended.content = None;
            Arc::new(without)
        } else {
            self.seen.content_bytes += bytes;
            Arc::clone(call)
        };
        self.seen.push(SeenSource::Answer(at, call));
    }

    /// Notes the comment of a person.
    pub(super) fn comment_seen(&mut self, approval: ApprovalId) {
        self.seen.push(SeenSource::Comment(approval));
    }

    /// The facts about the values of a call that a step makes: the arguments of a tool, its
    /// bound inputs, or the arguments of a child run.
    pub(crate) fn describe_call(&mut self, at: StepAt, input: &Map<String, Value>) -> SeenCall {
        let mut seen = std::mem::take(&mut self.seen);
        seen.catch_up(self);
        self.seen = seen;
        let seen = &self.seen;
        let is_unsure = seen.open.iter().any(|open| open.at == at || !self.is_in_flight(open));
        let is_first = self.state(at).dispatch_no == 0;
        if !is_unsure && !is_first {
            return seen.index.describe(input);
        }
        // The sources share their texts, so the copy is small.
        let mut index = seen.index.clone();
        if is_unsure {
            index.add_unknown();
        }
        if is_first {
            let number = u32::try_from(seen.sources.len()).expect("sources are bounded") + 1;
            SeenSource::Prompt(at.step).add_to(&mut index, number, self, &self.caller_values());
        }
        index.describe(input)
    }

    fn caller_values(&self) -> CallerValues {
        CallerValues::new(self, |name| is_prompt(&self.argument_classes(name)))
    }

    fn is_in_flight(&self, open: &OpenCall) -> bool {
        self.index.in_flight.get(&open.at) == Some(&open.dispatch_no)
    }

    /// Where the arguments of a child run were seen, as its start records it.
    pub fn child_args_seen(&mut self, at: StepAt) -> BTreeMap<String, Vec<SeenIn>> {
        let prepared = self.state(at).prepared.clone().unwrap_or_default();
        let mut facts = self.describe_call(at, &prepared.inputs).facts.arguments;
        let names = prepared.inputs.keys();
        let classes = names.filter_map(|name| Some((name.clone(), classes(&facts.remove(name)?))));
        classes.collect()
    }

    /// The classes of an argument of the run. The document may say that its value comes from
    /// outside.
    fn argument_classes(&self, name: &str) -> Vec<SeenIn> {
        let declared = self.definition.plan.args.get(name);
        let is_ours = |origin: &String| matches!(origin.as_str(), "caller" | "operator");
        let is_outside = declared.is_some_and(|one| !one.origin.iter().all(is_ours));
        match (self.started.args_seen.get(name), &self.started.parent) {
            _ if is_outside => vec![SeenIn::Stranger],
            (Some(classes), _) => classes.clone(),
            (None, None) => vec![SeenIn::Prompt],
            // A parent of an older version did not compare the values.
            (None, Some(_)) => vec![SeenIn::Stranger],
        }
    }

    /// The classes of the arguments that a caller did not write, for a run that is made from
    /// this one.
    pub fn args_seen(&self) -> BTreeMap<String, Vec<SeenIn>> {
        let names = self.started.args.keys();
        let classes = names.map(|name| (name.clone(), self.argument_classes(name)));
        classes.filter(|(_, classes)| !is_prompt(classes)).collect()
    }
}

/// Everything that an argument is or repeats.
fn classes(facts: &ArgumentFacts) -> Vec<SeenIn> {
    let suspicious = |class: &&SeenIn| matches!(class, SeenIn::Private | SeenIn::Stranger);
    let repeated = facts.mentions.iter().chain(&facts.carries).filter(suspicious);
    let all: BTreeSet<SeenIn> = facts.seen.iter().chain(repeated).copied().collect();
    all.into_iter().collect()
}

/// Whether a step's output was made in this process by a model, or by a single tool call, whose
/// answer the index has.
fn is_made_here(state: &StepState) -> bool {
    let is_made = |state: &StepState| {
        let calls = state.usage.model.is_some() || !state.calls.is_empty();
        state.path().is_none() || (calls && state.path() == Some(Path::Edge))
    };
    match &state.fan_out {
        Some(fan_out) => fan_out.instances.iter().all(is_made),
        None => state.path().is_some() && is_made(state),
    }
}

impl SeenLog {
    /// Indexes the sources that the index does not have yet.
    fn catch_up(&mut self, run: &Run) {
        let is_new = self.indexed.is_none();
        let from = self.indexed.unwrap_or_default();
        if !is_new && from == self.sources.len() {
            return;
        }
        if is_new {
            self.add_arguments(run);
        }
        let caller = run.caller_values();
        let Self { sources, index, .. } = self;
        for (number, source) in (1u32..).zip(&*sources).skip(from) {
            source.add_to(index, number, run, &caller);
        }
        self.indexed = Some(self.sources.len());
    }

    fn add_arguments(&mut self, run: &Run) {
        for (position, (name, value)) in (0u32..).zip(run.started.args.iter()) {
            let classes = run.argument_classes(name);
            let class = [SeenIn::Private, SeenIn::Stranger];
            let class = class.into_iter().filter(|class| classes.contains(class));
            let mut class: Vec<SeenIn> = class.collect();
            // What the model of the parent run made up was seen nowhere here either.
            if class.is_empty() && !classes.contains(&SeenIn::Nowhere) {
                class.push(if is_prompt(&classes) { SeenIn::Prompt } else { SeenIn::Records });
            }
            for class in class {
                self.index.add_value(argument_source(position), value, class);
            }
        }
    }
}

fn is_prompt(classes: &[SeenIn]) -> bool {
    classes.iter().all(|class| *class == SeenIn::Prompt)
}

impl SeenSource {
    fn add_to(&self, index: &mut SeenIndex, number: u32, run: &Run, caller: &CallerValues) {
        match self {
            // Next to a line break, no two texts become one word.
            SeenSource::Prompt(step) => index.add_prompt(number, &caller.text(run, *step, "\n")),
            SeenSource::Output(OutputSeen { step: _, by_person, outcome }) => {
                // The outputs of a step are an object or a list, unless they were erased.
                if outcome.outputs.is_null() {
                    index.add_unknown();
                } else if *by_person {
                    index.add_value(number, &outcome.outputs, SeenIn::Prompt);
                } else {
                    let text = outcome.stdout.clone();
                    let structured = Some(outcome.outputs.clone());
                    let answer = AnswerSeen { text, structured, failed: false };
                    index.add_answer(number, &answer, &Default::default());
                }
            }
            SeenSource::Answer(_, call) => match &call.ended.content {
                None => index.add_unknown(),
                Some(content) => {
                    let ToolContent { text, structured, cut } = content.clone();
                    let answer = AnswerSeen { text, structured, failed: call.ended.failed };
                    index.add_answer(number, &answer, &call.fields);
                    if cut {
                        index.add_unknown();
                    }
                }
            },
            SeenSource::Comment(approval) => {
                let comment = run.approvals.get(approval).and_then(|one| one.comment.as_ref());
                if let Some(comment) = comment {
                    index.add_prompt(number, comment);
                }
            }
        }
    }
}
