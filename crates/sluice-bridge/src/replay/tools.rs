//! A tool server that answers from a recording.

use super::Replay;
use crate::media::File;
use crate::recording::{
    RecordedAnswer, RecordedChunk, RecordedFailure, RecordedOutcome, RecordedRequest, RecordedTool,
};
use crate::tools::{Structured, Tool, ToolAnswer, ToolServer, ToolServerError};
use crate::wire::RequestIndex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_core::port::Later;
use std::sync::Arc;

#[derive(Debug)]
struct ReplayedTools {
    replay: Arc<Replay>,
    name: String,
}

pub(super) fn server(replay: Arc<Replay>, name: &str) -> Arc<dyn ToolServer> {
    Arc::new(ReplayedTools { replay, name: name.to_owned() })
}

/// Decodes a recorded answer, or the recorded error.
fn decode_answer<T: DeserializeOwned>(
    outcome: Result<RecordedOutcome, String>,
) -> Result<T, ToolServerError> {
    match outcome.map_err(ToolServerError)? {
        RecordedOutcome::Failed(RecordedFailure::Refused(why)) => Err(ToolServerError(why)),
        RecordedOutcome::Failed(_) => {
            Err(ToolServerError("the tool could not be called".to_owned()))
        }
        RecordedOutcome::Answered { chunks, .. } => {
            let text: Vec<u8> = chunks.iter().filter_map(RecordedChunk::bytes).flatten().collect();
            let broken =
                |_| ToolServerError("the recorded answer of the tool is malformed".to_owned());
            serde_json::from_slice(&text).map_err(broken)
        }
    }
}

impl ToolServer for ReplayedTools {
    fn name(&self) -> &str {
        &self.name
    }

    /// A replay has no side effects.
    fn reads_only(&self, _tool: &str) -> bool {
        true
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        let listed = decode_answer::<Vec<RecordedTool>>(
            self.replay.list(&RecordedRequest::tools(&self.name)),
        );
        let listed = listed.map(|tools| {
            let tool = |recorded: RecordedTool| Tool {
                name: recorded.name,
                description: recorded.description,
                input_schema: recorded.input_schema,
                read_only: recorded.read_only,
            };
            tools.into_iter().map(tool).collect()
        });
        Box::pin(std::future::ready(listed))
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        index: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolServerError>> {
        let answered = decode_answer::<RecordedAnswer>(
            self.replay.find(index, &RecordedRequest::tool(tool, input)),
        );
        let answered = answered.map(|recorded| {
            let files = recorded.files.into_iter().map(File::from).collect();
            (
                ToolAnswer { text: recorded.text, failed: recorded.failed, files },
                recorded.structured,
            )
        });
        Box::pin(std::future::ready(answered))
    }
}
