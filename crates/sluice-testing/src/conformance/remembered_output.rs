//! Remembered outputs: stored with the append, bounded, erased with their run.

use super::{Bench, DONE, cases, first, guard, node, plain, run};
use sluice_core::limits::REMEMBERED_OUTPUTS_MAX;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::store::{Append, Appended};

cases![
    the_newest_come_first_whatever_the_run,
    only_so_many_are_kept_of_each_agent,
    a_refused_append_leaves_none,
    those_of_an_erased_run_go,
];

fn remembered_output(agent: &str, number: u128, text: &str) -> RememberedOutput {
    RememberedOutput { agent: agent.to_owned(), run: run(number), at_ms: 5, body: text.into() }
}

fn remembered(bench: &Bench, agents: &[&str]) -> Vec<String> {
    let agents = agents.iter().map(|&agent| agent.to_owned()).collect();
    let remembered_outputs = bench.wait_ok(bench.store.remembered_outputs(agents));
    let shown = |one: RememberedOutput| {
        format!("{} {} {}", one.agent, one.run.0, String::from_utf8_lossy(&one.body))
    };
    remembered_outputs.into_iter().map(shown).collect()
}

fn the_newest_come_first_whatever_the_run(bench: &Bench) {
    bench.done(Append {
        remembered_outputs: vec![remembered_output("a", 1, "one")],
        ..first(run(1))
    });
    bench.done(first(run(2)));
    let remembered_outputs =
        vec![remembered_output("b", 2, "two"), remembered_output("a", 2, "three")];
    bench.done(Append { remembered_outputs, ..plain(run(2), 1) });
    // An append without a frame can store one too.
    let beside = Append { count: 0, body: Vec::new(), ..plain(run(1), 1) };
    bench.done(Append { remembered_outputs: vec![remembered_output("a", 1, "four")], ..beside });
    assert_eq!(remembered(bench, &["b", "a"]), ["b 2 two", "a 1 four", "a 2 three", "a 1 one"]);
    assert_eq!(remembered(bench, &["unknown"]), Vec::<String>::new());
}

fn only_so_many_are_kept_of_each_agent(bench: &Bench) {
    bench.done(Append {
        remembered_outputs: vec![remembered_output("b", 1, "other")],
        ..first(run(1))
    });
    let count = REMEMBERED_OUTPUTS_MAX + 3;
    for number in 0..count {
        let remembered_outputs = vec![remembered_output("a", 1, &number.to_string())];
        bench.done(Append { remembered_outputs, ..plain(run(1), 1 + number as u64) });
    }
    let kept = remembered(bench, &["a"]);
    assert_eq!(kept.len(), REMEMBERED_OUTPUTS_MAX);
    assert_eq!(kept[0], format!("a 1 {}", count - 1));
    assert_eq!(kept[REMEMBERED_OUTPUTS_MAX - 1], "a 1 3");
    assert_eq!(remembered(bench, &["b"]), ["b 1 other"]);
}

fn a_refused_append_leaves_none(bench: &Bench) {
    bench.done(first(run(1)));
    let remembered_outputs = vec![remembered_output("a", 1, "no")];
    let guards = vec![guard("never", 1, Some(0))];
    let refused = bench.append(Append {
        remembered_outputs: remembered_outputs.clone(),
        guards,
        ..plain(run(1), 1)
    });
    assert!(matches!(refused, Appended::Refused { .. }));
    let stale =
        bench.append(Append { remembered_outputs: remembered_outputs.clone(), ..plain(run(1), 7) });
    assert_eq!(stale, Appended::Conflict);
    let foreign = Append { remembered_outputs, node: node(2), ..plain(run(1), 1) };
    assert_eq!(bench.append(foreign), Appended::NotOwner);
    assert_eq!(remembered(bench, &["a"]), Vec::<String>::new());
    assert_eq!(bench.append(plain(run(1), 1)), DONE);
}

fn those_of_an_erased_run_go(bench: &Bench) {
    for number in [1, 2] {
        let remembered_outputs =
            vec![remembered_output("a", number, "x"), remembered_output("b", number, "y")];
        bench.done(Append { remembered_outputs, ..first(run(number)) });
    }
    let bodies = vec![(1, Vec::new())];
    let (blobs, entries) = (Vec::new(), Vec::new());
    let erasure =
        Erasure { run: run(1), bodies, besides: Vec::new(), blobs, node: node(1), entries };
    let missing = Erasure { bodies: vec![(9, Vec::new())], ..erasure.clone() };
    assert_eq!(bench.wait_ok(bench.store.erase(missing)), Erased::NoFrame);
    assert_eq!(remembered(bench, &["a"]), ["a 2 x", "a 1 x"], "what is refused erases nothing");
    assert_eq!(bench.wait_ok(bench.store.erase(erasure)), Erased::Done);
    assert_eq!(remembered(bench, &["a", "b"]), ["a 2 x", "b 2 y"]);
}
