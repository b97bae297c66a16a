//! The labels of a step, for people.

use crate::journal::event::StepAt;
use crate::origin::{FlowLabels, Labels};
use crate::run::state::Run;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The labels of the result of a step; of what it has read, while it has no result.
#[derive(Debug, Serialize)]
pub struct StepLabels {
    /// Whether a part came from outside and no person has checked it.
    pub untrusted: bool,
    /// Whether a part must not leave the organisation.
    pub private: bool,
    /// The named labels of everything together.
    #[serde(flatten)]
    pub all: NamedLabels,
    /// Named labels of outputs that differ; of inputs, while there is no result.
    pub fields: BTreeMap<String, NamedLabels>,
}

/// The named labels of a value.
#[derive(Debug, Serialize)]
pub struct NamedLabels {
    /// Where its data came from.
    pub origins: Vec<String>,
    /// Which secrets it contains.
    pub secrecy: Vec<String>,
    /// Whether an untrusted value decided that it exists, or what it is.
    pub control: bool,
}

impl From<&FlowLabels> for NamedLabels {
    fn from(labels: &FlowLabels) -> NamedLabels {
        NamedLabels {
            origins: labels.origins().map(str::to_owned).collect(),
            secrecy: labels.secrecy().map(str::to_owned).collect(),
            control: labels.is_controlled(),
        }
    }
}

/// The labels of a step or instance.
pub fn step_labels(run: &Run, at: StepAt) -> StepLabels {
    let state = run.state(at);
    let (whole, fields): (Labels, BTreeMap<String, NamedLabels>) = match state.outcome() {
        Some(outcome) => {
            let names = match &outcome.outputs {
                Value::Object(outputs) => outputs.keys().collect(),
                _ => Vec::new(),
            };
            let own = names.into_iter().filter_map(|name| {
                let own = run.own_labels(at, outcome, name)?;
                (*own != outcome.labels.flow).then(|| (name.clone(), own.into()))
            });
            (outcome.labels.clone(), own.collect())
        }
        None => {
            let fields = state.prepared.iter().flat_map(|prepared| prepared.field_labels.iter());
            let own = fields.map(|(name, own)| (name.clone(), own.into()));
            (run.labels_read(at), own.collect())
        }
    };
    StepLabels {
        untrusted: whole.untrusted,
        private: whole.private,
        all: (&whole.flow).into(),
        fields,
    }
}
