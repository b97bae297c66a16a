//! Moderation of the inputs and outputs of steps.

use super::{Script, check};
use crate::port::adapter::{Answer, CallErrorCode};
use crate::port::moderator::Verdict;
use crate::run::command::Command;
use crate::status::RunStatus;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::Posture;

fn rude() -> Verdict {
    Verdict::Flagged(json!({"phrase": "rude"}))
}

fn gone() -> Verdict {
    Verdict::Unavailable("no answer".to_owned())
}

impl Script {
    /// The moderator answers about the inputs of a step.
    fn judged(self, step: &str, verdict: Verdict) -> Script {
        let step = step.to_owned();
        self.turn(move |world| world.judged(world.at(&step), verdict.clone()))
    }

    /// A step gets an answer that the moderator has checked.
    fn says(self, step: &str, answer: Answer, verdict: Verdict) -> Script {
        let step = step.to_owned();
        self.turn(move |world| {
            let at = world.at(&step);
            let (dispatch_no, answer) = (world.run.state(at).dispatch_no, Box::new(answer.clone()));
            let command = Box::new(Command::Complete { at, dispatch_no, answer });
            Command::Checked { command, verdict: verdict.clone() }
        })
    }
}

fn words(text: &str) -> Answer {
    Answer { text: Some(text.to_owned()), ..Answer::default() }
}

fn one(fields: &str) -> Script {
    Script::flow(&format!("steps: [{{id: a, command: 'say ${{who}}'{fields}}}]"))
        .arg("who", "hello")
}

#[test]
fn nothing_is_sent_before_the_moderator_has_let_it_in() {
    check(
        one(", moderation: input").show_due().judged("a", Verdict::Clear).show_due().text("a", "x"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            due: a moderator "say hello"
            4 node.log a input cleared
            5 node.started a attempt=1 dispatch=1
            due: a dispatch=1 key=b51ada
            6 node.completed a {}
            7 run.completed {}
        "#]],
    );
}

#[test]
fn what_is_flagged_on_its_way_in_fails_and_is_never_sent() {
    check(
        one(", moderation: both, on_failure: retry_once_then_escalate").judged("a", rude()),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 moderation.flagged a input {"phrase":"rude","outcome":"flagged"}
            5 node.failed a moderation_blocked: moderation_blocked
            6 run.failed moderation_blocked: `a` failed: moderation_blocked
        "#]],
    );
}

#[test]
fn a_moderator_that_cannot_answer_counts_as_a_no() {
    check(
        one(", moderation: input, retry: {attempts: 3}").judged("a", gone()),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 moderation.flagged a input {"outcome":"unavailable","reason":"no answer"}
            5 node.failed a moderation_blocked: moderation_blocked
            6 run.failed moderation_blocked: `a` failed: moderation_blocked
        "#]],
    );
}

#[test]
fn a_skip_keeps_what_was_found() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, moderation: input, on_failure: skip}
              - {id: b, command: go, depends_on: [a]}
            ",
        )
        .judged("a", rude()),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 moderation.flagged a input {"phrase":"rude","outcome":"flagged"}
            5 node.skipped a failure: moderation_blocked [moderation_blocked]
            6 node.skipped b dependencies_skipped: everything it depends on was skipped
            7 run.completed {}
        "#]],
    );
}

#[test]
fn everything_a_step_is_given_is_judged() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - id: b
                command: say ${a.outputs.x}
                stdin: $a.outputs.y
                inputs: {deep: {from: a.outputs.z}}
                moderation: input
            ",
        )
        .complete("a", json!({"x": "one\ntwo", "y": "piped", "z": {"k": ["\"q\"", 7, null]}}))
        .show_due(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":"one\ntwo","y":"piped","z":{"k":["\"q\"",7,null]}}
            5 node.queued b
            6 node.provenance b inputs.deep <- a outputs.z
            7 node.provenance b stdin <- a outputs.y
            8 node.provenance b command <- a outputs.x
            9 node.log b the moderator is asked (prepared)
            due: b moderator "say one\ntwo\npiped\ndeep\nk\n\"q\"\n7"
        "#]],
    );
}

