//! Events of running dispatches, as server-sent events.
//!
//! A subscriber of one dispatch has its own queue, so that events are not copied to every
//! subscriber of every dispatch. A subscriber that is too slow is disconnected; results do not
//! depend on subscribers.

use crate::limits::{EVENT_READERS_MAX, EVENTS_ALL_MAX, EVENTS_ONE_MAX};
use crate::protocol::DispatchHash;
use axum::response::sse::Event;
use futures_util::Stream;
use serde_json::{Map, Value, json};
use sluice_core::id::RunId;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

/// The dispatch that an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DispatchRef {
    pub(super) run: RunId,
    pub(super) step: String,
    pub(super) dispatch_no: u32,
}

/// Selects the events of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EventFilter {
    pub(super) run: Option<RunId>,
    pub(super) step: Option<String>,
    pub(super) dispatch_no: Option<u32>,
}

impl EventFilter {
    fn matches(&self, dispatch: &DispatchRef) -> bool {
        self.run.is_none_or(|run| run == dispatch.run)
            && self.step.as_ref().is_none_or(|step| *step == dispatch.step)
            && self.dispatch_no.is_none_or(|number| number == dispatch.dispatch_no)
    }

    /// The dispatch that the filter selects, if it selects exactly one.
    fn single_dispatch(&self) -> Option<DispatchHash> {
        Some(DispatchHash::new(self.run?, self.step.as_ref()?, self.dispatch_no?))
    }
}

#[derive(Debug)]
struct HubEvent {
    name: &'static str,
    dispatch: DispatchRef,
    data: String,
    /// Whether this is the last event of its dispatch.
    last: bool,
}

type HubSender = broadcast::Sender<Arc<HubEvent>>;

/// Distributes events to subscribers.
#[derive(Debug)]
pub(super) struct EventHub {
    all: HubSender,
    one: Mutex<BTreeMap<DispatchHash, HubSender>>,
    readers: Arc<Semaphore>,
}

impl Default for EventHub {
    fn default() -> EventHub {
        EventHub {
            all: broadcast::Sender::new(EVENTS_ALL_MAX),
            one: Mutex::default(),
            readers: Arc::new(Semaphore::new(EVENT_READERS_MAX)),
        }
    }
}

impl EventHub {
    fn queues(&self) -> MutexGuard<'_, BTreeMap<DispatchHash, HubSender>> {
        self.one.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn publish(&self, dispatch: &DispatchRef, name: &'static str, data: Value) {
        self.publish_event(dispatch, name, data, EventPosition::More);
    }

    /// Publishes the last event of a dispatch.
    pub(super) fn publish_last(&self, dispatch: &DispatchRef) {
        self.publish_event(
            dispatch,
            "exec.progress",
            json!({"state": "finished"}),
            EventPosition::Last,
        );
    }

    fn publish_event(
        &self,
        dispatch: &DispatchRef,
        name: &'static str,
        data: Value,
        end: EventPosition,
    ) {
        let one = self
            .queues()
            .get(&DispatchHash::new(dispatch.run, &dispatch.step, dispatch.dispatch_no))
            .cloned();
        if one.is_none() && self.all.receiver_count() == 0 {
            return;
        }
        let mut fields = Map::new();
        fields.insert("run_id".to_owned(), dispatch.run.to_string().into());
        fields.insert("step_id".to_owned(), dispatch.step.clone().into());
        fields.insert("dispatch_no".to_owned(), dispatch.dispatch_no.into());
        if let Value::Object(data) = data {
            fields.extend(data);
        }
        let (dispatch, data) = (dispatch.clone(), Value::Object(fields).to_string());
        let event = Arc::new(HubEvent { name, dispatch, data, last: end == EventPosition::Last });
        // Having no subscribers is normal.
        let _ = one.map(|one| one.send(Arc::clone(&event)));
        let _ = self.all.send(event);
    }

