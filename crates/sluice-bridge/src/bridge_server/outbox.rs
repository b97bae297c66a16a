//! Sends the parts of an answer to the engine while the work goes on.
//!
//! Parts are collected for a moment and sent in batches, one batch at a time. A batch is resent
//! unchanged until the engine accepts it, so that the engine can recognise a duplicate. Parts
//! that have not arrived when the work ends are stored with the result and sent before it.
//!
//! INVARIANT: the engine receives parts without a gap, from the first one. If it rejects a
//! batch, or too much is queued, nothing more is sent: the result has the whole text.

use super::Inner;
use super::deliver::{SendOutcome, classify_status};
use super::dispatch_call::with_tokens;
use crate::limits::{
    DELIVERY_ANSWER_BYTES_MAX, PARTS_BATCH_BYTES_MAX, PARTS_EVERY_MS, PARTS_MAX, PARTS_NUMBER_MAX,
    PARTS_TRY_MS, PARTS_WAITING_BYTES_MAX,
};
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::parts::{AnswerPart, PartsBody};
use crate::secret::Secret;
use sluice_core::port::adapter::Emission;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Limit of one part's text, in bytes.
const PIECE_BYTES_MAX: usize = PARTS_BATCH_BYTES_MAX;

/// Queue and destination for the parts of one dispatch.
#[derive(Debug)]
pub(super) struct Outbox {
    url: String,
    token: Option<Secret>,
    unsent: Mutex<UnsentParts>,
    /// Notified when a part was queued or the outbox was closed.
    wake: Notify,
    /// Notified when the engine has accepted a batch, or nothing more is sent.
    sent: Notify,
}

#[derive(Debug)]
struct UnsentParts {
    /// Batch in flight.
    batch: Option<PartsBody>,
    /// Header of the batch that follows.
    next: PartsBody,
    /// Queued parts, in order.
    parts: VecDeque<AnswerPart>,
    bytes: usize,
    /// Whether more parts are accepted.
    open: bool,
}

impl Outbox {
    /// Outbox of a dispatch; `None` if its engine does not accept parts.
    pub(super) fn new(body: &DispatchBody) -> Option<Outbox> {
        let next = PartsBody {
            run_id: body.run_id,
            step_id: body.step_id.clone(),
            dispatch_no: body.dispatch_no,
            first: 0,
            parts: Vec::new(),
        };
        let unsent =
            UnsentParts { batch: None, next, parts: VecDeque::new(), bytes: 0, open: true };
        Some(Outbox {
            url: body.parts_url.clone()?,
            token: body.dispatch_token.as_deref().map(Secret::new),
            unsent: Mutex::new(unsent),
            wake: Notify::new(),
            sent: Notify::new(),
        })
    }

