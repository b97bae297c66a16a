use super::*;
use crate::fake_call::{FakeCall, FakeJournal, answer, error, request};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use sluice_core::port::adapter::Emission;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, timeout};

fn adapter(script: &str) -> MockAdapter {
    MockAdapter::new(Script::parse(script).unwrap())
}

/// The answer of a script that takes no time.
fn at_once(script: &str, request: &Request) -> Answer {
    let (adapter, call) = (adapter(script), FakeCall::default());
    let mut execution = pin!(adapter.execute(request, &call));
    // Outside a runtime: a timer would panic.
    match execution.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Execution::Done(answer)) => *answer,
        other => panic!("{other:?}"),
    }
}

fn dispatch(step: &str, dispatch_no: u32) -> Request {
    Request { dispatch_no, ..request(step, "hello") }
}

fn text(script: &str, step: &str, dispatch_no: u32) -> String {
    at_once(script, &dispatch(step, dispatch_no)).text.unwrap()
}

#[test]
fn each_dispatch_has_its_behaviour_and_the_last_repeats() {
    let script = "a: [{text: one}, {text: two}]";
    let heard: Vec<String> = (0..5).map(|no| text(script, "a", no)).collect();
    assert_eq!(heard, ["one", "one", "two", "two", "two"]);
}

#[test]
fn an_instance_falls_back_to_its_step_then_to_the_star() {
    let script = r#"{"a[0]": {text: instance}, a: {text: step}, "*": {text: any}}"#;
    assert_eq!(text(script, "a[0]", 1), "instance");
    assert_eq!(text(script, "a[1]", 1), "step");
    assert_eq!(text(script, "a", 1), "step");
    assert_eq!(text(script, "b[0]", 1), "any");
    assert_eq!(text(script, "ab", 1), "any");
}