    /// Subscribes; `None` if there are too many subscribers.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        filter: EventFilter,
        stop: CancellationToken,
    ) -> Option<EventSubscription> {
        let permit = Arc::clone(&self.readers).try_acquire_owned().ok()?;
        let one = filter.single_dispatch();
        let events = match one {
            None => self.all.subscribe(),
            Some(key) => {
                let mut queues = self.queues();
                let queue = queues.entry(key).or_insert_with(|| HubSender::new(EVENTS_ONE_MAX));
                queue.subscribe()
            }
        };
        let hub = Arc::clone(self);
        Some(EventSubscription { hub, one, filter, events: Some(events), stop, _permit: permit })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventPosition {
    More,
    Last,
}

pub(super) struct EventSubscription {
    hub: Arc<EventHub>,
    one: Option<DispatchHash>,
    filter: EventFilter,
    events: Option<broadcast::Receiver<Arc<HubEvent>>>,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl EventSubscription {
    /// Stream of the selected events. Ends with the dispatch, if the filter selects one,
    /// and when the subscriber falls behind.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        futures_util::stream::unfold((self, false), |(mut subscription, over)| async move {
            let event = if over { None } else { subscription.next().await }?;
            let over = event.last && subscription.one.is_some();
            let event = Event::default().event(event.name).data(&event.data);
            Some((Ok(event), (subscription, over)))
        })
    }

    async fn next(&mut self) -> Option<Arc<HubEvent>> {
        let events = self.events.as_mut()?;
        loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => event.ok()?,
                () = self.stop.cancelled() => return None,
            };
            if self.filter.matches(&event.dispatch) {
                return Some(event);
            }
        }
    }
}

impl Drop for EventSubscription {
    fn drop(&mut self) {
        self.events = None;
        if let Some(key) = self.one {
            let mut queues = self.hub.queues();
            if queues.get(&key).is_some_and(|queue| queue.receiver_count() == 0) {
                queues.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch(step: &str) -> DispatchRef {
        DispatchRef { run: RunId(1), step: step.to_owned(), dispatch_no: 1 }
    }

    #[tokio::test]
    async fn a_subscriber_of_one_dispatch_gets_only_its_events_to_the_end() {
        let hub = Arc::new(EventHub::default());
        let filter =
            EventFilter { run: Some(RunId(1)), step: Some("a".to_owned()), dispatch_no: Some(1) };
        let stop = CancellationToken::new();
        let mut one = hub.subscribe(filter, stop.clone()).unwrap();
        let some = EventFilter { run: Some(RunId(1)), ..EventFilter::default() };
        let mut all = hub.subscribe(some, stop.clone()).unwrap();
        let other = EventFilter { run: Some(RunId(2)), ..EventFilter::default() };
        let mut none = hub.subscribe(other, stop.clone()).unwrap();
        hub.publish(&dispatch("b"), "assistant.text", json!({"text": "x"}));
        hub.publish(&dispatch("a"), "assistant.text", json!({"text": "y"}));
        hub.publish_last(&dispatch("a"));
        assert!(one.next().await.unwrap().data.contains("\"text\":\"y\""));
        assert!(one.next().await.unwrap().last);
        let events: Vec<String> = [all.next().await, all.next().await]
            .map(|event| event.unwrap().dispatch.step.clone())
            .into();
        assert_eq!(events, ["b", "a"]);
        drop(one);
        assert!(hub.queues().is_empty());
        stop.cancel();
        assert!(none.next().await.is_none());
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_disconnected() {
        let hub = Arc::new(EventHub::default());
        let filter =
            EventFilter { run: Some(RunId(1)), step: Some("a".to_owned()), dispatch_no: Some(1) };
        let mut slow = hub.subscribe(filter, CancellationToken::new()).unwrap();
        for _ in 0..=EVENTS_ONE_MAX {
            hub.publish(&dispatch("a"), "assistant.text", json!({"text": "z"}));
        }
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn the_number_of_subscribers_is_limited() {
        let hub = Arc::new(EventHub::default());
        let listen = || hub.subscribe(EventFilter::default(), CancellationToken::new());
        let listeners: Vec<_> = (0..EVENT_READERS_MAX).map(|_| listen().unwrap()).collect();
        assert!(listen().is_none());
        drop(listeners);
        assert!(listen().is_some());
    }
}
