//! A fake of the engine's `Call`: records emissions, and allows every tool.

use sluice_core::id::RunId;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Call, Closed, Emission, OutputStrategy, Request, ToolUse, ToolVerdict,
};
use std::future::{pending, ready};
use std::sync::{Mutex, PoisonError};

/// The emissions of an adapter.
#[derive(Debug, Default)]
pub struct RecordingCall {
    emitted: Mutex<Vec<Emission>>,
}

impl RecordingCall {
    /// The joined text, then all other emissions in order.
    pub fn emissions(&self) -> (String, Vec<String>) {
        let emitted = self.emitted.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut text, mut others) = (String::new(), Vec::new());
        for one in emitted.iter() {
            match one {
                Emission::Text(part) => text += part,
                // The duration of a tool call does not depend on the input.
                Emission::ToolEnded(ended) => others.push(ended.tool.clone()),
                other => others.push(format!("{other:?}")),
            }
        }
        (text, others)
    }
}

impl Call for RecordingCall {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        self.emitted.lock().unwrap_or_else(PoisonError::into_inner).push(emission);
        Box::pin(ready(Ok(())))
    }

    fn tool(&self, _: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        Box::pin(ready(Ok(ToolVerdict::Allowed)))
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(pending())
    }
}

/// A request of a step's first dispatch.
pub fn request(output_strategy: OutputStrategy) -> Request {
    Request {
        run: RunId(1),
        step: "step".to_owned(),
        workflow: "flow".to_owned(),
        gateway: "models".to_owned(),
        attempt: 1,
        dispatch_no: 1,
        idempotency_key: "key".to_owned(),
        session: None,
        agent: "agent".to_owned(),
        system_prompt: None,
        message: "go".to_owned(),
        stdin: None,
        env: Vec::new(),
        cwd: None,
        model: Some("model-1".to_owned()),
        tools: vec!["box.read".to_owned()],
        output_schema: None,
        output_strategy,
        price: None,
        ceiling: None,
        max_output_tokens: None,
        timeout_ms: 60_000,
        constraints: Default::default(),
        action_digest: String::new(),
        trace: None,
    }
}
