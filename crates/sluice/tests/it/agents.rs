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
        expect![[""]],
    );
    check(&world, &["agents", "set", "scribe", "trust_level=6"], expect![[""]]);
    check(&world, &["agents", "list"], expect![[""]]);
    check(&world, &["agents", "show", "scribe"], expect![[""]]);
    check(&world, &["agents", "remove", "scribe"], expect![[""]]);
    check(&world, &["agents", "list"], expect![[""]]);
    check(&world, &["agents", "list", "--json"], expect![[""]]);
}

#[test]
fn what_is_set_is_read_by_the_rules_of_a_file() {
    let world = world();
    check(
        &world,
        &["agents", "set", "scribe", "trust_level=0", "phase=prod", "colour=red"],
        expect![[""]],
    );
    check(&world, &["agents", "set", "scribe", "phase_since_ms=5"], expect![[""]]);
    check(&world, &["agents", "set", "scribe", "gateway=nowhere"], expect![[""]]);
    check(&world, &["agents", "set", "a b", "trust_level=5"], expect![[""]]);
    assert_eq!(world.json(&["agents", "show", "scribe", "--json"])["trust_level"], 6);
}

#[test]
fn a_name_that_is_not_there_is_refused() {
    let world = world();
    check(&world, &["agents", "show", "scrib"], expect![[""]]);
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
    check(&world, &["agents", "pause", "scribe"], expect![[""]]);
    check(&world, &["agents", "pause", "scribe"], expect![[""]]);
    check(&world, &["apply", "-f", "config.yaml"], expect![[""]]);
    check(&world, &["agents", "resume", "scribe"], expect![[""]]);
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
    check(&world, &["agents", "remove", "scribe"], expect![[""]]);
    check(&world, &["deployments", "list"], expect![[""]]);
}

#[test]
fn roles_and_prices_are_rows_like_any_other() {
    let world = World::new();
    world.printed(&["roles", "set", "writer", "max_spend_cents=50", "allowed_environments=[dev]"]);
    let price = ["input_cents_per_mtok=30", "output_cents_per_mtok=150"];
    world.printed(&["prices", "set", "vendor/general", price[0], price[1]]);
    check(&world, &["roles", "list"], expect![[""]]);
    check(&world, &["prices", "list"], expect![[""]]);
    check(&world, &["prices", "set", "general", price[0]], expect![[""]]);
}
