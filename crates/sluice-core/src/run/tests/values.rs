//! Values: variables, arguments, results and their provenance.

use super::{Script, check};
use crate::origin::SourceClass;
use crate::port::adapter::Answer;
use expect_test::expect;
use serde_json::{Value, json};

const WRITERS: &str = "
    steps:
      - {id: a, command: go, outputs: {x: string, y: {type: string, required: false}}}
      - {id: b, command: go, outputs: {x: string}}
      - {id: c, command: 'x is ${x}', depends_on: [a, b]}
";

#[test]
fn of_two_writers_the_later_counts_whatever_their_order_in_the_document() {
    check(
        Script::flow(WRITERS)
            .complete("b", json!({"x": "of b", "more": 1}))
            .show_variables()
            .complete("a", json!({"x": "of a"}))
            .show_variables()
            .show_prompt("c")
            .complete("c", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed b {"x":"of b","more":1}
            variables: {"x":"of b"}
            7 node.completed a {"x":"of a"}
            8 node.queued c
            9 node.provenance c command <- a x
            10 node.started c attempt=1 dispatch=1
            variables: {"x":"of a"}
            c is given {} and "x is of a"
            11 node.completed c {}
            12 run.completed {"x":"of a"}
        "#]],
    );
}

#[test]
fn the_result_is_what_the_workflow_names() {
    check(
        Script::flow(
            "
            args: {who: {type: string}}
            outputs: {n: '${a.outputs.n}', who: '${args.who}', text: 'n=${a.outputs.n}', none: '${b.outputs.x}'}
            steps:
              - {id: a, command: go}
              - {id: b, command: go, condition: 'false'}
            ",
        )
        .arg("who", "ada")
        .complete("a", json!({"n": [1, 2]})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.skipped b condition_false: its condition is false
            4 node.started a attempt=1 dispatch=1
            5 node.completed a {"n":[1,2]}
            6 run.completed {"n":[1,2],"who":"ada","text":"n=[1,2]","none":null}
        "#]],
    );
}

#[test]
fn every_value_that_crosses_is_noted_once() {
    check(
        Script::flow(
            "
            args: {who: {type: string}}
            steps:
              - {id: a, command: go, outputs: {x: string}}
              - {id: skipped, command: go, condition: 'false'}
              - id: b
                command: 'hi ${args.who}: ${x} ${a.outputs.x} ${a.outputs.x} ${both} ${skipped.outputs.z}'
                stdin: $a.stdout
                merge: concat
                inputs: {both: {from: [a.x, a.other]}}
            ",
        )
        .arg("who", "ada")
        .answers("a", {
            let outputs = json!({"x": "X", "other": "O"});
            let Value::Object(outputs) = outputs else { unreachable!("it is an object") };
            Answer { text: Some("raw".to_owned()), outputs: Some(outputs), ..Answer::default() }
        })
        .show_prompt("b")
        .show(|world| format!("stdin {:?}", world.run.request(world.at("b")).stdin)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.skipped skipped condition_false: its condition is false
            4 node.started a attempt=1 dispatch=1
            5 node.completed a {"x":"X","other":"O"}
            6 node.queued b
            7 node.provenance b inputs.both <- a x (concat)
            8 node.provenance b inputs.both <- a other (concat)
            9 node.provenance b stdin <- a stdout
            10 node.provenance b command <- a x
            11 node.provenance b command <- a outputs.x
            12 node.started b attempt=1 dispatch=1
            b is given {"both":"X\n\nO"} and "hi ada: X X X X\n\nO "
            stdin Some("raw")
        "#]],
    );
}

#[test]
fn labels_flow_from_what_a_step_reads_to_what_it_makes() {
    let run = Script::flow(
        "
        args: {who: {type: string}}
        steps:
          - {id: a, command: 'hi ${args.who}'}
          - {id: ask, approval: required}
          - {id: b, command: '${a.outputs.x} ${ask.outputs.by}', depends_on: [a, ask]}
          - {id: plain, command: go}
        ",
    )
    .arg("who", "ada")
    .advance("3s")
    .complete("a", json!({"x": 1}))
    .advance("3s")
    .approve("ask")
    .complete("b", json!({}))
    .complete("plain", json!({}))
    .run();
    let labels = |step: usize| run.steps[step].outcome().expect("done").labels.clone();
    let classes = |step: usize| labels(step).classes().collect::<Vec<_>>();
    use SourceClass::{Agent, Caller, Human};
    assert_eq!(classes(0), [Caller, Agent]);
    assert_eq!(classes(1), [Human]);
    assert_eq!(classes(2), [Caller, Agent, Human]);
    assert_eq!(classes(3), [Agent]);
    assert_eq!(labels(2).since_ms, Some(run.started_at_ms));
}

#[test]
fn a_shell_step_gets_values_in_its_environment() {
    let run = Script::flow(
        "
        args: {who: {type: string}}
        steps: [{id: a, agent: shell, command: 'echo ${args.who}', env: {MODE: fast}}]
        ",
    )
    .arg("who", "$(rm -rf /)")
    .run();
    let request = run.request(run.find("a").expect("a step"));
    expect![[r#""echo \"$SLUICE_V1\"" [("SLUICE_V1", "$(rm -rf /)"), ("MODE", "fast")]"#]]
        .assert_eq(&format!("{:?} {:?}", request.message, request.env));
}
