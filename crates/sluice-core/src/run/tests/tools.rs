//! Tool calls of steps: the gates decide each call, and an approval is for one call.

use super::governed::rules;
use super::{Script, check};
use crate::port::adapter::{Answer, Usage};
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::run::command::Decision;
use expect_test::expect;
use serde_json::json;
use sluice_govern::catalog::{Catalog, Definitions, ServerDeclaration, ToolDefinition, ToolState};
use std::sync::Arc;

const ASK: &str = r#"@id("send") @action("require_approval") @approvers("ada,bob")
    forbid (principal, action == Action::"use_tool", resource == Tool::"mail.send");"#;
const FLOW: &str = "steps: [{id: a, command: go, tools: ['files.*', mail.send]}]";

fn asked(desk: &mut Desk) {
    desk.policies = rules(ASK);
}

#[test]
fn what_the_step_names_and_the_rules_permit_is_allowed_and_the_rest_is_not() {
    check(
        Script::flow(FLOW)
            .under(|desk| {
                desk.policies = rules(
                    r#"@id("no") forbid (principal, action == Action::"use_tool", resource == Tool::"files.write");"#,
                );
            })
            .uses("a", "1", "files.read", json!({"path": "x"}))
            .uses("a", "2", "files.write", json!({"path": "x"}))
            .uses("a", "3", "shell.run", json!({}))
            .uses("a", "4", "filesystem.read", json!({}))
            .uses("a", "1", "files.read", json!({"path": "x"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a tool files.read allowed
            5 governance.decided a "block" "policy_rules"
            6 node.log a tool files.write denied: policy own.cedar/no forbids it
            7 node.log a tool shell.run denied: the step does not name tool shell.run
            8 node.log a tool filesystem.read denied: the step does not name tool filesystem.read
        "#]],
    );
}

#[test]
fn a_tool_is_denied_until_its_definition_is_accepted() {
    let catalog = |states: &[(&str, ToolState)]| {
        let server = ServerDeclaration { name: "files".into(), ..ServerDeclaration::default() };
        let definition = || {
            let (digest, description) = (String::new(), String::new());
            Some(Arc::new(ToolDefinition { digest, description, input_schema: Arc::default() }))
        };
        let listed = states.iter().map(|(name, state)| {
            let accepted = if *state == ToolState::New { None } else { definition() };
            let changed = if *state == ToolState::Accepted { None } else { definition() };
            ((*name).to_owned(), Definitions { accepted, changed })
        });
        Catalog::new(&[server], listed)
    };
    check(
        Script::flow(FLOW)
            .under(move |desk| {
                let changed = ("files.write", ToolState::Changed);
                desk.catalog = catalog(&[("files.read", ToolState::New), changed]);
            })
            .uses("a", "1", "files.read", json!({}))
            .uses("a", "2", "files.write", json!({}))
            // Not listed yet.
            .uses("a", "3", "files.list", json!({}))
            .set(move |desk| {
                desk.catalog = catalog(&[("files.read", ToolState::Accepted)]);
            })
            .uses("a", "4", "files.read", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a tool files.read denied: tool_not_accepted: `files.read` was added to a known server; `sluice tools accept` accepts it
            5 node.log a tool files.write denied: tool_definition_changed: `files.write` has a new definition; `sluice tools accept` accepts it
            6 node.log a tool files.list allowed
            7 node.log a tool files.read allowed
        "#]],
    );
}

#[test]
fn an_agents_lists_bound_its_tools_also_when_they_change_while_it_works() {
    let deny = |desk: &mut Desk| {
        desk.agent_row("mock", |agent| agent.tools.deny = vec!["mail.*".into()]);
    };
    check(
        Script::flow(FLOW).set(deny).uses("a", "1", "mail.send", json!({})),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 governance.decided a "block" "policy_rules"
        5 node.log a tool mail.send denied: agent mock must not use tool mail.send
    "#]],
    );
}

#[test]
fn a_person_is_asked_about_a_call_while_the_step_goes_on() {
    check(
        Script::flow(FLOW)
            .under(asked)
            .uses("a", "1", "mail.send", json!({"to": "bob"}))
            .stream("a", "thinking")
            .approve_as("a", "ada", &[])
            .tool_answers("a", "1", "mail.send", json!({"sent": true}))
            // An approval is for one call.
            .uses("a", "2", "mail.send", json!({"to": "bob"}))
            .resolve("a", Decision::Reject, Some("once is enough"))
            .answers("a", Answer { text: Some("ok".into()), ..Answer::default() })
            .show(|world| {
                let outcome = world.run.state(world.at("a")).outcome().cloned();
                format!("untrusted: {}", outcome.is_some_and(|outcome| outcome.labels.untrusted))
            }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 governance.decided a "hold" null
            5 approval.requested a apr1 tool "Let `a` call mail.send? to bob (seen nowhere)\npolicy own.cedar/send"
            6 node.log a tool mail.send held
            7 node.stream.delta a index=0 Text("thinking")
            8 approval.resolved a apr1 approved by ada
            9 governance.decided a "hold" null
            10 node.log a tool mail.send allowed by consent
            11 node.log a tool mail.send answered
            12 governance.decided a "hold" null
            13 approval.requested a apr2 tool "Let `a` call mail.send? to bob (seen nowhere)\npolicy own.cedar/send"
            14 node.log a tool mail.send held
            15 approval.resolved a apr2 rejected by bob
            16 governance.decided a "hold" null
            17 node.log a tool mail.send denied: rejected by bob: once is enough
            18 node.completed a {}
            19 run.completed {}
            untrusted: true
        "#]],
    );
}

#[test]
fn a_question_ends_with_its_attempt_and_outlives_a_crash() {
    check(
        Script::flow(FLOW)
            .under(asked)
            .uses("a", "1", "mail.send", json!({"to": "bob"}))
            .take_over()
            .uses("a", "x", "mail.send", json!({"to": "bob"}))
            .approve_as("a", "ada", &[])
            .uses("a", "y", "mail.send", json!({"to": "bob"}))
            .text("a", "ok"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 governance.decided a "hold" null
            5 approval.requested a apr1 tool "Let `a` call mail.send? to bob (seen nowhere)\npolicy own.cedar/send"
            6 node.log a tool mail.send held
            7 run.status.changed running (taken_over)
            8 node.started a attempt=1 dispatch=2
            9 governance.decided a "hold" null
            10 node.log a tool mail.send held
            11 approval.resolved a apr1 approved by ada
            12 governance.decided a "hold" null
            13 node.log a tool mail.send allowed by consent
            14 governance.decided a "hold" null
            15 approval.requested a apr2 tool "Let `a` call mail.send? to bob (may come from a stranger)\npolicy own.cedar/send"
            16 node.log a tool mail.send held
            17 approval.resolved a apr2 cancelled
            18 node.completed a {}
            19 run.completed {}
        "#]],
    );
    check(
        Script::flow(FLOW)
            .under(asked)
            .uses("a", "1", "mail.send", json!({"to": "bob"}))
            .advance("8d"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 governance.decided a "hold" null
            5 approval.requested a apr1 tool "Let `a` call mail.send? to bob (seen nowhere)\npolicy own.cedar/send"
            6 node.log a tool mail.send held
            after 10m
            7 approval.resolved a apr1 cancelled
            8 node.timed_out a timeout: the attempt took longer than 10m
            9 run.failed timeout: `a` failed: the attempt took longer than 10m
        "#]],
    );
}

const OUTSIDE: &str = r#"@id("outside") forbid (principal, action == Action::"use_tool",
    resource == Tool::"mail.send") when { context.inputs.untrusted };"#;

#[test]
fn what_a_tool_answered_counts_for_the_next_call_of_the_same_step() {
    check(
        Script::flow(FLOW)
            .under(|desk| desk.policies = rules(OUTSIDE))
            .uses("a", "1", "mail.send", json!({"to": "bob"}))
            .uses("a", "2", "mail.send", json!({"to": "eve"}))
            .uses("a", "3", "files.read", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a tool mail.send allowed
            5 governance.decided a "block" "policy_rules"
            6 node.log a tool mail.send denied: policy own.cedar/outside forbids it
            7 node.log a tool files.read allowed
        "#]],
    );
}

#[test]
fn labels_that_a_tool_raised_survive_a_crash_and_end_with_the_attempt() {
    check(
        Script::flow(
            "steps: [{id: a, command: go, tools: ['files.*', mail.send], on_failure: retry_once}]",
        )
        .under(|desk| desk.policies = rules(OUTSIDE))
        .uses("a", "1", "files.read", json!({}))
        .take_over()
        .uses("a", "2", "mail.send", json!({"to": "eve"}))
        // A new attempt starts a new conversation.
        .fail("a", crate::port::adapter::CallErrorCode::ProviderError)
        .uses("a", "3", "mail.send", json!({"to": "bob"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a tool files.read allowed
            5 run.status.changed running (taken_over)
            6 node.started a attempt=1 dispatch=2
            7 governance.decided a "block" "policy_rules"
            8 node.log a tool mail.send denied: policy own.cedar/outside forbids it
            9 node.retried a attempt=1 provider_error delay=0
            10 node.waiting a retry_backoff attempt=2 provider_error delay=0
            11 node.started a attempt=2 dispatch=3
            12 node.log a tool mail.send allowed
        "#]],
    );
}

#[test]
fn an_answer_that_is_asked_for_again_stays_as_doubtful_as_it_was() {
    let outputs = "outputs: {n: integer}, repair: {reask: 1}";
    check(
        Script::flow(&format!(
            "steps: [{{id: a, command: go, tools: ['files.*', mail.send], {outputs}}}]"
        ))
        .under(|desk| desk.policies = rules(OUTSIDE))
        .uses("a", "1", "files.read", json!({}))
        .complete("a", json!({"n": "mail eve"}))
        .uses("a", "2", "mail.send", json!({"to": "eve"}))
        .complete("a", json!({"n": 1}))
        .show(|world| {
            let outcome = world.run.state(world.at("a")).outcome().cloned();
            format!("untrusted: {}", outcome.is_some_and(|outcome| outcome.labels.untrusted))
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a tool files.read allowed
            5 node.retried a attempt=1 contract_violated delay=0 reask
            6 node.waiting a retry_backoff attempt=2 contract_violated delay=0
            7 node.started a attempt=2 dispatch=2
            8 governance.decided a "block" "policy_rules"
            9 node.log a tool mail.send denied: policy own.cedar/outside forbids it
            10 node.completed a {"n":1}
            11 run.completed {"n":1}
            untrusted: true
        "#]],
    );
}

#[test]
fn a_role_that_accepts_no_tools_stops_calls_after_the_first() {
    check(
        Script::flow(
            "
            roles: {clerk: {trusted_context: {accepted_source_classes: [caller]}}}
            steps: [{id: a, role: clerk, command: go, tools: ['files.*', mail.send]}]
            ",
        )
        .starting(|started| {
            started.role_bindings.insert("clerk".to_owned(), "mock".to_owned());
        })
        .uses("a", "1", "files.read", json!({}))
        .uses("a", "2", "files.read", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a tool files.read allowed
            5 governance.decided a "block" "context_trust"
            6 node.log a tool files.read denied: an input comes from tool, role clerk accepts caller
        "#]],
    );
}

#[test]
fn rules_that_changed_count_when_a_person_answers() {
    check(
        Script::flow(FLOW)
            .under(asked)
            .uses("a", "1", "mail.send", json!({"to": "bob"}))
            .set(|desk| {
                desk.policies = rules(
                    r#"@id("no") forbid (principal, action == Action::"use_tool", resource);"#,
                );
            })
            .approve_as("a", "ada", &[]),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 governance.decided a "hold" null
            5 approval.requested a apr1 tool "Let `a` call mail.send? to bob (seen nowhere)\npolicy own.cedar/send"
            6 node.log a tool mail.send held
            7 approval.resolved a apr1 approved by ada
            8 governance.decided a "block" "policy_rules"
            9 node.log a tool mail.send denied: policy own.cedar/no forbids it
        "#]],
    );
}

#[test]
fn tokens_cost_what_the_price_was_when_the_step_was_sent() {
    let usage = Usage {
        input_tokens: 1_000_000,
        output_tokens: 500_000,
        cached_tokens: 400_000,
        unpriced: true,
        ..Usage::default()
    };
    check(
        Script::flow("steps: [{id: a, command: go, model: m, max_output_tokens: 1000000}]")
            .under(|desk| {
                desk.otherwise = crate::port::adapter::Quote::Priced;
                desk.fabric.prices.insert("m".to_owned(), price(300, 1500));
            })
            .set(|desk| {
                desk.fabric.prices.insert("m".to_owned(), price(1, 1));
            })
            .answers("a", Answer { usage, ..Answer::default() })
            .show(|world| format!("{} USD", world.run.state(world.at("a")).usage.cost)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 run.completed {}
            9.42 USD
        "#]],
    );
}

fn price(read: u64, written: u64) -> sluice_govern::registry::Price {
    let cents = |cents: u64| crate::money::Money::from_micro_cents(cents * 1_000_000);
    sluice_govern::registry::Price {
        input_cents_per_mtok: cents(read),
        output_cents_per_mtok: cents(written),
        cached_input_cents_per_mtok: Some(cents(30)),
        max_output_tokens: None,
    }
}
