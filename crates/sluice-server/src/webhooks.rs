//! Events on their way to those who want to be told: webhooks.
//!
//! For each organisation one task looks which webhooks there are, and each of them
//! has a task of its own that goes along the feed of all runs, notes what is for it
//! (`follow`), sends what is due (`attempt`) and tries again what failed (`pace`).
//! `event` is what is sent, `begin` where a webhook begins.
//!
//! INVARIANT: at least once. An event is noted as a delivery in the transaction that
//! moves the webhook past it, and is over only when a receiver took it or all tries
//! are used up. INVARIANT: a receiver that is slow or dead holds up nothing but its
//! own deliveries: runs never wait, nor do other webhooks.

mod attempt;
pub mod begin;
pub mod event;
mod follow;
pub mod pace;
#[cfg(test)]
mod tests;

use crate::app::EntropySource;
use crate::house::House;
use crate::limits::{WEBHOOKS_LOOK_MS, WEBHOOKS_MAX};
use follow::Follow;
use pace::Pace;
use serde_json::{Value, json};
use sluice_bridge::outbound::Outbound;
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::Clock;
use sluice_core::port::deliveries::Delivery;
use sluice_govern::registry::{Kind, Row, Webhook};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// What sending takes.
#[derive(Clone)]
pub struct Post {
    /// The way out.
    pub outbound: Arc<Outbound>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Chance, so that not all come back at the same moment.
    pub entropy: EntropySource,
    /// How patiently.
    pub pace: Pace,
}

/// A webhook that is looked after.
struct AtWork {
    webhook: Webhook,
    task: AbortHandle,
}

/// Looks after the webhooks of an organisation until it is told to stop. What is
/// under way then is sent again by whoever comes next.
pub async fn deliver(house: Arc<House>, post: Post, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    let mut at_work: BTreeMap<String, AtWork> = BTreeMap::new();
    while !stop.is_cancelled() {
        match house.rows().await {
            Ok(rows) => look_after(&house, &post, wanted(&rows.rows), &mut at_work, &mut tasks),
            Err(error) => {
                let organisation = house.name();
                tracing::warn!(%error, organisation, "webhooks cannot be looked up");
            }
        }
        // What ended by itself is begun again with the next look.
        while tasks.try_join_next().is_some() {}
        let pause = tokio::time::sleep(Duration::from_millis(WEBHOOKS_LOOK_MS));
        tokio::select! {
            () = stop.cancelled() => {}
            () = pause => {}
        }
    }
    tasks.shutdown().await;
}

/// The webhooks that are sent to.
fn wanted(rows: &[Row]) -> BTreeMap<String, Webhook> {
    let rows = rows.iter().filter(|row| row.kind == Kind::Webhook);
    let read = rows.filter_map(|row| {
        let webhook: Webhook = serde_json::from_value(row.body.clone()).ok()?;
        webhook.enabled.then(|| (row.name.clone(), webhook))
    });
    let wanted: BTreeMap<String, Webhook> = read.take(WEBHOOKS_MAX + 1).collect();
    if wanted.len() > WEBHOOKS_MAX {
        tracing::warn!("there are more than {WEBHOOKS_MAX} webhooks; the last are not sent to");
    }
    wanted.into_iter().take(WEBHOOKS_MAX).collect()
}

fn look_after(
    house: &Arc<House>,
    post: &Post,
    wanted: BTreeMap<String, Webhook>,
    at_work: &mut BTreeMap<String, AtWork>,
    tasks: &mut JoinSet<()>,
) {
    at_work.retain(|name, one| {
        let stays = wanted.get(name) == Some(&one.webhook) && !one.task.is_finished();
        if !stays {
            one.task.abort();
        }
        stays
    });
    for (name, webhook) in wanted {
        if let Entry::Vacant(place) = at_work.entry(name) {
            let name = place.key();
            let follow = Follow::new(Arc::clone(house), post.clone(), name, webhook.clone());
            place.insert(AtWork { webhook, task: tasks.spawn(follow.run()) });
        }
    }
}

/// A line of the log of deliveries, as people and programs are shown it.
pub fn shown(delivery: &Delivery) -> Value {
    let state = match (delivery.next_ms, &delivery.error) {
        (Some(_), _) => "waiting",
        (None, None) => "delivered",
        (None, Some(_)) => "failed",
    };
    json!({
        "number": delivery.number,
        "delivery_id": event::delivery_id(&delivery.webhook, delivery.run, delivery.event),
        "webhook": delivery.webhook,
        "run_id": delivery.run.to_string(),
        "event_id": delivery.event,
        "type": delivery.kind,
        "state": state,
        "tries": delivery.tries,
        "status": delivery.status,
        "error": delivery.error,
        "at": timestamp(delivery.at_ms),
        "next_at": delivery.next_ms.map(timestamp),
    })
}
