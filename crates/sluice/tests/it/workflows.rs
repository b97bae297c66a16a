//! `sluice workflows`, and runs of what is registered.

use crate::world::World;
use expect_test::{Expect, expect};

const HELLO: &str = "name: hello\nsteps: [{id: greet, command: Say hello.}]\n";
const PARENT: &str = "name: parent\nsteps: [{id: child, workflow_ref: hello}]\n";
const MOCK: &str = "'*': {text: Hello.}\n";

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

fn rewrite(world: &World, name: &str, text: &str) {
    std::fs::write(world.path().join(name), text).unwrap();
}

fn world() -> World {
    World::new().file("hello.lobsterx.yaml", HELLO).file("mock.yaml", MOCK)
}

#[test]
fn another_text_is_another_version_and_the_same_is_none() {
    let world = world();
    let put = ["workflows", "put", "hello.lobsterx.yaml"];
    check(
        &world,
        &put,
        expect![[r#"
        stdout:
        + workflow hello@1
        exit 0
    "#]],
    );
    check(
        &world,
        &put,
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
    rewrite(&world, "hello.lobsterx.yaml", &HELLO.replace("hello.", "hi."));
    check(
        &world,
        &put,
        expect![[r#"
        stdout:
        + workflow hello@2
        exit 0
    "#]],
    );
    check(
        &world,
        &["workflows", "list"],
        expect![[r#"
        stdout:
        NAME  VERSION  FORMAT  LINES
        hello  1  lobsterx  2
        hello  2  lobsterx  2
        exit 0
    "#]],
    );
    check(
        &world,
        &["workflows", "show", "hello"],
        expect![[r#"
        stdout:
        name: hello
        steps: [{id: greet, command: Say hi.}]
        exit 0
    "#]],
    );
    check(
        &world,
        &["workflows", "show", "hello@1"],
        expect![[r#"
        stdout:
        name: hello
        steps: [{id: greet, command: Say hello.}]
        exit 0
    "#]],
    );
    check(
        &world,
        &["workflows", "show", "hello@9"],
        expect![[r#"
        stderr:
        error[row_unknown]: there is no workflow `hello@9`
         |
         = help: did you mean `hello`?
        exit 2
    "#]],
    );
    check(
        &world,
        &["workflows", "remove", "hello@2"],
        expect![[r#"
        stdout:
        - workflow hello@2
        exit 0
    "#]],
    );
    check(
        &world,
        &["workflows", "remove", "hello"],
        expect![[r#"
        stderr:
        error[row_unknown]: there is no workflow `hello`
         |
         = help: did you mean `hello@1`?
        exit 2
    "#]],
    );
}

#[test]
fn a_version_that_says_its_number_never_changes() {
    let world = world();
    let put = ["workflows", "put", "hello.lobsterx.yaml"];
    rewrite(&world, "hello.lobsterx.yaml", &format!("{HELLO}version: 7\n"));
    check(
        &world,
        &put,
        expect![[r#"
        stdout:
        + workflow hello@7
        exit 0
    "#]],
    );
    check(
        &world,
        &put,
        expect![[r#"
        stdout:
        nothing to change
        exit 0
    "#]],
    );
    rewrite(&world, "hello.lobsterx.yaml", &format!("{HELLO}version: 7\ndescription: x\n"));
    check(
        &world,
        &put,
        expect![[r#"
        stderr:
        error[version_taken]: hello@7 exists already, with different content
         |
         = help: a version never changes: raise `version` in the document
        exit 2
    "#]],
    );
}

#[test]
fn a_document_that_is_refused_is_not_registered() {
    let world = world();
    rewrite(&world, "hello.lobsterx.yaml", "name: hello\nsteps: [{id: a, depends_on: [b]}]\n");
    let told = world.told(&["workflows", "put", "hello.lobsterx.yaml"]);
    assert!(told.contains("error[unknown_step]") && told.ends_with("exit 2\n"), "{told}");
    assert!(!world.path().join(".sluice").exists(), "nothing was made");
}

#[test]
fn two_files_of_one_workflow_need_versions() {
    let world = world()
        .file("again.lobsterx.yaml", HELLO)
        .file("config.yaml", "workflows: [hello.lobsterx.yaml, again.lobsterx.yaml]");
    check(
        &world,
        &["apply", "-f", "config.yaml"],
        expect![[r#"
        stderr:
        error[version_taken]: `hello.lobsterx.yaml` and `again.lobsterx.yaml` are both the workflow `hello`
         |
         = help: give each a `version` of its own
        exit 2
    "#]],
    );
}

#[test]
fn a_registered_workflow_runs_by_its_name() {
    let world = world();
    world.printed(&["workflows", "put", "hello.lobsterx.yaml"]);
    std::fs::remove_file(world.path().join("hello.lobsterx.yaml")).unwrap();
    let run = |name: &str| world.json(&["run", name, "--mock", "mock.yaml", "--json"]);
    assert_eq!(run("hello")["status"], "completed");
    assert_eq!(run("hello@1")["workflow"], "hello");
    check(
        &world,
        &["run", "helo", "--mock", "mock.yaml"],
        expect![[r#"
        stderr:
        error[row_unknown]: there is no workflow `helo`
         |
         = help: did you mean `hello`?
        exit 2
    "#]],
    );
    let told = world.told(&["run", "./hello", "--mock", "mock.yaml"]);
    assert!(told.contains("error[document_unreadable]"), "{told}");
}

#[test]
fn documents_resolve_against_the_registry() {
    let library = "library: {shout: {command: Shout., agent: mock}}\n\
        lenses: {head: {versions: {'1': {template: 'Head of [[text]]'}}}}\n\
        workflows: [hello.lobsterx.yaml]\n";
    let step = "name: loud\nsteps: [{id: a, library_step: shout}]\n";
    let lens = "name: heads\nnodes: [{id: a, lens_id: head, bindings: {text: x}}]\nedges: []\n";
    let world = world()
        .file("config.yaml", library)
        .file("parent.lobsterx.yaml", PARENT)
        .file("loud.lobsterx.yaml", step)
        .file("heads.lens.yaml", lens);
    world.printed(&["apply", "-f", "config.yaml"]);
    std::fs::remove_file(world.path().join("hello.lobsterx.yaml")).unwrap();
    for file in ["parent.lobsterx.yaml", "loud.lobsterx.yaml"] {
        let run = world.json(&["run", file, "--mock", "mock.yaml", "--json"]);
        assert_eq!(run["status"], "completed", "{file}: {run}");
    }
    world.printed(&["workflows", "put", "parent.lobsterx.yaml"]);
    let run = world.json(&["run", "parent", "--mock", "mock.yaml", "--json"]);
    assert_eq!(run["status"], "completed", "{run}");
    let told = world.told(&["run", "heads.lens.yaml", "--mock", "mock.yaml", "--json"]);
    assert!(!told.contains("unknown_lens"), "{told}");
    let named = "library: {other: {command: x}}\n";
    rewrite(&world, "named.yaml", named);
    let args = ["run", "loud.lobsterx.yaml", "--mock", "mock.yaml", "--registry", "named.yaml"];
    let run = world.told(&args);
    assert!(run.ends_with("exit 0\n"), "rows stand beside the named file: {run}");
}
