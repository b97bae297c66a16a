//! Steps that are executed once for each item.

use super::{Script, check};
use crate::port::adapter::Answer;
use crate::port::adapter::CallErrorCode::{Auth, ProviderError};
use expect_test::expect;
use serde_json::json;

#[test]
fn outputs_are_collected_in_the_order_of_the_items() {
    check(
        Script::flow(
            "
            steps:
              - {id: list, command: go}
              - {id: each, command: 'do ${item.x} at ${index}', for_each: $list.outputs.all, outputs: {n: integer}}
              - {id: last, command: '${each.outputs.items} ${each.outputs.items.length}'}
            ",
        )
        .complete("list", json!({"all": [{"x": "p"}, {"x": "q"}]}))
        .show_due()
        .show_prompt("each[1]")
        .complete("each[1]", json!({"n": 1}))
        .complete("each[0]", json!({"n": 0}))
        .show_prompt("last")
        .show_variables()
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued list
            3 node.started list attempt=1 dispatch=1
            4 node.completed list {"all":[{"x":"p"},{"x":"q"}]}
            5 node.queued each items=2
            6 node.started each attempt=1 dispatch=1 fan_out
            7 node.queued each[0]
            8 node.queued each[1]
            9 node.provenance each[0] item <- list outputs.all[0]
            10 node.started each[0] attempt=1 dispatch=1
            11 node.provenance each[1] item <- list outputs.all[1]
            12 node.started each[1] attempt=1 dispatch=1
            due: each[0] dispatch=1 key=c5a5e0, each[1] dispatch=1 key=755ac5
            each[1] is given {} and "do q at 1"
            13 node.completed each[1] {"n":1}
            14 node.completed each[0] {"n":0}
            15 node.completed each {"items":[{"n":0},{"n":1}]}
            16 node.queued last
            17 node.provenance last command <- each outputs.items
            18 node.provenance last command <- each outputs.items.length
            19 node.started last attempt=1 dispatch=1
            last is given {} and "[{\"n\":0},{\"n\":1}] 2"
            variables: {}
            20 node.completed last {"n":2}
            21 run.completed {}
        "#]],
    );
}

#[test]
fn no_more_instances_than_max_parallel_are_in_flight() {
    check(
        Script::flow(
            "
            steps:
              - {id: each, command: go, for_each: {items: [1, 2, 3], max_parallel: 2}, retry: {attempts: 2}}
              - {id: z, command: go}
            ",
        )
        .show_due()
        .fail("each[0]", ProviderError)
        .show_due()
        .advance("1s")
        .show_due()
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued each items=3
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.queued each[0]
            5 node.queued each[1]
            6 node.queued each[2]
            7 node.queued z
            8 node.started each[0] attempt=1 dispatch=1
            9 node.started each[1] attempt=1 dispatch=1
            10 node.started z attempt=1 dispatch=1
            due: each[0] dispatch=1 key=c5a5e0, each[1] dispatch=1 key=755ac5, z dispatch=1 key=c33b0e
            11 node.retried each[0] attempt=1 provider_error delay=391
            12 node.waiting each[0] retry_backoff attempt=2 provider_error delay=391
            13 node.started each[2] attempt=1 dispatch=1
            due: each[1] dispatch=1 key=755ac5, each[2] dispatch=1 key=dd6988, z dispatch=1 key=c33b0e
            after 391ms
            14 node.queued each[0]
            due: each[1] dispatch=1 key=755ac5, each[2] dispatch=1 key=dd6988, z dispatch=1 key=c33b0e
            after 1s
            15 node.completed each[1] {"n":0}
            16 node.started each[0] attempt=2 dispatch=2
            17 node.completed each[0] {"n":0}
            18 node.completed each[2] {"n":0}
            19 node.completed each {"items":[{"n":0},{"n":0},{"n":0}]}
            20 node.completed z {"n":1}
            21 run.completed {}
        "#]],
    );
}

#[test]
fn a_failed_instance_halts_by_default() {
    check(
        Script::flow(
            "
            steps:
              - {id: each, command: go, for_each: {items: [1, 2, 3, 4], max_parallel: 2}}
              - {id: after, command: go, depends_on: [each]}
              - {id: keeps, command: go, depends_on: [each], on_parent_failure: substitute_default}
            ",
        )
        .fail("each[0]", Auth)
        .complete("each[1]", json!({}))
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued each items=4
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.queued each[0]
            5 node.queued each[1]
            6 node.queued each[2]
            7 node.queued each[3]
            8 node.started each[0] attempt=1 dispatch=1
            9 node.started each[1] attempt=1 dispatch=1
            10 node.failed each[0] auth: it broke
            11 node.failed after upstream_failure: Blocked by upstream failure
            12 node.cancelled each[2] run_halted: the run was halted by `each[0]`
            13 node.cancelled each[3] run_halted: the run was halted by `each[0]`
            14 node.completed each[1] {}
            15 node.failed each auth: each[0]: it broke
            16 node.queued keeps
            17 node.started keeps attempt=1 dispatch=1
            18 node.completed keeps {"n":2}
            19 run.failed auth: `each[0]` failed: it broke
        "#]],
    );
}

