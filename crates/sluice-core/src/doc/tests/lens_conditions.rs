//! When edges are active, and what routers and validators require.

use super::Script;
use expect_test::expect;

/// Nodes `a`, `b` and `value`, and one edge from `a` to `b` with this condition.
fn condition(written: &str) -> Script {
    Script::lens(&format!(
        "
        name: g
        lenses: {{l: {{versions: {{1: {{template: go}}}}}}}}
        nodes: [{{id: a, lens_id: l}}, {{id: b, lens_id: l}}, {{id: other, lens_id: l}}, {{id: value, lens_id: l}}]
        edges:
          - id: e
            source_node_id: a
            target_node_id: b
            condition: {written}
        "
    ))
    .show("steps.1.edges.0.condition")
    .show("steps.1.depends_on")
}

#[test]
fn conditions_of_every_type() {
    for (written, plan) in [
        ("{type: equals, value: 5}", r#"{"type":"equals","value":5}"#),
        ("{type: equals, value: ''}", r#"{"type":"equals","value":""}"#),
        ("{type: contains, value: 5}", r#"{"type":"contains","value":5}"#),
        ("{type: present, value: 1}", r#"{"type":"present"}"#),
        ("{type: contains, value: x}", r#"{"type":"contains","value":"x"}"#),
        ("{type: present}", r#"{"type":"present"}"#),
        ("{type: truthy, value: ~}", r#"{"type":"truthy"}"#),
        ("~", "-"),
    ] {
        let expected =
            format!("ok\nsteps.1.edges.0.condition = {plan}\nsteps.1.depends_on = [\"a\"]\n");
        let told = condition(written).transcript();
        assert!(told.ends_with(&expected) || told == expected, "{written}: {told}");
    }
}

#[test]
fn an_expression_makes_the_target_wait_for_every_node_it_names() {
    condition("{type: expression, expr: 'other.x == 1 and value > 2 and a.y'}").check(expect![[
        r#"
            ok
            steps.1.edges.0.condition = {"expr":"other.x == 1 and value > 2 and a.y"}
            steps.1.depends_on = ["a","other"]
        "#
    ]]);
    condition("{type: expression, expr: 'value == 1'}").check(expect![[r#"
        ok
        steps.1.edges.0.condition = {"expr":"value == 1"}
        steps.1.depends_on = ["a"]
    "#]]);
    condition("{type: expression, expr: '$value.x == 1'}").check(expect![[r#"
        ok
        steps.1.edges.0.condition = {"expr":"$value.x == 1"}
        steps.1.depends_on = ["a","value"]
    "#]]);
    condition("{type: expression, expr: 'b.x == 1'}").check(expect![[r#"
        3:35 cycle_detected nodes[1]: the dependencies form a cycle: b -> b (each step in the list waits for the next one; remove one of the dependencies)
    "#]]);
}

#[test]
fn what_the_edge_carries_is_no_node_called_value() {
    Script::lens(
        r"
        name: g
        lenses: {l: {versions: {1: {template: go}}}}
        nodes: [{id: a, lens_id: l}, {id: value, lens_id: l}]
        edges:
          - {source_node_id: a, target_node_id: value, condition: {type: expression, expr: value > 1}}
        ",
    )
    .order()
    .check(expect![[r#"
        ok
        a <-
        value <- a
        wave: a
        wave: value
    "#]]);
}

#[test]
fn a_condition_has_a_known_type_and_what_it_needs() {
    let told: String = [
        "{type: equal, value: 1}",
        "{type: regex, value: 1}",
        "{value: 1}",
        "{type: equals}",
        "{type: equals, value: ~}",
        "{type: contains}",
        "{type: expression}",
        "{type: expression, expr: 'a =='}",
        "{type: expression, expr: 5}",
        "{type: present, expr: value}",
        "{type: equals, value: 1, expr: other.x}",
        "{type: expression, expr: value, value: 1}",
        "{type: truthy, exp: 1}",
        "truthy",
    ]
    .map(|written| condition(written).transcript())
    .concat();
    expect![[r#"
        8:23 bad_value edges[0].condition.type: `equal` is not a condition type (did you mean `equals`?)
        8:23 bad_value edges[0].condition.type: `regex` is not a condition type (use one of: equals, contains, present, truthy, expression)
        8:16 missing_field edges[0].condition: `type` is missing
        8:23 missing_field edges[0].condition: a condition of type `equals` needs `value`
        8:23 missing_field edges[0].condition: a condition of type `equals` needs `value`
        8:23 missing_field edges[0].condition: a condition of type `contains` needs `value`
        8:23 missing_field edges[0].condition: a condition of type `expression` needs `expr`
        8:46 bad_expression edges[0].condition.expr: expected a value, found the end
        8:41 wrong_type edges[0].condition.expr: expected a string, found a number (quote it if it is meant as text)
        8:38 conflicting_fields edges[0].condition: a condition of type `present` does not use `expr`
        8:47 conflicting_fields edges[0].condition: a condition of type `equals` does not use `expr`
        8:55 conflicting_fields edges[0].condition: a condition of type `expression` does not use `value`
        8:31 unknown_field edges[0].condition.exp: unknown field `exp` (did you mean `expr`?)
        8:16 wrong_type edges[0].condition: expected a map, found a string
    "#]].assert_eq(&told);
}

/// The same edge in a document that declares arguments.
fn declared(expr: &str) -> String {
    Script::lens(&format!(
        "
        name: g
        args: {{topic: string}}
        lenses: {{l: {{versions: {{1: {{template: go}}}}}}}}
        nodes: [{{id: gather, lens_id: l}}, {{id: b, lens_id: l}}]
        edges:
          - {{source_node_id: gather, target_node_id: b, condition: {{type: expression, expr: {expr}}}}}
        outputs:
          r: ${{{expr}}}
        "
    ))
    .transcript()
}

#[test]
fn expressions_read_what_exists() {
    for expr in ["value", "topic", "args.topic", "gather.x"] {
        let told = declared(expr);
        assert!(told == "ok\n" || expr == "value", "{expr}: {told}");
    }
    let told: String = ["topik", "args.topik", "gathre.x", "args", "zzz"].map(declared).concat();
    expect![[r#"
        6:60 unknown_identifier edges[0].condition: `topik` is not a node or argument (did you mean `topic`?)
        ~8:6 unknown_variable outputs.r: nothing sets `topik` (did you mean `topic`?)
        6:60 unknown_identifier edges[0].condition: `topik` is not a node or argument (did you mean `topic`?)
        ~8:6 unknown_variable outputs.r: nothing sets `topik` (did you mean `topic`?)
        6:60 unknown_identifier edges[0].condition: `gathre` is not a node or argument (did you mean `gather`?)
        ~8:6 unknown_variable outputs.r: nothing sets `gathre` (did you mean `gather`?)
        ok
        6:60 unknown_identifier edges[0].condition: `zzz` is not a node or argument
        ~8:6 unknown_variable outputs.r: nothing sets `zzz`
    "#]].assert_eq(&told);
    // Without declared arguments, the caller may set any name.
    assert!(condition("{type: expression, expr: anything == 1}").transcript().starts_with("ok"));
}

/// A router `r` with these outgoing edges.
fn router(edges: &str) -> String {
    Script::lens(&format!(
        "
        name: g
        lenses:
          l: {{versions: {{1: {{template: go}}}}}}
          route: {{versions: {{1: {{template: go, kind: routing}}}}}}
        nodes: [{{id: r, lens_id: route}}, {{id: a, lens_id: l}}, {{id: b, lens_id: l}}]
        edges: [{edges}]
        "
    ))
    .transcript()
}

fn route(id: &str, target: &str, condition: &str) -> String {
    format!("{{id: {id}, source_node_id: r, target_node_id: {target}, condition: {condition}}}")
}

#[test]
fn a_router_has_two_routes_with_equals() {
    let one = route("e1", "a", "{type: equals, value: x}");
    let two = route("e2", "b", "{type: equals, value: y}");
    assert_eq!(router(&format!("{one}, {two}")), "ok\n");
    let told = [
        router(""),
        router(&one),
        router(&format!("{one}, {}", route("e2", "b", "{type: truthy}"))),
        router(&format!("{one}, {}", route("e2", "b", "~"))),
        router(&format!("{one}, {}", route("e2", "b", "{type: expression, expr: value == 1}"))),
        router(&format!("{one}, {}", route("e2", "b", "{type: equals}"))),
    ];
    expect![[r#"
        5:14 routing_insufficient_edges nodes[0]: routing node `r` needs at least two outgoing edges; it has 0
        5:14 routing_insufficient_edges nodes[0]: routing node `r` needs at least two outgoing edges; it has 1
        6:99 routing_missing_equals edges[1]: an edge that leaves routing node `r` needs an `equals` condition
        6:99 routing_missing_equals edges[1]: an edge that leaves routing node `r` needs an `equals` condition
        6:99 routing_missing_equals edges[1]: an edge that leaves routing node `r` needs an `equals` condition
        6:159 missing_field edges[1].condition: a condition of type `equals` needs `value`
    "#]].assert_eq(&told.concat());
}

#[test]
fn a_route_with_a_misspelt_target_is_a_route() {
    let one = route("e1", "a", "{type: equals, value: x}");
    let two = route("e2", "bb", "{type: equals, value: y}");
    expect![[r#"
        6:138 orphan_target edges[1].target_node_id: there is no node `bb`
    "#]]
    .assert_eq(&router(&format!("{one}, {two}")));
}

#[test]
fn two_routes_of_one_value_are_a_warning_whatever_its_type() {
    let routes = |first: &str, second: &str| {
        let one = route("e1", "a", &format!("{{type: equals, value: {first}}}"));
        let two = route("e2", "b", &format!("{{type: equals, value: {second}}}"));
        router(&format!("{one}, {two}"))
    };
    expect![[r#"
        ~6:99 routing_duplicate_route edges[1]: two routes of `r` have the value `5`
        ok
    "#]]
    .assert_eq(&routes("5", "'5'"));
    assert!(routes("true", "'true'").starts_with("~"));
    assert_eq!(routes("5", "6"), "ok\n");
    assert_eq!(routes("a", "A"), "ok\n");
}

#[test]
fn a_validator_says_what_failure_means() {
    let validator = |config: &str, edge: &str| {
        Script::lens(&format!(
            "
            name: g
            lenses:
              l: {{versions: {{1: {{template: go}}}}}}
              check: {{versions: {{1: {{template: go, kind: validation}}}}}}
            nodes: [{{id: v, lens_id: check, config: {config}}}, {{id: a, lens_id: l}}]
            edges: [{{id: e, source_node_id: v, target_node_id: a, condition: {edge}}}]
            "
        ))
        .transcript()
    };
    assert_eq!(validator("{on_failure: halt}", "~"), "ok\n");
    assert_eq!(validator("{}", "{type: truthy}"), "ok\n");
    expect![[r#"
        5:14 validation_missing_policy nodes[0]: validation node `v` has no failure policy (set `config.on_failure`, or put a condition on an edge that leaves it)
    "#]].assert_eq(&validator("{retry: {attempts: 2}}", "~"));
}
