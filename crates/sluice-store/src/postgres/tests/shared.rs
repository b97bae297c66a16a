//! Several stores in one database, and values that the nodes of one agree on.

use super::*;
use sluice_testing::conformance::{first, run};

fn open_in(url: &str, schema: &str) -> PostgresStore {
    PostgresStore::open_in(url, Some(schema), Time::Database).unwrap()
}

#[test]
fn a_schema_of_its_own_holds_a_store_of_its_own() {
    let url = server().url();
    let (one, other) = (open_in(&url, "own \"one\""), open_in(&url, "own other"));
    append(&one, first(run(1)));
    assert!(wait(one.load(run(1))).unwrap().is_some());
    assert!(wait(other.load(run(1))).unwrap().is_none());
    assert_eq!(outside::schemas(&url, "own ").unwrap(), ["own \"one\"", "own other"]);
    // Opening it again gives the same store.
    assert!(wait(open_in(&url, "own \"one\"").load(run(1))).unwrap().is_some());
}

#[test]
fn looking_makes_nothing() {
    let url = server().url();
    let known = outside::inspect(&url, Some("nothing yet")).unwrap();
    assert_eq!(known.schema, 0);
    assert!(outside::schemas(&url, "nothing").unwrap().is_empty());
    drop(open_in(&url, "nothing yet"));
    assert_eq!(outside::inspect(&url, Some("nothing yet")).unwrap().schema, known.known);
    assert!(matches!(outside::inspect("mysql://x", None), Err(OpenError::Url(_))));
    let unreachable = "postgres:///postgres?user=sluice&host=/nowhere";
    assert!(matches!(outside::inspect(unreachable, None), Err(OpenError::Failed(_))));
}

#[test]
fn the_first_proposed_value_is_agreed() {
    let url = server().schema();
    let nodes: Vec<PostgresStore> = (0..3).map(|_| open(&url)).collect();
    assert_eq!(wait(nodes[0].agreed("key")).unwrap(), None);
    let said: Vec<String> = std::thread::scope(|threads| {
        let said: Vec<_> = nodes
            .iter()
            .zip(["a", "b", "c"])
            .map(|(node, value)| threads.spawn(move || wait(node.agree("key", value)).unwrap()))
            .collect();
        said.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
    assert_eq!(wait(nodes[2].agreed("key")).unwrap(), Some(said[0].clone()));
    assert_eq!(wait(nodes[1].agree("key", "late")).unwrap(), said[0]);
    assert_eq!(wait(nodes[1].agreed("other")).unwrap(), None);
}
