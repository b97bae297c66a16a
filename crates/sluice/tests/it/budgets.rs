//! `sluice budgets`.

use crate::world::World;
use expect_test::{Expect, expect};

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

#[test]
fn budgets_are_listed_with_what_is_left() {
    let world = World::new();
    let all = ["scope=global", "period=monthly", "amount_cents=5000"];
    world.printed(&["budgets", "set", "everything", all[0], all[1], all[2]]);
    world.printed(&["agents", "set", "scribe", "trust_level=5"]);
    let one = ["scope=agent", "of=scribe", "period=daily", "amount_cents=12.5", "enabled=false"];
    world.printed(&["budgets", "set", "scribe", one[0], one[1], one[2], one[3], one[4]]);
    check(
        &world,
        &["budgets", "list"],
        expect![[r#"
        stdout:
        NAME  COUNTS  PERIOD  CAP  SPENT  RESERVED  LEFT
        everything  global  monthly  $50.00  $0.00  $0.00  $50.00
        scribe  agent scribe  daily  $0.125  $0.00  $0.00  $0.125  off
        exit 0
    "#]],
    );
    check(
        &world,
        &["budgets", "reopen", "everything"],
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
    let row = &world.json(&["budgets", "list", "--json"])["data"][0];
    assert_eq!((&row["left"], &row["closed"]), (&"50.00".into(), &false.into()));
}

#[test]
fn a_budget_that_makes_no_sense_is_refused() {
    let world = World::new();
    check(
        &world,
        &["budgets", "set", "all", "scope=global", "amount_cents=-1"],
        expect![[r#"
        stderr:
        error[missing_field]: `all` is not a valid budget
         |
         = note: `period` is missing
         = note: amount_cents: an amount of money cannot be negative
         = help: add the field that the message names
        exit 2
    "#]],
    );
    let of = ["scope=agent", "of=nobody", "period=daily", "amount_cents=1"];
    check(
        &world,
        &["budgets", "set", "one", of[0], of[1], of[2], of[3]],
        expect![[r#"
        stderr:
        error[unknown_row]: the row does not fit the other rows
         |
         = note: budget `one`, of: there is no agent `nobody`
         = help: create that row first
        exit 2
    "#]],
    );
    world.printed(&["agents", "set", "scribe", "trust_level=5"]);
    let told = world.told(&["budgets", "reopen", "all"]);
    assert!(told.contains("error[row_unknown]"), "{told}");
}
