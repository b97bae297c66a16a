//! The suite on the adapters that ship, on the template, and on broken ones.

mod broken;
#[path = "../../../../examples/adapter/echo.rs"]
#[expect(unreachable_pub, reason = "it is public where it is copied to")]
mod echo;
mod providers;

use super::adapter::{
    AdapterUnderTest, Count, MakeRequest, Tooling, check, check_case, names, request,
};
use super::{CaseVerdict, Report};
use crate::directory::{AdapterContext, Connection};
use crate::http::HttpAdapter;
use crate::mock::{MockAdapter, Script};
use crate::model::ModelAdapter;
use crate::secret::keyring::Keyring;
use crate::shell::{Config, ShellAdapter, Workspace};
use broken::{Broken, FAULTS};
use expect_test::{Expect, expect};
use sluice_core::port::adapter::{Adapter, Request};
use std::sync::Arc;
use std::time::Duration;

/// A report for people, without the passed cases.
fn drawn(report: &Report) -> String {
    let (passed, failed, skipped) = report.counts();
    let mut drawn = format!("{passed} passed, {failed} failed, {skipped} skipped\n");
    for case in &report.cases {
        match &case.verdict {
            CaseVerdict::Passed => {}
            CaseVerdict::Failed(why) => drawn += &format!("failed: {}: {why}\n", case.case),
            CaseVerdict::Skipped(why) => drawn += &format!("skipped: {}: {why}\n", case.case),
        }
    }
    drawn
}