#[test]
fn names_are_steps_and_instances_without_the_star() {
    let script = Script::parse(r#"{"a[0]": {}, b: {}, "*": {}}"#).unwrap();
    for (step, named) in
        [("a[0]", true), ("a", false), ("a[1]", false), ("b", true), ("b[7]", true), ("*", false)]
    {
        assert_eq!(script.names(step), named, "{step}");
    }
    assert_eq!(script.steps().collect::<Vec<_>>(), ["a[0]", "b"]);
}

#[test]
fn a_step_without_behaviour_fails_and_says_how_to_add_one() {
    let failed = at_once("a: {text: one}", &dispatch("b[2]", 1));
    let (code, message) = error(&failed);
    assert_eq!(code, CallErrorCode::InvalidRequest);
    assert_eq!(
        message,
        "the mock script has no entry for step `b[2]`; add `b: {text: \"…\"}` to it, \
         or `\"*\": {text: \"…\"}` for all other steps"
    );
}

#[test]
fn every_field_reaches_the_answer() {
    let script = r#"
a:
  text: a cat
  outputs: {width: 10}
  input_tokens: 12
  output_tokens: 5
  thinking_tokens: 7
  cost: 0.0004
  model: small
  kind: image
  artifact_kind: png
  media: {url: "https://example.com/a.png", mime: image/png}
  metadata: {seed: 7}
  session: s1
"#;
    let answer = at_once(script, &dispatch("a", 1));
    expect![[r#"
        Answer {
            error: None,
            text: Some(
                "a cat",
            ),
            outputs: Some(
                {
                    "width": Number(10),
                },
            ),
            kind: Some(
                "image",
            ),
            artifact_kind: Some(
                "png",
            ),
            media: Some(
                Object {
                    "url": String("https://example.com/a.png"),
                    "mime": String("image/png"),
                },
            ),
            metadata: Some(
                {
                    "seed": Number(7),
                },
            ),
            usage: Usage {
                model: Some(
                    "small",
                ),
                input_tokens: 12,
                output_tokens: 5,
                thinking_tokens: 7,
                cached_tokens: 0,
                cost: Money(
                    40000,
                ),
                unpriced: false,
                unknown: false,
            },
            session: Some(
                "s1",
            ),
            conversation: [],
            artefacts: [],
        }
    "#]]
    .assert_debug_eq(&answer);
}

#[test]
fn an_error_has_its_code_and_delay_and_still_costs() {
    let script = r#"
a:
  - {error: slow down, error_code: rate_limit, retry_after_ms: 200, cost: 1}
  - {error: broken}
"#;
    let first = at_once(script, &dispatch("a", 1));
    assert_eq!(error(&first), (CallErrorCode::RateLimit, "slow down"));
    assert_eq!(first.error.unwrap().retry_after_ms, Some(200));
    assert_eq!(first.usage.cost.micro_cents(), 100_000_000);
    let second = at_once(script, &dispatch("a", 2));
    assert_eq!(error(&second), (CallErrorCode::ProviderError, "broken"));
}

#[test]
fn an_echo_repeats_its_message() {
    let script = "a: {echo: true, prefix: <, suffix: '>'}";
    assert_eq!(at_once(script, &dispatch("a", 1)).text.unwrap(), "<hello>");
    let piped = Request { stdin: Some("in".to_owned()), ..dispatch("a", 1) };
    assert_eq!(at_once(script, &piped).text.unwrap(), "<hello\nin>");
    let told = Request { message: r#"say {"x":1}"#.to_owned(), ..dispatch("a", 1) };
    let outputs = at_once("a: {echo: true}", &told).outputs;
    assert_eq!(outputs.map(Value::Object), Some(json!({"x": 1})));
}

#[test]
fn an_object_in_the_text_becomes_the_outputs_unless_there_are_some() {
    let outputs = |script: &str| at_once(script, &dispatch("a", 1)).outputs.map(Value::Object);
    assert_eq!(outputs(r#"a: {text: 'so: {"x":1}'}"#), Some(json!({"x": 1})));
    assert_eq!(outputs(r#"a: {text: 'so: {"x":1}', outputs: {y: 2}}"#), Some(json!({"y": 2})));
    assert_eq!(outputs(r#"a: {echo: true, outputs: {y: 2}}"#), Some(json!({"y": 2})));
    assert_eq!(outputs("a: {text: plain}"), None);
    assert_eq!(outputs("a: {}"), None);
}

#[tokio::test(start_paused = true)]
async fn a_delay_takes_its_time() {
    let (adapter, call) = (adapter("a: {text: one, delay_ms: 3600000}"), FakeCall::default());
    let begin = Instant::now();
    let answered = answer(&adapter, &dispatch("a", 1), &call).await;
    assert_eq!(answered.text.unwrap(), "one");
    assert_eq!(begin.elapsed(), Duration::from_secs(3600));
}

#[tokio::test(start_paused = true)]
async fn chunks_come_one_by_one_and_make_the_text() {
    let script = r#"a: {chunks: ["The ", "end: ", '{"x":1}'], chunk_delay_ms: 5, delay_ms: 10}"#;
    let (adapter, call) = (adapter(script), FakeCall::default());
    let begin = Instant::now();
    let answered = answer(&adapter, &dispatch("a", 1), &call).await;
    assert_eq!(begin.elapsed(), Duration::from_millis(25));
    assert_eq!(answered.text.unwrap(), r#"The end: {"x":1}"#);
    assert_eq!(answered.outputs.map(Value::Object), Some(json!({"x": 1})));
    let chunks = ["The ", "end: ", r#"{"x":1}"#].map(|text| Emission::Text(text.to_owned()));
    assert_eq!(call.emitted(), chunks);
}

#[tokio::test(start_paused = true)]
async fn a_picture_between_chunks_is_streamed_and_shown() {
    let picture = "{url: 'https://example.com/a.png', mime: image/png}";
    let script = format!("a: {{chunks: ['A ', {picture}, cat]}}");
    let (adapter, call) = (adapter(&script), FakeCall::default());
    let answered = answer(&adapter, &dispatch("a", 1), &call).await;
    let (url, mime) = ("https://example.com/a.png".to_owned(), "image/png".to_owned());
    assert_eq!(answered.text.as_deref(), Some("A cat"));
    assert_eq!(answered.media, Some(serde_json::json!({"url": url, "mime": mime})));
    let text = |text: &str| Emission::Text(text.to_owned());
    assert_eq!(call.emitted(), [text("A "), Emission::Media { url, mime }, text("cat")]);
    for wrong in ["{url: u}", "{mime: m}", "{url: u, mime: m, size: 1}", "{url: 1, mime: m}", "7"] {
        let script = format!("a: {{chunks: [{wrong}]}}");
        assert!(Script::parse(&script).is_err(), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_after_chunks_keeps_the_text() {
    let (adapter, call) = (adapter("a: {chunks: [one], error: cut off}"), FakeCall::default());
    let answered = answer(&adapter, &dispatch("a", 1), &call).await;
    assert_eq!(error(&answered).1, "cut off");
    assert_eq!((answered.text.as_deref(), call.text().as_str()), (Some("one"), "one"));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_step_waits_until_it_is_cancelled() {
    for (script, heard) in [
        ("a: {hang: true}", ""),
        ("a: {chunks: [a, b, c], hang_after: 2, chunk_delay_ms: 5}", "ab"),
        ("a: {chunks: [a, b, c], hang_after: 0}", ""),
        ("a: {chunks: [a, b, c], hang_after: 3}", "abc"),
        ("a: {delay_ms: 31622400000}", ""),
    ] {
        let (adapter, call, request) = (adapter(script), FakeCall::default(), dispatch("a", 1));
        let mut answered = pin!(answer(&adapter, &request, &call));
        let day = Duration::from_secs(86400);
        assert!(timeout(day, &mut answered).await.is_err(), "{script}");
        assert_eq!(call.text(), heard, "{script}");
        call.cancel();
        let begin = Instant::now();
        assert_eq!(error(&answered.await), (CallErrorCode::Cancelled, "cancelled"));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_call_stops() {
    let call = FakeCall::with(FakeJournal::Closed);
    let adapter = adapter("a: {chunks: [a, b]}");
    let answered = answer(&adapter, &dispatch("a", 1), &call).await;
    assert_eq!(error(&answered).0, CallErrorCode::Cancelled);
    assert_eq!(call.text(), "a");
}

/// The diagnostics of a script.
fn check(script: &str, expected: &Expect) {
    let mut told = String::new();
    for problem in Script::parse(script).err().unwrap_or_default() {
        let (line, column) = (problem.line, problem.column);
        let hint = problem.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let (code, path, message) = (problem.code.as_str(), problem.path, problem.message);
        told.push_str(&format!("{line}:{column} {code} {path}: {message}{hint}\n"));
    }
    expected.assert_eq(&told);
}

#[test]
fn all_problems_are_reported_with_their_positions() {
    check(
        r#"a: {txt: one, output_token: 5}
b:
  - {error: no, error_code: rate_limt}
  - {error: no, error_code: bad luck}
  - {delay_ms: -1, cost: -0.5, input_tokens: 1.5}
  - {text: 5, outputs: [1], hang: maybe, chunks: [a, 1], media: x, cost: much}
  - {cost: 1e7, output_tokens: 10000000000, delay_ms: 31622400001}
c: []
d: fine
e: [{}, ~]
"#,
        &expect![[r#"
            1:5 unknown_field a.txt: unknown field `txt` (did you mean `text`?)
            1:15 unknown_field a.output_token: unknown field `output_token` (did you mean `output_tokens`?)
            3:29 bad_value b[0].error_code: `rate_limt` is not an error code (did you mean `rate_limit`?)
            4:29 bad_value b[1].error_code: `bad luck` is not an error code (one of timeout, provider_error, rate_limit, auth, invalid_request, tool_not_accepted, tool_definition_changed, content_filter, adapter_crash, cancelled)
            5:16 bad_value b[2].delay_ms: cannot be negative
            5:26 bad_value b[2].cost: an amount of money cannot be negative
            5:46 bad_value b[2].input_tokens: expected a whole number, found 1.5
            6:12 wrong_type b[3].text: expected a string, found a number (quote it if it is meant as text)
            6:24 wrong_type b[3].outputs: expected a map, found a list
            6:35 wrong_type b[3].hang: expected `true` or `false`, found a string
            6:42 bad_value b[3].chunks: `text` and `chunks` cannot be combined: both define the text
            6:54 wrong_type b[3].chunks[1]: expected a string, found a number (quote it if it is meant as text)
            6:65 wrong_type b[3].media: expected a map or a list, found a string
            6:74 wrong_type b[3].cost: expected an amount in US dollars, found a string
            7:12 bad_value b[4].cost: an answer can cost at most 1000000.00 US dollars
            7:32 bad_value b[4].output_tokens: can be at most 1000000000
            7:55 bad_value b[4].delay_ms: can be at most 31622400000
            8:4 bad_value c: a list of behaviours must not be empty
            9:4 wrong_type d: expected a map, found a string
            10:9 wrong_type e[1]: expected a map, found nothing
        "#]],
    );
}

#[test]
fn invalid_combinations_are_reported() {
    check(
        r#"a: {error_code: auth, retry_after_ms: 5}
b: {chunk_delay_ms: 5, hang_after: 1}
c: {text: a, prefix: b, suffix: c, echo: false}
d: {text: a, chunks: [a]}
e: {chunks: [a], echo: true}
f: {chunks: [a], hang_after: 2}
g: {text: ~, error: ~, hang: false}
"#,
        &expect![[r#"
            1:5 bad_value a.error_code: `error_code` requires `error`
            1:23 bad_value a.retry_after_ms: `retry_after_ms` requires `error`
            2:5 bad_value b.chunk_delay_ms: `chunk_delay_ms` requires `chunks`
            2:24 bad_value b.hang_after: `hang_after` requires `chunks`
            3:14 bad_value c.prefix: `prefix` requires `echo`
            3:25 bad_value c.suffix: `suffix` requires `echo`
            4:14 bad_value d.chunks: `text` and `chunks` cannot be combined: both define the text
            5:18 bad_value e.echo: `chunks` and `echo` cannot be combined: both define the text
            6:18 bad_value f.hang_after: must be at most the number of chunks (1)
        "#]],
    );
}

#[test]
fn a_malformed_script_is_rejected() {
    check(
        "",
        &expect![[r#"
        1:1 empty_document : the file contains no document
    "#]],
    );
    check(
        "- a",
        &expect![[r#"
        1:1 wrong_type : expected a map, found a list
    "#]],
    );
    check(
        "a: {text: one",
        &expect![[r#"
        1:4 syntax_error a: unclosed bracket '{'
    "#]],
    );
    check(
        "{\"a\": {\"text\": \"one\"}, \"a\": {}}",
        &expect![[r#"
        1:24 duplicate_key : the key `a` is set twice (it is first set on line 1)
    "#]],
    );
}

#[test]
fn the_examples_are_scripts() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mocks");
    let mut count = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        let script = Script::parse(&std::fs::read_to_string(&path).unwrap());
        assert!(script.is_ok(), "{}: {script:?}", path.display());
        count += 1;
    }
    assert!(count > 10);
}
