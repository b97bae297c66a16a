//! Webhook deliveries.

use super::{Bench, cases, run};
use sluice_core::limits::DELIVERIES_KEPT;
use sluice_core::port::deliveries::{Ahead, Delivering, Delivery};

cases![
    a_webhook_moves_only_from_where_it_is,
    an_event_is_for_a_webhook_once,
    what_is_due_is_taken_by_one,
    what_became_of_a_delivery_is_kept,
    deliveries_come_newest_first_and_only_those_of_their_webhook,
    of_very_many_that_are_over_the_oldest_go_and_none_that_waits,
    a_forgotten_webhook_begins_anew,
];

fn delivery(webhook: &str, event: u64, next_ms: u64) -> Delivery {
    Delivery {
        number: 0,
        webhook: webhook.to_owned(),
        run: run(7),
        event,
        kind: "run.completed".to_owned(),
        tries: 0,
        status: None,
        error: None,
        at_ms: 5,
        next_ms: Some(next_ms),
    }
}

fn numbered(number: u64, delivery: Delivery) -> Delivery {
    Delivery { number, ..delivery }
}

fn ahead(bench: &Bench, webhook: &str, from: Option<u64>, to: u64, events: &[u64]) -> bool {
    let put = events.iter().map(|event| delivery(webhook, *event, *event)).collect();
    bench.wait_ok(bench.store.deliver(Ahead { webhook: webhook.to_owned(), from, to, put }))
}

fn at(bench: &Bench, webhook: &str) -> Delivering {
    bench.wait_ok(bench.store.delivering(webhook.to_owned()))
}

fn take(bench: &Bench, by_ms: u64, until_ms: u64, limit: usize) -> Vec<u64> {
    let taken = bench.wait_ok(bench.store.take_due("a".to_owned(), by_ms, until_ms, limit));
    assert!(taken.iter().all(|one| one.next_ms == Some(until_ms)), "{taken:?}");
    taken.into_iter().map(|one| one.event).collect()
}

fn all(bench: &Bench, webhook: &str) -> Vec<Delivery> {
    bench.wait_ok(bench.store.deliveries(webhook.to_owned(), None, 0))
}

fn a_webhook_moves_only_from_where_it_is(bench: &Bench) {
    assert_eq!(at(bench, "a"), Delivering::default());
    assert!(!ahead(bench, "a", Some(3), 9, &[1]));
    assert!(ahead(bench, "a", None, 9, &[20, 10]));
    assert_eq!(at(bench, "a"), Delivering { place: Some(9), waiting: 2, due_ms: Some(10) });
    assert!(!ahead(bench, "a", None, 12, &[30]));
    assert!(!ahead(bench, "a", Some(8), 12, &[30]));
    assert!(ahead(bench, "a", Some(9), 12, &[]));
    assert_eq!(at(bench, "a"), Delivering { place: Some(12), waiting: 2, due_ms: Some(10) });
    assert_eq!(at(bench, "b"), Delivering::default());
}

fn an_event_is_for_a_webhook_once(bench: &Bench) {
    assert!(ahead(bench, "a", None, 1, &[10, 10]));
    assert!(ahead(bench, "a", Some(1), 2, &[10, 11]));
    assert!(ahead(bench, "b", None, 2, &[10]));
    let events: Vec<(u64, u64)> =
        all(bench, "a").iter().map(|one| (one.number, one.event)).collect();
    assert_eq!(events, [(2, 11), (1, 10)]);
    assert_eq!(all(bench, "b"), [numbered(1, delivery("b", 10, 10))]);
}

fn what_is_due_is_taken_by_one(bench: &Bench) {
    ahead(bench, "a", None, 1, &[30, 10, 20, 40]);
    assert!(take(bench, 9, 100, 10).is_empty());
    assert_eq!(take(bench, 30, 100, 2), [10, 20]);
    assert_eq!(take(bench, 30, 100, 2), [30]);
    assert!(take(bench, 30, 100, 2).is_empty());
    assert_eq!(at(bench, "a").due_ms, Some(40));
    // The process that took them may have died.
    assert_eq!(take(bench, 100, 200, 10), [40, 30, 10, 20]);
    let other = bench.wait_ok(bench.store.take_due("b".to_owned(), 100, 200, 10));
    assert_eq!(other, []);
}

fn what_became_of_a_delivery_is_kept(bench: &Bench) {
    ahead(bench, "a", None, 1, &[10, 20]);
    let failed = Delivery {
        number: 1,
        tries: 1,
        status: Some(503),
        error: Some("answered 503".to_owned()),
        at_ms: 50,
        next_ms: Some(60),
        ..delivery("a", 10, 0)
    };
    let done =
        Delivery { number: 2, tries: 1, status: Some(204), next_ms: None, ..delivery("a", 20, 0) };
    bench.wait_ok(bench.store.delivered(vec![failed.clone(), done.clone()]));
    assert_eq!(all(bench, "a"), [done, failed]);
    assert_eq!(at(bench, "a"), Delivering { place: Some(1), waiting: 1, due_ms: Some(60) });
    assert_eq!(take(bench, 60, 70, 10), [10]);
    // Unknown deliveries are ignored.
    bench.wait_ok(
        bench.store.delivered(vec![numbered(9, delivery("a", 9, 9)), delivery("z", 1, 1)]),
    );
    assert_eq!((all(bench, "a").len(), all(bench, "z").len()), (2, 0));
}

fn deliveries_come_newest_first_and_only_those_of_their_webhook(bench: &Bench) {
    ahead(bench, "a", None, 1, &[3, 1, 2]);
    ahead(bench, "ab", None, 1, &[9]);
    let numbers = |found: Vec<Delivery>| found.iter().map(|one| one.number).collect::<Vec<_>>();
    assert_eq!(numbers(all(bench, "a")), [3, 2, 1]);
    let page = bench.wait_ok(bench.store.deliveries("a".to_owned(), Some(3), 1));
    assert_eq!(numbers(page), [2]);
    assert_eq!(all(bench, "b"), []);
}

fn of_very_many_that_are_over_the_oldest_go_and_none_that_waits(bench: &Bench) {
    let kept = DELIVERIES_KEPT as u64;
    let events: Vec<u64> = (1..=kept + 6).collect();
    ahead(bench, "a", None, 1, &events);
    // All but the first are finished.
    let done = (2..=kept + 6).map(|number| Delivery {
        number,
        next_ms: None,
        ..delivery("a", number, number)
    });
    bench.wait_ok(bench.store.delivered(done.collect()));
    let oldest = bench.wait_ok(bench.store.deliveries("a".to_owned(), Some(9), 0));
    assert_eq!(oldest.iter().map(|one| one.number).collect::<Vec<_>>(), [8, 7, 1]);
    assert_eq!(at(bench, "a").waiting, 1);
    // A deleted delivery's number is not reused.
    ahead(bench, "a", Some(1), 2, &[kept + 7]);
    assert_eq!(all(bench, "a")[0].number, kept + 7);
}

fn a_forgotten_webhook_begins_anew(bench: &Bench) {
    ahead(bench, "a", None, 4, &[1]);
    ahead(bench, "b", None, 4, &[1]);
    bench.wait_ok(bench.store.forget_deliveries("a".to_owned()));
    assert_eq!((at(bench, "a"), all(bench, "a")), (Delivering::default(), vec![]));
    assert_eq!(at(bench, "b").waiting, 1);
    assert!(ahead(bench, "a", None, 6, &[1]));
}
