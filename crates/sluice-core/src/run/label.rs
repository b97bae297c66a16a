//! The origin labels of everything that a step has read.

use super::state::Run;
use crate::journal::event::StepAt;
use crate::origin::Labels;

impl Run {
    /// The labels of everything that the attempt of a step may have read by now: its
    /// inputs, and the answers of its tools. A tool counts from the moment its call is
    /// allowed: when an agent on another machine reads the answer, the engine cannot know.
    pub(crate) fn labels_read(&self, at: StepAt) -> Labels {
        let state = self.state(at);
        let inputs = state.prepared.as_ref().map(|prepared| prepared.labels).unwrap_or_default();
        if state.used_tools { inputs.with(Labels::of_tools()) } else { inputs }
    }
}
