//! `sluice agents`, and what all rows share.

use crate::world::World;
use expect_test::{Expect, expect};

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

fn world() -> World {
    let world = World::new();
    world.printed(&["agents", "set", "scribe", "trust_level=6", "model=general"]);
    world
}

#[test]
fn rows_are_listed_shown_set_and_removed() {
    let world = world();
    check(
        &world,
        &["agents", "set", "scribe", "rate.limit=5", "rate.window_s=60", "model="],
        expect![[r#"
            stdout:
            ~ agent scribe: model general -> unset, rate unset -> {"limit":5,"window_s":60}
            exit 0
        "#]],
    );
    check(
        &world,
        &["agents", "set", "scribe", "trust_level=6"],
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
    check(
        &world,
        &["agents", "list"],
        expect![[r#"
        stdout:
        NAME  STATUS  PHASE  TRUST  AT ONCE  A MONTH  GATEWAY  MODEL
        scribe  idle  production  6
        exit 0
    "#]],
    );
    check(
        &world,
        &["agents", "show", "scribe"],
        expect![[r#"
        stdout:
        agent scribe
          status  idle
          phase  production
          phase_since_ms  WHEN
          trust_level  6
          rate  limit=5, window_s=60
        exit 0
    "#]],
    );
    check(
        &world,
        &["agents", "remove", "scribe"],
        expect![[r#"
        stdout:
        - agent scribe
        exit 0
    "#]],
    );
    check(
        &world,
        &["agents", "list"],
        expect![[r#"
        stderr:
        no agents
        exit 0
    "#]],
    );
    check(
        &world,
        &["agents", "list", "--json"],
        expect![[r#"
        stdout:
        {"data":[],"meta":{"next_cursor":null}}
        exit 0
    "#]],
    );
}

#[test]
fn what_is_set_is_read_by_the_rules_of_a_file() {
    let world = world();
    check(
        &world,
        &["agents", "set", "scribe", "trust_level=0", "phase=prod", "colour=red"],
        expect![[r#"
            stderr:
            error[bad_value]: `scribe` is not a valid agent
             |
             = note: phase: `prod` is not a phase of an agent (use one of: poc, staging, production, sunset)
             = note: trust_level: 0 is not a whole number from 1 to 10
             = note: colour: unknown field `colour`
             = help: write a value that the message allows
            exit 2
        "#]],
    );
    check(
        &world,
        &["agents", "set", "scribe", "phase_since_ms=5"],
        expect![[r#"
        stderr:
        error[unknown_field]: `scribe` is not a valid agent
         |
         = note: phase_since_ms: unknown field `phase_since_ms` (did you mean `phase`?)
         = help: correct the spelling, or remove the field. Notes for people belong in comments or `description`
        exit 2
    "#]],
    );
    check(
        &world,
        &["agents", "set", "scribe", "gateway=nowhere"],
        expect![[r#"
        stderr:
        error[unknown_row]: the row does not fit the other rows
         |
         = note: agent `scribe`, gateway: there is no gateway `nowhere`
         = help: create that row first
        exit 2
    "#]],
    );
    check(
        &world,
        &["agents", "set", "a b", "trust_level=5"],
        expect![[r#"
        stderr:
        error[bad_name]: `a b` is not a valid agent
         |
         = note: `a b` is not an id (write `a_b`)
         = help: rename it, and every reference to it
        exit 2
    "#]],
    );
    assert_eq!(world.json(&["agents", "show", "scribe", "--json"])["trust_level"], 6);
}

#[test]
fn a_name_that_is_not_there_is_refused() {
    let world = world();
    check(
        &world,
        &["agents", "show", "scrib"],
        expect![[r#"
        stderr:
        error[row_unknown]: there is no agent `scrib`
         |
         = help: did you mean `scribe`?
        exit 2
    "#]],
    );
    for args in [["agents", "remove", "x"], ["agents", "pause", "x"], ["prices", "show", "x"]] {
        let told = world.told(&args);
        assert!(told.contains("error[row_unknown]") && told.ends_with("exit 2\n"), "{told}");
    }
}

#[test]
fn looking_at_nothing_makes_nothing() {
    let world = World::new();
    let told = world.told(&["agents", "list"]);
    assert!(told.contains("error[data_unusable]"), "{told}");
    assert!(!world.path().join(".sluice").exists());
}

#[test]
fn a_paused_agent_stays_paused_when_a_file_is_applied() {
    let world = world().file("config.yaml", "agents: {scribe: {trust_level: 6, model: general}}");
    check(
        &world,
        &["agents", "pause", "scribe"],
        expect![[r#"
        stdout:
        ~ agent scribe: status idle -> paused
        exit 0
    "#]],
    );
    check(
        &world,
        &["agents", "pause", "scribe"],
        expect![[r#"
        stdout:
        nothing to change
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
    check(
        &world,
        &["agents", "resume", "scribe"],
        expect![[r#"
        stdout:
        ~ agent scribe: status paused -> idle
        exit 0
    "#]],
    );
}

#[test]
fn a_trial_begins_with_its_phase_and_can_be_extended() {
    let world = world();
    let told = world.told(&["agents", "extend", "scribe", "30d"]);
    assert!(told.contains("error[not_on_trial]"), "{told}");
    world.printed(&["agents", "promote", "scribe", "poc"]);
    let since = world.json(&["agents", "show", "scribe", "--json"])["phase_since_ms"].as_u64();
    world.printed(&["agents", "extend", "scribe", "30d"]);
    let row = world.json(&["agents", "show", "scribe", "--json"]);
    let day_ms = 24 * 60 * 60 * 1000;
    assert_eq!(row["phase_since_ms"].as_u64(), since);
    assert_eq!(row["poc_until_ms"].as_u64(), since.map(|since| since + 90 * day_ms));
    world.printed(&["agents", "promote", "scribe", "production"]);
    let row = world.json(&["agents", "show", "scribe", "--json"]);
    assert_eq!(row.get("poc_until_ms"), None);
    let told = world.told(&["agents", "promote", "scribe", "prod"]);
    assert!(told.contains("poc, staging, production, sunset"), "{told}");
}

#[test]
fn what_others_name_is_not_removed() {
    let world = world();
    world.printed(&["deployments", "set", "pay", "workflow=pay", "roles.writer=scribe"]);
    check(
        &world,
        &["agents", "remove", "scribe"],
        expect![[r#"
        stderr:
        error[row_in_use]: other rows still refer to what would be removed
         |
         = note: deployment `pay`, roles.writer: there is no agent `scribe`
         = help: change those rows first, or in the same file
        exit 2
    "#]],
    );
    check(
        &world,
        &["deployments", "list"],
        expect![[r#"
        stdout:
        NAME  WORKFLOW  GATEWAY  POSTURE  ROLES
        pay  pay  bounded_autonomous  writer=scribe  active
        exit 0
    "#]],
    );
}

#[test]
fn roles_and_prices_are_rows_like_any_other() {
    let world = World::new();
    world.printed(&["roles", "set", "writer", "max_spend_cents=50", "allowed_environments=[dev]"]);
    let price = ["input_cents_per_mtok=30", "output_cents_per_mtok=150"];
    world.printed(&["prices", "set", "vendor/general", price[0], price[1]]);
    check(
        &world,
        &["roles", "list"],
        expect![[r#"
        stdout:
        NAME  MOST A RUN  ENVIRONMENTS  INPUTS
        writer  $0.50  dev
        exit 0
    "#]],
    );
    check(
        &world,
        &["prices", "list"],
        expect![[r#"
        stdout:
        MODEL  INPUT  OUTPUT  LONGEST
        vendor/general  $0.30  $1.50
        exit 0
    "#]],
    );
    check(
        &world,
        &["prices", "set", "general", price[0]],
        expect![[r#"
        stderr:
        error[missing_field]: `general` is not a valid price
         |
         = note: `output_cents_per_mtok` is missing
         = help: add the field that the message names
        exit 2
    "#]],
    );
}
