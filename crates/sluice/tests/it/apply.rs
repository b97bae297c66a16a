//! `sluice apply`: one file says what rows there are.

use crate::session::root;
use crate::world::World;
use expect_test::{Expect, expect};
use serde_json::Value;
use sluice_core::port::ledger::Ledger as _;
use sluice_engine::world::SystemClock;
use sluice_store::sqlite::SqliteStore;
use std::sync::Arc;

const SETUP: &str = "\
gateways:
  local: {provider: mock, environment: dev}
agents:
  scribe: {trust_level: 5, gateway: local}
";

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

fn rewrite(world: &World, name: &str, text: &str) {
    std::fs::write(world.path().join(name), text).unwrap();
}

/// What the audit says of a data directory.
fn audit(world: &World) -> Vec<Value> {
    let store = SqliteStore::open(&world.path().join(".sluice"), Arc::new(SystemClock)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let entries = runtime.block_on(store.entries(0, 1000)).unwrap();
    entries.iter().map(|one| serde_json::from_str(&one.text).unwrap()).collect()
}

#[test]
fn applying_the_same_file_twice_changes_nothing_the_second_time() {
    let world = World::new().file("config.yaml", SETUP);
    check(
        &world,
        &["apply", "-f", "config.yaml"],
        expect![[r#"
        stdout:
        + gateway local
        + agent scribe
        exit 0
    "#]],
    );
    check(
        &world,
        &["apply", "-f", "config.yaml"],
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
    assert_eq!(audit(&world).len(), 2, "nothing to change is nothing to tell");
    check(
        &world,
        &["agents", "list"],
        expect![[r#"
        stdout:
        NAME  STATUS  PHASE  TRUST  AT ONCE  A MONTH  GATEWAY  MODEL
        scribe  idle  production  5  local
        exit 0
    "#]],
    );
}

#[test]
fn a_change_is_shown_field_by_field_and_told_to_the_audit() {
    let world = World::new().file("config.yaml", SETUP);
    world.printed(&["apply", "-f", "config.yaml"]);
    let changed = SETUP.replace("trust_level: 5", "trust_level: 6, model: general");
    rewrite(&world, "config.yaml", &changed);
    check(
        &world,
        &["apply", "-f", "config.yaml", "--dry-run"],
        expect![[r#"
        stderr:
        nothing was written
        stdout:
        ~ agent scribe: trust_level 5 -> 6, model unset -> general
        exit 0
    "#]],
    );
    check(
        &world,
        &["apply", "-f", "config.yaml", "--as", "eve"],
        expect![[r#"
        stdout:
        ~ agent scribe: trust_level 5 -> 6, model unset -> general
        exit 0
    "#]],
    );
    let audit = audit(&world);
    let last = audit.last().unwrap();
    assert_eq!(audit.len(), 3);
    assert_eq!(last["category"], "configuration");
    assert_eq!(last["type"], "agent_changed");
    assert_eq!(last["actor"], "eve");
    assert_eq!(last["resource_id"], "scribe");
    assert_eq!(last["detail"]["before"]["trust_level"], 5);
    assert_eq!(last["detail"]["after"]["trust_level"], 6);
}

#[test]
fn programs_are_told_in_json() {
    let world = World::new().file("config.yaml", SETUP);
    let told = world.json(&["apply", "-f", "config.yaml", "--dry-run", "--json"]);
    assert!(!world.path().join(".sluice").exists(), "looking makes nothing");
    assert_eq!((&told["dry_run"], &told["epoch"]), (&true.into(), &0.into()));
    assert_eq!(told["changes"][0]["kind"], "gateway");
    assert_eq!(told["changes"][1]["change"], "added");
    let told = world.json(&["apply", "-f", "config.yaml", "--json"]);
    assert_eq!(told["epoch"], 1);
    let told = world.json(&["apply", "-f", "config.yaml", "--json"]);
    assert_eq!((&told["changes"], &told["epoch"]), (&serde_json::json!([]), &1.into()));
}

#[test]
fn rubbish_is_refused_with_its_place_and_nothing_is_written() {
    let rubbish = "\
agents:
  scribe: {trust_level: 11, trust: 3}
  reader: {gateway: nowhere}
deployments:
  pay: {workflow: pay, roles: {writer: scrib}}
";
    let world = World::new().file("config.yaml", rubbish);
    check(
        &world,
        &["apply", "-f", "config.yaml"],
        expect![[r#"
        stderr:
        error[bad_value]: 11 is not a whole number from 1 to 10
         --> config.yaml:2:25
          |
        2 |  scribe: {trust_level: 11, trust: 3}
          |  ^^ agents.scribe.trust_level
          |
          = help: write a value that the message allows

        error[unknown_field]: unknown field `trust`
         --> config.yaml:2:29
          |
        2 |  scribe: {trust_level: 11, trust: 3}
          |  ^^^^^ agents.scribe.trust
          |
          = help: did you mean `trust_level`?
        exit 2
    "#]],
    );
    rewrite(&world, "config.yaml", &rubbish.replace("trust_level: 11, trust: 3", ""));
    check(
        &world,
        &["apply", "-f", "config.yaml"],
        expect![[r#"
        stderr:
        error[unknown_row]: there is no gateway `nowhere`
         --> config.yaml:3:21
          |
        3 |  reader: {gateway: nowhere}
          |  ^^^^^^^ agents.reader.gateway
          |
          = help: correct the name, or add the row that is meant. A setup and what is registered already are looked at together. A document can also write its team out

        error[unknown_row]: there is no agent `scrib`
         --> config.yaml:5:40
          |
        5 |  pay: {workflow: pay, roles: {writer: scrib}}
          |  ^^^^^ deployments.pay.roles.writer
          |
          = help: did you mean `scribe`?
        exit 2
    "#]],
    );
    assert!(!world.path().join(".sluice").exists(), "nothing was made");
    let told = world.output(&["apply", "-f", "config.yaml", "--json"]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["errors"][0]["code"], "unknown_row");
    assert_eq!(told["errors"][1]["path"], "deployments.pay.roles.writer");
    for (text, code) in [("[", "syntax_error"), ("", "empty_document"), ("3", "wrong_type")] {
        rewrite(&world, "config.yaml", text);
        let told = world.told(&["apply", "-f", "config.yaml"]);
        assert!(told.contains(&format!("error[{code}]")) && told.ends_with("exit 2\n"), "{told}");
    }
}

#[test]
fn a_file_that_is_not_there_is_refused() {
    let world = World::new()
        .file("a.yaml", "policies: {x.cedar: {file: gone.cedar}}")
        .file("b.yaml", "workflows: [gone.lobsterx.yaml]")
        .file("c.yaml", "policy_dir: gone")
        .file("d.yaml", "lenses: {head: {file: gone.yaml}}");
    for name in ["a.yaml", "b.yaml", "c.yaml", "d.yaml", "gone.yaml"] {
        let told = world.told(&["apply", "-f", name]);
        assert!(told.contains("error[document_unreadable]") && told.contains("gone"), "{told}");
        assert!(told.ends_with("exit 2\n"), "{told}");
    }
}

#[test]
fn prune_removes_what_the_file_does_not_have_and_spares_versions() {
    let world = World::new()
        .file("config.yaml", &format!("{SETUP}workflows: [hello.lobsterx.yaml]\n"))
        .file("hello.lobsterx.yaml", "name: hello\nsteps: [{id: a, command: b}]\n")
        .file("less.yaml", "gateways: {local: {environment: dev}}\n");
    world.printed(&["apply", "-f", "config.yaml"]);
    check(
        &world,
        &["apply", "-f", "less.yaml"],
        expect![[r#"
            stderr:
            warning[agent_without_gateway]: no gateway fits agent `scribe`: `local` has neither `provider` nor `url` (register a gateway with a `provider`, such as `anthropic`, or with the `url` of a bridge; `provider: mock` answers from the script of `--mock`)
            stdout:
            ~ gateway local: provider mock ->
            exit 0
        "#]],
    );
    check(
        &world,
        &["apply", "-f", "less.yaml", "--prune", "--dry-run"],
        expect![[r#"
        stderr:
        nothing was written
        stdout:
        - agent scribe
        exit 0
    "#]],
    );
    check(
        &world,
        &["apply", "-f", "less.yaml", "--prune"],
        expect![[r#"
        stdout:
        - agent scribe
        exit 0
    "#]],
    );
    let left = world.json(&["workflows", "list", "--json"]);
    assert_eq!(left["data"][0]["id"], "hello@1");
}

#[test]
fn what_others_need_cannot_be_pruned() {
    let world = World::new()
        .file(
            "config.yaml",
            &SETUP.replace("local:", "desk:").replace("gateway: local", "gateway: desk"),
        )
        .file("less.yaml", "agents: {scribe: {gateway: desk}}");
    world.printed(&["apply", "-f", "config.yaml"]);
    check(
        &world,
        &["apply", "-f", "less.yaml", "--prune"],
        expect![[r#"
            stderr:
            error[unknown_row]: there is no gateway `desk`
             --> less.yaml:1:28
              |
            1 | agents: {scribe: {gateway: desk}}
              |  ^^^^ agents.scribe.gateway
              |
              = help: correct the name, or add the row that is meant. A setup and what is registered already are looked at together. A document can also write its team out
            exit 2
        "#]],
    );
}

#[test]
fn two_applies_at_once_write_one_change() {
    let world = World::new().file("config.yaml", SETUP);
    world.printed(&["agents", "set", "first", "trust_level=1"]);
    for round in 2..8 {
        let text = SETUP.replace("trust_level: 5", &format!("trust_level: {round}"));
        rewrite(&world, "config.yaml", &text);
        let both = [(); 2].map(|()| world.start(&["apply", "-f", "config.yaml"]));
        let mut told: Vec<String> = both.into_iter().map(crate::world::Running::told).collect();
        told.sort();
        let changed = |told: &str| told.contains("agent scribe") && told.ends_with("exit 0\n");
        assert!(told.iter().any(|one| changed(one)), "{told:?}");
        assert!(told.contains(&"stdout:\nnothing to change\nexit 0\n".to_owned()), "{told:?}");
    }
    let changed = |entry: &&Value| entry["resource_id"] == "scribe";
    assert_eq!(audit(&world).iter().filter(changed).count(), 6, "each change once");
}

#[test]
fn changes_of_different_rows_at_once_are_all_made() {
    let world = World::new();
    world.printed(&["agents", "set", "a", "trust_level=1"]);
    let names = ["b", "c", "d", "e"];
    let started = names.map(|name| world.start(&["agents", "set", name, "trust_level=2"]));
    for one in started {
        let told = one.told();
        assert!(told.contains("stdout:\n+ agent ") && told.ends_with("exit 0\n"), "{told}");
    }
    let rows = world.json(&["agents", "list", "--json"]);
    let ids: Vec<&str> =
        rows["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
}

#[test]
fn the_example_applies_cleanly_twice() {
    let world = World::new();
    let config = root().join("examples/governance/config.yaml");
    let config = config.to_str().unwrap();
    check(
        &world,
        &["apply", "-f", config],
        expect![[r#"
        stdout:
        + price general-large
        + price general-small
        + gateway house
        + agent finder
        + agent scribe
        + role writer
        + workflow brief@1
        + deployment brief
        + budget everything
        + budget scribe-a-day
        + policy default.cedar
        + policy house.cedar
        exit 0
    "#]],
    );
    check(
        &world,
        &["apply", "-f", config, "--prune"],
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "check"],
        expect![[r#"
        stdout:
        active: ok, 9 policies in 2 files
        exit 0
    "#]],
    );
}

#[test]
fn the_guide_shows_a_setup_that_applies() {
    let page = std::fs::read_to_string(root().join("docs/guide/governance.md")).unwrap();
    let blocks = crate::markdown::blocks(&page);
    let setup = blocks.iter().find(|block| block.info == ["yaml", "setup"]).unwrap();
    let policy = blocks.iter().find(|block| block.info == ["cedar"]).unwrap();
    let world = World::new().file("config.yaml", &setup.text);
    world.printed(&["policies", "init", "policies"]);
    rewrite(&world, "policies/house.cedar", &policy.text);
    let told = world.told(&["apply", "-f", "config.yaml"]);
    let shown =
        blocks.iter().find(|block| block.text.starts_with("$ sluice apply -f config.yaml\n"));
    let shown = shown.unwrap().text.split_once('\n').unwrap().1;
    assert_eq!(told, format!("stdout:\n{shown}exit 0\n"));
}
