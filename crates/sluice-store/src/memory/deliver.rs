//! Webhook deliveries.

use super::{MemoryState, MemoryStore};
use sluice_core::id::RunId;
use sluice_core::limits::DELIVERIES_KEPT;
use sluice_core::port::deliveries::{Ahead, Deliveries, Delivering, Delivery};
use sluice_core::port::store::Answer;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct WebhookState {
    place: Option<u64>,
    /// Number of the last delivery.
    last: u64,
    by_number: BTreeMap<u64, Delivery>,
    events: BTreeSet<(RunId, u64)>,
}

impl Deliveries for MemoryStore {
    fn delivering(&self, webhook: String) -> Answer<'_, Delivering> {
        Box::pin(async move {
            Ok(self
                .read(|state, _| state.webhooks.get(&webhook).map(delivering).unwrap_or_default()))
        })
    }

    fn deliver(&self, ahead: Ahead) -> Answer<'_, bool> {
        Box::pin(async move { Ok(self.write(|state, _| state.deliver(ahead))) })
    }

    fn take_due(
        &self,
        webhook: String,
        by_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        Box::pin(async move {
            Ok(self.write(|state, _| {
                let Some(webhook) = state.webhooks.get_mut(&webhook) else { return Vec::new() };
                webhook.take_due(by_ms, until_ms, crate::page(limit))
            }))
        })
    }

    fn delivered(&self, done: Vec<Delivery>) -> Answer<'_, ()> {
        Box::pin(async move {
            self.write(|state, _| {
                for delivery in done {
                    if let Some(webhook) = state.webhooks.get_mut(&delivery.webhook) {
                        webhook.update(delivery);
                    }
                }
            });
            Ok(())
        })
    }

    fn deliveries(
        &self,
        webhook: String,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        Box::pin(async move {
            Ok(self.read(|state, _| {
                let Some(webhook) = state.webhooks.get(&webhook) else { return Vec::new() };
                let until = before.unwrap_or(u64::MAX);
                let newest = webhook.by_number.range(..until).rev();
                newest.map(|(_, one)| one.clone()).take(crate::page(limit)).collect()
            }))
        })
    }

    fn forget_deliveries(&self, webhook: String) -> Answer<'_, ()> {
        Box::pin(async move {
            self.write(|state, _| state.webhooks.remove(&webhook));
            Ok(())
        })
    }
}

fn delivering(webhook: &WebhookState) -> Delivering {
    let due = || webhook.by_number.values().filter_map(|one| one.next_ms);
    Delivering { place: webhook.place, waiting: due().count() as u64, due_ms: due().min() }
}

impl MemoryState {
    fn deliver(&mut self, ahead: Ahead) -> bool {
        let stored = self.webhooks.get(&ahead.webhook).and_then(|webhook| webhook.place);
        if stored != ahead.from {
            return false;
        }
        let webhook = self.webhooks.entry(ahead.webhook).or_default();
        webhook.place = Some(ahead.to);
        for delivery in ahead.put {
            if webhook.events.insert((delivery.run, delivery.event)) {
                webhook.last += 1;
                let number = webhook.last;
                webhook.by_number.insert(number, Delivery { number, ..delivery });
            }
        }
        true
    }
}

impl WebhookState {
    fn take_due(&mut self, by_ms: u64, until_ms: u64, limit: usize) -> Vec<Delivery> {
        let due = self.by_number.values().filter_map(|one| Some((one.next_ms?, one.number)));
        let mut due: Vec<(u64, u64)> = due.filter(|(next_ms, _)| *next_ms <= by_ms).collect();
        due.sort_unstable();
        let mut taken = Vec::new();
        for (_, number) in due.into_iter().take(limit) {
            if let Some(one) = self.by_number.get_mut(&number) {
                one.next_ms = Some(until_ms);
                taken.push(one.clone());
            }
        }
        taken
    }

    fn update(&mut self, delivery: Delivery) {
        let Some(stored) = self.by_number.get_mut(&delivery.number) else { return };
        *stored = delivery;
        let over = self.by_number.values().filter(|one| one.next_ms.is_none());
        let over: Vec<u64> = over.map(|one| one.number).collect();
        for number in &over[..over.len().saturating_sub(DELIVERIES_KEPT)] {
            if let Some(old) = self.by_number.remove(number) {
                self.events.remove(&(old.run, old.event));
            }
        }
    }
}
