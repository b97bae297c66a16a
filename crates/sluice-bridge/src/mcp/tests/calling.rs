//! A step that calls a tool.

use super::*;
use crate::desk::{Desk, answer, error, request};
use crate::mcp::adapter::McpAdapter;
use sluice_core::port::adapter::{
    Adapter as _, CallErrorCode, Emission, Request, ToolEnded, ToolUse,
};

/// Says what it was called with.
#[derive(Debug)]
struct Parrot;

impl ToolServer for Parrot {
    fn name(&self) -> &str {
        "bird"
    }

    fn reads_only(&self, tool: &str) -> bool {
        tool == "bird.look"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolTrouble>> {
        Box::pin(std::future::ready(Ok(Arc::from([]))))
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        _: Place<'a>,
    ) -> Later<'a, Result<ToolAnswer, ToolTrouble>> {
        Box::pin(async move {
            match tool {
                "bird.hang" => std::future::pending().await,
                "bird.gone" => Err(ToolTrouble("it flew away".to_owned())),
                "bird.draw" => Ok(ToolAnswer {
                    text: "[image: image/png, 2 bytes]".to_owned(),
                    files: vec![crate::media::File {
                        mime: "image/png".to_owned(),
                        content: crate::media::FileContent::Base64("aGk=".to_owned()),
                    }],
                    ..ToolAnswer::default()
                }),
                _ => Ok(ToolAnswer {
                    text: input.to_string(),
                    failed: tool == "bird.fail",
                    ..ToolAnswer::default()
                }),
            }
        })
    }
}

fn adapter() -> McpAdapter {
    McpAdapter::new(vec![Arc::new(Parrot)])
}

fn step(tool: &str, message: &str) -> Request {
    Request { tools: vec![tool.to_owned()], ..request("a", message) }
}

#[tokio::test]
async fn a_step_calls_its_tool_with_what_it_is_given() {
    let desk = Desk::default();
    let said = answer(&adapter(), &step("bird.say", r#" {"word": "hi"} "#), &desk).await;
    assert_eq!((said.error, said.text.as_deref()), (None, Some(r#"{"word":"hi"}"#)));
    assert_eq!(Value::Object(said.outputs.unwrap()), json!({"word": "hi"}));
    assert_eq!(said.conversation.len(), 2);
    let input = json!({"word": "hi"});
    let wanted = ToolUse { id: "call_1".to_owned(), tool: "bird.say".to_owned(), input };
    assert_eq!(desk.asked(), [wanted]);
    let [Emission::ToolEnded(ToolEnded { failed: false, bytes: 13, .. })] = &desk.emitted()[..]
    else {
        panic!("{:?}", desk.emitted());
    };
}

#[tokio::test]
async fn a_picture_of_a_tool_is_handed_on() {
    let desk = Desk::default();
    let said = answer(&adapter(), &step("bird.draw", "{}"), &desk).await;
    let (url, mime) = ("data:image/png;base64,aGk=".to_owned(), "image/png".to_owned());
    assert_eq!(said.media, Some(json!({"url": url, "mime": mime})));
    assert_eq!(said.artefacts, [json!({"mime": "image/png", "bytes": 2, "data": "aGk="})]);
    assert_eq!(desk.emitted().last(), Some(&Emission::Media { url, mime }));
}

#[tokio::test]
async fn what_is_piped_in_wins_and_text_becomes_an_input() {
    let piped = |stdin: &str| Request { stdin: Some(stdin.to_owned()), ..step("bird.say", "go") };
    for (request, text) in [
        (step("bird.say", "go"), r#"{"input":"go"}"#),
        (piped(" \n"), r#"{"input":"go"}"#),
        (piped("{\"a\": 1}\n"), r#"{"a":1}"#),
        (piped("[1]"), r#"{"input":"[1]"}"#),
        (piped("see {\"a\": 1}"), r#"{"input":"see {\"a\": 1}"}"#),
    ] {
        let said = answer(&adapter(), &request, &Desk::default()).await;
        assert_eq!(said.text.as_deref(), Some(text));
    }
}

#[tokio::test]
async fn a_tool_that_is_denied_is_not_called() {
    let desk = Desk::denying(&["bird.say"]);
    let said = answer(&adapter(), &step("bird.say", "go"), &desk).await;
    let told = "`bird.say` may not be called: a rule says no";
    assert_eq!(error(&said), (CallErrorCode::InvalidRequest, told));
    assert_eq!(desk.emitted(), []);
}

#[tokio::test]
async fn a_step_that_names_no_one_tool_is_refused_before_anybody_is_asked() {
    let none = request("a", "go");
    let two = Request { tools: vec!["bird.a".to_owned(), "bird.b".to_owned()], ..none.clone() };
    for (request, told) in [
        (none, "a step here calls one tool, and 0 are named in `tools`"),
        (two, "a step here calls one tool, and 2 are named in `tools`"),
        (step("bird.*", "go"), "`bird.*` is not the name of one tool, such as `server.tool`"),
        (step("bird", "go"), "`bird` is not the name of one tool, such as `server.tool`"),
        (step("cat.say", "go"), "this gateway has no server of tools for `cat.say`"),
    ] {
        let desk = Desk::default();
        let said = answer(&adapter(), &request, &desk).await;
        assert_eq!(error(&said), (CallErrorCode::InvalidRequest, told));
        assert_eq!(desk.asked(), []);
    }
}

#[tokio::test]
async fn a_tool_that_fails_fails_the_step() {
    let desk = Desk::default();
    let said = answer(&adapter(), &step("bird.fail", "{}"), &desk).await;
    assert_eq!(error(&said), (CallErrorCode::ProviderError, "`bird.fail` failed: {}"));
    assert_eq!((said.text.as_deref(), said.outputs), (Some("{}"), None));
    let said = answer(&adapter(), &step("bird.gone", "{}"), &desk).await;
    assert_eq!(error(&said), (CallErrorCode::ProviderError, "it flew away"));
    let failed = |one: &Emission| matches!(one, Emission::ToolEnded(ended) if ended.failed);
    assert_eq!(desk.emitted().iter().filter(|one| failed(one)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_cancelled_or_timed_out() {
    let adapter = adapter();
    let said = answer(&adapter, &step("bird.hang", "{}"), &Desk::default()).await;
    let told = "the tool did not answer within 60000 ms";
    assert_eq!(error(&said), (CallErrorCode::Timeout, told));
    let desk = Desk::default();
    desk.cancel();
    let said = answer(&adapter, &step("bird.hang", "{}"), &desk).await;
    assert_eq!(error(&said).0, CallErrorCode::Cancelled);
    assert_eq!((adapter.provider(), adapter.capabilities().cancel), ("mcp", true));
}

#[tokio::test]
async fn a_step_that_may_only_read_calls_what_the_operator_says_only_reads() {
    for (tool, may) in [("bird.look", true), ("bird.say", false)] {
        let mut step = step(tool, "x");
        step.constraints.data_access = Some("read_only".to_owned());
        let said = answer(&adapter(), &step, &Desk::default()).await;
        match may {
            true => assert_eq!(said.error, None, "{tool}"),
            false => assert_eq!(error(&said).0, CallErrorCode::InvalidRequest, "{tool}"),
        }
    }
}
