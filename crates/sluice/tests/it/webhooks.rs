//! `sluice webhooks` and `sluice hooks`: rows, and what is refused in them.

use crate::session::root;
use crate::world::{World, shown};
use expect_test::{Expect, expect};

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

fn example() -> World {
    let world = World::new();
    let config = root().join("examples/webhooks/config.yaml");
    world.printed(&["apply", "-f", config.to_str().unwrap()]);
    world
}

#[test]
fn webhooks_and_hooks_are_listed_changed_and_removed() {
    let world = example();
    check(
        &world,
        &["webhooks", "list"],
        expect![[r#"
        stdout:
        NAME  URL  EVENTS  WORKFLOWS  SECRET
        pager  https://example.com/sluice  run.failed, run.timed_out, approval.requested, budget.alert  credit-check  env:PAGER_SECRET  enabled
        exit 0
    "#]],
    );
    check(
        &world,
        &["hooks", "list"],
        expect![[r#"
        stdout:
        NAME  WORKFLOW  ARGS  SECRET
        orders  credit-check  customer=order.customer  env:ORDERS_SECRET  enabled
        exit 0
    "#]],
    );
    check(
        &world,
        &["webhooks", "show", "pager"],
        expect![[r#"
        stdout:
        webhook pager
          url  https://example.com/sluice
          events  run.failed, run.timed_out, approval.requested, budget.alert
          workflows  credit-check
          secret  env:PAGER_SECRET
          operator_secret  operator_secret
          enabled  enabled
        exit 0
    "#]],
    );
    let off = ["webhooks", "set", "pager", "enabled=false", "events=[\"*\"]"];
    check(
        &world,
        &off,
        expect![[r#"
            stdout:
            ~ webhook pager: events changed, enabled true -> false
            exit 0
        "#]],
    );
    // A file that does not say so does not turn it on again.
    let config = root().join("examples/webhooks/config.yaml");
    world.printed(&["apply", "-f", config.to_str().unwrap()]);
    assert_eq!(world.json(&["webhooks", "show", "pager", "--json"])["enabled"], false);
    check(
        &world,
        &["workflows", "remove", "credit-check@2"],
        expect![[r#"
        stderr:
        error[row_in_use]: other rows still refer to what would be removed
         |
         = note: hook `orders`, workflow: there is no workflow `credit-check` in the registry
         = note: webhook `pager`, workflows.0: there is no workflow `credit-check` in the registry
         = help: change those rows first, or in the same file
        exit 2
    "#]],
    );
    world.printed(&["webhooks", "remove", "pager"]);
    world.printed(&["hooks", "remove", "orders"]);
    check(
        &world,
        &["webhooks", "list"],
        expect![[r#"
        stderr:
        no webhooks
        exit 0
    "#]],
    );
}

#[test]
fn a_literal_secret_is_refused_and_nowhere_repeated() {
    let world = example();
    for args in [
        ["webhooks", "set", "pager", "secret=hunter2hunter2"],
        ["hooks", "set", "orders", "secret=hunter2hunter2"],
        ["webhooks", "set", "pager", "url=https://ada:hunter2hunter2@example.com/"],
    ] {
        let output = world.output(&args);
        let told = shown(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    check(
        &world,
        &["webhooks", "set", "pager", "secret=hunter2hunter2"],
        expect![[r#"
        stderr:
        error[bad_value]: `pager` is not a valid webhook
         |
         = note: secret: this is not a reference to a secret: write `secret:NAME`, or `env:NAME` or `file:PATH` as the operator; the secret itself does not belong here (the operator declares it under `[secrets.NAME]` in sluice.toml)
         = help: write a value that the message allows
        exit 2
    "#]],
    );
    check(
        &world,
        &["webhooks", "set", "pager", "events=[run.faild]"],
        expect![[r#"
        stderr:
        error[bad_value]: `pager` is not a valid webhook
         |
         = note: events[0]: there is no event `run.faild` (did you mean `run.failed`?)
         = help: write a value that the message allows
        exit 2
    "#]],
    );
    check(
        &world,
        &["hooks", "set", "orders", "workflow=nothing"],
        expect![[r#"
        stderr:
        error[unknown_row]: the row does not fit the other rows
         |
         = note: hook `orders`, workflow: there is no workflow `nothing` in the registry
         = help: register it: `workflows: [FILE]` in the setup, or `sluice workflows put FILE`
        exit 2
    "#]],
    );
}

#[test]
fn a_moderators_token_is_a_reference() {
    let letter = "name: letter\nsteps: [{id: a, command: go, moderation: both}]\n";
    let world = World::new().file("letter.lobsterx.yaml", letter).file("mock.yaml", "a: {text: x}");
    let args = [
        "run",
        "letter.lobsterx.yaml",
        "--mock",
        "mock.yaml",
        "--moderation",
        "http://127.0.0.1:9/",
    ];
    for token in ["hunter2hunter2", "env:NOBODY_SETS_THIS", "file:/nowhere/at/all"] {
        let mut command = world.command(&args);
        let output = command.env("SLUICE_MODERATION_TOKEN", token).output().unwrap();
        let told = shown(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("moderation_token") && !told.contains("hunter2"), "{told}");
    }
}
