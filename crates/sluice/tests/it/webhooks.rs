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
    check(&world, &["webhooks", "list"], expect![[r#""#]]);
    check(&world, &["hooks", "list"], expect![[r#""#]]);
    check(&world, &["webhooks", "show", "pager"], expect![[r#""#]]);
    let off = ["webhooks", "set", "pager", "enabled=false", "events=[*]"];
    check(&world, &off, expect![[r#""#]]);
    // A file that does not say so does not turn it on again.
    let config = root().join("examples/webhooks/config.yaml");
    world.printed(&["apply", "-f", config.to_str().unwrap()]);
    assert_eq!(world.json(&["webhooks", "show", "pager", "--json"])["enabled"], false);
    check(&world, &["workflows", "remove", "credit-check@2"], expect![[r#""#]]);
    world.printed(&["webhooks", "remove", "pager"]);
    world.printed(&["hooks", "remove", "orders"]);
    check(&world, &["webhooks", "list"], expect![[r#""#]]);
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
    check(&world, &["webhooks", "set", "pager", "secret=hunter2hunter2"], expect![[r#""#]]);
    check(&world, &["webhooks", "set", "pager", "events=[run.faild]"], expect![[r#""#]]);
    check(&world, &["hooks", "set", "orders", "workflow=nothing"], expect![[r#""#]]);
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
