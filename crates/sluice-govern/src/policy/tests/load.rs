use super::*;
use crate::limits::{POLICIES_BYTES_MAX, POLICY_FILE_BYTES_MAX};
use expect_test::{Expect, expect};

fn check(texts: &[&str], expected: &Expect) {
    let errors = set(texts).unwrap_err();
    let lines: Vec<String> = errors.iter().map(|error| format!("{error}\n")).collect();
    expected.assert_eq(&lines.concat());
}

const PERMIT: &str = "permit (principal, action, resource);";

#[test]
fn the_default_set_loads_and_permits_every_action() {
    let policies = Policies::permit_all();
    let permits: Vec<&Rule> = policies.rules().iter().filter(|rule| rule.permits).collect();
    assert_eq!(permits.len(), Verb::ALL.len());
    assert!(permits.iter().all(|rule| rule.unconditional));
    let forbids = policies.rules().iter().filter(|rule| !rule.permits);
    assert!(forbids.into_iter().all(|rule| rule.enforcement == Enforcement::Audit));
    assert_eq!(policies.files()[0].1, DEFAULT.1);
}

#[test]
fn a_set_that_permits_no_step_is_refused() {
    check(
        &[],
        &expect![[r#"
        no policy permits dispatch_step, so no step could ever run
    "#]],
    );
    check(
        &["// nothing"],
        &expect![[r#"
        no policy permits dispatch_step, so no step could ever run
    "#]],
    );
    check(
        &["permit (principal, action == Action::\"start_run\", resource);"],
        &expect![[r#"
        no policy permits dispatch_step, so no step could ever run
    "#]],
    );
    check(
        &["permit (principal is User, action, resource);"],
        &expect![[r#"
        no policy permits dispatch_step, so no step could ever run
    "#]],
    );
    check(
        &["forbid (principal, action, resource);"],
        &expect![[r#"
        no policy permits dispatch_step, so no step could ever run
    "#]],
    );
}

#[test]
fn every_policy_that_cannot_be_read_is_told_with_its_line() {
    check(
        &["permit (principal, action);\n\nforbid (principal, action, resource) when { a b };\n"],
        &expect![[r#"
            a.cedar:1: this policy is missing the `resource` variable in the scope
            a.cedar:3: unexpected token `b`
        "#]],
    );
    check(
        &[PERMIT, "permit (principal, action, resource)"],
        &expect![[r#"
        b.cedar:1: unexpected end of input
    "#]],
    );
    check(
        &["permit (principal == ?principal, action, resource);"],
        &expect![[r#"
        a.cedar:1: expected a static policy, got a template containing the slot ?principal
    "#]],
    );
    check(
        &[PERMIT, "\"never ends"],
        &expect![[r#"
        b.cedar:1: invalid token
    "#]],
    );
}

#[test]
fn what_the_schema_does_not_know_is_refused() {
    let policy = |condition: &str| {
        format!("{PERMIT}\nforbid (principal, action, resource) when {{ {condition} }};")
    };
    check(
        &[&policy("context.colour == \"red\"")],
        &expect![[r#"
        a.cedar:2: attribute `colour` in context
    "#]],
    );
    check(
        &[&policy("principal.trust_level > 3")],
        &expect![[r#"
        a.cedar:2: attribute `trust_level` on entity type `User` not found
    "#]],
    );
    check(
        &[&policy("context.cost > 3")],
        &expect![[r#"
        a.cedar:2: unable to guarantee safety of access to optional attribute `cost` in context
    "#]],
    );
    check(
        &[&policy("context.posture == 3")],
        &expect![[r#"
        a.cedar:2: the types Long and String are not compatible
    "#]],
    );
    check(
        &[PERMIT, "forbid (principal == Robot::\"x\", action == Action::\"fly\", resource);"],
        &expect![[r#"
            b.cedar:1: the policy can never match
        "#]],
    );
}

#[test]
fn a_policy_that_can_never_match_is_refused() {
    for scope in [
        "principal == Role::\"writer\", action, resource",
        "principal is User in Role::\"writer\", action, resource",
        "principal, action == Action::\"start_run\", resource is Gateway",
        "principal in Gateway::\"x\", action, resource",
    ] {
        let text = format!("{PERMIT} forbid ({scope});");
        assert!(set(&[&text]).is_err(), "{scope}");
    }
}

#[test]
fn annotations_are_checked_and_misspelt_words_are_answered() {
    let rest = "forbid (principal, action, resource);";
    check(
        &[PERMIT, &format!("@action(\"blok\") {rest}")],
        &expect![[r#"
        b.cedar:1: @action: "blok" is not one of block, require_approval, warn, log; did you mean "block"?
    "#]],
    );
    check(
        &[PERMIT, &format!("@enforcement(\"strict\") {rest}")],
        &expect![[r#"
        b.cedar:1: @enforcement: "strict" is not one of hard, soft, audit
    "#]],
    );
    check(
        &[PERMIT, &format!("@category(\"budgets\") {rest}")],
        &expect![[r#"
        b.cedar:1: @category: "budgets" is not one of trust_boundary, budget, run_creation, deployment, guardrail, config_change; did you mean "budget"?
    "#]],
    );
    check(
        &[PERMIT, &format!("@approver(\"ada\") {rest}")],
        &expect![[r#"
        b.cedar:1: annotation "approver" is not one of id, action, enforcement, category, approvers, quorum, not_initiator, description, static; did you mean "approvers"?
    "#]],
    );
    check(
        &[PERMIT, &format!("@approvers(\"ada\") {rest}")],
        &expect![[r#"
        b.cedar:1: @approvers is for @action("require_approval")
    "#]],
    );
    check(
        &[PERMIT, &format!("@action(\"require_approval\") @approvers(\"ada,,bob\") {rest}")],
        &expect![[r#"
            b.cedar:1: @approvers needs users or groups with commas between them
        "#]],
    );
    for (annotation, why) in [
        ("@quorum(\"2\")", "@quorum is for @action(\"require_approval\")"),
        ("@not_initiator", "@not_initiator is for @action(\"require_approval\")"),
        ("@action(\"require_approval\") @quorum(\"0\")", "@quorum needs a number from 1 to 100"),
        ("@action(\"require_approval\") @quorum(\"two\")", "@quorum needs a number from 1 to"),
        ("@action(\"require_approval\") @quorum", "@quorum needs a number from 1 to"),
        ("@action(\"require_approval\") @not_initiator(\"no\")", "@not_initiator has no value"),
    ] {
        let errors = set(&[PERMIT, &format!("{annotation} {rest}")]).unwrap_err();
        assert!(errors[0].message.contains(why), "{annotation}: {errors:?}");
    }
    check(
        &[PERMIT, &format!("@id(\"\") {rest}")],
        &expect![[r#"
        b.cedar:1: @id needs 1 to 128 visible characters
    "#]],
    );
    check(
        &[&format!("@action(\"warn\") {PERMIT}")],
        &expect![[r#"
        a.cedar:1: @action has no effect on a permit: add a forbid
    "#]],
    );
}

#[test]
fn names_are_unique_in_a_file() {
    let named = format!("@id(\"one\") {PERMIT}");
    check(
        &[&format!("{named}\n{named}")],
        &expect![[r#"
        a.cedar:2: the name a.cedar/one is already used by a.cedar:1
    "#]],
    );
    let policies = set(&[&named, PERMIT, &format!("{PERMIT}\n{PERMIT}")]).unwrap();
    let names: Vec<&str> = policies.rules().iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["a.cedar/one", "b.cedar#1", "c.cedar#1", "c.cedar#2"]);
}

#[test]
fn files_have_different_names() {
    let file = ("a".to_owned(), PERMIT.to_owned());
    let errors = Policies::load(&[file.clone(), file]).unwrap_err();
    assert_eq!(errors[0].to_string(), "a: two files have this name");
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    let long = format!("{PERMIT}//{}", "x".repeat(POLICY_FILE_BYTES_MAX));
    check(
        &[&long],
        &expect![[r#"
        a.cedar: the file is longer than 262144 bytes
    "#]],
    );
    let many: Vec<(String, String)> = (0..=POLICIES_BYTES_MAX / POLICY_FILE_BYTES_MAX)
        .map(|at| (format!("{at:03}"), "/".repeat(POLICY_FILE_BYTES_MAX)))
        .collect();
    let errors = Policies::load(&many).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.contains("together"), "{}", errors[0]);
}

#[test]
fn a_policy_nested_a_hundred_thousand_deep_is_refused() {
    let deep = 100_000;
    for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("if true then ", "")] {
        let body = format!("{}true{}", open.repeat(deep), close.repeat(deep));
        let text = format!("permit (principal, action, resource) when {{ {body} }};");
        let errors = set(&[&text]).unwrap_err();
        assert_eq!(errors.len(), 1, "{open}");
    }
}

/// The largest set within the limits: it must load, and be evaluated on a thread with a
/// stack of the usual size, without a crash.
#[test]
fn what_the_limits_let_through_is_parsed_checked_and_asked() {
    use crate::limits::{POLICY_DEPTH_MAX, POLICY_OPERATORS_MAX};
    let operators = POLICY_OPERATORS_MAX - 2;
    let deep = POLICY_DEPTH_MAX - 2;
    let chains = [
        format!("true{}", " && true".repeat(operators)),
        format!("false{}", " || true".repeat(operators)),
        format!("1{} == 1", " + 1".repeat(operators - 1)),
        format!("{}true", "if true then true else ".repeat(operators / 3)),
        format!("{}true{}", "(".repeat(deep), ")".repeat(deep)),
        format!("{0}1{1} == {0}1{1}", "[".repeat(deep), "]".repeat(deep)),
    ];
    for chain in chains {
        let text = format!("{PERMIT} forbid (principal, action, resource) when {{ {chain} }};");
        let policies = set(&[&text]).unwrap_or_else(|errors| panic!("{chain}: {errors:?}"));
        let asked = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
        let asked = asked.spawn(move || format!("{:?}", policies.matches(&facts()).errors));
        assert_eq!(asked.unwrap().join().unwrap(), "[]", "{chain}");
    }
}

#[test]
fn the_hash_is_of_names_and_texts_whatever_their_order() {
    let one = ("a".to_owned(), PERMIT.to_owned());
    let other = ("b".to_owned(), DEFAULT.1.to_owned());
    let hash = |files: &[(String, String)]| Policies::load(files).unwrap().hash().to_owned();
    let both = hash(&[one.clone(), other.clone()]);
    assert_eq!(both, hash(&[other.clone(), one.clone()]));
    assert_ne!(both, hash(std::slice::from_ref(&one)));
    assert_ne!(both, hash(&[("c".to_owned(), one.1), other]));
}

#[test]
fn a_policy_says_how_many_must_agree_and_whether_the_initiator_may() {
    let rest = "@action(\"require_approval\") forbid (principal, action, resource);";
    let terms = |annotations: &str| {
        let set = set(&[PERMIT, &format!("{annotations} {rest}")]).unwrap();
        (set.rules()[1].quorum, set.rules()[1].not_initiator)
    };
    assert_eq!(terms(""), (1, false));
    assert_eq!(terms("@quorum(\"2\") @not_initiator"), (2, true));
    assert_eq!(terms("@not_initiator(\"true\")"), (1, true));
}
