//! `sluice gateways`.

use crate::world::World;
use expect_test::{Expect, expect};
use sluice_core::hash::Hash;

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

fn world() -> World {
    let world = World::new();
    world.printed(&["gateways", "set", "local", "provider=mock", "default=true"]);
    world
}

#[test]
fn gateways_are_listed_with_what_is_special_about_them() {
    let world = world();
    world.printed(&["gateways", "set", "far", "url=https://far.example", "min_trust_level=7"]);
    world.printed(&["gateways", "pause", "far"]);
    check(
        &world,
        &["gateways", "list"],
        expect![[r#"
            stdout:
            NAME  HEALTH  PROVIDER  ENVIRONMENT  LEAST TRUST  RANK  URL
            far  offline  local  7  0  https://far.example  paused
            local  healthy  mock  local  1  0  default
            exit 0
        "#]],
    );
    check(
        &world,
        &["gateways", "resume", "far"],
        expect![[r#"
        stdout:
        ~ gateway far: paused true -> false
        exit 0
    "#]],
    );
}

#[test]
fn there_is_one_default_gateway() {
    check(
        &world(),
        &["gateways", "set", "other", "default=true"],
        expect![[r#"
        stderr:
        error[conflicting_rows]: the row does not fit the other rows
         |
         = note: gateway `other`, default: `local` is the default gateway too
         = help: set `default: false` in one of them
        exit 2
    "#]],
    );
}

#[test]
fn a_token_is_shown_once_and_only_its_hash_is_kept() {
    let world = world();
    let first = world.printed(&["gateways", "token", "local"]);
    let second = world.json(&["gateways", "token", "local", "--json"]);
    let second = second["token"].as_str().unwrap();
    assert_ne!(first.trim(), second);
    assert!(second.starts_with("gwt_") && second.len() == 68, "{second}");
    let row = world.printed(&["gateways", "show", "local", "--json"]);
    assert!(!row.contains(second) && !row.contains(first.trim()));
    assert!(row.contains(&Hash::of(second.as_bytes()).to_string()), "{row}");
    let told = world.told(&["gateways", "token", "nowhere"]);
    assert!(told.contains("error[row_unknown]") && !told.contains("gwt_"), "{told}");
}

#[test]
fn everything_can_be_stopped_at_once() {
    let world = world();
    check(
        &world,
        &["gateways", "pause", "--all"],
        expect![[r#"
        stdout:
        + switch all
        exit 0
    "#]],
    );
    check(
        &world,
        &["gateways", "resume", "--all"],
        expect![[r#"
        stdout:
        ~ switch all: held true -> false
        exit 0
    "#]],
    );
    let told = world.told(&["gateways", "pause"]);
    assert!(told.ends_with("exit 2\n"), "{told}");
    let told = world.told(&["gateways", "pause", "local", "--all"]);
    assert!(told.ends_with("exit 2\n"), "{told}");
}
