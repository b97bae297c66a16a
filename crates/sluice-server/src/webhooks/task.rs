//! The task of one webhook: reads the feed, stores deliveries, and sends them.

use super::Post;
use crate::limits::{
    DELIVERIES_AT_ONCE, DELIVERIES_WAITING_MAX, FRESH_BYTES_MAX, PLACES_UNNOTED_MAX,
    WEBHOOKS_LOOK_MS,
};
use crate::organisation::Organisation;
use futures_util::future::join_all;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::deliveries::{Ahead, Delivering, Delivery};
use sluice_engine::error::LoadError;
use sluice_engine::feed::{Fed, FeedReader};
use sluice_govern::registry::Webhook;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

pub(super) struct WebhookTask {
    pub(super) organisation: Arc<Organisation>,
    pub(super) post: Post,
    pub(super) name: String,
    pub(super) webhook: Webhook,
    /// Events in memory for their first attempt, so that they need not be read again.
    fresh: BTreeMap<(RunId, u64), Arc<Seen>>,
    fresh_bytes: usize,
}

/// Why reading the feed ended.
enum FeedEnd {
    /// Another process moved the webhook's position: continue from there.
    Moved,
    /// The engine has stopped.
    Stopped,
}

impl WebhookTask {
    pub(super) fn new(
        organisation: Arc<Organisation>,
        post: Post,
        name: &str,
        webhook: Webhook,
    ) -> WebhookTask {
        let (fresh, fresh_bytes) = (BTreeMap::new(), 0);
        WebhookTask { organisation, post, name: name.to_owned(), webhook, fresh, fresh_bytes }
    }

    /// Runs until the engine stops, or the task is aborted because the webhook was removed.
    pub(super) async fn run(mut self) {
        loop {
            match self.follow_feed().await {
                Ok(FeedEnd::Stopped) => return,
                Ok(FeedEnd::Moved) => {}
                Err(error) => {
                    let (organisation, webhook) = (self.organisation.name(), &self.name);
                    tracing::warn!(%error, organisation, webhook, "a webhook cannot continue yet");
                }
            }
            sleep(Duration::from_millis(WEBHOOKS_LOOK_MS)).await;
        }
    }

    async fn follow_feed(&mut self) -> Result<FeedEnd, LoadError> {
        let organisation = Arc::clone(&self.organisation);
        let (store, engine) = (&organisation.service().store, &organisation.service().engine);
        let Some(mut noted) = store.delivering(self.name.clone()).await?.place else {
            // Without a stored position it starts at the end of the feed.
            let (webhook, to) = (self.name.clone(), store.feed_end().await?);
            store.deliver(Ahead { webhook, from: None, to, put: Vec::new() }).await?;
            return Ok(FeedEnd::Moved);
        };
        let mut reader = engine.feed(Some(noted)).await?;
        loop {
            let at = store.delivering(self.name.clone()).await?;
            if at.place != Some(noted) {
                return Ok(FeedEnd::Moved);
            }
            if at.due_ms.is_some_and(|due_ms| due_ms <= self.post.clock.now_ms()) {
                self.send_due().await?;
                continue;
            }
            let Some(batch) = self.next(&mut reader, &at).await? else {
                return Ok(FeedEnd::Stopped);
            };
            let put = self.deliveries_of(&batch);
            let (webhook, to) = (self.name.clone(), reader.place());
            if put.is_empty() && to - noted < PLACES_UNNOTED_MAX {
                continue;
            }
            let ahead = Ahead { webhook, from: Some(noted), to, put };
            if !store.deliver(ahead).await? {
                return Ok(FeedEnd::Moved);
            }
            noted = to;
        }
    }

    /// The next frames of the feed; empty if a delivery becomes due first. Nothing is read while
    /// the queue is full. `None` when the engine has stopped.
    async fn next(
        &self,
        reader: &mut FeedReader,
        at: &Delivering,
    ) -> Result<Option<Vec<Arc<Fed>>>, LoadError> {
        let now_ms = self.post.clock.now_ms();
        let due = at.due_ms.map(|due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms)));
        if at.waiting >= DELIVERIES_WAITING_MAX {
            let most = Duration::from_millis(WEBHOOKS_LOOK_MS);
            sleep(due.unwrap_or(most).min(most)).await;
            return Ok(Some(Vec::new()));
        }
        match due {
            None => reader.next().await,
            Some(due) => timeout(due, reader.next()).await.unwrap_or(Ok(Some(Vec::new()))),
        }
    }

    /// The deliveries of matching events.
    fn deliveries_of(&mut self, batch: &[Arc<Fed>]) -> Vec<Delivery> {
        let now_ms = self.post.clock.now_ms();
        let mut put = Vec::new();
        for fed in batch {
            for seen in &fed.seen {
                let Seen::Event(shown) = &**seen else { continue };
                if !self.webhook.wants(&shown.kind, &fed.workflow) {
                    continue;
                }
                if self.fresh_bytes + shown.json.len() <= FRESH_BYTES_MAX {
                    self.fresh_bytes += shown.json.len();
                    self.fresh.insert((fed.run, shown.id), Arc::clone(seen));
                }
                put.push(Delivery {
                    number: 0,
                    webhook: self.name.clone(),
                    run: fed.run,
                    event: shown.id,
                    kind: shown.kind.clone(),
                    tries: 0,
                    status: None,
                    error: None,
                    at_ms: now_ms,
                    next_ms: Some(now_ms),
                });
            }
        }
        put
    }

    /// Sends some of the due deliveries, and stores the results.
    async fn send_due(&mut self) -> Result<(), LoadError> {
        let organisation = Arc::clone(&self.organisation);
        let store = &organisation.service().store;
        let (now_ms, pace) = (self.post.clock.now_ms(), &self.post.pace);
        let until_ms = now_ms + pace.answer_ms + pace.slack_ms;
        let due = store.take_due(self.name.clone(), now_ms, until_ms, DELIVERIES_AT_ONCE).await?;
        let cached = due.iter().map(|one| self.fresh.remove(&(one.run, one.event)));
        let cached: Vec<Option<Arc<Seen>>> = cached.collect();
        if self.fresh.is_empty() {
            self.fresh_bytes = 0;
        }
        // A secret signs only for its own hosts: otherwise an organisation could use its own
        // receiver to obtain signatures that another receiver trusts.
        let secrets = &organisation.service().secrets;
        let Webhook { url, secret, operator_secret, .. } = &self.webhook;
        let secret = secrets.of_row(secret, *operator_secret).read_for(url);
        let secret = secret.as_ref().map_err(ToString::to_string);
        let this = &*self;
        let sent = due.into_iter().zip(cached).map(|(one, seen)| {
            let secret = secret.clone();
            async move { this.attempt(one, seen, secret).await }
        });
        let done = join_all(sent).await;
        Ok(store.delivered(done).await?)
    }
}
