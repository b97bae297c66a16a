//! Adapter for steps that call one tool without a model.
//!
//! The step names exactly one tool. The tool's input is the step's stdin, otherwise its
//! command: a JSON object as it is, any other text as `{"input": text}`. The engine decides
//! about the call as it does for a tool call of a model; a denied call fails the step. The
//! tool's answer is the step's text; its structured content, otherwise the object in the text,
//! gives the outputs.

use crate::media::{self, File};
use crate::normalise;
use crate::tools::{ToolServer, ToolServerError};
use crate::wire::RequestIndex;
use serde_json::{Map, Value, json};
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Closed, Emission, Execution, Health, Quote,
    Request, ToolContent, ToolEnded, ToolUse, ToolVerdict,
};
use sluice_core::visible;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Id of the single call of a dispatch.
const CALL: &str = "call_1";

/// Calls the tools of its servers.
pub struct McpAdapter {
    servers: Vec<Arc<dyn ToolServer>>,
}

impl McpAdapter {
    /// An adapter for the tools of these servers.
    pub fn new(servers: Vec<Arc<dyn ToolServer>>) -> McpAdapter {
        McpAdapter { servers }
    }

    /// The tool that the step names, and its server.
    fn find<'a>(&'a self, request: &'a Request) -> Result<(&'a str, &'a dyn ToolServer), String> {
        let [tool] = request.tools.as_slice() else {
            let count = request.tools.len();
            return Err(format!(
                "an `mcp` step must name exactly one tool in `tools`, found {count}"
            ));
        };
        let shown = visible::brief(tool);
        let of = tool.split_once('.').filter(|(_, own)| !own.is_empty() && *own != "*");
        let Some((server, _)) = of else {
            return Err(format!("`{shown}` is not the name of one tool, such as `server.tool`"));
        };
        match self.servers.iter().find(|one| one.name() == server) {
            Some(found) if only_reads(request) && !found.reads_only(tool) => {
                let why = "`read_only_tools` of its server in `sluice.toml` does not list it";
                Err(format!(
                    "the step may only use read-only tools, and `{shown}` is not declared read-only: {why}"
                ))
            }
            Some(found) => Ok((tool, found.as_ref())),
            None => Err(format!("this gateway has no tool server for `{shown}`")),
        }
    }

    async fn run(&self, request: &Request, call: &dyn Call) -> Answer {
        let (tool, server) = match self.find(request) {
            Ok(found) => found,
            Err(why) => return Answer::failed(CallErrorCode::InvalidRequest, why),
        };
        let input = Value::Object(input(request));
        let patience = Duration::from_millis(request.timeout_ms);
        tokio::select! {
            biased;
            () = call.cancelled() => {
                Answer::failed(CallErrorCode::Cancelled, "the call was cancelled")
            }
            answer = decide_and_call(server, tool, &input, request, call) => answer,
            () = tokio::time::sleep(patience) => {
                let late = format!("the tool did not answer within {} ms", request.timeout_ms);
                Answer::failed(CallErrorCode::Timeout, late)
            }
        }
    }
}

/// Whether the step may call only read-only tools.
fn only_reads(request: &Request) -> bool {
    request.constraints.data_access.as_deref() == Some("read_only")
}

/// Input of the tool.
fn input(request: &Request) -> Map<String, Value> {
    let piped = request.stdin.as_deref().filter(|text| !text.trim().is_empty());
    let text = piped.unwrap_or(&request.message);
    normalise::object_of(text)
        .unwrap_or_else(|| Map::from_iter([("input".to_owned(), text.into())]))
}

/// Asks the engine to decide about the call, and makes it if it is allowed.
async fn decide_and_call(
    server: &dyn ToolServer,
    tool: &str,
    input: &Value,
    request: &Request,
    call: &dyn Call,
) -> Answer {
    let wanted = ToolUse { id: CALL.to_owned(), tool: tool.to_owned(), input: input.clone() };
    match call.tool(wanted).await {
        Ok(ToolVerdict::Allowed) => {}
        Ok(ToolVerdict::Denied(why)) => return denied(tool, &why),
        Err(Closed) => return abandoned(),
    }
    let index = RequestIndex { step: &request.step, dispatch_no: request.dispatch_no, number: 1 };
    let began = Instant::now();
    // A bridge has definitions that the engine does not know, and the server may have changed
    // since the last listing.
    let outcome = match server.state(tool).await.map(|state| state.refusal(tool)) {
        Ok(None) => server.call(tool, input, index).await.map_err(failed_call),
        Ok(Some(why)) => Err(denied(tool, &why)),
        Err(trouble) => Err(failed_call(trouble)),
    };
    let (failed, bytes, content) = match &outcome {
        Ok((answer, structured)) => {
            let structured = structured.clone().map(Value::Object);
            let content = ToolContent::new(answer.text.clone(), structured);
            (answer.failed, answer.text.len(), content)
        }
        Err(answer) => {
            let message = answer.error.as_ref().map(|error| error.message.clone());
            (true, 0, ToolContent::new(message.unwrap_or_default(), None))
        }
    };
    let ended = ToolEnded {
        id: CALL.to_owned(),
        tool: tool.to_owned(),
        failed,
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        content: Some(content),
    };
    if call.emit(Emission::ToolEnded(ended)).await.is_err() {
        return abandoned();
    }
    let (answer, structured) = match outcome {
        Ok(answered) => answered,
        Err(failed) => return failed,
    };
    for media in answer.files.iter().filter_map(File::emission) {
        if call.emit(media).await.is_err() {
            return abandoned();
        }
    }
    let mut result = if answer.failed {
        let said = visible::brief(&answer.text);
        Answer::failed(CallErrorCode::ProviderError, format!("`{tool}` failed: {said}"))
    } else {
        let outputs = structured.or_else(|| normalise::object_in(&answer.text));
        Answer { outputs, ..Answer::default() }
    };
    result.conversation = vec![
        json!({"role": "user", "text": input.to_string(), "tool": tool, "call": CALL}),
        json!({"role": "tool", "text": answer.text, "tool": tool, "call": CALL}),
    ];
    result.media = media::media_value(&answer.files);
    result.artefacts = answer.files.iter().map(File::artefact).collect();
    result.text = Some(answer.text);
    result
}

/// The reason of a denial begins with its code, if it has one.
fn denied(tool: &str, why: &str) -> Answer {
    let codes = [CallErrorCode::ToolNotAccepted, CallErrorCode::ToolDefinitionChanged];
    let code = codes.into_iter().find(|code| why.starts_with(code.as_str()));
    let message = format!("`{tool}` may not be called: {why}");
    Answer::failed(code.unwrap_or(CallErrorCode::InvalidRequest), message)
}

fn failed_call(trouble: ToolServerError) -> Answer {
    let code = match trouble.is_divergence() {
        true => CallErrorCode::InvalidRequest,
        false => CallErrorCode::ProviderError,
    };
    Answer::failed(code, trouble.0)
}

fn abandoned() -> Answer {
    Answer::failed(CallErrorCode::Cancelled, "the call was abandoned")
}

impl Adapter for McpAdapter {
    fn provider(&self) -> &'static str {
        "mcp"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { cancel: true, ..Capabilities::default() }
    }

    /// The cost of tools is unknown to Sluice.
    fn quote(&self, _step: &str) -> Quote {
        Quote::Free
    }

    /// Does not start a server only to check its health.
    fn health(&self) -> Later<'_, Health> {
        let health = if self.servers.is_empty() { Health::Offline } else { Health::Healthy };
        Box::pin(std::future::ready(health))
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move { Execution::Done(Box::new(self.run(request, call).await)) })
    }
}
