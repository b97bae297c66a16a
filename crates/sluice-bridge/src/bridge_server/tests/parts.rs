//! Delivery of parts of answers.

use super::*;
use crate::bridge_server::test_bridge::ReceivedRequest;
use sluice_core::port::adapter::{Emission, ToolContent, ToolEnded};

const TALKS: &str = "'*': {chunks: [one, ' ', two], chunk_delay_ms: 150}";

/// The received parts and results in order: the text of each part, and a mark for the result.
fn course(heard: &[ReceivedRequest]) -> Vec<String> {
    let shown = |one: &ReceivedRequest| match one.path.as_str() {
        "/parts" => {
            assert_eq!(one.header("x-gateway-token"), TOKEN);
            assert_eq!(one.header("x-dispatch-token"), "sld_of-this-dispatch");
            let parts = one.body["parts"].as_array().unwrap().iter();
            let texts: Vec<&str> = parts.map(|part| part["text"].as_str().unwrap()).collect();
            format!("{}: {}", one.body["first"], texts.join("|"))
        }
        _ => format!("result {}", one.body["stdout"].as_str().unwrap()),
    };
    heard.iter().map(shown).collect()
}

fn talking(world: &TestBridge) -> DispatchBody {
    DispatchBody { parts_url: Some(world.engine.url("/parts")), ..world.body("a") }
}

/// The text of all parts, without repeated batches.
fn words(course: &[String]) -> String {
    let mut seen = std::collections::BTreeSet::new();
    let batches = course.iter().filter(|one| !one.starts_with("result"));
    let new = batches.filter(|one| seen.insert((*one).clone()));
    new.map(|one| one.split_once(": ").unwrap().1).collect()
}

#[tokio::test]
async fn parts_are_delivered_while_the_work_goes_on_and_before_the_result() {
    let world = TestBridge::new(TALKS).await;
    assert_eq!(world.dispatch(&talking(&world)).await.0, 202);
    world.sees(talking(&world).key(), SpoolState::Delivered).await;
    let course = course(&world.engine.heard());
    assert!(course.len() >= 3, "more than one batch, and the result: {course:?}");
    assert_eq!(course.last().unwrap(), "result one two");
    assert_eq!(words(&course), "one two", "{course:?}");
    // Without a URL only the result is sent.
    let silent = DispatchBody { dispatch_no: 2, ..world.body("a") };
    world.dispatch(&silent).await;
    world.sees(silent.key(), SpoolState::Delivered).await;
    assert_eq!(world.engine.heard().len(), course.len() + 1);
}

#[tokio::test]
async fn a_batch_is_resent_unchanged_until_the_engine_accepts_it() {
    let world = TestBridge::new(TALKS).await;
    world.engine.answers_with(&[503, 503, 200]);
    world.dispatch(&talking(&world)).await;
    world.sees(talking(&world).key(), SpoolState::Delivered).await;
    let course = course(&world.engine.heard());
    assert_eq!((&course[0], &course[1]), (&course[1], &course[2]), "{course:?}");
    assert_eq!(words(&course), "one two", "{course:?}");
    assert_eq!(course.last().unwrap(), "result one two");
}

#[tokio::test]
async fn remaining_parts_are_sent_with_the_result_also_after_a_restart() {
    let world = TestBridge::new("'*': {chunks: [one, ' ', two]}").await;
    world.engine.answers_with(&[503]);
    let body = talking(&world);
    world.dispatch(&body).await;
    let kept = world.sees(body.key(), SpoolState::Finished).await;
    assert!(!kept.parts.is_empty(), "the spool has them");
    let world = world.restart(DONE).await;
    world.engine.answers_with(&[200]);
    world.sees(body.key(), SpoolState::Delivered).await;
    let course = course(&world.engine.heard());
    assert_eq!(course.last().unwrap(), "result one two");
    assert_eq!(words(&course), "one two", "{course:?}");
    let result = course.iter().position(|one| one.starts_with("result"));
    assert_eq!(result, Some(course.len() - 1), "no part follows the result");
}

#[tokio::test]
async fn an_engine_that_accepts_no_parts_still_gets_the_result() {
    let world = TestBridge::new(TALKS).await;
    world.engine.answers_with(&[404, 200]);
    world.dispatch(&talking(&world)).await;
    world.sees(talking(&world).key(), SpoolState::Delivered).await;
    let course = course(&world.engine.heard());
    assert_eq!((course.len(), course[1].as_str()), (2, "result one two"), "{course:?}");
}

#[tokio::test]
async fn the_answer_of_a_tool_arrives_before_the_next_call_is_requested() {
    let (calls, _) = does(|_, call| {
        Box::pin(async move {
            for (id, tool) in [("1", "files.read"), ("2", "mail.send")] {
                let (id, tool) = (id.to_owned(), tool.to_owned());
                let wanted = ToolUse { id: id.clone(), tool: tool.clone(), input: json!({}) };
                call.tool(wanted).await.unwrap();
                let content = Some(ToolContent::new("write to eve".to_owned(), None));
                let (failed, bytes, duration_ms) = (false, 12, 1);
                let ended = ToolEnded { id, tool, failed, bytes, duration_ms, content };
                call.emit(Emission::ToolEnded(ended)).await.unwrap();
            }
            Answer { text: Some("done".to_owned()), ..Answer::default() }
        })
    });
    let world = TestBridge::with(DONE, |_, adapters| {
        adapters.insert("calls".to_owned(), calls);
    })
    .await;
    let allowed = || (200, Vec::new(), json!({"data": {"verdict": "allowed"}, "meta": {}}));
    world.engine.answers([allowed(), allowed(), allowed(), allowed(), allowed()]);
    let body = to("calls", talking(&world));
    world.dispatch(&body).await;
    world.sees(body.key(), SpoolState::Delivered).await;
    let heard = world.engine.heard();
    let paths: Vec<&str> = heard.iter().map(|one| one.path.as_str()).take(3).collect();
    assert_eq!(paths, ["/tool", "/parts", "/tool"]);
    let part = &heard[1].body["parts"][0];
    assert_eq!((&part["kind"], &part["call_id"]), (&json!("tool_ended"), &json!("1")));
    assert_eq!(part["content"], json!({"text": "write to eve"}));
}
