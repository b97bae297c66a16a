//! Mailboxes: each message is stored once and read once.

use super::{Bench, cases, message, node, plain, released, run};
use sluice_core::port::store::{Append, MailboxMessage, Mailboxes, Posted, ReadMessage, Received};

cases![
    letters_lie_in_order,
    a_letter_to_no_run_is_refused,
    a_letter_is_kept_once,
    a_letter_is_kept_once_also_after_it_was_read,
    a_letter_makes_a_parked_run_due,
    a_letter_to_an_owned_run_changes_no_due,
    an_earlier_due_stays,
    a_run_let_go_with_unread_letters_is_due,
    a_run_reads_only_its_own_letters,
    an_owner_gets_the_letters_of_all_its_runs,
    an_append_posts_letters,
    an_append_posts_no_letter_twice,
];

fn mine(number: u128) -> Mailboxes {
    Mailboxes::Run(run(number))
}

fn letters_lie_in_order(bench: &Bench) {
    bench.create(run(1));
    let empty = MailboxMessage { body: Vec::new(), ..message(run(1), "b") };
    for sent in [message(run(1), "c"), empty.clone(), message(run(1), "a")] {
        assert_eq!(bench.post(sent), Posted::Done);
    }
    let received = bench.messages(mine(1));
    assert!(received.is_sorted_by_key(|Received { id, .. }| *id));
    let messages: Vec<MailboxMessage> =
        received.into_iter().map(|received| received.message).collect();
    assert_eq!(messages, [message(run(1), "c"), empty, message(run(1), "a")]);
}

fn a_letter_to_no_run_is_refused(bench: &Bench) {
    assert_eq!(bench.post(message(run(1), "a")), Posted::NoRun);
    assert_eq!(bench.messages(mine(1)), []);
}

fn a_letter_is_kept_once(bench: &Bench) {
    bench.create(run(1));
    bench.create(run(2));
    assert_eq!(bench.post(message(run(1), "a")), Posted::Done);
    let other = MailboxMessage { body: b"another".to_vec(), ..message(run(1), "a") };
    assert_eq!(bench.post(other), Posted::Duplicate);
    assert_eq!(bench.post(message(run(2), "a")), Posted::Done);
    assert_eq!(bench.messages(mine(1))[0].message, message(run(1), "a"));
    assert_eq!(bench.keys(mine(1)), ["a"]);
}

fn a_letter_is_kept_once_also_after_it_was_read(bench: &Bench) {
    bench.create(run(1));
    bench.post(message(run(1), "a"));
    let read = bench.messages(mine(1))[0].as_read();
    bench.done(Append { read: vec![read], ..plain(run(1), 1) });
    assert_eq!(bench.messages(mine(1)), []);
    assert_eq!(bench.post(message(run(1), "a")), Posted::Duplicate);
    assert_eq!(bench.messages(mine(1)), []);
}

fn a_letter_makes_a_parked_run_due(bench: &Bench) {
    bench.park(run(1), None);
    bench.park(run(2), Some(9000));
    bench.clock.set(1500);
    bench.post(message(run(1), "a"));
    bench.post(message(run(2), "a"));
    assert_eq!(bench.row(run(1)).due_at_ms, Some(1500));
    assert_eq!(bench.claimed(node(2), 1500, 10), [1, 2].map(run));
    assert_eq!(bench.keys(Mailboxes::Owner(node(2))), ["a", "a"]);
}

fn a_letter_to_an_owned_run_changes_no_due(bench: &Bench) {
    bench.create(run(1));
    bench.post(message(run(1), "a"));
    assert_eq!(bench.row(run(1)).due_at_ms, None);
}

fn an_earlier_due_stays(bench: &Bench) {
    bench.park(run(1), Some(500));
    bench.post(message(run(1), "a"));
    assert_eq!(bench.row(run(1)).due_at_ms, Some(500));
    // A dropped duplicate wakes no run.
    bench.park(run(2), None);
    bench.post(message(run(2), "a"));
    assert_eq!(bench.claimed(node(2), 1000, 10), [1, 2].map(run));
    let read = bench.messages(mine(2))[0].as_read();
    let parked = Append { node: node(2), epoch: 2, read: vec![read], ..plain(run(2), 1) };
    bench.done(Append { head: Some(released(None)), ..parked });
    assert_eq!(bench.post(message(run(2), "a")), Posted::Duplicate);
    assert_eq!(bench.row(run(2)).due_at_ms, None);
}

fn a_run_let_go_with_unread_letters_is_due(bench: &Bench) {
    bench.create(run(1));
    bench.post(message(run(1), "a"));
    bench.post(message(run(1), "b"));
    let read = bench.messages(mine(1))[0].as_read();
    bench.clock.set(1500);
    let head = Some(released(None));
    bench.done(Append { head: head.clone(), read: vec![read], ..plain(run(1), 1) });
    assert_eq!(bench.row(run(1)).due_at_ms, Some(1500));
    assert_eq!(bench.claimed(node(1), 1500, 10), [run(1)]);
    let read = bench.messages(mine(1))[0].as_read();
    bench.done(Append { head, read: vec![read], epoch: 2, ..plain(run(1), 2) });
    assert_eq!(bench.row(run(1)).due_at_ms, None);
}

fn a_run_reads_only_its_own_letters(bench: &Bench) {
    bench.create(run(1));
    bench.create(run(2));
    bench.post(message(run(2), "a"));
    let read = bench.messages(mine(2))[0].as_read();
    bench.done(Append {
        read: vec![read.clone(), ReadMessage { id: read.id + 1, ..read }],
        ..plain(run(1), 1)
    });
    assert_eq!(bench.keys(mine(2)), ["a"]);
}

fn an_owner_gets_the_letters_of_all_its_runs(bench: &Bench) {
    for number in 1..=3 {
        bench.create(run(number));
    }
    bench.park(run(4), None);
    for (number, key) in [(3, "a"), (4, "b"), (1, "c"), (3, "d")] {
        bench.post(message(run(number), key));
    }
    assert_eq!(bench.keys(Mailboxes::Owner(node(1))), ["a", "c", "d"]);
    assert_eq!(bench.keys(Mailboxes::Owner(node(2))), Vec::<String>::new());
}

fn an_append_posts_letters(bench: &Bench) {
    bench.create(run(1));
    bench.park(run(2), None);
    let messages = vec![message(run(2), "a"), message(run(7), "unknown"), message(run(2), "b")];
    bench.done(Append { messages, ..plain(run(1), 1) });
    assert_eq!(bench.keys(mine(2)), ["a", "b"]);
    assert_eq!(bench.row(run(2)).due_at_ms, Some(1000));
    assert_eq!(bench.messages(mine(7)), []);
    // A run sends itself a message in the append that releases it.
    let messages = vec![message(run(1), "self")];
    bench.done(Append { messages, head: Some(released(None)), ..plain(run(1), 2) });
    assert_eq!(bench.row(run(1)).due_at_ms, Some(1000));
}

fn an_append_posts_no_letter_twice(bench: &Bench) {
    bench.create(run(1));
    bench.create(run(2));
    let messages = vec![message(run(2), "a"), message(run(2), "a")];
    bench.done(Append { messages: messages.clone(), ..plain(run(1), 1) });
    bench.done(Append { messages, ..plain(run(1), 2) });
    assert_eq!(bench.keys(mine(2)), ["a"]);
    assert_eq!(bench.journal(run(1)), [(1, 1), (2, 1), (3, 1)]);
}
