//! A tool server that answers from a recording.

use super::Replay;
use crate::media::File;
use crate::recording::{Asked, Chunk, Failure, KeptAnswer, KeptTool, Outcome};
use crate::tools::{Structured, Tool, ToolAnswer, ToolServer, ToolTrouble};
use crate::wire::Place;
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
fn kept<T: DeserializeOwned>(outcome: Result<Outcome, String>) -> Result<T, ToolTrouble> {
    match outcome.map_err(ToolTrouble)? {
        Outcome::Failed(Failure::Refused(why)) => Err(ToolTrouble(why)),
        Outcome::Failed(_) => Err(ToolTrouble("the tool could not be called".to_owned())),
        Outcome::Answered { chunks, .. } => {
            let text: Vec<u8> = chunks.iter().filter_map(Chunk::bytes).flatten().collect();
            let broken = |_| ToolTrouble("the recorded answer of the tool is malformed".to_owned());
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

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolTrouble>> {
        let listed = kept::<Vec<KeptTool>>(self.replay.list(&Asked::tools(&self.name)));
        let listed = listed.map(|tools| {
            let tool = |kept: KeptTool| Tool {
                name: kept.name,
                description: kept.description,
                input_schema: kept.input_schema,
                read_only: kept.read_only,
            };
            tools.into_iter().map(tool).collect()
        });
        Box::pin(std::future::ready(listed))
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<ToolAnswer, ToolTrouble>> {
        Box::pin(async move { Ok(self.call_whole(tool, input, place).await?.0) })
    }

    fn call_whole<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolTrouble>> {
        let answered = kept::<KeptAnswer>(self.replay.find(place, &Asked::tool(tool, input)));
        let answered = answered.map(|kept| {
            let files = kept.files.into_iter().map(File::from).collect();
            (ToolAnswer { text: kept.text, failed: kept.failed, files }, kept.structured)
        });
        Box::pin(std::future::ready(answered))
    }
}
