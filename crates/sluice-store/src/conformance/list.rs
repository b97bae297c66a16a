//! Lists: newest first, filtered, in pages.

use super::{Bench, cases, first, node, run};
use crate::limits::{LIST_DEFAULT, LIST_MAX};
use sluice_core::port::store::{Append, Create, Filter, Head, Hold};
use sluice_core::run::status::RunStatus;

cases![
    lists_show_the_newest_first,
    lists_filter_by_status,
    lists_filter_by_workflow_and_parent,
    lists_filter_by_everything_at_once,
    lists_come_in_pages,
    lists_are_bounded,
    lists_show_owners_that_live,
];

const STATUSES: [RunStatus; 3] = [RunStatus::Running, RunStatus::Paused, RunStatus::Failed];

/// Twelve runs: status by thirds, workflow by halves, the last six are children of run 1.
fn fill(bench: &Bench) {
    for number in [3, 1, 2, 12, 11, 4, 5, 6, 9, 8, 7, 10] {
        let place = usize::try_from(number).expect("it is small");
        let status = STATUSES[place % 3];
        let head = Head { status, ended_at_ms: None, due_at_ms: None, hold: Hold::Keep };
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
        parent: Some(run(1)),
        before: Some(run(12)),
        limit: 5,
    };
    assert_eq!(numbers(bench, filter.clone()), [10]);
    assert_eq!(numbers(bench, Filter { run: Some(run(10)), ..filter.clone() }), [10]);
    assert_eq!(numbers(bench, Filter { run: Some(run(8)), ..filter }), Vec::<u128>::new());
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
