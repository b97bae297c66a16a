//! Tool calls that steps requested.

use crate::journal::event::{LogLine, Ruling, StepAt, StepEvent, ToolRequest};
use crate::origin::FlowLabels;
use crate::port::adapter::ToolUse;
use crate::run::state::{Run, StepState, ToolCall};

impl Run {
    pub(super) fn tool_requested(&mut self, at: StepAt, request: &ToolRequest) {
        let held = matches!(request.ruling, Ruling::Held(_));
        let call = ToolCall {
            tool: request.tool.clone(),
            digest: request.digest.clone(),
            input: held.then(|| request.input.clone()),
            ruling: request.ruling.clone(),
            answered: false,
            taken: request.record.taken.clone(),
        };
        if matches!(request.ruling, Ruling::Allowed(_)) {
            self.call_allowed(at, &request.id);
        }
        let state = self.state_mut(at);
        if matches!(request.ruling, Ruling::Allowed(_)) {
            state.used_tools = true;
            state.tool_labels.join(&request.labels);
            let answers = self.answers.entry(request.tool.clone()).or_default();
            answers.join(&request.labels);
        }
        let state = self.state_mut(at);
        // The approval that an earlier dispatch of the attempt requested is used up.
        if let Ruling::Allowed(Some(_)) = request.ruling {
            state.calls.retain(|id, call| !id.starts_with(KEPT) || call.digest != request.digest);
        }
        state.calls.insert(request.id.clone(), call);
    }

    /// Keeps what policies about history need of an event.
    pub(super) fn remember(&mut self, at: StepAt, event: &StepEvent, at_ms: u64) {
        let agent = match event {
            StepEvent::Log { line: LogLine::Tool(_), .. } => {
                self.agent_of(at.step).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        };
        self.history.evolve(at, event, &agent, at_ms);
    }

    /// The decision about a tool call of the dispatch in flight; `None` if it is not decided yet,
    /// or if it is about a different tool.
    pub fn ruling(&self, at: StepAt, dispatch_no: u32, wanted: &ToolUse) -> Option<&Ruling> {
        self.index.in_flight.get(&at).filter(|current| **current == dispatch_no)?;
        let call = self.state(at).calls.get(&wanted.id)?;
        (call.tool == wanted.tool).then_some(&call.ruling)
    }
}

impl StepState {
    /// Drops the tool calls of the previous dispatch, because the new one requests its own.
    /// Calls that wait for an approval stay if the attempt is the same: it is sent again
    /// after a crash, and the approval covers it.
    pub(super) fn forget_calls(&mut self, attempt: u32) {
        let is_resent = self.attempt == attempt;
        let calls = std::mem::take(&mut self.calls);
        let held = calls.into_iter().filter(|(_, call)| matches!(call.ruling, Ruling::Held(_)));
        // With ids that no model uses, so that they cannot collide with those of new calls.
        let kept = held.enumerate().filter(|_| is_resent);
        self.calls = kept.map(|(number, (_, call))| (format!("{KEPT}{number}"), call)).collect();
        // An attempt that is sent again may still have answers of tools.
        if !is_resent {
            self.used_tools = false;
            self.tool_labels = FlowLabels::default();
        }
    }
}

/// Prefix of the ids of tool calls that an earlier dispatch requested.
pub(crate) const KEPT: &str = "\u{1}";
