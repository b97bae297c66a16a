//! Outbound webhooks: sends events to receivers.
//!
//! Each organisation has one task that watches its webhook rows, and each webhook has a task
//! that reads the feed of all runs, stores a delivery for each matching event (`task`),
//! sends the due ones (`attempt`) and schedules retries (`retry`). `event` builds the body,
//! `start_position` sets the start position of a webhook.
//!
//! INVARIANT: at-least-once delivery. A delivery is stored in the transaction that moves the
//! webhook past its event, and is finished only when a receiver accepted it or all attempts
//! are used up. INVARIANT: a receiver that is slow or unreachable delays only its own
//! deliveries, never runs or other webhooks.

mod attempt;
pub mod event;
pub mod retry;
pub mod start_position;
mod task;
#[cfg(test)]
mod tests;

use crate::app::EntropySource;
use crate::limits::{WEBHOOKS_LOOK_MS, WEBHOOKS_MAX};
use crate::organisation::Organisation;
use retry::RetrySchedule;
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
use task::WebhookTask;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// What a webhook needs to send deliveries.
#[derive(Clone)]
pub struct Post {
    /// The guarded HTTP client.
    pub outbound: Arc<Outbound>,
    /// The current time.
    pub clock: Arc<dyn Clock>,
    /// Randomness for the jitter of retries.
    pub entropy: EntropySource,
    /// Attempts and timeouts.
    pub pace: RetrySchedule,
}

/// A webhook and its running task.
struct RunningWebhook {
    webhook: Webhook,
    task: AbortHandle,
}

/// Runs the webhooks of an organisation until `stop` is cancelled. Deliveries in progress
/// are sent again by the next process.
pub async fn deliver(organisation: Arc<Organisation>, post: Post, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    let mut at_work: BTreeMap<String, RunningWebhook> = BTreeMap::new();
    while !stop.is_cancelled() {
        match organisation.rows().await {
            Ok(rows) => {
                reconcile(&organisation, &post, enabled(&rows.rows), &mut at_work, &mut tasks);
            }
            Err(error) => {
                let organisation = organisation.name();
                tracing::warn!(%error, organisation, "webhook rows cannot be read");
            }
        }
        // A task that ended is started again by the next iteration.
        while tasks.try_join_next().is_some() {}
        let pause = tokio::time::sleep(Duration::from_millis(WEBHOOKS_LOOK_MS));
        tokio::select! {
            () = stop.cancelled() => {}
            () = pause => {}
        }
    }
    tasks.shutdown().await;
}

/// The enabled webhooks, at most `WEBHOOKS_MAX`.
fn enabled(rows: &[Row]) -> BTreeMap<String, Webhook> {
    let rows = rows.iter().filter(|row| row.kind == Kind::Webhook);
    let read = rows.filter_map(|row| {
        let webhook: Webhook = serde_json::from_value(row.body.clone()).ok()?;
        webhook.enabled.then(|| (row.name.clone(), webhook))
    });
    let wanted: BTreeMap<String, Webhook> = read.take(WEBHOOKS_MAX + 1).collect();
    if wanted.len() > WEBHOOKS_MAX {
        tracing::warn!(
            "more than {WEBHOOKS_MAX} webhooks are enabled; the last ones receive nothing"
        );
    }
    wanted.into_iter().take(WEBHOOKS_MAX).collect()
}

/// Starts and stops tasks, so that they match the enabled webhooks.
fn reconcile(
    organisation: &Arc<Organisation>,
    post: &Post,
    wanted: BTreeMap<String, Webhook>,
    at_work: &mut BTreeMap<String, RunningWebhook>,
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
        if let Entry::Vacant(vacant) = at_work.entry(name) {
            let name = vacant.key();
            let task =
                WebhookTask::new(Arc::clone(organisation), post.clone(), name, webhook.clone());
            vacant.insert(RunningWebhook { webhook, task: tasks.spawn(task.run()) });
        }
    }
}

/// A delivery as a JSON object.
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
