//! Labels: which ones each node needs, and what binds them.

use super::Script;
use expect_test::expect;

/// An entry node `first` with the unbound label `root`, and after it `second` with the lens
/// `version`, this config and this label on the edge.
fn second(version: &str, config: &str, label: &str) -> String {
    bound("", version, config, label)
}

fn bound(top: &str, version: &str, config: &str, label: &str) -> String {
    Script::lens(&format!(
        "
        name: g
        {top}
        lenses:
          one: {{versions: {{1: {{template: '[[Root]] [[maybe!]] [ aside ]'}}}}}}
          two:
            versions:
              1: {version}
        nodes:
          - {{id: first, lens_id: one}}
          - {{id: second, lens_id: two, config: {{{config}}}}}
        edges:
          - {{source_node_id: first, target_node_id: second, target_param_label: {label}}}
        "
    ))
    .transcript()
}

const TOPIC: &str = "{template: 'about [[Main Topic]]'}";

#[test]
fn a_required_placeholder_needs_a_binding() {
    expect![[r#"
        10:10 missing_binding nodes[1]: nothing binds `Main Topic` of node `second` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
    "#]].assert_eq(&second(TOPIC, "", "other"));
    expect![[r#"
        10:10 missing_binding nodes[1]: nothing binds `Main Topic` of node `second` (did you mean `main_topik`?)
    "#]].assert_eq(&second(TOPIC, "", "main_topik"));
}

#[test]
fn an_edge_or_an_override_binds_in_whatever_spelling() {
    for label in ["Main Topic", "main_topic", "' MAIN topic '", "main topic"] {
        assert_eq!(second(TOPIC, "", label), "ok\n", "{label}");
        assert_eq!(second(TOPIC, &format!("param_overrides: {{{label}: 1}}"), "x"), "ok\n");
    }
    assert_ne!(second(TOPIC, "", "maintopic"), "ok\n");
    assert_ne!(second(TOPIC, "", "main-topic"), "ok\n");
}

#[test]
fn every_form_of_placeholder_that_is_certain_is_required() {
    for template in ["[[x]]", "{{x}}", "[[ x ]]", "[[x:string]]", "{{x}} [[x!]]"] {
        let told = second(&format!("{{template: '{template}'}}"), "", "y");
        assert!(told.contains("missing_binding nodes[1]: nothing binds `x`"), "{template}: {told}");
    }
    for template in ["[[x!]]", "[[x:string!]]", "[ x ]", "[x]", "{x}", "[ x ](http://a)", "go"] {
        assert_eq!(second(&format!("{{template: '{template}'}}"), "", "y"), "ok\n", "{template}");
    }
}

#[test]
fn a_contract_field_is_optional_unless_it_says_otherwise() {
    let field = |field: &str| {
        second(
            &format!("{{template: go, input_contract: {{fields: {{Long Name: {field}}}}}}}"),
            "",
            "y",
        )
    };
    assert_eq!(field("{type: string}"), "ok\n");
    expect![[r#"
        10:10 missing_binding nodes[1]: nothing binds `Long Name` of node `second` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
    "#]].assert_eq(&field("{required: true}"));
    assert_eq!(field("{required: false}"), "ok\n");
    let both = |required: &str| {
        let contract = format!("{{fields: {{X: {{required: {required}}}}}}}");
        second(&format!("{{template: '[[x]]', input_contract: {contract}}}"), "", "y")
    };
    assert_eq!(both("false"), "ok\n", "the contract calls it optional");
    assert_eq!(both("true").matches("missing_binding").count(), 1, "told once");
    let marked = "{template: '[[x!]]', input_contract: {fields: {x: {required: true}}}}";
    assert!(second(marked, "", "y").contains("missing_binding"), "the contract has the last word");
}

#[test]
fn of_a_group_one_label_is_needed() {
    let group = |label: &str| {
        let contract = "{requireAnyOf: [[Url, text]], fields: {url: {required: false}}}";
        second(&format!("{{template: go, input_contract: {contract}}}"), "", label)
    };
    expect![[r#"
        10:10 missing_binding nodes[1]: nothing binds `Url|text` of node `second` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
    "#]].assert_eq(&group("y"));
    assert_eq!(group("URL"), "ok\n");
    assert_eq!(group("text"), "ok\n");
    assert_eq!(group("root"), group("y"));
}

#[test]
fn what_entry_nodes_leave_open_is_a_root_input_for_all() {
    let needs = |label: &str| second(&format!("{{template: '[[{label}]]'}}"), "", "y");
    assert_eq!(needs("root"), "ok\n");
    assert_eq!(needs("maybe"), "ok\n", "optional, but a run may give it");
    expect![[r#"
        10:10 missing_binding nodes[1]: nothing binds `aside` of node `second` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
    "#]].assert_eq(&needs("aside"));
}

#[test]
fn what_an_entry_node_sets_itself_is_no_root_input() {
    Script::lens(
        r"
        name: g
        lenses: {l: {versions: {1: {template: '[[topic]]'}}}}
        nodes:
          - {id: first, lens_id: l, config: {param_overrides: {Topic: x}}}
          - {id: second, lens_id: l}
        edges:
          - {source_node_id: first, target_node_id: second}
        ",
    )
    .check(expect![[r#"
        5:10 missing_binding nodes[1]: nothing binds `topic` of node `second` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
    "#]]);
}

#[test]
fn declared_arguments_are_all_that_a_run_may_give() {
    let with = |args: &str| bound(&format!("args: {{{args}}}"), TOPIC, "", "y");
    expect![[r#"
        9:10 missing_binding nodes[0]: nothing binds `Root` of node `first` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
        10:10 missing_binding nodes[1]: nothing binds `Main Topic` of node `second` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
    "#]].assert_eq(&with("other: string"));
    assert_eq!(with("main_topic: string, root: {required: true}"), "ok\n");
    assert_eq!(with("Main_Topic: string, ROOT: ~"), "ok\n");
    assert!(bound("args: {}", TOPIC, "", "main topic").contains("`Root` of node `first`"));
}

#[test]
fn an_edge_with_a_condition_binds() {
    Script::lens(
        r"
        name: g
        lenses: {a: {versions: {1: {template: go}}}, b: {versions: {1: {template: '[[x]]'}}}}
        nodes: [{id: a, lens_id: a}, {id: b, lens_id: b}]
        edges: [{source_node_id: a, target_node_id: b, target_param_label: X, condition: {type: truthy}}]
        ",
    )
    .check(expect![[r#"
        ok
    "#]]);
}

#[test]
fn two_spellings_of_one_label_are_refused_where_their_order_would_count() {
    let overrides = second("{template: go}", "param_overrides: {Topic: 1, topic: 2}", "y");
    let args = bound("args: {Topic: string, topic: string, root: ~}", "{template: go}", "", "y");
    expect![[r#"
        10:69 duplicate_name nodes[1].config.param_overrides: `topic` and `Topic` are one label (labels ignore case and blanks; keep one of them)
        2:23 duplicate_name args: `topic` and `Topic` are one label (labels ignore case and blanks; keep one of them)
    "#]].assert_eq(&(overrides + &args));
}
