//! Lenses in the registry: versions are added, and nodes are pinned to them.

use crate::world::World;
use expect_test::{Expect, expect};

const SETUP: &str = "
lenses:
  shout: {versions: {'1': {template: 'Shout [[text]]!'}}}
";
const FLOW: &str = "
name: loud
nodes: [{id: a, lens_id: shout}, {id: b, lens_id: shout}]
edges: [{id: e, source_node_id: a, target_node_id: b, target_param_label: text}]
";

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

fn rewrite(world: &World, name: &str, text: &str) {
    std::fs::write(world.path().join(name), text).unwrap();
}

fn world() -> World {
    let world = World::new()
        .file("setup.yaml", SETUP)
        .file("loud.lens.yaml", FLOW)
        .file("mock.yaml", "a: {text: HO}\nb: [{error: broken}, {text: HEY}]\n");
    world.printed(&["apply", "-f", "setup.yaml"]);
    world
}

#[test]
fn a_version_never_changes_and_others_are_added() {
    let world = world();
    rewrite(&world, "setup.yaml", &SETUP.replace("Shout", "Whisper"));
    check(
        &world,
        &["apply", "-f", "setup.yaml"],
        expect![[r#"
        stderr:
        error[version_taken]: version `1` of the lens `shout` exists already, with different content
         |
         = help: a version never changes: write the new content under another id
        exit 2
    "#]],
    );
    rewrite(&world, "setup.yaml", &SETUP.replace("'1'", "'2'").replace("Shout", "Whisper"));
    check(
        &world,
        &["apply", "-f", "setup.yaml", "--prune"],
        expect![[r#"
        stdout:
        ~ lens shout: versions.2 unset -> {"template":"Whisper [[text]]!"}
        exit 0
    "#]],
    );
    check(
        &world,
        &["lenses", "list"],
        expect![[r#"
        stdout:
        NAME  HEAD  VERSIONS
        shout  2  1, 2
        exit 0
    "#]],
    );
    check(
        &world,
        &["lenses", "show", "shout"],
        expect![[r#"
        stdout:
        lens shout

        version 1
          Shout [[text]]!

        version 2 (head)
          Whisper [[text]]!
        exit 0
    "#]],
    );
    rewrite(&world, "setup.yaml", "prices: {}\n");
    check(
        &world,
        &["apply", "-f", "setup.yaml", "--prune"],
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
}

/// The prompt of a node.
fn prompt(state: &serde_json::Value, node: usize) -> String {
    state["node_results"][node]["prompt"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_node_stays_with_the_head_its_run_began_with() {
    let world = world();
    let run = ["run", "loud.lens.yaml", "--mock", "mock.yaml", "--arg", "text=ho", "--json"];
    let failed = world.output(&run);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let first = world.newest();
    assert_eq!(prompt(&world.state(&first), 0), "Shout ho!");
    rewrite(&world, "setup.yaml", &SETUP.replace("'1'", "'2'").replace("Shout", "Whisper"));
    world.printed(&["apply", "-f", "setup.yaml"]);
    // The run itself, taken up again.
    world.printed(&["runs", "retry", &first, "--mock", "mock.yaml"]);
    assert_eq!(prompt(&world.state(&first), 1), "Shout HO!");
    // A run made from it.
    world.output(&["runs", "restart", &first, "--from", "a", "--mock", "mock.yaml", "--yes"]);
    let second = world.newest();
    assert_ne!(second, first);
    assert_eq!(prompt(&world.state(&second), 0), "Shout ho!");
    // A new one has the new head.
    world.output(&run);
    assert_eq!(prompt(&world.state(&world.newest()), 0), "Whisper ho!");
}
