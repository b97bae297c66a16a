//! One turn: sends a request and streams the response.

use super::Job;
use super::ModelAdapter;
use super::dialect::{Ask, Listen};
use super::failure::{error, invalid, of_outbound, of_status, provider, shown};
use super::progress::Progress;
use super::sse;
use crate::limits::{COMPLAINT_MS, COMPLAINT_READ_BYTES_MAX, LAST_BYTES_MS, TURN_BYTES_MAX};
use crate::media::File;
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::wire::{Incoming, Place};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use sluice_core::port::adapter::{CallError, CallErrorCode, Closed, Emission};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

impl ModelAdapter {
    /// Makes one request. The response is decoded into the draft of `progress`.
    pub(super) async fn turn(
        &self,
        job: &Job<'_>,
        ask: &Ask<'_>,
        progress: &mut Progress,
    ) -> Result<Box<dyn Listen>, CallError> {
        let request = self.request(job, ask)?;
        let number = progress.number();
        let place = Place { step: &job.request.step, dispatch_no: job.request.dispatch_no, number };
        progress.begin();
        let mut incoming = match self.wire.open(place, &request).await {
            Ok(incoming) => incoming,
            Err(trouble) => {
                // After a timeout or a broken connection the provider may have
                // worked, and charge for it.
                if !is_doubtful(&trouble) {
                    progress.turned_away();
                }
                return Err(of_outbound(&trouble, &request.url));
            }
        };
        if incoming.status() != 200 {
            // A gateway error does not say whether the provider behind the proxy
            // worked.
            if !matches!(incoming.status(), 408 | 502 | 504) {
                progress.turned_away();
            }
            let body = complaint(incoming.as_mut()).await;
            let (status, headers) = (incoming.status(), incoming.headers());
            return Err(of_status(status, headers, &body, &request.url));
        }
        is_stream(incoming.as_ref())?;
        let mut listener = self.dialect.listen(ask);
        hear(job, (incoming, &request.url), listener.as_mut(), progress).await?;
        progress.settle();
        Ok(listener)
    }

    fn request(&self, job: &Job<'_>, ask: &Ask<'_>) -> Result<Request, CallError> {
        let base = self.base();
        let url = format!("{base}{}", self.dialect.turn_path(base, ask.model));
        let body = serde_json::to_vec(&self.dialect.body(ask)).expect("a value can be written");
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
    let kind = shown(kind);
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
async fn hear(
    job: &Job<'_>,
    (mut incoming, url): (Box<dyn Incoming>, &str),
    listener: &mut dyn Listen,
    progress: &mut Progress,
) -> Result<(), CallError> {
    let mut reader = sse::Reader::new();
    let (mut told, mut handed) = (0, 0);
    while let Some(chunk) = incoming.chunk().await.map_err(|trouble| of_outbound(&trouble, url))? {
        let events = reader.take(&chunk).map_err(|bad| provider(format!("the provider: {bad}")))?;
        let draft = &mut progress.draft;
        // Events before an error are still emitted, and events after the end are
        // ignored, so that the chunking of the stream does not matter.
        let heard = events
            .iter()
            .try_for_each(|event| if draft.ended { Ok(()) } else { listener.event(event, draft) });
        if draft.text.len() > told {
            // Separates the texts of successive turns.
            let gap = if told == 0 && progress.spoke { "\n\n" } else { "" };
            let part = format!("{gap}{}", &draft.text[told..]);
            told = draft.text.len();
            job.call.emit(Emission::Text(part)).await.map_err(|closed| abandoned(&closed))?;
        }
        for media in draft.made[handed..].iter().filter_map(File::emission) {
            job.call.emit(media).await.map_err(|closed| abandoned(&closed))?;
        }
        handed = draft.made.len();
        heard?;
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
