//! Lists of runs: newest first, filtered, in pages.

use super::{Bench, cases, first, node, run};
use sluice_core::limits::{LIST_DEFAULT, LIST_MAX};
use sluice_core::port::store::{Append, Create, Filter, Head, Ownership};
use sluice_core::status::RunStatus;

cases![
    lists_show_the_newest_first,
    lists_filter_by_status,
    lists_filter_by_workflow_and_parent,
    lists_filter_by_everything_at_once,
    lists_filter_by_initiator_and_time,
    lists_find_text_in_names_and_at_the_beginning_of_ids,
    text_stands_for_itself_alone,
    lists_come_in_pages,
    lists_are_bounded,
    lists_show_owners_that_live,
];

const STATUSES: [RunStatus; 3] = [RunStatus::Running, RunStatus::Paused, RunStatus::Failed];

/// Twelve runs: status by thirds, workflow by halves; the last six are children of run
/// 1.
fn fill(bench: &Bench) {
    for number in [3, 1, 2, 12, 11, 4, 5, 6, 9, 8, 7, 10] {
        let place = usize::try_from(number).expect("it is small");
        let status = STATUSES[place % 3];
        let head = Head {
            status,
            ended_at_ms: None,
            due_at_ms: None,
            asks: status == RunStatus::Paused,
            ownership: Ownership::Keep,
        };
        let append = first(run(number));
        let create = append.create.clone().map(|create| Create {
            workflow: if place % 2 == 0 { "even".to_owned() } else { "odd".to_owned() },
            parent: (number > 6).then_some(run(1)),
            ..create
        });
        bench.done(Append { create, head: Some(head), ..append });
    }
}

fn numbers(bench: &Bench, filter: Filter) -> Vec<u128> {
    bench.list(filter).into_iter().map(|row| row.run.0).collect()
}

