//! Contracts, placeholders and envelopes of lens nodes.

use super::{Script, check};
use crate::port::adapter::Answer;
use expect_test::expect;
use serde_json::{Value, json};

fn node(version: &str, config: &str) -> Script {
    Script::lens(&format!(
        "
        lenses: {{l: {{versions: {{1: {{{version}}}}}}}}}
        nodes: [{{id: a, lens_id: l, config: {{{config}}}}}]
        edges: []
        "
    ))
}

#[test]
fn inputs_that_break_the_contract_fail_the_node_without_a_call() {
    check(
        node(
            "template: '[[topic]]', input_contract: {kind: brief, fields: {topic: {type: string, minLength: 5}}}",
            "retry: {attempts: 3, retry_on: [contract_violated]}",
        )
        .arg("topic", "abc"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 contract.violated a input topic too_short
            4 node.failed a input_contract_violation: input_contract_violation
            5 run.failed input_contract_violation: `a` failed: input_contract_violation
        "#]],
    );
}

#[test]
fn a_placeholder_without_a_value_blocks_the_node() {
    let text = "
        args: {topic: string}
        lenses: {l: {versions: {1: {template: 'about [[topic]]'}}}, m: {versions: {1: {template: go}}}}
        nodes:
          - {id: r, lens_id: m}
          - {id: a, lens_id: l, config: {on_failure: POLICY}}
          - {id: b, lens_id: m}
        edges:
          - {id: e, source_node_id: r, target_node_id: a, target_param_label: more, condition: {type: truthy}}
          - {id: e2, source_node_id: r, target_node_id: a, target_param_label: other}
          - {id: e3, source_node_id: a, target_node_id: b, target_param_label: other}
    ";
    check(
        Script::lens(&text.replace("POLICY", "~"))
            .text("r", "")
            .show(|world| world.run.status.to_string()),
        expect![[r#"
            1 run.started
            2 node.queued r
            3 node.started r attempt=1 dispatch=1
            4 contract.violated r output output missing_required
            5 node.failed r output_contract_violation: output_contract_violation
            6 node.skipped a parent_failure: `r` failed
            7 node.skipped b parent_failure: `a` was skipped because of a failure
            8 run.completed {}
            completed
        "#]],
    );
    let Value::Object(data) = json!({"k": 1}) else { unreachable!("it is an object") };
    let quiet = Answer { text: Some(String::new()), outputs: Some(data), ..Answer::default() };
    check(
        Script::lens(&text.replace("POLICY", "~")).answers("r", quiet.clone()),
        expect![[r#"
            1 run.started
            2 node.queued r
            3 node.started r attempt=1 dispatch=1
            4 node.completed r {"k":1,"output":""}
            5 node.queued a
            6 node.blocked a placeholder_unbound: `topic` has no value
            7 node.skipped b parent_failure: `a` failed
            8 run.completed {}
        "#]],
    );
    check(
        Script::lens(&text.replace("POLICY", "halt")).answers("r", quiet),
        expect![[r#"
            1 run.started
            2 node.queued r
            3 node.started r attempt=1 dispatch=1
            4 node.completed r {"k":1,"output":""}
            5 node.queued a
            6 node.blocked a placeholder_unbound: `topic` has no value
            7 node.skipped b parent_failure: `a` failed
            8 run.failed placeholder_unbound: `a` failed: `topic` has no value
        "#]],
    );
}

#[test]
fn an_output_that_breaks_the_contract_is_retried_only_where_asked() {
    let version = "template: go, output_contract: {kind: text, artifactKind: report, schema: {score: {type: integer, required: true}}}";
    check(
        node(version, "").complete("a", json!({"score": "high"})),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 contract.violated a output score type_mismatch
        5 node.failed a output_contract_violation: output_contract_violation
        6 run.failed output_contract_violation: `a` failed: output_contract_violation
    "#]],
    );
    check(
        node(version, "retry: {attempts: 2, retry_on: [contract_violated]}")
            .complete("a", json!({}))
            .advance("1s")
            .complete("a", json!({"score": 5})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 contract.violated a output score missing_required
            5 node.retried a attempt=1 contract_violated delay=391
            6 node.waiting a retry_backoff attempt=2 contract_violated delay=391
            after 391ms
            7 node.started a attempt=2 dispatch=2
            after 1s
            8 node.completed a {"score":5,"output":"{\"score\":5}"}
            9 run.completed {"a":"{\"score\":5}"}
        "#]],
    );
}

#[test]
fn an_empty_output_is_a_violation_without_any_contract() {
    check(
        node("template: go", "").text("a", ""),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 contract.violated a output output missing_required
        5 node.failed a output_contract_violation: output_contract_violation
        6 run.failed output_contract_violation: `a` failed: output_contract_violation
    "#]],
    );
}

#[test]
fn an_answer_becomes_an_envelope() {
    let Value::Object(data) = json!({"score": 5}) else { unreachable!("it is an object") };
    let answer = Answer {
        text: Some("fine".to_owned()),
        outputs: Some(data),
        kind: Some("text".to_owned()),
        media: Some(json!([{"url": "u"}])),
        ..Answer::default()
    };
    let script = node("template: go, output_contract: {kind: text, artifactKind: report}", "");
    let run = script.answers("a", answer).run();
    let outcome = run.steps[0].outcome().expect("done");
    let envelope = serde_json::to_string(&outcome.envelope).expect("an envelope is JSON");
    expect![[r#"{"kind":"text","artifactKind":"report","output":"fine","data":{"score":5},"media":[{"url":"u"}]} {"score":5,"output":"fine"} Some("fine")"#]].assert_eq(&format!("{envelope} {} {:?}", outcome.outputs, outcome.stdout));
}

#[test]
fn data_called_output_is_not_replaced_by_the_text() {
    let Value::Object(data) = json!({"output": {"deep": 1}}) else { unreachable!("an object") };
    let answer = Answer { text: Some("text".to_owned()), outputs: Some(data), ..Answer::default() };
    let run = node("template: go", "").answers("a", answer).run();
    let outcome = run.steps[0].outcome().expect("done");
    assert_eq!(outcome.outputs, json!({"output": {"deep": 1}}));
    assert_eq!(outcome.stdout.as_deref(), Some("text"));
}

#[test]
fn a_node_that_answers_with_media_alone_has_the_address_as_its_output() {
    let output = |media: Value| {
        let answer = Answer { media: Some(media), ..Answer::default() };
        let world = node("template: draw", "").answers("a", answer).world();
        let outcome = world.run.steps[0].outcome().cloned();
        outcome.and_then(|outcome| outcome.envelope.clone()).map(|envelope| envelope.output)
    };
    let file = |url: &str| json!({"url": url, "mime": "image/png"});
    let far = "https://example.com/a.png";
    assert_eq!(output(file(far)), Some(json!(far)));
    assert_eq!(output(json!([file(far), file("x")])), Some(json!(far)));
    assert_eq!(output(file("data:image/png;base64,aGk=")), Some(json!("[image/png]")));
    assert_eq!(output(json!({})), None, "nothing is still nothing");
}
