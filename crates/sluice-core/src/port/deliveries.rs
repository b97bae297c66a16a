//! Deliveries to outbound webhooks: the feed position of each webhook, and the state of each
//! event to send to it.
//!
//! The transaction that adds a delivery also advances the webhook's feed position, so a crash
//! neither loses nor duplicates one. A sender then claims the delivery for a while and records
//! the result.
//!
//! INVARIANT: a position advances only from the value that the writer has seen. If two
//! processes follow the feed for one webhook, the second one learns that its position is
//! stale.

use super::store::Answer;
use crate::id::RunId;

/// Deliveries to outbound webhooks.
pub trait Deliveries: Send + Sync {
    /// Reads the feed position and the queue of a webhook.
    fn delivering(&self, webhook: String) -> Answer<'_, Delivering>;

    /// Advances a webhook's position and adds the deliveries in between; returns whether
    /// the stored position was `from`. Deliveries that exist already stay unchanged.
    fn deliver(&self, ahead: Ahead) -> Answer<'_, bool>;

    /// Claims up to `limit` deliveries of a webhook that are due by a time, longest due
    /// first, and postpones their due time so that no other sender claims them until then.
    fn take_due(
        &self,
        webhook: String,
        by_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>>;

    /// Records the results of deliveries. If a webhook has too many finished ones, the
    /// oldest are deleted.
    fn delivered(&self, done: Vec<Delivery>) -> Answer<'_, ()>;

    /// Lists deliveries of a webhook, newest first, before a number if it is set.
    fn deliveries(
        &self,
        webhook: String,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>>;

    /// Deletes a webhook's position and deliveries.
    fn forget_deliveries(&self, webhook: String) -> Answer<'_, ()>;
}

/// The state of a webhook's deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivering {
    /// The feed position up to which deliveries were added; `None` before the first.
    pub place: Option<u64>,
    /// The number of unfinished deliveries.
    pub waiting: u64,
    /// When the first of them is due.
    pub due_ms: Option<u64>,
}

/// An advance of a webhook's feed position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The name of the webhook's row.
    pub webhook: String,
    /// The position that the writer has seen.
    pub from: Option<u64>,
    /// The new position.
    pub to: u64,
    /// Events to deliver, in their order. The store numbers them.
    pub put: Vec<Delivery>,
}

/// One event for one webhook, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its number among the deliveries of the webhook; greater for later ones.
    pub number: u64,
    /// The webhook's name.
    pub webhook: String,
    /// The run of the event.
    pub run: RunId,
    /// The event's id.
    pub event: u64,
    /// The event's name.
    pub kind: String,
    /// The number of attempts.
    pub tries: u32,
    /// The HTTP status of the last attempt.
    pub status: Option<u16>,
    /// The error of the last attempt.
    pub error: Option<String>,
    /// When the delivery was added.
    pub at_ms: u64,
    /// When it is sent next; `None` when it is finished.
    pub next_ms: Option<u64>,
}
