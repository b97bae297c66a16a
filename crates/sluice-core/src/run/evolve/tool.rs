//! Calls of tools that steps asked for.

use crate::journal::event::{Ruling, StepAt, ToolRequest};
use crate::port::adapter::ToolUse;
use crate::run::state::{Run, StepState, ToolCall};

impl Run {
    pub(super) fn tool_asked(&mut self, at: StepAt, asked: &ToolRequest) {
        let held = matches!(asked.ruling, Ruling::Held(_));
        let call = ToolCall {
            tool: asked.tool.clone(),
            digest: asked.digest.clone(),
            input: held.then(|| asked.input.clone()),
            ruling: asked.ruling.clone(),
        };
        let state = self.state_mut(at);
        state.used_tools |= matches!(asked.ruling, Ruling::Allowed(_));
        // Consent that an earlier dispatch was given is used up.
        if let Ruling::Allowed(Some(_)) = asked.ruling {
            state.calls.retain(|id, call| !id.starts_with(KEPT) || call.digest != asked.digest);
        }
        state.calls.insert(asked.id.clone(), call);
    }

    /// What was decided about a call of the dispatch in flight; none if nobody
    /// has, or of another call.
    pub fn ruling(&self, at: StepAt, dispatch_no: u32, wanted: &ToolUse) -> Option<&Ruling> {
        self.index.in_flight.get(&at).filter(|current| **current == dispatch_no)?;
        let call = self.state(at).calls.get(&wanted.id)?;
        (call.tool == wanted.tool).then_some(&call.ruling)
    }
}

impl StepState {
    /// A new dispatch asks for its tools itself. What people were asked within the
    /// same attempt counts on: it is sent again because of a crash.
    pub(super) fn forget_calls(&mut self, attempt: u32) {
        let same = self.attempt == attempt;
        let calls = std::mem::take(&mut self.calls);
        let held = calls.into_iter().filter(|(_, call)| matches!(call.ruling, Ruling::Held(_)));
        // Under names that no model gives: theirs are their own.
        let kept = held.enumerate().filter(|_| same);
        self.calls = kept.map(|(number, (_, call))| (format!("{KEPT}{number}"), call)).collect();
        // Sent again after a crash, the attempt may have kept what tools answered.
        self.used_tools &= same;
    }
}

/// What stands before the id of a call that an earlier dispatch asked for.
pub(crate) const KEPT: &str = "\u{1}";
