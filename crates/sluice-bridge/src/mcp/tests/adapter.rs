//! Steps that call a tool.

use super::*;
use crate::fake_call::{FakeCall, answer, error, request};
use crate::mcp::adapter::McpAdapter;
use sluice_core::port::adapter::{
    Adapter as _, CallErrorCode, Emission, Request, ToolEnded, ToolUse,
};
use sluice_govern::catalog::ToolState;

/// Answers with its input.
#[derive(Debug)]
struct EchoTools;

impl ToolServer for EchoTools {
    fn name(&self) -> &str {
        "bird"
    }

    fn reads_only(&self, tool: &str) -> bool {
        tool == "bird.look"
    }

    fn state<'a>(&'a self, tool: &'a str) -> Later<'a, Result<ToolState, ToolServerError>> {
        Box::pin(std::future::ready(match tool {
            "bird.new" => Ok(ToolState::New),
            "bird.changed" => Ok(ToolState::Changed),
            "bird.unlisted" => Err(ToolServerError("its tools cannot be listed".to_owned())),
            _ => Ok(ToolState::Accepted),
        }))
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        Box::pin(std::future::ready(Ok(Arc::from([]))))
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        _: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolServerError>> {
        Box::pin(async move {
            let answer = match tool {
                "bird.hang" => std::future::pending().await,
                "bird.gone" => Err(ToolServerError("it flew away".to_owned())),
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
            };
            answer.map(|answer| (answer, None))
        })
    }
}

fn adapter() -> McpAdapter {
    McpAdapter::new(vec![Arc::new(EchoTools)])
}

fn step(tool: &str, message: &str) -> Request {
    Request { tools: vec![tool.to_owned()], ..request("a", message) }
}

#[tokio::test]
async fn a_step_calls_its_tool_with_its_input() {
    let call = FakeCall::default();
    let said = answer(&adapter(), &step("bird.say", r#" {"word": "hi"} "#), &call).await;
    assert_eq!((said.error, said.text.as_deref()), (None, Some(r#"{"word":"hi"}"#)));
    assert_eq!(Value::Object(said.outputs.unwrap()), json!({"word": "hi"}));
    assert_eq!(said.conversation.len(), 2);
    let input = json!({"word": "hi"});
    let wanted = ToolUse { id: "call_1".to_owned(), tool: "bird.say".to_owned(), input };
    assert_eq!(call.requested(), [wanted]);
    let [Emission::ToolEnded(ToolEnded { failed: false, bytes: 13, .. })] = &call.emitted()[..]
    else {
        panic!("{:?}", call.emitted());
    };
}

#[tokio::test]
async fn an_image_of_a_tool_is_passed_on() {
    let call = FakeCall::default();
    let said = answer(&adapter(), &step("bird.draw", "{}"), &call).await;
    let (url, mime) = ("data:image/png;base64,aGk=".to_owned(), "image/png".to_owned());
    assert_eq!(said.media, Some(json!({"url": url, "mime": mime})));
    assert_eq!(said.artefacts, [json!({"mime": "image/png", "bytes": 2, "data": "aGk="})]);
    assert_eq!(call.emitted().last(), Some(&Emission::Media { url, mime }));
}

#[tokio::test]
async fn stdin_wins_and_text_becomes_an_input() {
    let piped = |stdin: &str| Request { stdin: Some(stdin.to_owned()), ..step("bird.say", "go") };
    for (request, text) in [
        (step("bird.say", "go"), r#"{"input":"go"}"#),
        (piped(" \n"), r#"{"input":"go"}"#),
        (piped("{\"a\": 1}\n"), r#"{"a":1}"#),
        (piped("[1]"), r#"{"input":"[1]"}"#),
        (piped("see {\"a\": 1}"), r#"{"input":"see {\"a\": 1}"}"#),
    ] {
        let said = answer(&adapter(), &request, &FakeCall::default()).await;
        assert_eq!(said.text.as_deref(), Some(text));
    }
}

#[tokio::test]
async fn a_tool_that_is_denied_is_not_called() {
    let call = FakeCall::denying(&["bird.say"]);
    let said = answer(&adapter(), &step("bird.say", "go"), &call).await;
    let told = "`bird.say` may not be called: a policy denies it";
    assert_eq!(error(&said), (CallErrorCode::InvalidRequest, told));
    assert_eq!(call.emitted(), []);
}

#[tokio::test]
async fn a_tool_is_not_called_before_its_definition_is_accepted() {
    for (tool, code, told) in [
        ("bird.new", CallErrorCode::ToolNotAccepted, "tool_not_accepted: `bird.new`"),
        ("bird.changed", CallErrorCode::ToolDefinitionChanged, "tool_definition_changed: `bird"),
        ("bird.unlisted", CallErrorCode::ProviderError, "its tools cannot be listed"),
    ] {
        let call = FakeCall::default();
        let said = answer(&adapter(), &step(tool, "go"), &call).await;
        let (found, why) = error(&said);
        assert!(found == code && why.contains(told), "{tool}: {found} {why}");
        let [Emission::ToolEnded(ToolEnded { failed: true, bytes: 0, .. })] = &call.emitted()[..]
        else {
            panic!("{:?}", call.emitted());
        };
    }
}

#[tokio::test]
async fn a_step_must_name_exactly_one_tool() {
    let none = request("a", "go");
    let two = Request { tools: vec!["bird.a".to_owned(), "bird.b".to_owned()], ..none.clone() };
    for (request, told) in [
        (none, "an `mcp` step must name exactly one tool in `tools`, found 0"),
        (two, "an `mcp` step must name exactly one tool in `tools`, found 2"),
        (step("bird.*", "go"), "`bird.*` is not the name of one tool, such as `server.tool`"),
        (step("bird", "go"), "`bird` is not the name of one tool, such as `server.tool`"),
        (step("cat.say", "go"), "this gateway has no tool server for `cat.say`"),
    ] {
        let call = FakeCall::default();
        let said = answer(&adapter(), &request, &call).await;
        assert_eq!(error(&said), (CallErrorCode::InvalidRequest, told));
        assert_eq!(call.requested(), []);
    }
}

#[tokio::test]
async fn a_tool_that_fails_fails_the_step() {
    let call = FakeCall::default();
    let said = answer(&adapter(), &step("bird.fail", "{}"), &call).await;
    assert_eq!(error(&said), (CallErrorCode::ProviderError, "`bird.fail` failed: {}"));
    assert_eq!((said.text.as_deref(), said.outputs), (Some("{}"), None));
    let said = answer(&adapter(), &step("bird.gone", "{}"), &call).await;
    assert_eq!(error(&said), (CallErrorCode::ProviderError, "it flew away"));
    let failed = |one: &Emission| matches!(one, Emission::ToolEnded(ended) if ended.failed);
    assert_eq!(call.emitted().iter().filter(|one| failed(one)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_cancelled_or_timed_out() {
    let adapter = adapter();
    let said = answer(&adapter, &step("bird.hang", "{}"), &FakeCall::default()).await;
    let told = "the tool did not answer within 60000 ms";
    assert_eq!(error(&said), (CallErrorCode::Timeout, told));
    let call = FakeCall::default();
    call.cancel();
    let said = answer(&adapter, &step("bird.hang", "{}"), &call).await;
    assert_eq!(error(&said).0, CallErrorCode::Cancelled);
    assert_eq!((adapter.provider(), adapter.capabilities().cancel), ("mcp", true));
}

#[tokio::test]
async fn a_read_only_step_calls_only_tools_declared_read_only() {
    for (tool, may) in [("bird.look", true), ("bird.say", false)] {
        let mut step = step(tool, "x");
        step.constraints.data_access = Some("read_only".to_owned());
        let said = answer(&adapter(), &step, &FakeCall::default()).await;
        match may {
            true => assert_eq!(said.error, None, "{tool}"),
            false => assert_eq!(error(&said).0, CallErrorCode::InvalidRequest, "{tool}"),
        }
    }
}
