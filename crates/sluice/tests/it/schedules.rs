//! `sluice schedules`: rows, slots, and runs that start by themselves.

use crate::world::World;
use expect_test::{Expect, expect};

const HELLO: &str =
    "name: hello\nargs: {who: {type: string}}\nsteps: [{id: greet, command: 'Say ${args.who}.'}]\n";
const SETUP: &str = "
workflows: [hello.lobsterx.yaml]
schedules:
  often: {workflow: hello, args: {who: you}, every: 1s}
  nightly:
    workflow: hello@1
    args: {who: night}
    cron: '30 2 * * *'
    time_zone: Europe/Berlin
    overlap: queue
    missed: backfill
    skip_dates: ['2026-12-24']
";

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

fn world() -> World {
    World::new()
        .file("hello.lobsterx.yaml", HELLO)
        .file("mock.yaml", "'*': {text: Hello.}\n")
        .file("setup.yaml", SETUP)
}

#[test]
fn a_schedule_starts_runs_while_a_process_ticks_it() {
    let world = world();
    world.printed(&["apply", "-f", "setup.yaml"]);
    world.printed(&["schedules", "disable", "nightly"]);
    let ticked =
        world.printed(&["schedules", "tick", "--for", "2500ms", "--mock", "mock.yaml", "--json"]);
    let lines: Vec<serde_json::Value> =
        ticked.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started = lines.iter().filter(|line| line["schedule"] == "often").count();
    let ended = lines.iter().filter(|line| line["status"] == "completed").count();
    assert!(started >= 1 && started == ended, "{ticked}");
    let shown = world.json(&["schedules", "show", "often", "--json"]);
    let slots = shown["slots"].as_array().unwrap();
    let runs = slots.iter().filter(|slot| slot["fate"] == "started").count();
    assert_eq!(runs, started, "{shown}");
    let run = slots.iter().find_map(|slot| slot["run_id"].as_str()).unwrap();
    let exported = world.json(&["runs", "export", run, "--json"]);
    assert_eq!(exported["events"][0]["payload"]["initiator"], "schedule:often");
    let off = world.json(&["schedules", "show", "nightly", "--json"]);
    assert_eq!((&off["enabled"], &off["next_at"]), (&false.into(), &serde_json::Value::Null));
}

