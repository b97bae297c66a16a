//! Provenance of values, and the counts of values.

use super::{Script, check};
use expect_test::expect;
use serde_json::json;

/// How many values the run's steps read, and how many of them came from its own steps.
fn counts(script: Script) -> Script {
    script.show(|world| format!("counts: {:?} {:?}", world.run.provenance, world.run.taken))
}

#[test]
fn what_a_parent_passes_comes_from_its_step_and_what_is_passed_back_says_who_made_it() {
    let child = Script::flow(
        "
        args: {who: {type: string}, deep: {type: object}}
        outputs: {said: '${a.text}', who: '${args.who}'}
        steps:
          - {id: a, command: 'greet ${args.who} and ${deep.other}', outputs: {text: string}}
        ",
    );
    let child = child.arg("who", "ada").arg("deep", json!({"other": "bob"})).started_by_a_step();
    check(
        counts(child.complete("a", json!({"text": "hi"}))),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.provenance a command <- parent step args.who
            4 node.provenance a command <- parent step args.deep.other
            5 node.started a attempt=1 dispatch=1
            6 node.completed a {"text":"hi"}
            7 run.completed {"said":"hi","who":"ada"}
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"completed","outputs":{"said":"hi","who":"ada"},"error":null,"origins":[{"run":null,"node":"a","path":"text","to":"outputs.said","how":null},{"run":"parent","node":"step","path":"args.who","to":"outputs.who","how":null}],"labels":{"all":{"classes":["caller","agent"],"since":1700000000000},"fields":{"who":{"origins":["caller"]}}}}
            counts: (2, 0) {parent: 2}
        "#]],
    );
}

#[test]
fn a_result_that_names_no_outputs_comes_from_who_wrote_its_variables() {
    let child = Script::flow("steps: [{id: a, command: go, outputs: {n: integer}}]");
    check(
        child.started_by_a_step().complete("a", json!({"n": 1})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"n":1}
            5 run.completed {"n":1}
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"completed","outputs":{"n":1},"error":null,"origins":[{"run":null,"node":"a","path":"n","to":"outputs.n","how":null}],"labels":{"all":{"classes":["agent"],"since":1700000000000},"fields":{}}}
        "#]],
    );
}

#[test]
fn a_coercion_and_a_merge_are_told() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: go}
              - id: c
                command: go
                merge: concat
                inputs: {one: {from: a.x, type: integer}, both: {from: [a.x, b.x], type: string}}
            ",
        )
        .complete("a", json!({"x": "7"}))
        .complete("b", json!({"x": "8"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed a {"x":"7"}
            7 node.completed b {"x":"8"}
            8 node.queued c
            9 node.provenance c inputs.one <- a x (coerced string to integer)
            10 node.provenance c inputs.both <- a x (concat)
            11 node.provenance c inputs.both <- b x (concat)
            12 node.started c attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn what_a_step_took_counts_no_more_when_it_is_invalidated() {
    let flow = "
        steps:
          - {id: a, command: go}
          - {id: each, command: 'do ${item}', for_each: $a.outputs.list}
          - {id: last, command: 'all of ${each.outputs.items}'}
    ";
    let script = Script::flow(flow)
        .complete("a", json!({"list": [1, 2]}))
        .complete("each[0]", json!({}))
        .complete("each[1]", json!({}));
    let script = counts(counts(script).rewind(&["a"]));
    check(
        script,
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 node.completed a {"list":[1,2]}
        5 node.queued each items=2
        6 node.started each attempt=1 dispatch=1 fan_out
        7 node.queued each[0]
        8 node.queued each[1]
        9 node.provenance each[0] item <- a outputs.list[0]
        10 node.started each[0] attempt=1 dispatch=1
        11 node.provenance each[1] item <- a outputs.list[1]
        12 node.started each[1] attempt=1 dispatch=1
        13 node.completed each[0] {}
        14 node.completed each[1] {}
        15 node.completed each {"items":[{},{}]}
        16 node.queued last
        17 node.provenance last command <- each outputs.items
        18 node.started last attempt=1 dispatch=1
        counts: (3, 3) {}
        19 run.status.changed running (rewind) by ada
        20 node.invalidated each
        21 node.invalidated last
        22 node.queued each items=2
        23 node.started each attempt=1 dispatch=2 fan_out
        24 node.queued each[0]
        25 node.queued each[1]
        26 node.provenance each[0] item <- a outputs.list[0]
        27 node.started each[0] attempt=1 dispatch=2
        28 node.provenance each[1] item <- a outputs.list[1]
        29 node.started each[1] attempt=1 dispatch=2
        counts: (2, 2) {}
    "#]],
    );
}
