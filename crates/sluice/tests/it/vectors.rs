//! The vectors: small workflows with a script and what must come of them.
//!
//! Every case under `vectors/` runs twice, through the binary as a user has it
//! and through the engine as a program has it, and both must come to what the
//! case expects. What holds for every run is checked with each of them.

mod case;
mod expect;
mod law;
mod matching;
mod through;

use case::Case;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fewest cases that are worth the name of a suite.
const CASES_MIN: usize = 80;
/// Workers for each processor: most of the time a case waits.
const WORKERS_PER_CORE: usize = 2;
/// Most workers at all.
const WORKERS_MAX: usize = 16;

/// Everything wrong with one case, each fault with the way it was found.
fn faults(case: &Case) -> Vec<String> {
    let mut faults = Vec::new();
    for (way, seen) in [("binary", through::binary(case)), ("engine", through::engine(case))] {
        let found = match seen {
            Ok(seen) => expect::faults(case, &seen),
            Err(fault) => vec![fault],
        };
        faults.extend(found.into_iter().map(|fault| format!("{way}: {fault}")));
    }
    faults
}

#[test]
fn every_vector_holds_through_the_binary_and_through_the_engine() {
    let wanted = std::env::var("VECTOR").ok();
    let cases = case::all();
    assert!(cases.len() >= CASES_MIN, "{} vectors", cases.len());
    let chosen: Vec<&Case> = (cases.iter())
        .filter(|case| wanted.as_ref().is_none_or(|wanted| case.title().contains(wanted)))
        .collect();
    assert!(!chosen.is_empty(), "no vector is called {wanted:?}");
    let next = AtomicUsize::new(0);
    let told = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..(cores * WORKERS_PER_CORE).min(WORKERS_MAX) {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let faults = faults(case);
                    if !faults.is_empty() {
                        let text = format!("{}\n  {}", case.title(), faults.join("\n  "));
                        told.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let mut told = told.into_inner().unwrap();
    told.sort();
    let count = told.len();
    assert!(told.is_empty(), "{count} of {} vectors fail:\n{}", chosen.len(), told.join("\n"));
}

#[test]
fn no_two_vectors_have_one_name() {
    let mut titles: Vec<String> = case::all().iter().map(Case::title).collect();
    titles.sort();
    let twice: Vec<_> = titles.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

mod slips {
    //! A wrong expectation must not pass: neither one that is not met, nor one
    //! that could never fail.

    use super::case::Case;
    use super::faults;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    #[expect(clippy::needless_pass_by_value, reason = "what is expected is written in place")]
    fn check(wanted: Value, expected: Expect) {
        let case = json!({
            "name": "slip",
            "spec": "2.5",
            "workflow": {"name": "slip", "steps": [{"id": "one", "command": "Do it"}]},
            "mock": {"*": {"text": "done"}},
            "expect": wanted,
        });
        let told = match Case::read("here", case) {
            Ok(case) => faults(&case).join("\n"),
            Err(fault) => format!("unreadable: {fault}"),
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn what_is_right_passes() {
        check(json!({"status": "completed", "nodes": {"one": {"output": "done"}}}), expect![""]);
    }

    #[test]
    fn what_differs_is_told_with_its_place() {
        check(
            json!({"exit": 1, "status": "completed", "nodes": {"one": {"output": "dome"}}}),
            expect![[r#"
                binary: exit: wanted 1, is 0
                binary: nodes.one.output: wanted "dome", is "done"
                engine: exit: wanted 1, is 0
                engine: nodes.one.output: wanted "dome", is "done""#]],
        );
    }

    #[test]
    fn fields_that_do_not_exist_are_faults() {
        check(
            json!({"state": "completed", "nodes": {"one": {"stat": null}, "two": {}}}),
            expect![[r#"
                binary: state: the projection has no such field
                binary: nodes.one.stat: a node has no such field
                binary: nodes.two: there is no such node
                engine: state: the projection has no such field
                engine: nodes.one.stat: a node has no such field
                engine: nodes.two: there is no such node"#]],
        );
    }

    #[test]
    fn events_that_cannot_be_are_no_expectation() {
        check(
            json!({"absent": ["node.complete one"]}),
            expect!["unreadable: `node.complete` is no event"],
        );
        check(
            json!({"absent": [{"type": "node.failed", "payload": {"code": "x"}}]}),
            expect!["unreadable: `node.failed` has no `code`"],
        );
        check(
            json!({"absent": ["node.failed two"]}),
            expect![[r#"
                binary: absent: there is no node `two`
                engine: absent: there is no node `two`"#]],
        );
    }

    #[test]
    fn events_are_looked_for_in_their_order() {
        check(
            json!({"events": ["node.completed one", "node.started one"]}),
            expect![[r#"
                binary: events[1]: no `node.started one` after event 5
                engine: events[1]: no `node.started one` after event 5"#]],
        );
    }

    #[test]
    fn words_of_the_format_are_checked() {
        check(
            json!({"nods": 1}),
            expect![[r#"
            binary: nods: the projection has no such field
            engine: nods: the projection has no such field"#]],
        );
        check(
            json!({"outputs": {"$contians": "x"}}),
            expect!["unreadable: `$contians` is no way to match"],
        );
        check(
            json!({"outputs": {"$min": 1, "x": 1}}),
            expect!["unreadable: `$min` stands beside plain fields"],
        );
    }
}
