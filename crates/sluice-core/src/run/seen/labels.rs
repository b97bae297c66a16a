//! The named labels of the arguments of a call: those of the sources in which their values were
//! seen. A value that was seen nowhere may come from anything that the step has read.

use super::{SeenSource, argument_source, is_prompt};
use crate::journal::event::{Prepared, StepAt};
use crate::origin::FlowLabels;
use crate::run::state::Run;
use crate::seen::SeenCall;
use serde_json::{Map, Value};
use sluice_govern::facts::{ArgumentFacts, CallFacts, FlowFacts};

impl Run {
    /// The facts about the values of a call, with the named labels of each argument.
    pub(crate) fn labelled_call(&mut self, at: StepAt, input: &Map<String, Value>) -> CallFacts {
        let SeenCall { mut facts, sources } = self.describe_call(at, input);
        let read = self.labels_read(at).flow;
        for (path, argument) in &mut facts.arguments {
            let mut labels = FlowLabels::default();
            let seen = sources.get(path);
            for source in seen.into_iter().flat_map(|seen| &seen.sources) {
                labels.join(&self.source_labels(*source).unwrap_or_else(|| read.clone()));
            }
            if seen.is_none_or(|seen| seen.nowhere) {
                labels.join(&read);
            }
            add(argument, &labels);
        }
        facts
    }

    /// The facts about the inputs of a step that is about to be sent, with their named labels.
    pub(crate) fn labelled_inputs(&mut self, at: StepAt, prepared: &Prepared) -> CallFacts {
        let mut facts = self.describe_call(at, &prepared.inputs).facts;
        for (path, argument) in &mut facts.arguments {
            let name = path.split('.').next().unwrap_or_default();
            let own =
                prepared.field_labels.get(name).filter(|_| prepared.inputs.contains_key(name));
            add(argument, own.unwrap_or(&prepared.labels.flow));
        }
        facts
    }

    /// The named labels of a source; `None` for a number that no source has.
    fn source_labels(&self, number: u32) -> Option<FlowLabels> {
        let position = usize::try_from(argument_source(number)).ok()?;
        if let Some(name) = self.started.args.keys().nth(position) {
            return Some(self.argument_labels(Some(name)).flow);
        }
        let position = usize::try_from(number).ok()?.checked_sub(1)?;
        Some(match self.seen.sources.get(position)? {
            // Of the arguments, a prompt has those that the caller wrote.
            SeenSource::Prompt(_) => {
                let mut labels = FlowLabels::default();
                let names = self.started.args.keys();
                for name in names.filter(|name| is_prompt(&self.argument_classes(name))) {
                    labels.join(&self.argument_labels(Some(name)).flow);
                }
                labels
            }
            SeenSource::Output(output) => output.outcome.labels.flow.clone(),
            SeenSource::Answer(_, call) => {
                let known = self.answers.get(&call.ended.tool);
                known.cloned().unwrap_or_else(FlowLabels::unknown)
            }
            // A person wrote it.
            SeenSource::Comment(_) => FlowLabels::default(),
        })
    }
}

fn add(argument: &mut ArgumentFacts, labels: &FlowLabels) {
    let FlowFacts { origins, secrecy, .. } = labels.facts();
    (argument.origins, argument.secrecy) = (origins, secrecy);
}
