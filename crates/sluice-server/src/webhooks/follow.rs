//! One webhook: along the feed, and what is for it into the store and out.

use super::Post;
use crate::house::House;
use crate::limits::{
    DELIVERIES_AT_ONCE, DELIVERIES_WAITING_MAX, FRESH_BYTES_MAX, PLACES_UNNOTED_MAX,
    WEBHOOKS_LOOK_MS,
};
use futures_util::future::join_all;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::deliveries::{Ahead, Delivering, Delivery};
use sluice_core::run::id::RunId;
use sluice_engine::error::LoadError;
use sluice_engine::feed::{Fed, FeedReader};
use sluice_govern::registry::Webhook;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A webhook that is looked after.
pub(super) struct Follow {
    pub(super) house: Arc<House>,
    pub(super) post: Post,
    pub(super) name: String,
    pub(super) webhook: Webhook,
    /// Events at hand for their first try, so that they need not be read again.
    fresh: BTreeMap<(RunId, u64), Arc<Seen>>,
    fresh_bytes: usize,
}

/// How a look at the feed ended.
enum Went {
    /// Somebody else moved the webhook: begin again from where it is.
    Astray,
    /// The engine is gone.
    Home,
}

impl Follow {
    pub(super) fn new(house: Arc<House>, post: Post, name: &str, webhook: Webhook) -> Follow {
        let (fresh, fresh_bytes) = (BTreeMap::new(), 0);
        Follow { house, post, name: name.to_owned(), webhook, fresh, fresh_bytes }
    }

    /// Goes on until the engine is gone or nobody wants it any more.
    pub(super) async fn run(mut self) {
        loop {
            match self.go().await {
                Ok(Went::Home) => return,
                Ok(Went::Astray) => {}
                Err(error) => {
                    let (organisation, webhook) = (self.house.name(), &self.name);
                    tracing::warn!(%error, organisation, webhook, "a webhook cannot go on yet");
                }
            }
            sleep(Duration::from_millis(WEBHOOKS_LOOK_MS)).await;
        }
    }

    async fn go(&mut self) -> Result<Went, LoadError> {
        let house = Arc::clone(&self.house);
        let (store, engine) = (&house.service().store, &house.service().engine);
        let Some(mut noted) = store.delivering(self.name.clone()).await?.place else {
            // Nobody said where it begins: here and now.
            let (webhook, to) = (self.name.clone(), store.feed_end().await?);
            store.deliver(Ahead { webhook, from: None, to, put: Vec::new() }).await?;
            return Ok(Went::Astray);
        };
        let mut reader = engine.feed(Some(noted)).await?;
        loop {
            let at = store.delivering(self.name.clone()).await?;
            if at.place != Some(noted) {
                return Ok(Went::Astray);
            }
            if at.due_ms.is_some_and(|due_ms| due_ms <= self.post.clock.now_ms()) {
                self.send_due().await?;
                continue;
            }
            let Some(batch) = self.next(&mut reader, &at).await? else { return Ok(Went::Home) };
            let put = self.pick(&batch);
            let (webhook, to) = (self.name.clone(), reader.place());
            if put.is_empty() && to - noted < PLACES_UNNOTED_MAX {
                continue;
            }
            let ahead = Ahead { webhook, from: Some(noted), to, put };
            if !store.deliver(ahead).await? {
                return Ok(Went::Astray);
            }
            noted = to;
        }
    }

    /// What comes next along the feed, if anything does before something is due.
    /// While very much waits, nothing is read. None when the engine is gone.
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

    /// Deliveries of what is for this webhook.
    fn pick(&mut self, batch: &[Arc<Fed>]) -> Vec<Delivery> {
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

    /// Sends a few of those that are due, and notes what became of them.
    async fn send_due(&mut self) -> Result<(), LoadError> {
        let house = Arc::clone(&self.house);
        let store = &house.service().store;
        let (now_ms, pace) = (self.post.clock.now_ms(), &self.post.pace);
        let until_ms = now_ms + pace.answer_ms + pace.slack_ms;
        let due = store.take_due(self.name.clone(), now_ms, until_ms, DELIVERIES_AT_ONCE).await?;
        let at_hand = due.iter().map(|one| self.fresh.remove(&(one.run, one.event)));
        let at_hand: Vec<Option<Arc<Seen>>> = at_hand.collect();
        if self.fresh.is_empty() {
            self.fresh_bytes = 0;
        }
        // Signatures are made for the secret's hosts alone: with one for a host of its own
        // an organisation could pass for Sluice at another.
        let secrets = &house.service().secrets;
        let Webhook { url, secret, operator_secret, .. } = &self.webhook;
        let secret = secrets.of_row(secret, *operator_secret).read_for(url);
        let secret = secret.as_ref().map_err(ToString::to_string);
        let this = &*self;
        let sent = due.into_iter().zip(at_hand).map(|(one, seen)| {
            let secret = secret.clone();
            async move { this.attempt(one, seen, secret).await }
        });
        let done = join_all(sent).await;
        Ok(store.delivered(done).await?)
    }
}
