//! `sluice runs elide`: what steps said on the way goes, answers and proof stay.

use crate::session::root;
use crate::world::{World, shown};
use expect_test::expect;
use rusqlite::Connection;
use serde_json::Value;
use std::process::Command;

const DOCUMENT: &str = "
name: talk
steps:
  - {id: one, command: speak}
  - {id: two, command: speak, depends_on: [one]}
";
const MOCK: &str = "
one: {chunks: [a murmured, ' word'], chunk_delay_ms: 120}
two: {chunks: [another murmur]}
";

/// A part as it is stored, which no answer is.
const PART: &str = "\"text\":\"a murmured\"";

fn world() -> World {
    let world = World::new().file("talk.lobsterx.yaml", DOCUMENT).file("mock.yaml", MOCK);
    world.printed(&["run", "talk.lobsterx.yaml", "--mock", "mock.yaml"]);
    world
}

fn held(world: &World, word: &str) -> bool {
    let file = std::fs::read(world.path().join(".sluice/sluice.db")).unwrap();
    file.windows(word.len()).any(|part| part == word.as_bytes())
}

fn events(world: &World, run: &str) -> Vec<Value> {
    let text = world.printed(&["runs", "watch", run, "--events"]);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether the packet of a run is believed, by Sluice and without it.
fn believed(world: &World, run: &str) -> (bool, String) {
    world.printed(&["audit", "export", "--run", run, "--out", "run.packet"]);
    let packet = world.path().join("run.packet");
    let rust = world.output(&["audit", "verify", "--packet", "run.packet"]);
    let script = root().join("tools/verify_packet.py");
    let python = Command::new("python3").arg("-B").arg(script).arg(&packet).output().unwrap();
    assert_eq!(rust.status.code(), python.status.code(), "{}{}", shown(&rust), shown(&python));
    (rust.status.success(), std::fs::read_to_string(&packet).unwrap())
}

#[test]
fn every_part_is_shown_and_in_the_packet() {
    let world = world();
    let run = world.newest();
    let events = events(&world, &run);
    let ids: Vec<u64> = events.iter().map(|event| event["eventId"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    let deltas = events.iter().filter(|event| event["type"] == "node.stream.delta");
    let said: Vec<_> = deltas
        .map(|event| {
            let payload = &event["payload"];
            (payload["nodeId"].as_str(), payload["deltaIndex"].as_u64(), payload["text"].as_str())
        })
        .collect();
    assert_eq!(
        said,
        [
            (Some("one"), Some(0), Some("a murmured")),
            (Some("one"), Some(1), Some(" word")),
            (Some("two"), Some(0), Some("another murmur")),
        ]
    );
    let (good, packet) = believed(&world, &run);
    assert!(good && packet.contains(&PART.replace('"', "\\\"")));
    assert!(held(&world, PART));
    let exported = world.json(&["runs", "export", &run, "--json"]);
    assert_eq!(exported["events"].as_array().unwrap().len(), ids.len());
    assert_eq!(exported.get("elided"), None);
}

#[test]
fn elided_parts_are_gone_and_everything_still_verifies() {
    let world = world();
    let run = world.newest();
    let before = events(&world, &run);
    let projection = world.json(&["runs", "show", &run, "--json"]);
    expect![[r#"
        stdout:
        3 parts of answers of 1 run elided; the answers stay
        exit 0
    "#]]
    .assert_eq(&world.told(&["runs", "elide", &run]));
    assert!(!held(&world, PART), "nothing of them is in the file");
    assert!(held(&world, "a murmured word"), "the answer is");
    assert_eq!(world.json(&["runs", "show", &run, "--json"]), projection);
    let report = world.json(&["audit", "verify", "--json"]);
    assert_eq!((&report["ok"], &report["elided"]), (&true.into(), &3.into()));
    let told = world.told(&["audit", "verify"]);
    assert!(told.contains("3 of them elided as the audit says: nothing is wrong"), "{told}");
    // Who reads passes over them, and is told.
    let output = world.output(&["runs", "watch", &run, "--events"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("events 5 to 6 were elided"), "{told}");
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), before.len() - 3);
    let exported = world.json(&["runs", "export", &run, "--json"]);
    assert_eq!(exported["elided"][0], serde_json::json!([5, 6]));
    let (good, packet) = believed(&world, &run);
    assert!(good && !packet.contains(&PART.replace('"', "\\\"")));
    expect![[r#"
        stdout:
        nothing was left to elide
        exit 0
    "#]]
    .assert_eq(&world.told(&["runs", "elide", &run]));
    // What else there is can still be erased.
    world.printed(&["runs", "erase", &run, "--reason", "asked"]);
    assert_eq!(world.output(&["audit", "verify"]).status.code(), Some(0));
}

#[test]
fn parts_can_be_erased_one_by_one() {
    let world = world();
    let run = world.newest();
    world.printed(&["runs", "erase", &run, "--event", "6", "--reason", "asked"]);
    let events = events(&world, &run);
    assert_eq!(events[4]["payload"]["text"], "a murmured");
    assert_eq!((&events[5]["payload"]["text"], &events[5]["erased"]), (&"".into(), &true.into()));
    assert_eq!(world.output(&["audit", "verify"]).status.code(), Some(0));
    world.printed(&["runs", "elide", &run]);
    assert_eq!(world.output(&["audit", "verify"]).status.code(), Some(0));
    assert!(believed(&world, &run).0);
}

#[test]
fn only_old_runs_are_elided_where_an_age_is_named() {
    let world = world();
    let nothing = "nothing was left to elide\n";
    assert_eq!(world.printed(&["runs", "elide", "--older-than", "1h"]), nothing);
    let run = world.newest();
    assert_eq!(world.printed(&["runs", "elide", &run, "--older-than", "1h"]), nothing);
    let told = world.printed(&["runs", "elide", "--older-than", "1ms"]);
    assert_eq!(told, "3 parts of answers of 1 run elided; the answers stay\n");
}

#[test]
fn what_cannot_be_elided_is_refused() {
    let asks = "name: asks\nsteps:\n  - {id: ok, approval: required}\n";
    let world = World::new().file("asks.lobsterx.yaml", asks);
    let args = ["run", "asks.lobsterx.yaml"];
    assert_eq!(world.output(&args).status.code(), Some(4));
    let run = world.newest();
    let told = world.told(&["runs", "elide", &run]);
    assert!(told.contains("error[run_not_ended]"), "{told}");
    for args in [&["runs", "elide"][..], &["runs", "elide", "--older-than", "soon"]] {
        assert_eq!(world.output(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn parts_that_went_in_silence_are_missed() {
    let world = world();
    let file = world.path().join(".sluice/sluice.db");
    Connection::open(&file).unwrap().execute_batch("DELETE FROM beside").unwrap();
    let told = world.told(&["audit", "verify"]);
    assert!(told.contains("event 5 of RUN-1 is missing"), "{told}");
    // The run itself needs none of it.
    let run = world.newest();
    assert_eq!(world.json(&["runs", "show", &run, "--json"])["status"], "completed");
}