#[test]
fn a_retry_of_a_cleared_text_is_not_moderated_again_but_a_reask_is() {
    let fields = ", moderation: input, outputs: {n: integer}, repair: {reask: 1}, \
                  retry: {attempts: 2, backoff_ms: 0}";
    check(
        one(fields)
            .judged("a", Verdict::Clear)
            .fail("a", CallErrorCode::ProviderError)
            .complete("a", json!({"n": "many"}))
            .show_due()
            .judged("a", Verdict::Clear)
            .complete("a", json!({"n": 1})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 node.log a input cleared
            5 node.started a attempt=1 dispatch=1
            6 node.retried a attempt=1 provider_error delay=0
            7 node.waiting a retry_backoff attempt=2 provider_error delay=0
            8 node.started a attempt=2 dispatch=2
            9 node.retried a attempt=2 contract_violated delay=0 reask
            10 node.waiting a retry_backoff attempt=3 contract_violated delay=0
            11 node.queued a
            12 node.log a the moderator is asked (prepared)
            due: a moderator "say hello\n\nYour last answer was not accepted: n is a string, not an integer"
            13 node.log a input cleared
            14 node.started a attempt=3 dispatch=3
            15 node.completed a {"n":1}
            16 run.completed {"n":1}
        "#]],
    );
}

#[test]
fn a_rewind_asks_again() {
    check(
        one(", moderation: input").judged("a", Verdict::Clear).text("a", "x").rewind(&[]),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 node.log a input cleared
            5 node.started a attempt=1 dispatch=1
            6 node.completed a {}
            7 run.completed {}
            8 run.status.changed running (rewind) by ada
            9 node.invalidated a
            10 node.queued a
            11 node.log a the moderator is asked (prepared)
        "#]],
    );
}

#[test]
fn each_instance_is_judged_for_itself() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: 'say ${item}', for_each: [x, y], moderation: input,
                 on_failure: skip}
            ",
        )
        .show_due()
        .judged("a[1]", rude())
        .judged("a[0]", Verdict::Clear)
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a items=2
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 node.log a[0] the moderator is asked (prepared)
            7 node.log a[1] the moderator is asked (prepared)
            due: a[0] moderator "say x", a[1] moderator "say y"
            8 moderation.flagged a[1] input {"phrase":"rude","outcome":"flagged"}
            9 node.skipped a[1] failure: moderation_blocked [moderation_blocked]
            10 node.log a[0] input cleared
            11 node.started a[0] attempt=1 dispatch=1
            12 node.completed a[0] {"n":0}
            13 node.completed a {"items":[{"n":0},null]}
            14 run.completed {}
        "#]],
    );
}