fn lists_show_the_newest_first(bench: &Bench) {
    assert_eq!(numbers(bench, Filter::default()), Vec::<u128>::new());
    fill(bench);
    assert_eq!(numbers(bench, Filter::default()), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    let one = Filter { run: Some(run(4)), ..Filter::default() };
    assert_eq!(numbers(bench, one), [4]);
    let none = Filter { run: Some(run(40)), ..Filter::default() };
    assert_eq!(numbers(bench, none), Vec::<u128>::new());
}

fn lists_filter_by_status(bench: &Bench) {
    fill(bench);
    let by = |statuses: &[RunStatus]| {
        numbers(bench, Filter { statuses: statuses.to_vec(), ..Filter::default() })
    };
    assert_eq!(by(&[RunStatus::Running]), [12, 9, 6, 3]);
    let both = [RunStatus::Running, RunStatus::Failed, RunStatus::Running];
    assert_eq!(by(&both), [12, 11, 9, 8, 6, 5, 3, 2]);
    let asking = Filter { asking: true, ..Filter::default() };
    assert_eq!(numbers(bench, asking), [10, 7, 4, 1], "those that wait for people");
    assert_eq!(by(&[RunStatus::TimedOut]), Vec::<u128>::new());
}

fn lists_filter_by_workflow_and_parent(bench: &Bench) {
    fill(bench);
    let even = Filter { workflow: Some("even".to_owned()), ..Filter::default() };
    assert_eq!(numbers(bench, even), [12, 10, 8, 6, 4, 2]);
    let children = Filter { parent: Some(run(1)), ..Filter::default() };
    assert_eq!(numbers(bench, children), [12, 11, 10, 9, 8, 7]);
    let orphans = Filter { parent: Some(run(2)), ..Filter::default() };
    assert_eq!(numbers(bench, orphans), Vec::<u128>::new());
}

fn lists_filter_by_everything_at_once(bench: &Bench) {
    fill(bench);
    let filter = Filter {
        run: None,
        statuses: vec![RunStatus::Running, RunStatus::Paused],
        workflow: Some("even".to_owned()),
        initiator: Some("ada".to_owned()),
        since_ms: Some(900),
        until_ms: Some(901),
        text: Some("VEN".to_owned()),
        asking: false,
        parent: Some(run(1)),
        before: Some(run(12)),
        limit: 5,
    };
    assert_eq!(numbers(bench, filter.clone()), [10]);
    assert_eq!(numbers(bench, Filter { run: Some(run(10)), ..filter.clone() }), [10]);
    assert_eq!(numbers(bench, Filter { run: Some(run(8)), ..filter }), Vec::<u128>::new());
}

/// A run with an initiator and a start time.
fn by(bench: &Bench, number: u128, workflow: &str, initiator: &str, started_at_ms: u64) {
    let append = first(run(number));
    let create = append.create.clone().map(|create| Create {
        workflow: workflow.to_owned(),
        initiator: initiator.to_owned(),
        started_at_ms,
        ..create
    });
    bench.done(Append { create, ..append });
}

fn lists_filter_by_initiator_and_time(bench: &Bench) {
    by(bench, 1, "review", "ada", 100);
    by(bench, 2, "review", "schedule:nightly", 200);
    by(bench, 3, "build", "ada", 300);
    by(bench, 4, "build", "Ada", 250);
    let of = |initiator: &str| {
        numbers(bench, Filter { initiator: Some(initiator.to_owned()), ..Filter::default() })
    };
    assert_eq!((of("ada"), of("schedule:nightly"), of("ad")), (vec![3, 1], vec![2], vec![]));
    let between = |since_ms: Option<u64>, until_ms: Option<u64>| {
        numbers(bench, Filter { since_ms, until_ms, ..Filter::default() })
    };
    assert_eq!(between(Some(200), None), [4, 3, 2]);
    assert_eq!(between(Some(201), None), [4, 3]);
    assert_eq!(between(None, Some(250)), [2, 1]);
    assert_eq!(between(Some(200), Some(300)), [4, 2]);
    assert_eq!(between(Some(300), Some(300)), Vec::<u128>::new());
    assert_eq!(bench.row(run(2)).initiator, "schedule:nightly");
}

/// Runs that match a text.
fn with(bench: &Bench, text: &str) -> Vec<u128> {
    numbers(bench, Filter { text: Some(text.to_owned()), ..Filter::default() })
}

fn lists_find_text_in_names_and_at_the_beginning_of_ids(bench: &Bench) {
    by(bench, 0x0a << 120, "Nightly-Review", "ada", 100);
    by(bench, 0x0b << 120, "build", "schedule:nightly", 200);
    by(bench, (0x0b << 120) + 1, "build", "Bob", 300);
    let (a, b) = (0x0a << 120, 0x0b << 120);
    assert_eq!(with(bench, "nightly"), [b, a]);
    assert_eq!(with(bench, "NIGHTLY-r"), [a]);
    assert_eq!(with(bench, "bob"), [b + 1]);
    assert_eq!(with(bench, "0b"), [b + 1, b]);
    assert_eq!(with(bench, "run_0A00"), [a]);
    assert_eq!(with(bench, &run(b).to_string()), [b]);
    assert_eq!(with(bench, ""), [b + 1, b, a], "nothing is in everything");
    for none in ["run_", "b0", "xyz", "nightly review", "run_0a0\0"] {
        assert_eq!(with(bench, none), Vec::<u128>::new(), "{none}");
    }
    // Combined with the other filters, and page by page.
    let filter = Filter { text: Some("build".to_owned()), limit: 1, ..Filter::default() };
    assert_eq!(numbers(bench, filter.clone()), [b + 1]);
    assert_eq!(numbers(bench, Filter { before: Some(run(b + 1)), ..filter }), [b]);
}

fn text_stands_for_itself_alone(bench: &Bench) {
    for (number, name) in (1..).zip(["a%b", "a_b", r"a\b", "axb", "a'b", "a\"b", "straße"]) {
        by(bench, number, name, "", 100);
    }
    for (number, text) in (1..).zip(["%", "_", "\\", "X", "'", "\"", "ß"]) {
        assert_eq!(with(bench, text), [number], "{text}");
    }
    assert_eq!(with(bench, "a_b' OR 1=1 --"), Vec::<u128>::new());
    assert_eq!(with(bench, &"a".repeat(100_000)), Vec::<u128>::new());
}

fn lists_come_in_pages(bench: &Bench) {
    fill(bench);
    let page = |before: Option<u128>, statuses: &[RunStatus]| {
        let (before, statuses) = (before.map(run), statuses.to_vec());
        numbers(bench, Filter { before, statuses, limit: 5, ..Filter::default() })
    };
    assert_eq!(page(None, &[]), [12, 11, 10, 9, 8]);
    assert_eq!(page(Some(8), &[]), [7, 6, 5, 4, 3]);
    assert_eq!(page(Some(3), &[]), [2, 1]);
    assert_eq!(page(Some(1), &[]), Vec::<u128>::new());
    let two = [RunStatus::Failed, RunStatus::Running];
    assert_eq!(page(None, &two), [12, 11, 9, 8, 6]);
    assert_eq!(page(Some(6), &two), [5, 3, 2]);
}

fn lists_are_bounded(bench: &Bench) {
    for number in 1..=LIST_MAX as u128 + 1 {
        bench.create(run(number));
    }
    assert_eq!(bench.list(Filter::default()).len(), LIST_DEFAULT);
    let all = Filter { limit: usize::MAX, ..Filter::default() };
    assert_eq!(bench.list(all).len(), LIST_MAX);
}

fn lists_show_owners_that_live(bench: &Bench) {
    bench.renew(node(1), 100);
    bench.create(run(1));
    bench.done(Append { node: node(2), ..first(run(2)) });
    let owners = || bench.list(Filter::default()).into_iter().map(|row| row.owner);
    assert_eq!(owners().collect::<Vec<_>>(), [None, Some(node(1))]);
    bench.leave(node(1));
    assert_eq!(owners().collect::<Vec<_>>(), [None, None]);
}
