//! `sluice policies`.

use crate::world::World;
use expect_test::{Expect, expect};

const PERMIT: &str = "@id(\"all\")\npermit (principal, action, resource);\n";
const NO_MAIL: &str = "@id(\"no-mail\")\n\
    forbid (principal, action == Action::\"use_tool\", resource == Tool::\"mail\");\n";

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

/// A directory with a set that works, in force.
fn world() -> World {
    let world = World::new();
    std::fs::create_dir(world.path().join("rules")).unwrap();
    let world = world
        .file("rules/base.cedar", PERMIT)
        .file("rules/mail.cedar", NO_MAIL)
        .file("config.yaml", "policy_dir: rules\n");
    world.printed(&["apply", "-f", "config.yaml"]);
    world
}

#[test]
fn the_default_set_is_written_out_and_works() {
    let world = World::new();
    check(
        &world,
        &["policies", "init"],
        expect![[r#"
        stdout:
        policies/default.cedar
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "init"],
        expect![[r#"
        stderr:
        error[file_exists]: `policies/default.cedar` is there already
         |
         = help: name another directory, or move the file away first
        exit 2
    "#]],
    );
    check(
        &world,
        &["policies", "check", "policies"],
        expect![[r#"
        stdout:
        files: ok, 6 policies in 1 file
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "check"],
        expect![[r#"
        stdout:
        active: ok, 6 policies in 1 file
        exit 0
    "#]],
    );
}

#[test]
fn policies_are_listed_and_shown() {
    let world = world();
    check(
        &world,
        &["policies", "list"],
        expect![[r#"
        stdout:
        NAME  SET  LINES
        base.cedar  active  2
        mail.cedar  active  2
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "show", "mail.cedar"],
        expect![[r#"
        stdout:
        @id("no-mail")
        forbid (principal, action == Action::"use_tool", resource == Tool::"mail");
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "check"],
        expect![[r#"
        stdout:
        active: ok, 2 policies in 2 files
        exit 0
    "#]],
    );
}

#[test]
fn broken_policies_are_refused_everywhere() {
    let world = world()
        .file("typo.cedar", &NO_MAIL.replace("use_tool", "use_tol"))
        .file("words.cedar", &format!("@action(\"stop\")\n{NO_MAIL}"))
        .file("open.cedar", "permit (principal,")
        .file("typo.yaml", "policies: {typo.cedar: {file: typo.cedar}}")
        .file("shadow.yaml", "policies: {typo.cedar: {file: typo.cedar, set: shadow}}");
    for file in ["typo.cedar", "words.cedar", "open.cedar"] {
        let told = world.told(&["policies", "check", "rules/base.cedar", file]);
        assert!(told.contains("error[policies_refused]") && told.contains(file), "{told}");
        assert!(told.ends_with("exit 2\n"), "{told}");
        let told = world.output(&["policies", "check", "rules/base.cedar", file, "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!((&report["ok"], told.status.code()), (&false.into(), Some(2)));
    }
    for args in [&["apply", "-f", "typo.yaml"][..], &["apply", "-f", "shadow.yaml"]] {
        let told = world.told(args);
        assert!(told.contains("error[policies_refused]") && told.ends_with("exit 2\n"), "{told}");
    }
    let told = world.told(&["policies", "shadow", "typo.cedar"]);
    assert!(told.contains("error[policies_refused]"), "{told}");
    let list = world.json(&["policies", "list", "--json"]);
    assert_eq!(list["data"].as_array().unwrap().len(), 2, "nothing was written");
}

#[test]
fn without_policies_the_default_set_is_named() {
    let world = World::new();
    world.printed(&["agents", "set", "scribe", "trust_level=5"]);
    check(
        &world,
        &["policies", "list"],
        expect![[r#"
        stderr:
        no policies
        the default set is in force; `sluice policies init` writes it out
        exit 0
    "#]],
    );
}

#[test]
fn an_active_set_cannot_become_empty() {
    let world = world().file("none.yaml", "agents: {}\n");
    check(
        &world,
        &["policies", "remove", "mail.cedar"],
        expect![[r#"
        stdout:
        - policy mail.cedar
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "remove", "base.cedar"],
        expect![[r#"
        stderr:
        error[policies_refused]: no active policy would be left
         |
         = help: put other policies in their place; `sluice policies init` writes a set
        exit 2
    "#]],
    );
    let told = world.told(&["apply", "-f", "none.yaml", "--prune"]);
    assert!(told.contains("error[policies_refused]"), "{told}");
}

#[test]
fn a_set_that_permits_no_step_is_refused() {
    let world = World::new().file(
        "mail.yaml",
        &format!(
            "policies:\n  mail.cedar:\n    text: |\n      {}",
            NO_MAIL.replace('\n', "\n      ")
        ),
    );
    check(
        &world,
        &["apply", "-f", "mail.yaml"],
        expect![[r#"
        stderr:
        error[policies_refused]: the policies cannot be used
         |
         = note: no policy permits dispatch_step, so no step could ever run
         = help: correct the policies; `sluice policies init` writes a set that works
        exit 2
    "#]],
    );
}

#[test]
fn a_set_in_shadow_stands_beside_the_active_one() {
    let world = world();
    check(
        &world,
        &["policies", "shadow", "rules"],
        expect![[r#"
        stdout:
        + policy shadow/base.cedar
        + policy shadow/mail.cedar
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "list"],
        expect![[r#"
        stdout:
        NAME  SET  LINES
        base.cedar  active  2
        mail.cedar  active  2
        shadow/base.cedar  shadow  2
        shadow/mail.cedar  shadow  2
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "diff", "active", "shadow"],
        expect![[r#"
        stdout:
        no policy differs
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "shadow", "rules/base.cedar"],
        expect![[r#"
        stdout:
        - policy shadow/mail.cedar
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "diff", "active", "shadow"],
        expect![[r#"
        stdout:
        - policy mail.cedar/no-mail
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "shadow", "off"],
        expect![[r#"
        stdout:
        - policy shadow/base.cedar
        exit 0
    "#]],
    );
    let told = world.told(&["policies", "diff", "active", "shadow"]);
    assert!(told.contains("no policies are in shadow") && told.ends_with("exit 2\n"), "{told}");
}

#[test]
fn sets_are_compared_policy_by_policy() {
    let changed = NO_MAIL.replace("mail\"", "post\"");
    let world = world().file("changed.cedar", &changed).file("more.cedar", PERMIT);
    std::fs::create_dir(world.path().join("other")).unwrap();
    std::fs::write(world.path().join("other/base.cedar"), PERMIT).unwrap();
    std::fs::write(
        world.path().join("other/mail.cedar"),
        NO_MAIL.replace("Tool::\"mail", "Tool::\"post"),
    )
    .unwrap();
    std::fs::write(world.path().join("other/new.cedar"), NO_MAIL).unwrap();
    check(
        &world,
        &["policies", "diff", "rules", "other"],
        expect![[r#"
        stdout:
        ~ policy mail.cedar/no-mail
        + policy new.cedar/no-mail
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "diff", "other", "active", "--json"],
        expect![[r#"
        stdout:
        {"policies":[{"policy":"mail.cedar/no-mail","change":"changed"},{"policy":"new.cedar/no-mail","change":"removed"}],"decisions":null}
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "diff", "active", "rules", "--decisions"],
        expect![[r#"
        stdout:
        no policy differs
        0 of 0 decisions would differ
        exit 0
    "#]],
    );
    check(
        &world,
        &["policies", "test", "--with", "other"],
        expect![[r#"
        stdout:
        0 of 0 decisions would differ
        exit 0
    "#]],
    );
}

#[test]
fn policies_say_who_may_change_rows() {
    let only_ada = "@id(\"only-ada\")\nforbid (principal, action == Action::\"change_config\", resource)\n\
        unless { principal == User::\"ada\" };\n";
    let world = world().file("rules/who.cedar", only_ada);
    world.printed(&["apply", "-f", "config.yaml"]);
    check(
        &world,
        &["agents", "set", "scribe", "trust_level=5", "--as", "eve"],
        expect![[r#"
        stderr:
        error[change_refused]: policies do not let eve change this
         |
         = note: agent/scribe: policy who.cedar/only-ada forbids it
         = help: `sluice policies list` shows the policies in force
        exit 2
    "#]],
    );
    check(
        &world,
        &["agents", "set", "scribe", "trust_level=5", "--as", "ada"],
        expect![[r#"
            stderr:
            warning[agent_without_gateway]: no gateway fits agent `scribe`: no gateway is registered (register a gateway with a `provider`, such as `anthropic`, or with the `url` of a bridge; `provider: mock` answers from the script of `--mock`)
            stdout:
            + agent scribe
            exit 0
        "#]],
    );
}