#[test]
fn people_are_asked_only_about_what_was_let_in() {
    check(
        one(", moderation: input, approval: required")
            .judged("a", Verdict::Clear)
            .approve("a")
            .text("a", "x"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 node.log a input cleared
            5 governance.decided a "hold" null
            6 approval.requested a apr1 step "Let `a` do this?\nsay hello"
            7 run.status.changed paused (approval)
            8 approval.resolved a apr1 approved by bob
            9 run.status.changed running (approval)
            10 node.started a attempt=1 dispatch=1
            11 node.completed a {"approved":true,"by":"bob","comment":null}
            12 run.completed {}
        "#]],
    );
    check(
        one(", moderation: input, approval: required").judged("a", rude()),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 moderation.flagged a input {"phrase":"rude","outcome":"flagged"}
            5 node.failed a moderation_blocked: moderation_blocked
            6 run.failed moderation_blocked: `a` failed: moderation_blocked
        "#]],
    );
}

#[test]
fn no_more_are_asked_about_than_may_be_in_flight() {
    check(
        Script::flow(
            "
            max_parallel: 2
            steps:
              - {id: a, command: go, for_each: [1, 2, 3], moderation: input}
            ",
        )
        .show_due()
        .judged("a[0]", Verdict::Clear)
        .show_due()
        .judged("a[1]", Verdict::Clear)
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a items=3
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 node.queued a[2]
            7 node.log a[0] the moderator is asked (prepared)
            8 node.log a[1] the moderator is asked (prepared)
            due: a[0] moderator "go", a[1] moderator "go"
            9 node.log a[0] input cleared
            10 node.started a[0] attempt=1 dispatch=1
            due: a[0] dispatch=1 key=222ed8, a[1] moderator "go"
            11 node.log a[1] input cleared
            12 node.started a[1] attempt=1 dispatch=1
            13 node.completed a[0] {"n":0}
            14 node.log a[2] the moderator is asked (prepared)
            15 node.completed a[1] {"n":0}
            16 node.log a[2] input cleared
            17 node.started a[2] attempt=1 dispatch=1
            18 node.completed a[2] {"n":0}
            19 node.completed a {"items":[{"n":0},{"n":0},{"n":0}]}
            20 run.completed {}
        "#]],
    );
}

#[test]
fn a_cancel_ends_the_question_and_a_late_answer_is_refused() {
    check(
        one(", moderation: input").cancel().judged("a", Verdict::Clear),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 run.status.changed cancelling (not needed) by ada
            5 node.cancelled a cancelled: not needed
            6 run.cancelled not needed
            refused: completion_late (the result is of a dispatch that is no longer in flight)
        "#]],
    );
}

#[test]
fn an_answer_about_another_text_is_refused() {
    check(
        one(", moderation: input")
            .turn(|world| Command::Moderated {
                at: world.at("a"),
                digest: "of something else".to_owned(),
                verdict: Verdict::Clear,
            })
            .show_due(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            due: a moderator "say hello"
        "#]],
    );
}

#[test]
fn a_new_owner_asks_again() {
    check(
        one(", moderation: input").take_over().show_due().judged("a", Verdict::Clear).show_due(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 run.status.changed running (taken_over)
            due: a moderator "say hello"
            5 node.log a input cleared
            6 node.started a attempt=1 dispatch=1
            due: a dispatch=1 key=b51ada
        "#]],
    );
}

#[test]
fn while_a_run_is_paused_what_is_let_in_waits() {
    check(
        one(", moderation: input").pause().judged("a", Verdict::Clear).show_due().unpause(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 run.status.changed paused (operator) by ada
            5 node.log a input cleared
            due: 
            6 run.status.changed running (operator) by ada
            7 node.started a attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn what_is_flagged_on_its_way_out_fails_and_its_cost_is_kept() {
    let answer = Answer { text: Some("rude".to_owned()), ..super::outputs_of(json!({"n": 1})) };
    check(
        one(", moderation: output, retry: {attempts: 3, retry_on: [provider_error]}")
            .says("a", answer, rude())
            .show(|world| format!("tokens: {}", world.run.steps[0].usage.input_tokens)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 moderation.flagged a output {"phrase":"rude","outcome":"flagged"}
            5 node.failed a moderation_blocked: moderation_blocked
            6 run.failed moderation_blocked: `a` failed: moderation_blocked
            tokens: 1
        "#]],
    );
}

#[test]
fn what_is_let_out_is_noted_with_its_digest() {
    check(
        one(", moderation: output").says("a", words("x"), Verdict::Clear),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a output cleared
            5 node.completed a {}
            6 run.completed {}
        "#]],
    );
}

#[test]
fn an_unchecked_answer_counts_as_flagged() {
    check(
        one(", moderation: output").text("a", "x"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 moderation.flagged a output {"outcome":"unavailable","reason":"the answer was not checked"}
        5 node.failed a moderation_blocked: moderation_blocked
        6 run.failed moderation_blocked: `a` failed: moderation_blocked
    "#]],
    );
}

#[test]
fn a_failure_that_was_not_flagged_is_a_failure_like_any_other() {
    let broken = Answer::failed(CallErrorCode::ProviderError, "it broke");
    check(
        one(", moderation: output, retry: {attempts: 2, backoff_ms: 0}")
            .fail("a", CallErrorCode::ProviderError)
            .says("a", broken, rude()),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=0
            5 node.waiting a retry_backoff attempt=2 provider_error delay=0
            6 node.started a attempt=2 dispatch=2
            7 moderation.flagged a output {"phrase":"rude","outcome":"flagged"}
            8 node.failed a moderation_blocked: moderation_blocked
            9 run.failed moderation_blocked: `a` failed: moderation_blocked
        "#]],
    );
}

#[test]
fn a_verdict_about_a_step_that_is_not_moderated_changes_nothing() {
    check(
        one("").says("a", words("x"), rude()),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 node.completed a {}
        5 run.completed {}
    "#]],
    );
}

#[test]
fn what_a_child_run_comes_to_is_judged_too() {
    let ended = |verdict: Verdict| {
        Script::flow("steps: [{id: a, workflow_ref: other, moderation: both}]")
            .knows("other")
            .judged("a", Verdict::Clear)
            .turn(move |world| {
                let command = Command::ChildEnded {
                    child: world.child_of("a"),
                    status: RunStatus::Completed,
                    outputs: Some(json!({"said": "x"})),
                    error: None,
                    origins: Vec::new(),
                    labels: None,
                };
                let subject = world.run.output_subject(&command).expect("it is moderated");
                assert_eq!(subject.text, "said\nx");
                Command::Checked { command: Box::new(command), verdict: verdict.clone() }
            })
    };
    check(
        ended(Verdict::Clear),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 node.log a input cleared
            5 node.started a attempt=1 dispatch=1 child1
            6 node.log a output cleared
            7 node.provenance a outputs <- child1 outputs
            8 node.completed a {"said":"x"}
            9 run.completed {}
        "#]],
    );
    check(
        ended(rude()),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.log a the moderator is asked (prepared)
            4 node.log a input cleared
            5 node.started a attempt=1 dispatch=1 child1
            6 moderation.flagged a output {"phrase":"rude","outcome":"flagged"}
            7 node.failed a moderation_blocked: moderation_blocked
            8 run.failed moderation_blocked: `a` failed: moderation_blocked
        "#]],
    );
}

#[test]
fn a_dry_run_asks_no_moderator() {
    let script = one(", moderation: both").starting(|started| started.posture = Posture::Advisory);
    check(
        script,
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.skipped a advisory: dry run: this step would be sent
        4 run.completed {}
    "#]],
    );
}
