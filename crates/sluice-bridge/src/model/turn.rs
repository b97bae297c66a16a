//! One turn: sends a request and streams the response.

use super::ModelAdapter;
use super::ModelCall;
use super::dialect::{ModelRequest, ResponseDecoder};
use super::failure::{error, invalid, of_outbound, of_status, one_line, provider};
use super::progress::Progress;
use super::sse;
use crate::limits::{COMPLAINT_MS, COMPLAINT_READ_BYTES_MAX, LAST_BYTES_MS, TURN_BYTES_MAX};
use crate::media::File;
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::wire::{Incoming, RequestIndex};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use sluice_core::port::adapter::{CallError, CallErrorCode, Closed, Emission};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

impl ModelAdapter {
    /// Makes one request. The response is decoded into the draft of `progress`.
    pub(super) async fn turn(
        &self,
        job: &ModelCall<'_>,
        model_request: &ModelRequest<'_>,
        progress: &mut Progress,
    ) -> Result<Box<dyn ResponseDecoder>, CallError> {
        let request = self.request(job, model_request)?;
        let number = progress.next_request_number();
        let index =
            RequestIndex { step: &job.request.step, dispatch_no: job.request.dispatch_no, number };
        progress.begin_turn();
        let mut incoming = match self.wire.open(index, &request).await {
            Ok(incoming) => incoming,
            Err(trouble) => {
                // After a timeout or a broken connection the provider may have
                // worked, and charge for it.
                if !is_doubtful(&trouble) {
                    progress.reject_turn();
                }
                return Err(of_outbound(&trouble, &request.url));
            }
        };
        if incoming.status() != 200 {
            // A gateway error does not say whether the provider behind the proxy
            // worked.
            if !matches!(incoming.status(), 408 | 502 | 504) {
                progress.reject_turn();
            }
            let body = complaint(incoming.as_mut()).await;
            let (status, headers) = (incoming.status(), incoming.headers());
            return Err(of_status(status, headers, &body, &request.url));
        }
        is_stream(incoming.as_ref())?;
        let mut decoder = self.dialect.decoder(model_request);
        stream_response(job, (incoming, &request.url), decoder.as_mut(), progress).await?;
        progress.settle();
        Ok(decoder)
    }

    fn request(
        &self,
        job: &ModelCall<'_>,
        model_request: &ModelRequest<'_>,
    ) -> Result<Request, CallError> {
        let base = self.base();
        let url = format!("{base}{}", self.dialect.turn_path(base, model_request.model));
        let body =
            serde_json::to_vec(&self.dialect.body(model_request)).expect("a value can be written");
        let patience = job.until.saturating_duration_since(Instant::now());
        let mut request = Request::post(&url, body, patience, TURN_BYTES_MAX)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        request.headers.extend(self.dialect.headers());
        if let Some(key) = job.key {
            let (name, value) = self.dialect.key_header(key).map_err(|_| {
                error(CallErrorCode::Auth, "the provider's key has characters that cannot be sent")
            })?;
            request.headers.insert(name, value);
        }
        Ok(request)
    }
}

fn is_doubtful(trouble: &OutboundError) -> bool {
    matches!(trouble, OutboundError::Late | OutboundError::Broken)
}

fn is_stream(incoming: &dyn Incoming) -> Result<(), CallError> {
    let kind = incoming.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or("nothing");
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("text/event-stream") {
        return Ok(());
    }
    let kind = one_line(kind);
    Err(provider(format!("the provider answered with `{kind}` instead of a stream of events")))
}

/// Body of an error response, up to a limit.
async fn complaint(incoming: &mut dyn Incoming) -> Vec<u8> {
    let mut body = Vec::new();
    let until = Instant::now() + Duration::from_millis(COMPLAINT_MS);
    while let Ok(Ok(Some(chunk))) = timeout_at(until, incoming.chunk()).await {
        body.extend_from_slice(&chunk);
        if body.len() >= COMPLAINT_READ_BYTES_MAX {
            body.truncate(COMPLAINT_READ_BYTES_MAX);
            break;
        }
    }
    body
}

/// Streams a response to its end.
async fn stream_response(
    job: &ModelCall<'_>,
    (mut incoming, url): (Box<dyn Incoming>, &str),
    decoder: &mut dyn ResponseDecoder,
    progress: &mut Progress,
) -> Result<(), CallError> {
    let mut reader = sse::SseReader::new();
    let (mut emitted_bytes, mut emitted_files) = (0, 0);
    while let Some(chunk) = incoming.chunk().await.map_err(|trouble| of_outbound(&trouble, url))? {
        let events = reader.push(&chunk).map_err(|bad| provider(format!("the provider: {bad}")))?;
        let draft = &mut progress.draft;
        // Events before an error are still emitted, and events after the end are
        // ignored, so that the chunking of the stream does not matter.
        let decoded = events
            .iter()
            .try_for_each(|event| if draft.ended { Ok(()) } else { decoder.event(event, draft) });
        if draft.text.len() > emitted_bytes {
            // Separates the texts of successive turns.
            let gap = if emitted_bytes == 0 && progress.spoke { "\n\n" } else { "" };
            let part = format!("{gap}{}", &draft.text[emitted_bytes..]);
            emitted_bytes = draft.text.len();
            job.call.emit(Emission::Text(part)).await.map_err(|closed| abandoned(&closed))?;
        }
        for media in draft.made[emitted_files..].iter().filter_map(File::emission) {
            job.call.emit(media).await.map_err(|closed| abandoned(&closed))?;
        }
        emitted_files = draft.made.len();
        decoded?;
        if draft.ended {
            finish(incoming).await;
            return Ok(());
        }
    }
    if progress.draft.stop.is_none() {
        return Err(provider("the provider's stream ended in the middle of an answer".to_owned()));
    }
    Ok(())
}

/// Reads the rest of a complete response, so that its connection can be reused. Only briefly:
/// otherwise the connection is dropped.
async fn finish(mut incoming: Box<dyn Incoming>) {
    let rest = async { while let Ok(Some(_)) = incoming.chunk().await {} };
    let _ = timeout(Duration::from_millis(LAST_BYTES_MS), rest).await;
}

/// The engine has closed the call.
pub(super) fn abandoned(closed: &Closed) -> CallError {
    error(CallErrorCode::Cancelled, closed.to_string())
}

/// Checks that the request names a model.
pub(super) fn model(named: Option<&str>) -> Result<&str, CallError> {
    let named = named.filter(|name| !name.is_empty());
    named.ok_or_else(|| invalid("the model is missing: set `model` for the agent or the step"))
}
