//! Sessions of providers, which are continued if the row of the agent says so.

use super::governed::rules;
use super::world::World;
use super::{Script, check};
use crate::journal::event::{Event, StepEvent};
use crate::port::adapter::{Answer, CallErrorCode};
use crate::port::authority::fake::FakeAuthority as Desk;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{Gateway, SessionMode};

const LINE: &str = "
    steps:
      - {id: a, command: go}
      - {id: b, command: 'and ${a.stdout}'}
      - {id: c, command: 'then ${b.stdout}'}
";

fn continues(desk: &mut Desk) {
    desk.agent_row("mock", |row| row.session = SessionMode::Continue);
}

fn left(text: &str, session: &str) -> Answer {
    let session = Some(session.to_owned()).filter(|session| !session.is_empty());
    Answer { text: Some(text.to_owned()), session, ..Answer::default() }
}

/// The session that each dispatch carries, as sent and as journalled.
fn sessions(world: &World) -> String {
    let session = |event: &Event| match event {
        Event::Step(at, StepEvent::Started(dispatch)) => {
            let session = dispatch.session.as_deref().unwrap_or("-");
            Some(format!("{}: {session}", world.run.name(*at)))
        }
        _ => None,
    };
    let all: Vec<String> = world.journal.iter().filter_map(|(_, event)| session(event)).collect();
    for at in world.run.index.in_flight.keys() {
        assert_eq!(
            world.run.request(*at).session,
            world.run.state(*at).dispatch.as_ref().unwrap().session
        );
    }
    all.join(", ")
}

#[test]
fn an_agent_continues_its_last_session_only_where_its_row_says_so() {
    let line = |script: Script| {
        script.answers("a", left("x", "s1")).answers("b", left("y", "")).show(sessions).world()
    };
    assert_eq!(sessions(&line(Script::flow(LINE))), "a: -, b: -, c: -");
    let world = line(Script::flow(LINE).under(continues));
    assert_eq!(sessions(&world), "a: -, b: s1, c: s1", "one without a session ends none");
    let other = line(Script::flow(LINE).under(continues).set(|desk| {
        desk.agent_row("mock", |row| row.session = SessionMode::New);
    }));
    assert_eq!(sessions(&other), "a: -, b: -, c: -", "the row in force counts");
}

#[test]
fn a_retry_begins_where_its_step_began_and_an_answer_asked_again_goes_on() {
    let flow = "
        steps:
          - {id: a, command: go}
          - {id: b, command: 'and ${a.stdout}', on_failure: retry_once, outputs: {n: integer},
             repair: {reask: 1}}
    ";
    let failed = Script::flow(flow)
        .under(continues)
        .answers("a", left("x", "s1"))
        .fail("b", CallErrorCode::ProviderError)
        .world();
    assert_eq!(sessions(&failed), "a: -, b: s1, b: s1");
    let refused = Script::flow(flow)
        .under(continues)
        .answers("a", left("x", "s1"))
        .answers("b", left("y", "s2"))
        .world();
    assert_eq!(sessions(&refused), "a: -, b: s1, b: s2");
    let crashed =
        Script::flow(flow).under(continues).answers("a", left("x", "s1")).take_over().world();
    assert_eq!(sessions(&crashed), "a: -, b: s1, b: s1");
}

#[test]
fn a_session_is_not_taken_to_another_gateway_or_out_of_an_instance() {
    let moved = Script::flow(LINE)
        .under(continues)
        .answers("a", left("x", "s1"))
        .set(|desk| {
            desk.fabric.gateways.insert("other".to_owned(), Gateway::default());
            desk.agent_row("mock", |row| row.gateway = Some("other".to_owned()));
        })
        .answers("b", left("y", "s2"))
        .world();
    assert_eq!(sessions(&moved), "a: -, b: s1, c: -");
    let each = Script::flow(
        "
        steps:
          - {id: a, command: go, for_each: [1, 2], max_parallel: 1}
          - {id: b, command: 'and ${a.outputs}'}
        ",
    )
    .under(continues)
    .answers("a[0]", left("x", "s1"))
    .answers("a[1]", left("y", "s2"))
    .world();
    assert_eq!(sessions(&each), "a: -, a[0]: -, a[1]: -, b: -");
}

#[test]
fn a_session_carries_the_labels_of_the_step_that_left_it() {
    let outside = r#"@id("outside") forbid (principal, action == Action::"use_tool",
        resource == Tool::"mail.send") when { context.inputs.untrusted };"#;
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, tools: [web.fetch]}
              - {id: b, command: mail, tools: [mail.send], depends_on: [a]}
            ",
        )
        .under(continues)
        .set(move |desk| desk.policies = rules(outside))
        .uses("a", "1", "web.fetch", json!({}))
        .answers("a", left("x", "s1"))
        // The second step reads no output of the first one, only its session.
        .uses("b", "2", "mail.send", json!({}))
        .show(sessions),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a tool web.fetch allowed
            5 node.completed a {}
            6 node.queued b
            7 node.started b attempt=1 dispatch=1
            8 governance.decided b "block" "policy_rules"
            9 node.log b tool mail.send denied: policy own.cedar/outside forbids it
            a: -, b: s1
        "#]],
    );
}