#[test]
fn slots_to_come_are_shown_in_order_and_those_of_skipped_days_say_so() {
    let world = world();
    world.printed(&["apply", "-f", "setup.yaml"]);
    world.printed(&["schedules", "set", "nightly", "only_dates=['1999-01-01']"]);
    let next = world.json(&["schedules", "slots", "nightly", "--next", "3", "--json"]);
    let data = next["data"].as_array().unwrap();
    assert_eq!(data.len(), 3);
    assert!(data.iter().all(|slot| slot["skipped"] == "date"), "{next}");
    let times: Vec<&str> = data.iter().map(|slot| slot["slot_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted());
    let listed = world.json(&["schedules", "list", "--json"]);
    assert_eq!(listed["data"][1]["id"], "often");
    assert!(listed["data"][1]["next_at"].is_string());
}

#[test]
fn slots_are_shown_in_the_zone_of_their_schedule() {
    let world = world();
    world.printed(&["apply", "-f", "setup.yaml"]);
    let slots = world.printed(&["schedules", "slots", "nightly", "--next", "400"]);
    let ends = |end: &str| slots.lines().filter(|line| line.contains(end)).count();
    // Once a year 02:30 does not exist, and once it comes twice.
    assert!(ends(" 02:30:00+01:00") > 100 && ends(" 02:30:00+02:00") > 100, "{slots}");
    let listed = world.printed(&["schedules", "list"]);
    let nightly = listed.lines().find(|line| line.starts_with("nightly")).unwrap();
    assert!(nightly.contains(" 02:30:00+0"), "{listed}");
}

#[test]
fn applying_again_leaves_a_disabled_schedule() {
    let world = world();
    world.printed(&["apply", "-f", "setup.yaml"]);
    world.printed(&["schedules", "disable", "often"]);
    check(
        &world,
        &["apply", "-f", "setup.yaml"],
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
    check(
        &world,
        &["workflows", "remove", "hello@1"],
        expect![[r#"
        stderr:
        error[row_in_use]: other rows still refer to what would be removed
         |
         = note: schedule `nightly`, workflow: there is no workflow `hello@1` in the registry
         = note: schedule `often`, workflow: there is no workflow `hello` in the registry
         = help: change those rows first, or in the same file
        exit 2
    "#]],
    );
    check(
        &world,
        &["schedules", "remove", "often"],
        expect![[r#"
        stdout:
        - schedule often
        exit 0
    "#]],
    );
    check(
        &world,
        &["schedules", "show", "often"],
        expect![[r#"
        stderr:
        error[row_unknown]: there is no schedule `often`
         |
         = help: `sluice schedules list` lists them
        exit 2
    "#]],
    );
}

#[test]
fn what_makes_no_schedule_is_refused_where_it_stands() {
    let world = world().file(
        "bad.yaml",
        "workflows: [hello.lobsterx.yaml]
schedules:
  zone: {workflow: hello, cron: '0 1 * * *', time_zone: Europe/Berln}
  both: {workflow: hello, cron: '0 1 * * *', every: 1h}
  none: {workflow: hello}
  never: {workflow: hello, cron: '0 0 30 2 *'}
  quick: {workflow: hello, every: 1ms}
  date: {workflow: hello, every: 1h, skip_dates: [tomorrow]}
  word: {workflow: hello, every: 1h, overlap: allow}
",
    );
    check(
        &world,
        &["apply", "-f", "bad.yaml"],
        expect![[r#"
        stderr:
        error[bad_value]: there is no time zone `Europe/Berln`
         --> bad.yaml:3:57
          |
        3 |  zone: {workflow: hello, cron: '0 1 * * *', time_zone: Europe/Berln}
          |  ^^^^^^^^^^^^ schedules.zone.time_zone
          |
          = help: use an IANA name, such as `Europe/Berlin` or `UTC`

        error[conflicting_fields]: `cron` and `every` exclude each other
         --> bad.yaml:4:53
          |
        4 |  both: {workflow: hello, cron: '0 1 * * *', every: 1h}
          |  ^^ schedules.both.every
          |
          = help: keep the field that says what you mean. A `retry` map goes together with `halt` or `skip`: those apply once the attempts are spent

        error[missing_field]: `cron` or `every` is missing
         --> bad.yaml:5:9
          |
        5 |  none: {workflow: hello}
          |  ^ schedules.none
          |
          = help: add the field that the message names

        error[bad_value]: there is no such day in any year
         --> bad.yaml:6:34
          |
        6 |  never: {workflow: hello, cron: '0 0 30 2 *'}
          |  ^^^^^^^^^^^^ schedules.never.cron
          |
          = help: write a value that the message allows

        error[bad_duration]: `1ms` is more often than every 1s
         --> bad.yaml:7:35
          |
        7 |  quick: {workflow: hello, every: 1ms}
          |  ^^^ schedules.quick.every
          |
          = help: write the number and the unit together, without a blank

        error[bad_value]: `tomorrow` is not a date
         --> bad.yaml:8:50
          |
        8 |  date: {workflow: hello, every: 1h, skip_dates: [tomorrow]}
          |  ^ schedules.date.skip_dates
          |
          = help: write it as `2026-12-24`

        error[bad_value]: `allow` is not a policy for overlapping runs
         --> bad.yaml:9:47
          |
        9 |  word: {workflow: hello, every: 1h, overlap: allow}
          |  ^^^^^ schedules.word.overlap
          |
          = help: use one of: skip, queue, cancel_previous
        exit 2
    "#]],
    );
    let world = world.file("gone.yaml", "schedules:\n  s: {workflow: hullo, every: 1h}\n");
    check(
        &world,
        &["apply", "-f", "gone.yaml"],
        expect![[r#"
        stderr:
        error[unknown_row]: there is no workflow `hullo` in the registry
         --> gone.yaml:2:17
          |
        2 |  s: {workflow: hullo, every: 1h}
          |  ^^^^^ schedules.s.workflow
          |
          = help: register it: `workflows: [FILE]` in the setup, or `sluice workflows put FILE`
        exit 2
    "#]],
    );
}
