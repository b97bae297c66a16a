//! An observer receives every durable event exactly once.

use crate::world::{World, ended, happens, start, start_family};
use sluice_core::id::RunId;
use sluice_core::journal::envelope::Seen;
use sluice_core::trace::{TraceParent, call_span, step_span};
use sluice_engine::observe::{Observer, Turned};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Event names by run, with their ids.
#[derive(Default)]
struct EventLog(Mutex<BTreeMap<RunId, Vec<(u64, &'static str)>>>);

impl Observer for EventLog {
    fn turned(&self, turned: &Turned<'_>) {
        assert_eq!(turned.first + turned.events.len() as u64, turned.run.version + 1);
        assert!(turned.append <= turned.took && turned.at_ms > 0);
        let mut diary = self.0.lock().expect("the lock is not poisoned");
        let events = (turned.first..).zip(turned.events);
        let told = events.map(|(id, event)| (id, event.name()));
        diary.entry(turned.run.id).or_default().extend(told);
    }
}

#[tokio::test]
async fn an_observer_receives_every_event_in_order() {
    let diary = Arc::new(EventLog::default());
    let world = World::new("a: [{error: no}, {text: done}]").observed_by(diary.clone());
    let life = world.boot().await;
    let flow = "name: f\nsteps: [{id: a, command: go, retry: {attempts: 2, backoff_ms: 1}}]";
    let id = life.start(start(flow)).await.unwrap().run;
    let run = ended(&life, id).await;
    let shown = life.events(&run, 0).await.unwrap();
    let shown: Vec<_> =
        shown.into_iter().filter_map(Seen::event).map(|one| (one.id, one.kind)).collect();
    let told = || diary.0.lock().unwrap()[&id].clone();
    // An event can be read a moment before the observer is notified.
    happens("the last turn is told", || told().len() == shown.len()).await;
    let told = told();
    let told: Vec<_> = told.into_iter().map(|(id, name)| (id, name.to_owned())).collect();
    assert_eq!(told, shown);
    let gauges = life.gauges();
    assert_eq!((gauges.residents, gauges.mail, gauges.feed_readers), (life.residents(), 0, 0));
}

#[tokio::test]
async fn a_trace_goes_on_through_runs_children_and_calls() {
    let world = World::new("b: {text: done}");
    let life = world.boot().await;
    let child = "name: child\nsteps: [{id: b, command: go}]";
    let parent = "name: parent\nsteps: [{id: a, workflow_ref: child}]";
    let cause = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let mut start = start_family(parent, "child", child);
    start.trace = cause.clone();
    let id = life.start(start).await.unwrap().run;
    let run = ended(&life, id).await;
    let cause = cause.unwrap();
    assert_eq!(run.started.trace_id, cause.trace_id);
    assert_eq!(run.started.parent_span_id, Some(cause.span_id));
    let request = world.requests("b").pop().expect("it was asked");
    let below = life.load(request.run).await.unwrap().started;
    assert_eq!(below.trace_id, cause.trace_id);
    assert_eq!(below.parent_span_id, Some(step_span(id, "a", 1)));
    let call = request.trace.expect("it is traced");
    assert_eq!((call.trace_id, call.span_id), (cause.trace_id, call_span(request.run, "b", 1)));
    assert_ne!(run.started.root_span_id, below.root_span_id);
}
