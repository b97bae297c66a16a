//! The journal has the answer of every attempt, also of one that failed.

use super::world::World;
use super::{Script, check};
use crate::journal::event::{Event, StepEvent};
use crate::limits::ANSWER_BYTES_MAX;
use crate::port::adapter::{Answer, CallErrorCode};
use crate::port::moderator::Verdict;
use crate::run::command::{Command, Decision};
use expect_test::expect;
use serde_json::{Value, json};

fn says(text: &str) -> Answer {
    let outputs = json!({"n": text}).as_object().cloned();
    Answer { text: Some(text.to_owned()), outputs, ..Answer::default() }
}

/// A failure with a text.
fn breaks(text: &str) -> Answer {
    Answer { text: Some(text.to_owned()), ..Answer::failed(CallErrorCode::ProviderError, "broke") }
}

/// The answers in the journal of attempts that failed.
fn recorded(world: &World) -> Vec<(&'static str, Value)> {
    let answer = |event: &Event| {
        let Event::Step(_, node) = event else { return None };
        let answer = match node {
            StepEvent::Retried(retried) => retried.answer.as_deref(),
            StepEvent::Failed(ending) | StepEvent::TimedOut(ending) => ending.answer.as_deref(),
            StepEvent::Skipped(skip) => skip.answer.as_deref(),
            StepEvent::ApprovalRequested(asked) => asked.answer.as_deref(),
            _ => None,
        };
        Some((event.name(), answer?.clone()))
    };
    world.journal.iter().filter_map(|(_, event)| answer(event)).collect()
}

fn shown(world: &World) -> String {
    let lines: Vec<String> =
        recorded(world).iter().map(|(name, answer)| format!("{name} {answer}")).collect();
    lines.join("\n")
}

#[test]
fn every_attempt_that_fails_validation_keeps_what_it_answered() {
    let outputs = "outputs: {n: {type: integer, maximum: 5}}, retry: {attempts: 2, \
                   retry_on: [contract_violated]}";
    check(
        Script::flow(&format!("steps: [{{id: a, command: go, {outputs}, on_failure: skip}}]"))
            .answers("a", says("nine"))
            .advance("1s")
            .answers("a", says("ten"))
            .show(shown),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 contract_violated delay=391
            5 node.waiting a retry_backoff attempt=2 contract_violated delay=391
            after 391ms
            6 node.started a attempt=2 dispatch=2
            after 1s
            7 node.skipped a failure: n is a string, not an integer [output_validation_failed]
            8 run.completed {}
            node.retried {"text":"nine","outputs":{"n":"nine"}}
            node.skipped {"text":"ten","outputs":{"n":"ten"}}
        "#]],
    );
}

#[test]
fn a_failure_keeps_the_text_that_came_with_it_and_an_escalation_too() {
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry_once_then_escalate}]")
            .answers("a", breaks("half an"))
            .answers("a", breaks("half another"))
            .resolve("a", Decision::Abort, None)
            .show(shown),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=0
            5 node.waiting a retry_backoff attempt=2 provider_error delay=0
            6 node.started a attempt=2 dispatch=2
            7 approval.requested a apr1 escalation "`a` failed: broke. Retry, skip or abort?"
            8 run.status.changed paused (approval)
            9 approval.resolved a apr1 abort by bob
            10 run.status.changed running (approval)
            11 node.failed a provider_error: broke
            12 run.failed provider_error: `a` failed: broke
            node.retried {"text":"half an"}
            approval.requested {"text":"half another"}
        "#]],
    );
}

#[test]
fn a_lens_node_keeps_the_whole_answer_that_broke_its_contract() {
    let media = json!({"url": "u", "mime": "image/png"});
    let answer = Answer { media: Some(media), ..says("nine") };
    check(
        Script::lens(
            "
            lenses: {l: {versions: {1: {template: go, output_contract: {kind: text,
              artifactKind: text, schema: {n: {type: number}}}}}}}
            nodes: [{id: a, lens_id: l}]
            edges: []
            ",
        )
        .answers("a", answer)
        .show(shown),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 contract.violated a output n type_mismatch
            5 node.failed a output_contract_violation: output_contract_violation
            6 run.failed output_contract_violation: `a` failed: output_contract_violation
            node.failed {"text":"nine","outputs":{"n":"nine"},"media":{"url":"u","mime":"image/png"}}
        "#]],
    );
}

#[test]
fn what_the_moderator_has_not_cleared_is_not_recorded() {
    let checked = |verdict: Verdict| {
        move |world: &World| {
            let at = world.at("a");
            let answer = Box::new(breaks("rude"));
            let command = Box::new(Command::Complete { at, dispatch_no: 1, answer });
            Command::Checked { command, verdict: verdict.clone() }
        }
    };
    let flow = "steps: [{id: a, command: go, moderation: output}]";
    let unavailable = Verdict::Unavailable("the moderator does not answer".to_owned());
    for (verdict, kept) in [(Verdict::Clear, 1), (unavailable, 0)] {
        let world = Script::flow(flow).turn(checked(verdict)).world();
        assert_eq!(recorded(&world).len(), kept);
        world.verify();
    }
    // Without a verdict there is no check of the answer.
    let world = Script::flow(flow).answers("a", breaks("rude")).world();
    assert_eq!(recorded(&world), []);
}

#[test]
fn an_answer_that_is_too_long_is_kept_up_to_the_bound() {
    let long = "ü".repeat(ANSWER_BYTES_MAX / 2 + 1);
    let bytes = long.len();
    let record = says(&long).into_record().expect("something was answered");
    assert_eq!(record["text"].as_str().map(str::len), Some(ANSWER_BYTES_MAX));
    assert_eq!(record["text_bytes"], bytes);
    assert_eq!(Answer::failed(CallErrorCode::Timeout, "late").into_record(), None);
}