    fn unsent(&self) -> MutexGuard<'_, UnsentParts> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a part, split into pieces that fit into a batch.
    pub(super) fn push(&self, emission: Emission) {
        let Some(part) = AnswerPart::from_emission(emission) else { return };
        let mut unsent = self.unsent();
        match part {
            AnswerPart::Text { text } => {
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let (piece, left) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
                    unsent.enqueue(AnswerPart::Text { text: piece.to_owned() });
                    rest = left;
                }
            }
            part => unsent.enqueue(part),
        }
        drop(unsent);
        self.wake.notify_one();
    }

    /// Accepts no more parts.
    pub(super) fn close(&self) {
        self.unsent().open = false;
        self.wake.notify_one();
        self.sent.notify_waiters();
    }

    /// Waits until the engine has every part so far, or nothing more is sent.
    pub(super) async fn flush(&self) {
        loop {
            let sent = self.sent.notified();
            {
                let unsent = self.unsent();
                let is_empty = unsent.batch.is_none() && unsent.parts.is_empty();
                if is_empty || !unsent.open {
                    return;
                }
            }
            sent.await;
        }
    }

    /// Sends batches until the outbox is closed and empty, or the engine rejects one.
    pub(super) async fn run(&self, inner: &Inner) {
        let mut failures = 0;
        loop {
            let Some(batch) = self.current_batch() else {
                if !self.unsent().open {
                    return;
                }
                self.wake.notified().await;
                if self.unsent().open {
                    tokio::time::sleep(Duration::from_millis(PARTS_EVERY_MS)).await;
                }
                continue;
            };
            match send(inner, &self.url, self.token.as_ref(), &batch).await {
                SendOutcome::Accepted => {
                    failures = 0;
                    self.unsent().batch = None;
                    self.sent.notify_waiters();
                }
                SendOutcome::Rejected(why) => {
                    tracing::warn!(
                        step = batch.step_id,
                        why,
                        "the engine rejected parts of an answer"
                    );
                    let mut unsent = self.unsent();
                    (unsent.batch, unsent.open) = (None, false);
                    unsent.parts.clear();
                    self.sent.notify_waiters();
                    return;
                }
                SendOutcome::Retry(_) => {
                    failures += 1;
                    tokio::time::sleep(inner.settings.pace.wait(failures)).await;
                }
            }
        }
    }

    /// The batch to send: the same one until the engine accepts it.
    fn current_batch(&self) -> Option<PartsBody> {
        let mut unsent = self.unsent();
        if unsent.batch.is_none() {
            unsent.batch = unsent.next_batch();
        }
        unsent.batch.clone()
    }

    /// Removes and returns the batches that the engine does not have yet, in order.
    pub(super) fn drain(&self) -> Vec<PartsBody> {
        let mut unsent = self.unsent();
        let mut rest: Vec<PartsBody> = unsent.batch.take().into_iter().collect();
        while let Some(batch) = unsent.next_batch() {
            rest.push(batch);
        }
        rest
    }
}

impl UnsentParts {
    /// Queues a part that fits into a batch, joined to the text before it.
    fn enqueue(&mut self, part: AnswerPart) {
        if !self.open {
            return;
        }
        self.bytes += part.bytes();
        let count = self.next.first + self.parts.len() as u64;
        if self.bytes > PARTS_WAITING_BYTES_MAX || count >= PARTS_NUMBER_MAX {
            tracing::warn!(
                "too many parts of an answer are queued; the rest comes with the result"
            );
            self.open = false;
            return;
        }
        match (self.parts.back_mut(), part) {
            (Some(AnswerPart::Text { text: before }), AnswerPart::Text { text })
                if before.len() + text.len() <= PIECE_BYTES_MAX =>
            {
                before.push_str(&text);
            }
            (_, part) => self.parts.push_back(part),
        }
    }

    /// Removes the next batch from the queue, if there is one.
    fn next_batch(&mut self) -> Option<PartsBody> {
        let mut batch = self.next.clone();
        let mut bytes = 0;
        while let Some(part) = self.parts.front() {
            bytes += part.bytes();
            let full = bytes > PARTS_BATCH_BYTES_MAX || batch.parts.len() == PARTS_MAX;
            if full && !batch.parts.is_empty() {
                break;
            }
            self.bytes = self.bytes.saturating_sub(part.bytes());
            batch.parts.extend(self.parts.pop_front());
        }
        if batch.parts.is_empty() {
            return None;
        }
        self.next.first += batch.parts.len() as u64;
        Some(batch)
    }
}

/// Sends a batch once.
pub(super) async fn send(
    inner: &Inner,
    url: &str,
    token: Option<&Secret>,
    batch: &PartsBody,
) -> SendOutcome {
    let body = serde_json::to_vec(batch).expect("parts are plain JSON");
    let patience = Duration::from_millis(PARTS_TRY_MS);
    let request = Request::post(url, body, patience, DELIVERY_ANSWER_BYTES_MAX);
    let Some(request) = with_tokens(request, &inner.settings.token, token) else {
        return SendOutcome::Rejected("the tokens cannot be sent".to_owned());
    };
    match inner.outbound.send(&request).await {
        Ok(answer) => classify_status(answer.status),
        Err(OutboundError::Refused(refusal)) => SendOutcome::Rejected(refusal.to_string()),
        Err(error) => SendOutcome::Retry(error.to_string()),
    }
}