/// The report of an adapter without streaming and tools.
fn without_streams() -> Expect {
    expect![[r#"
        10 passed, 0 failed, 6 skipped
        skipped: the text of the answer is what was streamed: the subject has no request with a streamed answer
        skipped: what is emitted is handed over before the answer: the subject has no request with a streamed answer
        skipped: nothing is emitted once the engine stops listening, and the call ends: the subject has no request with a streamed answer
        skipped: a call that takes too long says timeout: it has no timeout of its own; the engine drops the call
        skipped: a tool is asked for before it is called: the subject has no request that needs a tool
        skipped: a tool that is denied is not called: the subject has no request that needs a tool
    "#]]
}

async fn shows(subject: AdapterUnderTest, expected: Expect) {
    let report = check(&subject).await;
    expected.assert_eq(&drawn(&report));
    assert!(report.passed());
}

fn says(change: impl Fn(&str) -> Request + Send + Sync + 'static) -> MakeRequest {
    Arc::new(change)
}

fn at(step: &str) -> Request {
    Request { step: step.to_owned(), ..request("do it") }
}

#[tokio::test]
async fn the_scripted_adapter_passes() {
    let script = "{echo: {echo: true}, parts: {chunks: [a, b, c], chunk_delay_ms: 2}, \
                  slow: {hang: true}, bad: {error: no, error_code: provider_error}}";
    let adapter = Arc::new(MockAdapter::new(Script::parse(script).unwrap()));
    let echo = says(|text| Request { message: text.to_owned(), ..at("echo") });
    let subject = AdapterUnderTest {
        streams: Some(at("parts")),
        fails: Some(at("bad")),
        ..AdapterUnderTest::new(adapter, echo, at("slow"))
    };
    shows(subject, expect![[r#"
        12 passed, 0 failed, 4 skipped
        skipped: a call that is dropped does not go on: the subject has no `underway` to observe its work
        skipped: a call that takes too long says timeout: it has no timeout of its own; the engine drops the call
        skipped: a tool is asked for before it is called: the subject has no request that needs a tool
        skipped: a tool that is denied is not called: the subject has no request that needs a tool
    "#]]).await;
}

#[tokio::test]
async fn the_shell_passes() {
    let workspace = tempfile::tempdir().unwrap();
    let config = Config::new(Workspace::Shared(workspace.path().to_owned()));
    let quoted = |text: &str| format!("printf %s '{}'", text.replace('\'', r"'\''"));
    let pid = workspace.path().join("pid");
    let alive = move || {
        let pid = std::fs::read_to_string(&pid).ok()?.trim().parse().ok()?;
        let pid = rustix::process::Pid::from_raw(pid)?;
        rustix::process::test_kill_process(pid).ok()
    };
    let underway: Count = Arc::new(move || usize::from(alive().is_some()));
    let adapter = Arc::new(ShellAdapter::new(config));
    let slow = request("echo $$ > pid; exec sleep 20");
    let subject = AdapterUnderTest {
        streams: Some(request("printf a; sleep 0.05; printf b")),
        fails: Some(request("echo broken >&2; exit 3")),
        underway: Some(underway),
        ..AdapterUnderTest::new(adapter, says(move |text| request(&quoted(text))), slow)
    };
    shows(subject, expect![[r#"
        13 passed, 0 failed, 3 skipped
        skipped: a call that takes too long says timeout: it has no timeout of its own; the engine drops the call
        skipped: a tool is asked for before it is called: the subject has no request that needs a tool
        skipped: a tool that is denied is not called: the subject has no request that needs a tool
    "#]]).await;
}

#[tokio::test]
async fn the_http_adapter_passes() {
    let server = providers::Server::new().await;
    let connection = Connection {
        provider: "http".to_owned(),
        base_url: Some(server.url("/work")),
        ..Connection::default()
    };
    let wire = crate::bridge_server::test_bridge::local();
    let adapter = HttpAdapter::new("gateway", &connection, None, wire).unwrap();
    let subject = AdapterUnderTest {
        fails: Some(request("fail")),
        underway: Some(server.underway()),
        ..AdapterUnderTest::new(Arc::new(adapter), says(request), request("slow"))
    };
    shows(subject, without_streams()).await;
}

#[tokio::test]
async fn the_http_agent_passes() {
    let server = providers::Server::new().await;
    let url = server.url("/work");
    let sent = move |text: &str| request(&format!("{url}\n{text}"));
    let adapter = HttpAdapter::by_command(crate::bridge_server::test_bridge::local());
    let subject = AdapterUnderTest {
        fails: Some(sent("fail")),
        underway: Some(server.underway()),
        ..AdapterUnderTest::new(Arc::new(adapter), says(sent.clone()), sent("slow"))
    };
    shows(subject, without_streams()).await;
}

#[tokio::test]
async fn the_model_adapter_passes() {
    let server = providers::Server::new().await;
    let tool_server = providers::CountingToolServer::new();
    let kit = AdapterContext {
        wire: crate::bridge_server::test_bridge::local(),
        tool_servers: [("box".to_owned(), tool_server.server())].into(),
        secrets: Keyring::default(),
        callbacks: None,
    };
    let connection = Connection {
        provider: "openai".to_owned(),
        base_url: Some(server.url("/v1")),
        key: None,
        tool_servers: vec!["box".to_owned()],
    };
    let adapter = ModelAdapter::for_connection(&kit, &connection).unwrap();
    let asked = |text: &str| Request { model: Some("m".to_owned()), ..request(text) };
    let tools = vec!["box.*".to_owned()];
    let subject = AdapterUnderTest {
        streams: Some(asked("one two three")),
        fails: Some(asked("fail")),
        tools: Some(Tooling {
            request: Request { tools, ..asked("use a tool") },
            called: tool_server.called(),
        }),
        underway: Some(server.underway()),
        ..AdapterUnderTest::new(Arc::new(adapter), says(asked), asked("slow"))
    };
    shows(
        subject,
        expect![[r#"
            16 passed, 0 failed, 0 skipped
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_template_passes() {
    let adapter = Arc::new(echo::Echo { pause: Duration::from_millis(1) });
    let subject = AdapterUnderTest {
        streams: Some(request("one\ntwo\nthree")),
        fails: Some(request("")),
        ..AdapterUnderTest::new(adapter, says(request), request(&"\n".repeat(60_000)))
    };
    shows(subject, expect![[r#"
        13 passed, 0 failed, 3 skipped
        skipped: a call that is dropped does not go on: the subject has no `underway` to observe its work
        skipped: a tool is asked for before it is called: the subject has no request that needs a tool
        skipped: a tool that is denied is not called: the subject has no request that needs a tool
    "#]]).await;
}

/// A broken adapter with this fault, or a correct one.
fn subject(fault: Option<&'static str>) -> AdapterUnderTest {
    let adapter = Arc::new(Broken::new(fault));
    let (called, underway) = (adapter.called(), adapter.underway());
    AdapterUnderTest {
        streams: Some(request("one\ntwo\nthree")),
        fails: Some(request("")),
        tools: Some(Tooling { request: request("tool"), called }),
        underway: Some(underway),
        ..AdapterUnderTest::new(
            adapter as Arc<dyn Adapter>,
            says(request),
            request(&"\n".repeat(60_000)),
        )
    }
}

#[tokio::test(start_paused = true)]
async fn a_correct_implementation_passes_every_case() {
    expect!["16 passed, 0 failed, 0 skipped\n"].assert_eq(&drawn(&check(&subject(None)).await));
}

#[tokio::test(start_paused = true)]
async fn every_case_detects_its_fault() {
    let cases: Vec<&str> = names().collect();
    for case in &cases {
        assert!(FAULTS.iter().any(|(of, ..)| of == case), "no fault for: {case}");
    }
    let mut told = String::new();
    for (case, fault) in FAULTS {
        let found = check_case(&subject(Some(fault)), case).await.expect("there is such a case");
        match found.verdict {
            CaseVerdict::Failed(why) => told += &format!("{fault}: {why}\n"),
            other => panic!("{case}: {fault} is {other:?}"),
        }
    }
    expect![[r#"
        hangs: it did not end within 30000 ms
        fails always: it failed with `provider_error`: it cannot
        says something else: its answer does not contain the requested text
        leaves it to others: it deferred the work to a remote gateway; check that gateway instead
        streams too much: 17 bytes were streamed and 13 answered, and they differ
        streams nothing: no text was emitted
        does not wait for emissions: it answered before 3 of its emissions were accepted
        emits after the engine left: it emitted 2 more times after the call was closed
        is deaf: it did not end within 1000 ms of being cancelled
        is done when cancelled: it answered without an error
        blames the provider: its error is `provider_error` instead of `cancelled`
        leaves a task behind: its work continues 1000 ms after the call was dropped
        works in secret: `underway` does not show its work
        fails when late: its error is `provider_error` instead of `timeout`
        is early: its error is `timeout` before the timeout has passed
        fails without a word: the error message is empty
        never fails: the request that should fail was answered without an error
        remembers the last call: the answer of one call belongs to another
        asks afterwards: `box.read` was requested after a tool call that was not requested
        asks once for two: tools were called 2 times but requested 1 times
        does not listen: tools were called 1 times though all were denied
        is slow to say how it is: it did not answer within 5000 ms
        changes its mind: its provider or its capabilities changed
        needs a session: its error is `adapter_crash` instead of `invalid_request`
        cannot take much: its error is `adapter_crash` instead of `invalid_request`
        breaks off: given "\0": it panicked
    "#]]
    .assert_eq(&told);
    assert!(check_case(&subject(None), "no such case").await.is_none());
}
