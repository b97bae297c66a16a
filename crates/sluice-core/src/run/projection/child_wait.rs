//! Waits at gates inside child runs, shown at the steps that started them.

use super::Projection;
use super::hint::hint;
use crate::id::RunId;
use crate::journal::event::Path;
use crate::run::phase::StepPhase;
use crate::run::state::Run;
use crate::status::Waiting;
use std::collections::BTreeMap;

/// The child runs in flight, with the names of their steps.
pub fn children(run: &Run) -> Vec<(String, RunId)> {
    let child = |path: Path| match path {
        Path::Child(child) => Some(child),
        _ => None,
    };
    run.all()
        .filter(|(_, state)| state.status().is_dispatched())
        .filter_map(|(at, state)| Some((run.name(at), child(state.path()?)?)))
        .collect()
}

/// What the first step at a gate waits for, as `code: hint`, and which step that is.
pub fn gate_wait(run: &Run) -> Option<String> {
    let (at, _) = run.all().find(|(_, state)| matches!(state.phase, StepPhase::AtGate { .. }))?;
    let wait = hint(run, at, Waiting::Gate)?;
    Some(format!("{wait} (step `{}` of {})", run.name(at), run.id))
}

impl Projection<'_> {
    /// Adds what steps wait for in their child runs: [`gate_wait`] by the name of the step.
    #[must_use]
    pub fn with_child_waits(mut self, waits: &BTreeMap<String, String>) -> Self {
        if waits.is_empty() {
            return self;
        }
        for node in &mut self.node_results {
            if let Some(wait) = waits.get(node.node_id.as_ref()) {
                node.waiting_reason = Some(Waiting::Gate);
                node.unblock_hint = Some(wait.clone());
            }
        }
        self
    }
}
