//! The registry: rows by epoch.

use super::{Bench, DONE, cases, entry, first, guard, node, plain, refused, run};
use serde_json::{Value, json};
use sluice_core::port::ledger::{Change, Changed, Rows};
use sluice_core::port::store::{Append, Appended};
use sluice_govern::registry::{Kind, Row};

cases![
    an_empty_registry_is_at_epoch_zero,
    rows_come_by_kind_and_name,
    each_change_is_an_epoch,
    an_earlier_epoch_is_answered_as_it_was,
    a_change_decided_under_another_epoch_is_stale,
    of_two_about_one_row_the_last_counts,
    a_row_that_was_not_there_can_be_removed,
    a_body_is_kept_as_it_was_sent,
    a_change_says_so_in_the_audit,
    an_append_decided_under_an_old_epoch_is_refused,
];

pub(super) fn row(kind: Kind, name: &str, body: Value) -> Row {
    Row { kind, name: name.to_owned(), body }
}

fn put(rows: Vec<Row>) -> Change {
    Change { expect: None, put: rows, remove: Vec::new(), node: node(1), entries: Vec::new() }
}

fn removed(kind: Kind, name: &str) -> Change {
    Change { remove: vec![(kind, name.to_owned())], ..put(Vec::new()) }
}

fn agent(name: &str, level: u64) -> Row {
    row(Kind::Agent, name, json!({ "trust_level": level }))
}

fn changed(bench: &Bench, change: Change, epoch: u64) {
    assert_eq!(bench.wait_ok(bench.store.change(change)), Changed::Done { epoch });
}

/// Rows as read if all of them are authentic.
fn read(epoch: u64, rows: Vec<Row>) -> Rows {
    Rows { epoch, rows, ..Rows::default() }
}

fn rows(bench: &Bench, at: Option<u64>) -> Rows {
    bench.wait_ok(bench.store.registry(at))
}

fn an_empty_registry_is_at_epoch_zero(bench: &Bench) {
    for at in [None, Some(0), Some(7)] {
        assert_eq!(rows(bench, at), Rows::default());
    }
    assert_eq!(bench.count("registry"), 0);
}

fn rows_come_by_kind_and_name(bench: &Bench) {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for name in ["b", "a", "ä", ""] {
            all.push(row(kind, name, json!({ "is": name })));
        }
    }
    changed(bench, put(all.clone()), 1);
    all.sort_unstable_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    assert_eq!(rows(bench, None), read(1, all));
}

fn each_change_is_an_epoch(bench: &Bench) {
    changed(bench, put(vec![agent("a", 1)]), 1);
    assert_eq!(bench.count("registry"), 1);
    // A change without rows is a change too.
    changed(bench, put(Vec::new()), 2);
    changed(bench, Change { expect: Some(2), ..put(vec![agent("b", 1)]) }, 3);
    assert_eq!(bench.count("registry"), 3);
    assert_eq!(rows(bench, None), read(3, vec![agent("a", 1), agent("b", 1)]));
}

fn an_earlier_epoch_is_answered_as_it_was(bench: &Bench) {
    changed(bench, put(vec![agent("a", 1), agent("b", 1)]), 1);
    changed(bench, put(vec![agent("a", 2)]), 2);
    changed(bench, removed(Kind::Agent, "a"), 3);
    changed(bench, put(vec![agent("a", 4)]), 4);
    let expected = [
        vec![],
        vec![agent("a", 1), agent("b", 1)],
        vec![agent("a", 2), agent("b", 1)],
        vec![agent("b", 1)],
        vec![agent("a", 4), agent("b", 1)],
    ];
    for (epoch, expected) in (0..).zip(expected) {
        assert_eq!(rows(bench, Some(epoch)), read(epoch, expected));
    }
    // A future epoch is the current one.
    assert_eq!(rows(bench, Some(99)), rows(bench, None));
}

fn a_change_decided_under_another_epoch_is_stale(bench: &Bench) {
    changed(bench, put(vec![agent("a", 1)]), 1);
    for expected in [0, 2, 9] {
        let entries = vec![entry("agent_changed")];
        let change = Change { expect: Some(expected), entries, ..put(vec![agent("a", 2)]) };
        assert_eq!(bench.wait_ok(bench.store.change(change)), Changed::Stale { epoch: 1 });
    }
    assert_eq!(rows(bench, None), read(1, vec![agent("a", 1)]));
    assert_eq!((bench.count("registry"), bench.entries()), (1, Vec::new()));
}

fn of_two_about_one_row_the_last_counts(bench: &Bench) {
    changed(bench, put(vec![agent("a", 1), agent("a", 2)]), 1);
    assert_eq!(rows(bench, None).rows, [agent("a", 2)]);
    let both = Change { put: vec![agent("a", 3)], ..removed(Kind::Agent, "a") };
    changed(bench, both, 2);
    assert_eq!(rows(bench, None).rows, []);
}

fn a_row_that_was_not_there_can_be_removed(bench: &Bench) {
    changed(bench, put(vec![agent("a", 1)]), 1);
    changed(bench, removed(Kind::Gateway, "a"), 2);
    assert_eq!(rows(bench, None), read(2, vec![agent("a", 1)]));
}

fn a_body_is_kept_as_it_was_sent(bench: &Bench) {
    let body = json!({
        "z": 1, "a": [1.5, -0.1, 1e300, u64::MAX, i64::MIN, null, true], "text": "\u{0} \" ä \n",
        "": { "deep": [[{}]] },
    });
    let sent = row(Kind::Policy, "p\u{0}q", body);
    changed(bench, put(vec![sent.clone()]), 1);
    let kept = rows(bench, None).rows;
    assert_eq!(kept, vec![sent.clone()]);
    assert_eq!(kept[0].body.to_string(), sent.body.to_string());
}

fn a_change_says_so_in_the_audit(bench: &Bench) {
    let entries = vec![entry("agent_changed"), entry("agent_promoted")];
    changed(bench, Change { entries, node: node(3), ..put(vec![agent("a", 1)]) }, 1);
    let recorded = bench.entries();
    let said: Vec<_> = recorded.iter().map(|one| (one.writer, one.seq)).collect();
    assert_eq!(said, [(node(3), 1), (node(3), 2)]);
    assert!(recorded[1].text.contains("agent_promoted"));
}

fn an_append_decided_under_an_old_epoch_is_refused(bench: &Bench) {
    let under = |epoch| vec![guard("registry", 0, Some(epoch))];
    assert_eq!(bench.append(Append { guards: under(0), ..first(run(1)) }), done(0));
    changed(bench, put(vec![agent("a", 1)]), 1);
    let append = |epoch, after| Append { guards: under(epoch), ..plain(run(1), after) };
    assert_eq!(bench.append(append(0, 1)), refused("registry", 1));
    assert_eq!(bench.append(append(1, 1)), done(1));
    changed(bench, removed(Kind::Agent, "a"), 2);
    assert_eq!(bench.append(append(1, 2)), refused("registry", 2));
    // An append without a decision has no registry guard.
    assert_eq!(bench.append(plain(run(1), 2)), DONE);
}

fn done(epoch: i64) -> Appended {
    Appended::Done { counts: vec![epoch] }
}