#[test]
fn a_failed_instance_that_fails_fast_stops_the_others() {
    check(
        Script::flow(
            "
            steps:
              - {id: each, command: go, for_each: [1, 2], parallel_failure_policy: fail_fast}
              - {id: other, command: go}
            ",
        )
        .fail("each[0]", Auth),
        expect![[r#"
            1 run.started
            2 node.queued each items=2
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.queued each[0]
            5 node.queued each[1]
            6 node.queued other
            7 node.started each[0] attempt=1 dispatch=1
            8 node.started each[1] attempt=1 dispatch=1
            9 node.started other attempt=1 dispatch=1
            10 node.failed each[0] auth: it broke
            11 node.cancelled each[1] condition_failed: stopped because `each[0]` failed
            12 node.cancelled other condition_failed: stopped because `each[0]` failed
            13 node.failed each auth: each[0]: it broke
            14 run.failed auth: `each[0]` failed: it broke
        "#]],
    );
}

#[test]
fn a_fan_out_of_another_branch_is_stopped_with_it() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, parallel_failure_policy: fail_fast}
              - {id: each, command: go, for_each: {items: [1, 2], max_parallel: 1}}
            ",
        )
        .fail("a", Auth),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued each items=2
            4 node.started each attempt=1 dispatch=1 fan_out
            5 node.queued each[0]
            6 node.queued each[1]
            7 node.started a attempt=1 dispatch=1
            8 node.started each[0] attempt=1 dispatch=1
            9 node.failed a auth: it broke
            10 node.cancelled each[0] condition_failed: stopped because `a` failed
            11 node.cancelled each[1] run_halted: the run was halted by `a`
            12 node.cancelled each condition_failed: stopped because `a` failed
            13 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_failed_instance_that_is_skipped_leaves_null() {
    check(
        Script::flow("steps: [{id: each, command: go, for_each: [1, 2], on_failure: skip}]")
            .fail("each[0]", Auth)
            .complete("each[1]", json!({"n": 1})),
        expect![[r#"
            1 run.started
            2 node.queued each items=2
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.queued each[0]
            5 node.queued each[1]
            6 node.started each[0] attempt=1 dispatch=1
            7 node.started each[1] attempt=1 dispatch=1
            8 node.skipped each[0] failure: it broke [auth]
            9 node.completed each[1] {"n":1}
            10 node.completed each {"items":[null,{"n":1}]}
            11 run.completed {}
        "#]],
    );
}

#[test]
fn no_items_is_done_at_once() {
    check(
        Script::flow(
            "
            args: {all: {type: array}}
            steps:
              - {id: each, command: go, for_each: $args.all}
              - {id: after, command: go, depends_on: [each]}
            ",
        )
        .arg("all", json!([])),
        expect![[r#"
            1 run.started
            2 node.queued each items=0
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.completed each {"items":[]}
            5 node.queued after
            6 node.started after attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn what_is_no_list_or_too_long_fails_the_step() {
    let script = |all: serde_json::Value| {
        Script::flow(
            "
            steps:
              - {id: list, command: go}
              - {id: each, command: go, for_each: {items: $list.outputs.all, max_items: 2}, on_failure: retry}
            ",
        )
        .complete("list", json!({ "all": all }))
    };
    check(
        script(json!("text")),
        expect![[r#"
            1 run.started
            2 node.queued list
            3 node.started list attempt=1 dispatch=1
            4 node.completed list {"all":"text"}
            5 node.failed each items_not_a_list: `$list.outputs.all` is a string, not a list
            6 run.failed items_not_a_list: `each` failed: `$list.outputs.all` is a string, not a list
        "#]],
    );
    check(
        script(json!([1, 2, 3])),
        expect![[r#"
        1 run.started
        2 node.queued list
        3 node.started list attempt=1 dispatch=1
        4 node.completed list {"all":[1,2,3]}
        5 node.failed each too_many_items: 3 items, over the 2 allowed
        6 run.failed too_many_items: `each` failed: 3 items, over the 2 allowed
    "#]],
    );
    check(
        Script::flow(
            "
            steps:
              - {id: list, command: go}
              - {id: each, command: go, for_each: $list.outputs.all}
            ",
        )
        .complete("list", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued list
            3 node.started list attempt=1 dispatch=1
            4 node.completed list {}
            5 node.failed each unresolved_variable: `$list.outputs.all` has no value
            6 run.failed unresolved_variable: `each` failed: `$list.outputs.all` has no value
        "#]],
    );
}

#[test]
fn a_fan_out_over_a_skipped_step_has_no_items() {
    check(
        Script::flow(
            "
            steps:
              - {id: list, command: go, condition: 'false'}
              - {id: other, command: go}
              - {id: each, command: go, for_each: $list.outputs.all, depends_on: [other]}
            ",
        )
        .complete("other", json!({})),
        expect![[r#"
            1 run.started
            2 node.skipped list condition_false: its condition is false
            3 node.queued other
            4 node.started other attempt=1 dispatch=1
            5 node.completed other {}
            6 node.queued each items=0
            7 node.started each attempt=1 dispatch=1 fan_out
            8 node.completed each {"items":[]}
            9 run.completed {}
        "#]],
    );
}

#[test]
fn an_instance_that_times_out_ends_the_fan_out_in_timed_out() {
    check(
        Script::flow("steps: [{id: each, command: go, for_each: [1], timeout: 5s}]").advance("5s"),
        expect![[r#"
            1 run.started
            2 node.queued each items=1
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.queued each[0]
            5 node.started each[0] attempt=1 dispatch=1
            after 5s
            6 node.timed_out each[0] timeout: the attempt took longer than 5s
            7 node.timed_out each timeout: each[0]: the attempt took longer than 5s
            8 run.failed timeout: `each[0]` failed: the attempt took longer than 5s
        "#]],
    );
}

#[test]
fn children_are_instances_too() {
    check(
        Script::flow(
            "steps: [{id: each, workflow_ref: other, args: {n: '${item}'}, for_each: [1, 2]}]",
        )
        .knows("other")
        .show_due()
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued each items=2
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.queued each[0]
            5 node.queued each[1]
            6 node.started each[0] attempt=1 dispatch=1 child1
            7 node.started each[1] attempt=1 dispatch=1 child2
            due: each[0] child1, each[1] child2
            8 node.provenance each[0] outputs <- child1 outputs
            9 node.completed each[0] {}
            10 node.provenance each[1] outputs <- child2 outputs
            11 node.completed each[1] {}
            12 node.completed each {"items":[{},{}]}
            13 run.completed {}
        "#]],
    );
}

#[test]
fn the_words_of_instances_without_declared_outputs_are_collected() {
    check(
        Script::flow(
            "
            steps:
              - {id: list, command: go}
              - {id: each, command: 'do ${item}', for_each: [p, q, r, s], inputs: {all: list.all}, on_failure: skip}
              - {id: last, command: '${each.items[1].text} of ${each.stdout}'}
            ",
        )
        .complete("list", json!({"all": 1}))
        .text("each[1]", "two\n")
        .text("each[0]", "one")
        .complete("each[2]", json!({"n": 3}))
        .fail("each[3]", Auth)
        .show_prompt("last"),
        expect![[r#"
            1 run.started
            2 node.queued list
            3 node.started list attempt=1 dispatch=1
            4 node.completed list {"all":1}
            5 node.queued each items=4
            6 node.started each attempt=1 dispatch=1 fan_out
            7 node.queued each[0]
            8 node.queued each[1]
            9 node.queued each[2]
            10 node.queued each[3]
            11 node.provenance each[0] inputs.all <- list all
            12 node.started each[0] attempt=1 dispatch=1
            13 node.provenance each[1] inputs.all <- list all
            14 node.started each[1] attempt=1 dispatch=1
            15 node.provenance each[2] inputs.all <- list all
            16 node.started each[2] attempt=1 dispatch=1
            17 node.provenance each[3] inputs.all <- list all
            18 node.started each[3] attempt=1 dispatch=1
            19 node.completed each[1] {"all":1}
            20 node.completed each[0] {"all":1}
            21 node.completed each[2] {"n":3,"all":1}
            22 node.skipped each[3] failure: it broke [auth]
            23 node.completed each {"items":[{"all":1,"text":"one"},{"all":1,"text":"two\n"},{"n":3,"all":1},null]}
            24 node.queued last
            25 node.provenance last command <- each items[1].text
            26 node.provenance last command <- each stdout
            27 node.started last attempt=1 dispatch=1
            last is given {} and "two\n of one\ntwo\n"
        "#]],
    );
}

#[test]
fn items_of_a_step_that_declares_outputs_are_its_outputs_alone() {
    let answer = |n: i64| Answer {
        text: Some(format!("It is {n}.")),
        outputs: json!({"n": n}).as_object().cloned(),
        ..Answer::default()
    };
    check(
        Script::flow(
            "
            steps:
              - {id: each, command: go, for_each: [a, b], outputs: {n: integer}}
              - {id: last, command: '${each.stdout}'}
            ",
        )
        .answers("each[0]", answer(0))
        .answers("each[1]", answer(1)),
        expect![[r#"
            1 run.started
            2 node.queued each items=2
            3 node.started each attempt=1 dispatch=1 fan_out
            4 node.queued each[0]
            5 node.queued each[1]
            6 node.started each[0] attempt=1 dispatch=1
            7 node.started each[1] attempt=1 dispatch=1
            8 node.completed each[0] {"n":0}
            9 node.completed each[1] {"n":1}
            10 node.completed each {"items":[{"n":0},{"n":1}]}
            11 node.queued last
            12 node.failed last unresolved_variable: `each.stdout` has no value
            13 run.failed unresolved_variable: `last` failed: `each.stdout` has no value
        "#]],
    );
}
