//! `sluice audit` and `sluice runs erase`: proof, and every way to break it.

use crate::session::root;
use crate::world::{World, plain, shown};
use expect_test::{Expect, expect};
use regex::{Captures, Regex};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

const DOCUMENT: &str = "
name: two
args: {who: {type: string, default: Grace}}
steps:
  - {id: one, command: 'greet ${args.who}', outputs: {x: string}}
  - {id: two, command: 'again ${x}', depends_on: [one]}
";
const MOCK: &str = "
one: {outputs: {x: a secret of Grace}}
two: {text: done}
";

/// A directory in which something was run and set up.
fn world() -> World {
    let world = World::new().file("two.lobsterx.yaml", DOCUMENT).file("mock.yaml", MOCK);
    ran(&world);
    for trust in ["trust_level=3", "trust_level=4", "trust_level=5"] {
        world.printed(&["agents", "set", "scribe", trust]);
    }
    world
}

/// Runs the document and answers its id.
fn ran(world: &World) -> String {
    world.printed(&["run", "two.lobsterx.yaml", "--mock", "mock.yaml"]);
    world.newest()
}

fn sql(world: &World, sql: &str) {
    let connection = Connection::open(world.path().join(".sluice/sluice.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// What a command says. How many seals there are depends on how fast things went.
fn told(world: &World, args: &[&str]) -> String {
    static SEALS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\bseal \d+|\b\d+ seals").unwrap());
    let seals = |found: &Captures<'_>| found[0].replace(|c: char| c.is_ascii_digit(), "");
    let text = world.told(args);
    SEALS.replace_all(&text, |found: &Captures<'_>| seals(found).trim().to_owned()).into_owned()
}

/// Changes the store and shows what a verification says.
fn after(change: &str, expected: &Expect) {
    let world = world();
    sql(&world, change);
    expected.assert_eq(&told(&world, &["audit", "verify"]));
}

/// Whether both verifiers believe a packet; they must agree.
fn believed(packet: &Path) -> bool {
    let name = packet.to_str().unwrap();
    let rust = World::new().output(&["audit", "verify", "--packet", name]);
    let script = root().join("tools/verify_packet.py");
    let python = Command::new("python3").arg("-B").arg(script).arg(name).output().unwrap();
    let told = format!("{}{}", shown(&rust), shown(&python));
    assert!([Some(0), Some(1)].contains(&python.status.code()), "{told}");
    assert_eq!(rust.status.code(), python.status.code(), "{told}");
    rust.status.success()
}

#[test]
fn an_unchanged_store_has_nothing_wrong() {
    let world = world();
    expect![[r#"
        stdout:
        looked at seals, 3 entries, 1 runs with 11 events: nothing is wrong
        exit 0
    "#]]
    .assert_eq(&told(&world, &["audit", "verify"]));
    let report = world.json(&["audit", "verify", "--json"]);
    assert_eq!((&report["ok"], &report["findings"]), (&true.into(), &Value::Array(vec![])));
    let run = world.newest();
    let one = world.json(&["audit", "verify", "--json", "--run", &run]);
    assert_eq!((&one["ok"], &one["runs"]), (&true.into(), &1.into()));
    assert!(world.output(&["audit", "verify", "--run", "run_ffff"]).status.code() == Some(2));
}

#[test]
fn a_changed_byte_of_an_entry_is_named() {
    after(
        "UPDATE entry SET text = replace(text, '\"ada\"', '\"eve\"') WHERE place = 2",
        &expect![[r#"
            stdout:
            entry 1 of NODE-1 is changed: its text does not match its hash
            looked at seals, 3 entries, 1 runs with 11 events; 1 of the runs are whole
            exit 1
        "#]],
    );
}

#[test]
fn a_deleted_entry_is_named() {
    after(
        "DELETE FROM entry WHERE place = 2",
        &expect![[r#"
            stdout:
            entry 1 of NODE-1 is missing: seal covers it
            looked at seals, 2 entries, 1 runs with 11 events; 1 of the runs are whole
            exit 1
        "#]],
    );
}

#[test]
fn swapped_entries_are_named() {
    // Each command is a writer of its own, so the rows change their writers.
    after(
        "UPDATE entry SET place = place + 100 WHERE place IN (1, 2);
         CREATE TEMP TABLE kept AS SELECT * FROM entry WHERE place IN (101, 102);
         UPDATE entry SET text = (SELECT text FROM kept WHERE kept.place = 203 - entry.place),
                          hash = (SELECT hash FROM kept WHERE kept.place = 203 - entry.place)
          WHERE place IN (101, 102);
         UPDATE entry SET place = place - 100 WHERE place IN (101, 102);",
        &expect![[r#"
            stdout:
            entry 1 of NODE-1 is reordered: the text in its position is that of entry 1 of "NODE-2"
            entry 1 of NODE-2 is reordered: the text in its position is that of entry 1 of "NODE-1"
            looked at seals, 3 entries, 1 runs with 11 events; 1 of the runs are whole
            exit 1
        "#]],
    );
}

#[test]
fn a_truncated_tail_is_named() {
    after(
        "DELETE FROM entry WHERE place >= 2",
        &expect![[r#"
            stdout:
            entry 1 of NODE-1 is missing: seal covers it
            entry 1 of NODE-2 is missing: seal covers it
            looked at seals, 1 entries, 1 runs with 11 events; 1 of the runs are whole
            exit 1
        "#]],
    );
}

#[test]
fn a_changed_event_is_named() {
    after(
        "UPDATE frame SET body = CAST(replace(CAST(body AS TEXT), 'secret', 'sekret') AS BLOB)
          WHERE instr(CAST(body AS TEXT), 'secret') > 0",
        &expect![[r#"
            stdout:
            event 5 of RUN-1 is changed: it does not match its hash
            looked at seals, 3 entries, 1 runs with 5 events; 0 of the runs are whole
            counters were not compared: a run that cannot be read may be part of them
            exit 1
        "#]],
    );
}

#[test]
fn a_deleted_seal_is_named() {
    after(
        "DELETE FROM seal WHERE number = (SELECT max(number) - 1 FROM seal)",
        &expect![[r#"
            stdout:
            seal is missing: another seal is in its position
            looked at seals, 3 entries, 1 runs with 11 events; 1 of the runs are whole
            exit 1
        "#]],
    );
}

#[test]
fn a_store_that_was_rolled_back_lacks_the_seal_that_was_kept() {
    let world = world();
    let copy = |from: &str, to: &str| {
        for file in ["sluice.db", "sluice.db-wal"] {
            let (from, to) = (world.path().join(from).join(file), world.path().join(to).join(file));
            match std::fs::read(from) {
                Ok(bytes) => std::fs::write(to, bytes).unwrap(),
                Err(_) => drop(std::fs::remove_file(to)),
            }
        }
    };
    std::fs::create_dir(world.path().join("backup")).unwrap();
    copy(".sluice", "backup");
    ran(&world);
    world.printed(&["audit", "seal", "--out", "kept.txt"]);
    let verify = ["audit", "verify", "--seal", "kept.txt"];
    assert_eq!(world.output(&verify).status.code(), Some(0));
    copy("backup", ".sluice");
    // By itself the old state is in order.
    assert_eq!(world.output(&["audit", "verify"]).status.code(), Some(0));
    expect![[r#"
        stdout:
        seal is missing: it was kept outside the store, and the store ends before it: was the store rolled back?
        looked at seals, 3 entries, 1 runs with 11 events; 1 of the runs are whole
        exit 1
    "#]]
    .assert_eq(&told(&world, &verify));
    // Going on from there does not help.
    ran(&world);
    ran(&world);
    assert_eq!(world.output(&verify).status.code(), Some(1));
}

#[test]
fn every_seal_is_copied_where_one_is_told_to() {
    let world = World::new().file("two.lobsterx.yaml", DOCUMENT).file("mock.yaml", MOCK);
    let run = ["run", "two.lobsterx.yaml", "--mock", "mock.yaml", "--seal-file", "seals.txt"];
    world.printed(&run);
    world.printed(&run);
    let seals = std::fs::read_to_string(world.path().join("seals.txt")).unwrap();
    assert!(seals.lines().count() >= 2, "{seals}");
    world.printed(&["audit", "verify", "--seal", "seals.txt"]);
    let script = root().join("tools/verify_packet.py");
    let python = |file: &Path| {
        let mut command = Command::new("python3");
        command.arg("-B").arg(&script).arg("--seals").arg(file).output().unwrap().status.code()
    };
    let file = world.path().join("seals.txt");
    assert_eq!(python(&file), Some(0));
    let spoilt = seals.replacen("\"leaves\":", "\"leaves\":1", 1);
    std::fs::write(&file, spoilt).unwrap();
    assert_eq!(python(&file), Some(1));
    assert_eq!(world.output(&["audit", "verify", "--seal", "seals.txt"]).status.code(), Some(1));
    std::fs::write(&file, "rubbish\n").unwrap();
    expect![[r#"
        stderr:
        error[seal_unreadable]: `seals.txt` does not hold seals: line 1 is not a seal
         |
         = help: name a file that `sluice audit seal --out FILE` or `--seal-file` wrote
        exit 2
    "#]]
    .assert_eq(&told(&world, &["audit", "verify", "--seal", "seals.txt"]));
}

#[test]
fn a_trigger_that_another_program_added_is_reported() {
    let world = world();
    world.printed(&["audit", "verify"]);
    let database = Connection::open(world.path().join(".sluice/sluice.db")).unwrap();
    let trigger = "CREATE TRIGGER quiet AFTER INSERT ON entry
                   BEGIN UPDATE entry SET text = 'nothing' WHERE place = new.place; END;
                   DROP INDEX run_status";
    database.execute_batch(trigger).unwrap();
    drop(database);
    let told = told(&world, &["audit", "verify"]);
    for finding in [
        "row trigger quiet on entry of schema is inserted: Sluice has no such object",
        "row index run_status on run of schema is missing: Sluice made it",
    ] {
        assert!(told.contains(finding), "{told}");
    }
    assert!(told.ends_with("exit 1\n"), "{told}");
}

#[test]
fn a_torn_line_of_a_seal_file_costs_no_other_seal() {
    let world = World::new().file("two.lobsterx.yaml", DOCUMENT).file("mock.yaml", MOCK);
    let run = ["run", "two.lobsterx.yaml", "--mock", "mock.yaml", "--seal-file", "seals.txt"];
    world.printed(&run);
    let file = world.path().join("seals.txt");
    let whole = std::fs::read_to_string(&file).unwrap();
    // The process is killed while it appends its last seal.
    std::fs::write(&file, &whole[..whole.len() - 30]).unwrap();
    world.printed(&["audit", "seal", "--out", "seals.txt"]);
    world.printed(&run);
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(after.contains(&whole), "the newest seal was added as a line of its own: {after}");
    assert!(after.lines().count() > whole.lines().count() + 1, "{after}");
    world.printed(&["audit", "verify", "--seal", "seals.txt"]);
    let mut python = Command::new("python3");
    python.arg("-B").arg(root().join("tools/verify_packet.py")).arg("--seals").arg(&file);
    let output = python.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // A file with nothing else has no seal to require.
    std::fs::write(&file, &whole[..40]).unwrap();
    assert_eq!(world.output(&["audit", "verify", "--seal", "seals.txt"]).status.code(), Some(2));
}

#[test]
fn an_erased_payload_is_gone_and_everything_still_verifies() {
    let world = world();
    let run = world.newest();
    world.printed(&["audit", "export", "--run", &run, "--out", "before.packet"]);
    let erased = told(&world, &["runs", "erase", &run, "--event", "1", "--reason", "asked"]);
    expect![[r#"
        stdout:
        1 payload of RUN-1 erased; its hashes and figures stay
        exit 0
    "#]]
    .assert_eq(&erased);
    expect![[r#"
        stdout:
        looked at seals, 4 entries, 1 runs with 11 events, 1 of them erased as the audit says: nothing is wrong
        exit 0
    "#]].assert_eq(&told(&world, &["audit", "verify"]));
    expect![[r#"
        stdout:
        10 payloads of RUN-1 erased; its hashes and figures stay
        exit 0
    "#]]
    .assert_eq(&told(&world, &["runs", "erase", &run, "--reason", "asked"]));
    expect![[r#"
        stdout:
        looked at seals, 5 entries, 1 runs with 11 events, 11 of them erased as the audit says: nothing is wrong
        exit 0
    "#]].assert_eq(&told(&world, &["audit", "verify"]));
    expect![[r#"
        stdout:
        RUN-1 has nothing left to erase
        exit 0
    "#]]
    .assert_eq(&told(&world, &["runs", "erase", &run, "--reason", "asked"]));
    assert_eq!(world.state(&run)["status"], "completed");
    world.printed(&["audit", "export", "--run", &run, "--out", "after.packet"]);
    let (before, after) = (world.path().join("before.packet"), world.path().join("after.packet"));
    assert!(believed(&before) && believed(&after));
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert!(text(&before).contains("secret of Grace") && !text(&after).contains("Grace"));
    // Not in the file either.
    for file in std::fs::read_dir(world.path().join(".sluice")).unwrap() {
        let path = file.unwrap().path();
        if path.to_str().unwrap().ends_with("sluice.db") {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(15).any(|part| part == b"secret of Grace");
            assert!(!found, "{}", path.display());
        }
    }
    // Erased behind the audit's back.
    sql(&world, "DELETE FROM entry WHERE instr(text, 'payload_erased') > 0");
    let told = plain(&shown(&world.output(&["audit", "verify"])));
    assert!(told.contains("event 1 of RUN-1 is erased: no audit entry says so"), "{told}");
}

#[test]
fn a_packet_contains_what_a_failed_attempt_answered_until_it_is_erased() {
    // The second answer is so long that it is stored as a blob.
    let long = format!("{} as Ada said", "word ".repeat(40_000));
    let script = json!({"short": {"text": "I would say eight."}, "long": {"text": long}});
    let flow = "name: rate\nsteps:\n\
                \u{20} - {id: short, agent: m, command: rate, outputs: {score: integer}}\n\
                \u{20} - {id: long, agent: m, command: rate, outputs: {score: integer}}\n";
    let world =
        World::new().file("rate.lobsterx.yaml", flow).file("mock.json", &script.to_string());
    let failed = world.output(&["run", "rate.lobsterx.yaml", "--mock", "mock.json"]);
    assert_eq!(failed.status.code(), Some(1), "{}", shown(&failed));
    let run = world.newest();
    let export = |name: &str| {
        world.printed(&["audit", "export", "--run", &run, "--out", name]);
        let path = world.path().join(name);
        assert!(believed(&path), "{name}");
        std::fs::read_to_string(path).unwrap()
    };
    let packet = export("before.packet");
    for answer in ["I would say eight.", "as Ada said"] {
        assert!(packet.contains(answer), "{answer}");
    }
    world.printed(&["runs", "erase", &run, "--reason", "asked"]);
    let packet = export("after.packet");
    for answer in ["I would say eight.", "as Ada said"] {
        assert!(!packet.contains(answer), "{answer}");
    }
}

#[test]
fn what_cannot_be_erased_is_refused() {
    let asks = "name: asks\nsteps:\n  - {id: ok, approval: required}\n";
    let world = World::new().file("asks.lobsterx.yaml", asks);
    let waits = world.output(&["run", "asks.lobsterx.yaml"]);
    assert_eq!(waits.status.code(), Some(4));
    let run = world.newest();
    let check = |args: &[&str], expected: &Expect| expected.assert_eq(&told(&world, args));
    check(
        &["runs", "erase", &run, "--reason", "x"],
        &expect![[r#"
        stderr:
        error[run_not_ended]: RUN-1 has not ended; it is paused
         |
         = help: only runs that ended can be erased; `sluice runs cancel RUN-1` ends it
        exit 2
    "#]],
    );
    world.printed(&["runs", "cancel", &run]);
    check(
        &["runs", "erase", &run, "--event", "999", "--reason", "x"],
        &expect![[r#"
        stderr:
        error[event_unknown]: RUN-1 has no event 999; it has 8
         |
         = help: `sluice runs export RUN-1` lists them
        exit 2
    "#]],
    );
    check(
        &["runs", "erase", &run],
        &expect![[r#"
        stderr:
        error: the following required arguments were not provided:
          --reason <TEXT>

        Usage: sluice runs erase --reason <TEXT> <RUN>

        For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn a_packet_is_believed_as_it_is_and_in_no_other_way() {
    let world = world();
    let run = world.newest();
    let exported = told(&world, &["audit", "export", "--run", &run, "--out", "run.packet"]);
    expect![[r#"
        stdout:
        run.packet: RUN-1, 11 events, under seal
        exit 0
    "#]]
    .assert_eq(&exported);
    let path = world.path().join("run.packet");
    assert!(believed(&path));
    let text = std::fs::read_to_string(&path).unwrap();
    let packet: Value = serde_json::from_str(&text).unwrap();
    let spoilt = world.path().join("spoilt.packet");
    // A byte of every field: of the first event, of the seal, of the proof.
    let event = &packet["events"][0];
    let mut fields: Vec<String> = ["salt", "payload", "hash", "type"]
        .map(|name| serde_json::to_string(&event[name]).unwrap())
        .into();
    fields.push(serde_json::to_string(&packet["seal"]).unwrap());
    fields.extend(packet["values"].as_object().unwrap().values().map(Value::to_string));
    fields.push(format!("\"at\":{}", event["at"]));
    fields.push(format!("\"run\":\"{run}\""));
    fields.extend(packet["proof"]["path"].as_array().unwrap().iter().map(Value::to_string));
    for field in fields {
        let at = text.find(&field).unwrap_or_else(|| panic!("{field}"));
        // Somewhere in the middle, a digit or a letter.
        let inside = field.len() / 2
            + field[field.len() / 2..].find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(0);
        let mut bytes = text.clone().into_bytes();
        let byte = &mut bytes[at + inside];
        *byte = if *byte == b'1' { b'2' } else { b'1' };
        std::fs::write(&spoilt, bytes).unwrap();
        assert!(!believed(&spoilt), "{field}");
    }
    for (from, to) in [
        ("sluice/packet/1", "sluice/packet/2"),
        ("{\"events\"", "{ \"events\""),
        ("\"index\":", "\"index\":1"),
        ("{\"events\":[", "{\"events\":[{},"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&spoilt, text.replacen(from, to, 1)).unwrap();
        assert!(!believed(&spoilt), "{from}");
    }
    // The right packet, but another key is believed.
    let key = "0".repeat(64);
    let args = ["audit", "verify", "--packet", "run.packet", "--key", &key];
    assert_eq!(world.output(&args).status.code(), Some(1));
}

#[test]
fn a_packet_of_every_kind_of_run_is_believed() {
    let world = World::new();
    for (name, args) in [
        ("examples/vendor-review.lobsterx.yaml", &["--arg", "vendor=Northwind", "--yes"][..]),
        ("examples/fan-out-join.lobsterx.yaml", &["--yes"][..]),
    ] {
        crate::world::example(&world, name, args);
    }
    let data = world.path().join("data");
    let data = data.to_str().unwrap();
    let runs = world.json(&["runs", "list", "--json", "--data", data]);
    let runs = runs["data"].as_array().unwrap();
    assert!(runs.len() >= 2);
    for run in runs {
        let run = run["run_id"].as_str().unwrap();
        world.printed(&["audit", "export", "--run", run, "--data", data]);
        assert!(believed(&world.path().join(format!("{run}.packet"))));
    }
}

#[test]
fn the_audit_shows_entries_and_facts_of_runs() {
    let world = world();
    expect![[r#"
        stdout:
          WHEN  execution  run_started  RUN-1 event 1  ada
          WHEN  governance  dispatch_decided  one  RUN-1 event 3
          WHEN  execution  step_dispatched  one  RUN-1 event 4
          WHEN  execution  step_completed  one  RUN-1 event 5
          WHEN  governance  dispatch_decided  two  RUN-1 event 8
          WHEN  execution  step_dispatched  two  RUN-1 event 9
          WHEN  execution  step_completed  two  RUN-1 event 10
          WHEN  execution  run_completed  RUN-1 event 11
          WHEN  configuration  agent_changed  agent scribe  ada
          WHEN  configuration  agent_changed  agent scribe  ada
          WHEN  configuration  agent_changed  agent scribe  ada
        exit 0
    "#]]
    .assert_eq(&told(&world, &["audit", "tail"]));
    let told = world.printed(&["audit", "tail", "--json", "--category", "configuration"]);
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["category"] == "configuration"));
    assert_eq!(lines.len(), 3);
    assert_eq!(world.output(&["audit", "tail", "--category", "odd"]).status.code(), Some(2));
}

#[test]
fn a_key_that_cannot_be_used_is_refused() {
    let world = world();
    std::fs::write(world.path().join(".sluice/seal.key"), "rubbish\n").unwrap();
    let told = world.told(&["runs", "list"]);
    assert!(told.contains("error[seal_unusable]"), "{told}");
    // Looking is still possible.
    assert_eq!(world.output(&["audit", "verify"]).status.code(), Some(0));
}

#[test]
fn a_tail_goes_on_as_things_happen() {
    let world = world();
    let file = world.path().join("tail.txt");
    let mut command = world.command(&["audit", "tail", "--follow", "--json"]);
    let mut tail = command.stdout(std::fs::File::create(&file).unwrap()).spawn().unwrap();
    let shows = |words: &[&str]| {
        world.until(&format!("{words:?} are shown"), |_| {
            let told = std::fs::read_to_string(&file).unwrap();
            let all = |line: &str| words.iter().all(|word| line.contains(word));
            told.lines().any(all).then_some(())
        });
    };
    shows(&["agent_changed"]);
    let run = ran(&world);
    shows(&[&run, "run_completed"]);
    tail.kill().unwrap();
    tail.wait().unwrap();
}
