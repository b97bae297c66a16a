//! A run is created once.

use super::{Bench, cases, first, node, plain, run};
use sluice_core::hash::Hash;
use sluice_core::port::store::{Append, Appended, Create, Key};
use sluice_core::status::RunStatus;

cases![
    a_run_is_created_by_its_first_append,
    an_id_is_used_once,
    a_key_is_used_once_within_its_time,
    a_key_with_other_inputs_is_told_apart,
    a_key_is_free_again_when_it_has_expired,
    a_key_counts_within_its_workflow_and_version,
    a_key_from_before_scopes_counts_for_the_same_inputs,
    a_run_begins_at_its_beginning,
    an_append_to_no_run_is_refused,
];

fn keyed(number: u128, key: &str, inputs: &str, expires_at_ms: u64) -> Append {
    let append = first(run(number));
    let fingerprint = Hash::of(inputs.as_bytes());
    let key = Key { key: key.to_owned(), former: None, fingerprint, expires_at_ms };
    let create = append.create.clone().map(|create| Create { key: Some(key), ..create });
    Append { create, ..append }
}

fn a_run_is_created_by_its_first_append(bench: &Bench) {
    assert_eq!(bench.load(run(1)), None);
    let append = first(run(1));
    let create = append.create.clone().map(|create| Create {
        version: Some(7),
        parent: Some(run(9)),
        ..create
    });
    bench.done(Append { create, ..append });
    bench.renew(node(1), 50);
    let row = bench.row(run(1));
    assert_eq!((row.workflow.as_str(), row.version), ("review", Some(7)));
    assert_eq!((row.status, row.started_at_ms), (RunStatus::Queued, 900));
    assert_eq!((row.parent, row.owner), (Some(run(9)), Some(node(1))));
    assert_eq!((row.ended_at_ms, row.due_at_ms), (None, None));
    assert_eq!(bench.journal(run(1)), [(1, 1)]);
}

fn an_id_is_used_once(bench: &Bench) {
    bench.done(keyed(1, "a", "x", 2000));
    bench.create(run(2));
    let exists = |number, same| Appended::Exists { run: run(number), same };
    assert_eq!(bench.append(first(run(2))), exists(2, true));
    assert_eq!(bench.append(keyed(1, "a", "x", 2000)), exists(1, true));
    assert_eq!(bench.append(keyed(1, "b", "y", 2000)), exists(1, false));
    assert_eq!(bench.append(first(run(1))), exists(1, false));
    assert_eq!(bench.append(keyed(2, "b", "y", 2000)), exists(2, false));
    // The result is the same after the key has expired.
    bench.clock.set(9000);
    assert_eq!(bench.append(keyed(1, "a", "x", 9500)), exists(1, true));
    assert_eq!(bench.journal(run(1)), [(1, 1)]);
    // A refused creation stores nothing, so its key is still free.
    bench.done(keyed(3, "b", "y", 9500));
}

fn a_key_is_used_once_within_its_time(bench: &Bench) {
    bench.done(keyed(1, "k", "x", 2000));
    bench.clock.set(1999);
    let exists = Appended::Exists { run: run(1), same: true };
    assert_eq!(bench.append(keyed(2, "k", "x", 3000)), exists);
    assert_eq!(bench.load(run(2)), None);
}

fn a_key_with_other_inputs_is_told_apart(bench: &Bench) {
    bench.done(keyed(1, "k", "x", 2000));
    let exists = Appended::Exists { run: run(1), same: false };
    assert_eq!(bench.append(keyed(2, "k", "y", 2000)), exists);
    bench.done(keyed(3, "another", "x", 2000));
}

fn a_key_is_free_again_when_it_has_expired(bench: &Bench) {
    bench.done(keyed(1, "k", "x", 2000));
    bench.clock.set(2000);
    bench.done(keyed(2, "k", "y", 3000));
    let exists = Appended::Exists { run: run(2), same: false };
    assert_eq!(bench.append(keyed(3, "k", "x", 3000)), exists);
}

/// As the engine sends it: scoped to a workflow and version, with the unscoped former
/// key.
fn scoped(number: u128, scope: (&str, Option<u64>), key: &str, inputs: &str) -> Append {
    let mut append = keyed(number, &Key::scoped(scope.0, scope.1, "ada", key), inputs, 2000);
    if let Some(key) = append.create.as_mut().and_then(|create| create.key.as_mut()) {
        key.former = Some(key.key.rsplit('\u{1f}').next().unwrap_or_default().to_owned());
    }
    append
}

fn a_key_counts_within_its_workflow_and_version(bench: &Bench) {
    let scopes = [("a", None), ("a", Some(1)), ("a", Some(11)), ("a1", None), ("b", Some(1))];
    for (number, scope) in (1..).zip(scopes) {
        bench.done(scoped(number, scope, "k", "x"));
    }
    for (number, scope) in (1..).zip(scopes) {
        let exists = |same| Appended::Exists { run: run(number), same };
        assert_eq!(bench.append(scoped(9, scope, "k", "x")), exists(true), "{scope:?}");
        assert_eq!(bench.append(scoped(9, scope, "k", "y")), exists(false), "{scope:?}");
    }
}

fn a_key_from_before_scopes_counts_for_the_same_inputs(bench: &Bench) {
    bench.done(keyed(1, "k", "x", 2000));
    let exists = |number, same| Appended::Exists { run: run(number), same };
    assert_eq!(bench.append(scoped(2, ("a", Some(1)), "k", "x")), exists(1, true));
    // The store cannot tell whether different inputs belong to the same workflow, so
    // this is a new key.
    bench.done(scoped(3, ("a", Some(1)), "k", "y"));
    assert_eq!(bench.append(scoped(4, ("a", Some(1)), "k", "y")), exists(3, true));
    assert_eq!(bench.append(scoped(4, ("a", Some(1)), "k", "x")), exists(3, false));
    bench.clock.set(2000);
    bench.done(scoped(5, ("a", Some(1)), "k", "x"));
}

fn a_run_begins_at_its_beginning(bench: &Bench) {
    let late = Append { after: 4, ..first(run(1)) };
    assert_eq!(bench.append(late), Appended::Conflict);
    let later = Append { epoch: 2, ..first(run(1)) };
    assert_eq!(bench.append(later), Appended::NotOwner);
    assert_eq!(bench.load(run(1)), None);
}

fn an_append_to_no_run_is_refused(bench: &Bench) {
    assert_eq!(bench.append(plain(run(1), 0)), Appended::NotOwner);
    assert_eq!(bench.load(run(1)), None);
}
