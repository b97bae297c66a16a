//! The adapter's `Call` of a dispatch: publishes what the adapter emits and asks the engine to
//! decide about tool calls.
//!
//! INVARIANT: a tool is called only if the engine allowed this call. If the engine cannot be
//! reached or its response is malformed, the call is denied.

use super::Inner;
use super::events::DispatchRef;
use super::outbox::Outbox;
use crate::limits::{TOOL_ANSWER_BYTES_MAX, TOOL_ASK_MS, TOOL_PAUSE_MS, TOOL_TRIES};
use crate::outbound::Request;
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::{DISPATCH_TOKEN, GATEWAY_TOKEN};
use crate::secret::Secret;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use sluice_core::port::Later;
use sluice_core::port::adapter::{Call, Closed, Emission, ToolUse, ToolVerdict};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) struct DispatchCall {
    inner: Arc<Inner>,
    dispatch: DispatchRef,
    tool_url: Option<String>,
    dispatch_token: Option<Secret>,
    cancel: CancellationToken,
    /// Set if the engine accepts parts of answers.
    outbox: Option<Arc<Outbox>>,
}

/// The engine's response about a tool call.
#[derive(Deserialize)]
struct ToolResponse {
    data: ToolResponseData,
}

#[derive(Deserialize)]
struct ToolResponseData {
    verdict: ToolVerdictWord,
    reason: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum ToolVerdictWord {
    Allowed,
    Denied,
    Pending,
}

/// Result of one request to the engine.
enum ToolRequestOutcome {
    Verdict(ToolVerdict),
    /// An approver has not decided yet.
    Pending,
    /// The request failed or its response is malformed.
    Failed,
}

impl DispatchCall {
    pub(super) fn new(
        inner: Arc<Inner>,
        body: &DispatchBody,
        cancel: CancellationToken,
        outbox: Option<Arc<Outbox>>,
    ) -> DispatchCall {
        let (step, dispatch_no) = (body.step_id.clone(), body.dispatch_no);
        DispatchCall {
            inner,
            dispatch: DispatchRef { run: body.run_id, step, dispatch_no },
            tool_url: body.tool_url.clone(),
            dispatch_token: body.dispatch_token.as_deref().map(Secret::new),
            cancel,
            outbox,
        }
    }

    pub(super) fn dispatch(&self) -> &DispatchRef {
        &self.dispatch
    }

    async fn request_verdict(&self, wanted: &ToolUse) -> ToolVerdict {
        let denied = |why: &str| ToolVerdict::Denied(why.to_owned());
        let Some(url) = &self.tool_url else {
            return denied("the dispatch has no `tool_url`");
        };
        let pause = Duration::from_millis(TOOL_PAUSE_MS);
        let mut failures = 0;
        // The dispatch's timeout bounds this loop: the caller drops it.
        loop {
            match self.request_once(url, wanted).await {
                ToolRequestOutcome::Verdict(verdict) => return verdict,
                ToolRequestOutcome::Pending => failures = 0,
                ToolRequestOutcome::Failed => failures += 1,
            }
            if failures == TOOL_TRIES {
                return denied("the engine could not be reached");
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn request_once(&self, url: &str, wanted: &ToolUse) -> ToolRequestOutcome {
        let body = json!({
            "run_id": self.dispatch.run.to_string(), "step_id": self.dispatch.step,
            "dispatch_no": self.dispatch.dispatch_no, "call_id": wanted.id, "tool": wanted.tool,
            "input": wanted.input,
        });
        let patience = Duration::from_millis(TOOL_ASK_MS);
        let body = body.to_string().into_bytes();
        let request = Request::post(url, body, patience, TOOL_ANSWER_BYTES_MAX);
        let token = self.dispatch_token.as_ref();
        let Some(request) = with_tokens(request, &self.inner.settings.token, token) else {
            return ToolRequestOutcome::Verdict(ToolVerdict::Denied(
                "the tokens cannot be sent".to_owned(),
            ));
        };
        match self.inner.outbound.send(&request).await {
            Ok(answer) if answer.status == 200 => parse_tool_response(&answer.body),
            Ok(answer)
                if (400..500).contains(&answer.status)
                    && !matches!(answer.status, 408 | 425 | 429) =>
            {
                let why = format!("the engine answered {} to the tool request", answer.status);
                ToolRequestOutcome::Verdict(ToolVerdict::Denied(why))
            }
            Ok(_) | Err(_) => ToolRequestOutcome::Failed,
        }
    }
}

fn parse_tool_response(body: &[u8]) -> ToolRequestOutcome {
    let Ok(ToolResponse { data }) = serde_json::from_slice(body) else {
        return ToolRequestOutcome::Failed;
    };
    match data.verdict {
        ToolVerdictWord::Allowed => ToolRequestOutcome::Verdict(ToolVerdict::Allowed),
        ToolVerdictWord::Pending => ToolRequestOutcome::Pending,
        ToolVerdictWord::Denied => {
            let reason = data.reason.unwrap_or_else(|| "the engine denied the call".to_owned());
            ToolRequestOutcome::Verdict(ToolVerdict::Denied(reason))
        }
    }
}

/// Adds the tokens of gateway and dispatch; `None` if one is not a valid header value.
pub(super) fn with_tokens(
    request: Request,
    gateway: &Secret,
    dispatch: Option<&Secret>,
) -> Option<Request> {
    let hidden = |secret: &Secret| {
        let mut value = HeaderValue::from_str(secret.expose()).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    let mut request = request
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(HeaderName::from_static(GATEWAY_TOKEN), hidden(gateway)?);
    if let Some(dispatch) = dispatch {
        request = request.header(HeaderName::from_static(DISPATCH_TOKEN), hidden(dispatch)?);
    }
    Some(request)
}

impl Call for DispatchCall {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        if let Some(outbox) = &self.outbox {
            outbox.push(emission.clone());
        }
        let (name, data) = match emission {
            Emission::Text(text) => ("assistant.text", json!({"text": text})),
            Emission::Log(line) => ("exec.progress", json!({"state": "running", "log": line})),
            Emission::Media { url, mime } => {
                ("exec.progress", json!({"state": "running", "url": url, "mime": mime}))
            }
            Emission::ToolEnded(ended) => (
                "tool.completed",
                json!({
                    "call_id": ended.id, "tool": ended.tool, "failed": ended.failed,
                    "bytes": ended.bytes, "duration_ms": ended.duration_ms,
                    "content": ended.content,
                }),
            ),
            // A bridge has no journal for processes.
            Emission::Process(_) => return Box::pin(std::future::ready(Ok(()))),
        };
        self.inner.hub.publish(&self.dispatch, name, data);
        Box::pin(std::future::ready(Ok(())))
    }

    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        let asked = json!({"call_id": wanted.id, "tool": wanted.tool});
        self.inner.hub.publish(&self.dispatch, "tool.invoked", asked);
        Box::pin(async move {
            let decided = async {
                // The engine judges the call with the answers of the calls before it.
                if let Some(outbox) = &self.outbox {
                    outbox.flush().await;
                }
                self.request_verdict(&wanted).await
            };
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(Closed),
                verdict = decided => Ok(verdict),
            }
        })
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.cancelled())
    }
}
