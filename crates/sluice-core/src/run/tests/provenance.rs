//! Where values come from, and what is counted of it.

use super::{Script, check};
use expect_test::expect;
use serde_json::json;

/// How many values came to the run's steps, and left them for others of it.
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
    check(counts(child.complete("a", json!({"text": "hi"}))), expect![[r#""#]]);
}

#[test]
fn a_result_that_names_no_outputs_comes_from_who_wrote_its_variables() {
    let child = Script::flow("steps: [{id: a, command: go, outputs: {n: integer}}]");
    check(child.started_by_a_step().complete("a", json!({"n": 1})), expect![[r#""#]]);
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
        expect![[r#""#]],
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
    check(script, expect![[r#""#]]);
}
