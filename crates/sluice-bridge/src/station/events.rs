//! Events of running dispatches, as server-sent events.
//!
//! A subscriber of one dispatch has its own queue, so that events are not copied to every
//! subscriber of every dispatch. A subscriber that is too slow is disconnected; results do not
//! depend on subscribers.

use crate::limits::{EVENT_READERS_MAX, EVENTS_ALL_MAX, EVENTS_ONE_MAX};
use crate::protocol::Key;
use axum::response::sse::Event;
use futures_util::Stream;
use serde_json::{Map, Value, json};
use sluice_core::run::id::RunId;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

/// The dispatch that an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) run: RunId,
    pub(super) step: String,
    pub(super) dispatch_no: u32,
}

/// Selects the events of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Filter {
    pub(super) run: Option<RunId>,
    pub(super) step: Option<String>,
    pub(super) dispatch_no: Option<u32>,
}

impl Filter {
    fn takes(&self, whose: &Whose) -> bool {
        self.run.is_none_or(|run| run == whose.run)
            && self.step.as_ref().is_none_or(|step| *step == whose.step)
            && self.dispatch_no.is_none_or(|number| number == whose.dispatch_no)
    }

    /// The dispatch that the filter selects, if it selects exactly one.
    fn one(&self) -> Option<Key> {
        Some(Key::of(self.run?, self.step.as_ref()?, self.dispatch_no?))
    }
}

#[derive(Debug)]
struct Told {
    name: &'static str,
    whose: Whose,
    data: String,
    /// Whether this is the last event of its dispatch.
    last: bool,
}

type Tell = broadcast::Sender<Arc<Told>>;

/// Distributes events to subscribers.
#[derive(Debug)]
pub(super) struct Hub {
    all: Tell,
    one: Mutex<BTreeMap<Key, Tell>>,
    readers: Arc<Semaphore>,
}

impl Default for Hub {
    fn default() -> Hub {
        Hub {
            all: broadcast::Sender::new(EVENTS_ALL_MAX),
            one: Mutex::default(),
            readers: Arc::new(Semaphore::new(EVENT_READERS_MAX)),
        }
    }
}

impl Hub {
    fn one(&self) -> MutexGuard<'_, BTreeMap<Key, Tell>> {
        self.one.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, whose: &Whose, name: &'static str, data: Value) {
        self.send(whose, name, data, End::Open);
    }

    /// Publishes the last event of a dispatch.
    pub(super) fn end(&self, whose: &Whose) {
        self.send(whose, "exec.progress", json!({"state": "finished"}), End::Last);
    }

    fn send(&self, whose: &Whose, name: &'static str, data: Value, end: End) {
        let one = self.one().get(&Key::of(whose.run, &whose.step, whose.dispatch_no)).cloned();
        if one.is_none() && self.all.receiver_count() == 0 {
            return;
        }
        let mut fields = Map::new();
        fields.insert("run_id".to_owned(), whose.run.to_string().into());
        fields.insert("step_id".to_owned(), whose.step.clone().into());
        fields.insert("dispatch_no".to_owned(), whose.dispatch_no.into());
        if let Value::Object(data) = data {
            fields.extend(data);
        }
        let (whose, data) = (whose.clone(), Value::Object(fields).to_string());
        let told = Arc::new(Told { name, whose, data, last: end == End::Last });
        // Having no subscribers is normal.
        let _ = one.map(|one| one.send(Arc::clone(&told)));
        let _ = self.all.send(told);
    }

    /// Subscribes; `None` if there are too many subscribers.
    pub(super) fn listen(
        self: &Arc<Self>,
        filter: Filter,
        stop: CancellationToken,
    ) -> Option<Listener> {
        let place = Arc::clone(&self.readers).try_acquire_owned().ok()?;
        let one = filter.one();
        let heard = match one {
            None => self.all.subscribe(),
            Some(key) => {
                let mut queues = self.one();
                let queue = queues.entry(key).or_insert_with(|| Tell::new(EVENTS_ONE_MAX));
                queue.subscribe()
            }
        };
        let hub = Arc::clone(self);
        Some(Listener { hub, one, filter, heard: Some(heard), stop, _place: place })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Last,
}

pub(super) struct Listener {
    hub: Arc<Hub>,
    one: Option<Key>,
    filter: Filter,
    heard: Option<broadcast::Receiver<Arc<Told>>>,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// Stream of the selected events. Ends with the dispatch, if the filter selects one,
    /// and when the subscriber falls behind.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        futures_util::stream::unfold((self, false), |(mut listener, over)| async move {
            let told = if over { None } else { listener.next().await }?;
            let over = told.last && listener.one.is_some();
            let event = Event::default().event(told.name).data(&told.data);
            Some((Ok(event), (listener, over)))
        })
    }

    async fn next(&mut self) -> Option<Arc<Told>> {
        let heard = self.heard.as_mut()?;
        loop {
            let told = tokio::select! {
                biased;
                told = heard.recv() => told.ok()?,
                () = self.stop.cancelled() => return None,
            };
            if self.filter.takes(&told.whose) {
                return Some(told);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.heard = None;
        if let Some(key) = self.one {
            let mut queues = self.hub.one();
            if queues.get(&key).is_some_and(|queue| queue.receiver_count() == 0) {
                queues.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose(step: &str) -> Whose {
        Whose { run: RunId(1), step: step.to_owned(), dispatch_no: 1 }
    }

    #[tokio::test]
    async fn who_follows_one_dispatch_hears_it_to_its_end_and_no_other() {
        let hub = Arc::new(Hub::default());
        let filter =
            Filter { run: Some(RunId(1)), step: Some("a".to_owned()), dispatch_no: Some(1) };
        let stop = CancellationToken::new();
        let mut one = hub.listen(filter, stop.clone()).unwrap();
        let some = Filter { run: Some(RunId(1)), ..Filter::default() };
        let mut all = hub.listen(some, stop.clone()).unwrap();
        let other = Filter { run: Some(RunId(2)), ..Filter::default() };
        let mut none = hub.listen(other, stop.clone()).unwrap();
        hub.tell(&whose("b"), "assistant.text", json!({"text": "x"}));
        hub.tell(&whose("a"), "assistant.text", json!({"text": "y"}));
        hub.end(&whose("a"));
        assert!(one.next().await.unwrap().data.contains("\"text\":\"y\""));
        assert!(one.next().await.unwrap().last);
        let heard: Vec<String> = [all.next().await, all.next().await]
            .map(|told| told.unwrap().whose.step.clone())
            .into();
        assert_eq!(heard, ["b", "a"]);
        drop(one);
        assert!(hub.one().is_empty());
        stop.cancel();
        assert!(none.next().await.is_none());
    }

    #[tokio::test]
    async fn who_is_too_slow_is_let_go() {
        let hub = Arc::new(Hub::default());
        let filter =
            Filter { run: Some(RunId(1)), step: Some("a".to_owned()), dispatch_no: Some(1) };
        let mut slow = hub.listen(filter, CancellationToken::new()).unwrap();
        for _ in 0..=EVENTS_ONE_MAX {
            hub.tell(&whose("a"), "assistant.text", json!({"text": "z"}));
        }
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn only_so_many_listen() {
        let hub = Arc::new(Hub::default());
        let listen = || hub.listen(Filter::default(), CancellationToken::new());
        let listeners: Vec<_> = (0..EVENT_READERS_MAX).map(|_| listen().unwrap()).collect();
        assert!(listen().is_none());
        drop(listeners);
        assert!(listen().is_some());
    }
}
