//! What is sent to webhooks: how far each has come along the feed, and what
//! became of each event that is for it.
//!
//! A delivery is noted in the same transaction that moves the webhook's place
//! along the feed, so that none is lost and none is noted twice, whoever crashes.
//! It is then taken by whoever sends it, for a while, and what came of it is noted.
//!
//! INVARIANT: a place moves only from where the writer saw it. Of two processes
//! that go along the feed for one webhook, one is told that the other was first.

use super::store::Answer;
use crate::id::RunId;

/// Deliveries of webhooks.
pub trait Deliveries: Send + Sync {
    /// How far a webhook has come, and what waits for it.
    fn delivering(&self, webhook: String) -> Answer<'_, Delivering>;

    /// Moves a webhook's place from where it was seen, and notes deliveries that
    /// lie between; says whether it was there. Those that are noted already stay
    /// as they are.
    fn deliver(&self, ahead: Ahead) -> Answer<'_, bool>;

    /// Takes up to `limit` deliveries of a webhook that are due by a time, the
    /// longest due first, and puts off when they are next due: nobody else takes
    /// them until then.
    fn take_due(
        &self,
        webhook: String,
        by_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>>;

    /// Notes what became of deliveries that were sent. Of a webhook that has very
    /// many that are over, the oldest go.
    fn delivered(&self, done: Vec<Delivery>) -> Answer<'_, ()>;

    /// Deliveries of a webhook, the newest first: those before one, if it is given.
    fn deliveries(
        &self,
        webhook: String,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>>;

    /// Forgets a webhook's place and its deliveries.
    fn forget_deliveries(&self, webhook: String) -> Answer<'_, ()>;
}

/// How far a webhook has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivering {
    /// The place in the feed up to which deliveries are noted; none before it has one.
    pub place: Option<u64>,
    /// How many are not over yet.
    pub waiting: u64,
    /// When the first of those is due.
    pub due_ms: Option<u64>,
}

/// A webhook's next steps along the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The webhook.
    pub webhook: String,
    /// Where it was seen.
    pub from: Option<u64>,
    /// Where it is from now on.
    pub to: u64,
    /// Events that are for it, in their order. Their numbers are given by the store.
    pub put: Vec<Delivery>,
}

/// One event for one webhook, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its number among those of its webhook; greater for later ones.
    pub number: u64,
    /// The webhook's name.
    pub webhook: String,
    /// Whose event it is.
    pub run: RunId,
    /// The event's id.
    pub event: u64,
    /// The event's name.
    pub kind: String,
    /// How often it was sent.
    pub tries: u32,
    /// The status that came back last.
    pub status: Option<u16>,
    /// What went wrong last.
    pub error: Option<String>,
    /// When this was noted.
    pub at_ms: u64,
    /// When it is sent next; none when it is over.
    pub next_ms: Option<u64>,
}
