use super::callback::{CallbackBody, ExecutedDispatch, Status};
use super::dispatch::{DispatchBody, ReturnAddress};
use super::*;
use crate::fake_call;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_core::limits::TOKENS_MAX;
use sluice_core::money::Money;
use sluice_core::port::adapter::{
    Answer, CallError, CallErrorCode, OutputStrategy, Recall, Request, Usage,
};
use sluice_core::trace::TraceParent;
use sluice_govern::decision::Constraints;
use sluice_govern::registry::Price;

fn worked() -> ExecutedDispatch<'static> {
    ExecutedDispatch { run: RunId(7), step: "ask[2]", dispatch_no: 3, from_ms: 1, to_ms: 2 }
}

fn maybe<T: fmt::Debug>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(strategy)
}

fn words() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

fn constraints() -> impl Strategy<Value = Constraints> {
    (maybe(proptest::collection::vec(words(), 0..3)), maybe(any::<u64>())).prop_map(
        |(tools_allow, max_output_tokens)| Constraints {
            tools_allow,
            max_output_tokens,
            ..Constraints::default()
        },
    )
}

prop_compose! {
    fn requests()(
        texts in proptest::collection::vec(words(), 5),
        options in (maybe(words()), maybe(words()), maybe(words()), maybe(words())),
        numbers in (any::<u128>(), 1..u32::MAX, 1..u32::MAX, 1..1_000_000_000_u64),
        tools in proptest::collection::vec(words(), 0..3),
        env in proptest::collection::vec((words(), words()), 0..3),
        constraints in constraints(),
        money in (maybe(any::<u64>()), maybe(any::<u32>())),
        schema in maybe(Just(json!({"type": "object"}))),
        traced in any::<bool>(),
    ) -> Request {
        let trace = TraceParent { trace_id: "4b".repeat(16), span_id: "5c".repeat(8) };
        let [workflow, idempotency_key, agent, message, action_digest] =
            <[String; 5]>::try_from(texts).unwrap();
        Request {
            run: RunId(numbers.0),
            step: "ask[2]".to_owned(),
            gateway: "far".to_owned(),
            attempt: numbers.1,
            dispatch_no: numbers.2,
            timeout_ms: numbers.3,
            workflow, idempotency_key, agent, message, action_digest,
            session: options.0,
            system_prompt: options.1,
            stdin: options.2,
            cwd: options.3,
            env,
            model: tools.first().cloned(),
            tools,
            output_schema: schema,
            output_strategy: OutputStrategy::Json,
            max_output_tokens: money.0,
            price: money.1.map(|price| Price {
                input_cents_per_mtok: Money::from_micro_cents(u64::from(price)),
                output_cents_per_mtok: Money::from_micro_cents(1),
                cached_input_cents_per_mtok: None,
                max_output_tokens: None,
            }),
            ceiling: money.0.map(Money::from_micro_cents),
            constraints,
            trace: traced.then_some(trace),
        }
    }
}

fn usages() -> impl Strategy<Value = Usage> {
    let tokens = || 0..=TOKENS_MAX;
    let known = (maybe(words()), tokens(), tokens(), tokens(), tokens(), any::<u64>());
    let known = known.prop_map(|(model, input, output, thinking, cached, cost)| Usage {
        model,
        input_tokens: input,
        output_tokens: output,
        thinking_tokens: thinking,
        cached_tokens: cached,
        cost: Money::from_micro_cents(cost),
        ..Usage::default()
    });
    (known, 0..3).prop_map(|(usage, how)| match how {
        0 => Usage { cost: Money::ZERO, unpriced: true, ..usage },
        1 => Usage { model: usage.model, ..Usage::unknown() },
        _ => usage,
    })
}

prop_compose! {
    fn answers()(
        error in maybe((0..CallErrorCode::ALL.len(), words(), maybe(0..u64::MAX))),
        options in (maybe(words()), maybe(words()), maybe(words()), maybe(words())),
        value in maybe(Just(json!({"a": [1, "ü"]}))),
        usage in usages(),
    ) -> Answer {
        let codes = <CallErrorCode as sluice_core::choice::Choice>::WORDS;
        Answer {
            error: error.map(|(code, message, retry_after_ms)| CallError {
                code: codes[code].1, message, retry_after_ms,
            }),
            text: options.0,
            kind: options.1,
            artifact_kind: options.2,
            session: options.3,
            outputs: value.as_ref().and_then(Value::as_object).cloned(),
            metadata: value.as_ref().and_then(Value::as_object).cloned(),
            media: value.clone(),
            conversation: value.iter().cloned().collect(),
            artefacts: value.into_iter().collect(),
            usage,
        }
    }
}

proptest! {
    #[test]
    fn a_request_survives_encoding(request in requests()) {
        let back = ReturnAddress {
            callback_url: Some("http://engine/x".to_owned()),
            dispatch_token: Some("sld_a".to_owned()),
            tool_url: None,
            parts_url: Some("http://engine/p".to_owned()),
        };
        let body = DispatchBody::new(&request, "mock", back);
        let read = DispatchBody::read(&serde_json::to_vec(&body).unwrap()).unwrap();
        prop_assert_eq!(&read, &body);
        prop_assert_eq!(read.request("far"), request);
    }

    #[test]
    fn an_answer_survives_encoding(answer in answers()) {
        let body = CallbackBody::new(worked(), answer.clone());
        let read = CallbackBody::read(&body.bytes()).unwrap();
        prop_assert_eq!(&read, &body);
        prop_assert_eq!(read.answer(), answer);
    }

    #[test]
    fn random_bytes_are_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(DispatchBody::read(&bytes).is_err());
        prop_assert!(CallbackBody::read(&bytes).is_err());
        prop_assert!(CancelBody::read(&bytes).is_err());
    }
}

fn result(extra: &str) -> Answer {
    let body = format!(
        r#"{{"run_id": "{}", "step_id": "a", "dispatch_no": 1, "status": "completed",
            "stdout": "done"{extra}}}"#,
        RunId(7)
    );
    let answer = CallbackBody::read(body.as_bytes()).expect(extra).answer();
    assert_eq!((answer.text.as_deref(), &answer.error), (Some("done"), &None));
    answer
}

#[test]
fn invalid_figures_keep_the_result_and_are_marked() {
    for figure in
        ["-1", "1e400", "18446744073709551616", "NaN", "-Infinity", "\"many\"", "1.5", "[]", "true"]
    {
        for name in ["input_tokens", "output_tokens", "thinking_tokens", "cached_tokens"] {
            let usage = result(&format!(r#", "cost": 0.1, "{name}": {figure}"#)).usage;
            assert_eq!(usage.input_tokens, u64::MAX, "{name} {figure}");
            let usage = result(&format!(r#", "{name}": {figure}"#)).usage;
            assert!(!usage.unknown && !usage.unpriced, "{name} {figure}");
            assert_eq!(usage.input_tokens, u64::MAX, "{name} {figure}");
        }
    }
    for figure in ["-1", "1e400", "NaN", "Infinity", "\"dear\"", "{}", "184467440738"] {
        let usage = result(&format!(r#", "cost": {figure}"#)).usage;
        assert_eq!(usage.cost, Money::from_micro_cents(u64::MAX), "{figure}");
    }
}

#[test]
fn figures_are_parsed_from_their_digits() {
    let usage = result(r#", "cost": 0.00000001, "input_tokens": 12.0, "output_tokens": "7""#).usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (12, 7));
    assert_eq!(usage.cost, Money::from_micro_cents(1));
    assert!(!usage.unpriced && !usage.unknown);
    assert!(result(r#", "input_tokens": 3"#).usage.unpriced);
    assert!(result(r#", "total_tokens": 3"#).usage.unknown);
    assert!(result(r#", "cost": null"#).usage.unknown);
    assert!(result("").usage.unknown);
}

#[test]
fn times_are_texts_or_numbers_and_an_invalid_time_keeps_the_result() {
    let read = |time: &str| {
        let body = format!(
            r#"{{"run_id": "{}", "step_id": "a", "status": "completed", "started_at": {time},
                "completed_at": {time}}}"#,
            RunId(7)
        );
        let body = CallbackBody::read(body.as_bytes()).expect(time);
        assert_eq!(body.started_at, body.completed_at);
        body.started_at
    };
    let at = Some("2026-09-21T14:13:20.123Z".to_owned());
    assert_eq!(read("\"2026-09-21T14:13:20.123Z\""), at);
    assert_eq!(read("1790000000123"), at);
    assert_eq!(read("1790000000123.75"), at);
    assert_eq!(read("1790000000.1234"), at);
    assert_eq!(read("1790000000"), Some("2026-09-21T14:13:20.000Z".to_owned()));
    for odd in ["null", "-1", "1e400", "true", "[]", "{}", "99999999999999999999"] {
        assert_eq!(read(odd), None, "{odd}");
    }
}

#[test]
fn a_status_says_how_it_ended() {
    let read = |status: &str, code: Value| {
        let body = json!({
            "run_id": RunId(7).to_string(), "step_id": "a", "status": status,
            "error_code": code, "unheard": "of",
        });
        CallbackBody::read(body.to_string().as_bytes())
            .map(|body| body.answer().error.map(|error| error.code))
    };
    assert_eq!(read("completed", json!("auth")), Ok(None));
    assert_eq!(read("timed_out", json!("auth")), Ok(Some(CallErrorCode::Timeout)));
    assert_eq!(read("failed", json!("cancelled")), Ok(Some(CallErrorCode::Cancelled)));
    assert_eq!(read("failed", json!("odd")), Ok(Some(CallErrorCode::ProviderError)));
    assert_eq!(read("failed", Value::Null), Ok(Some(CallErrorCode::ProviderError)));
    assert!(read("cancelled", Value::Null).is_err());
    let cancelled = Answer::failed(CallErrorCode::Cancelled, "stopped");
    assert_eq!(CallbackBody::new(worked(), cancelled).status, Status::Failed);
}

#[test]
fn a_dispatch_beyond_a_limit_is_rejected() {
    let good = DispatchBody::new(&fake_call::request("a", "b"), "mock", ReturnAddress::default());
    let read = |change: &dyn Fn(&mut DispatchBody)| {
        let mut body = good.clone();
        change(&mut body);
        DispatchBody::read(&serde_json::to_vec(&body).unwrap())
    };
    assert!(read(&|_| ()).is_ok());
    let long = "x".repeat(2 * 1024 * 1024);
    let wrong: [&dyn Fn(&mut DispatchBody); 12] = [
        &|body| body.step_id = String::new(),
        &|body| body.step_id = "a\nb".to_owned(),
        &|body| body.step_id.clone_from(&long),
        &|body| body.dispatch_no = 0,
        &|body| body.attempt = 0,
        &|body| body.timeout_ms = 0,
        &|body| body.timeout_ms = u64::MAX,
        &|body| body.model = Some(long.clone()),
        &|body| body.callback_url = Some(long.clone()),
        &|body| body.dispatch_token = Some("a\r\nb: c".to_owned()),
        &|body| body.tools = vec![long.clone()],
        &|body| body.tools = vec![String::new(); 20_000],
    ];
    for (at, change) in wrong.iter().enumerate() {
        let message = read(change).expect_err(&at.to_string()).to_string();
        assert!(!message.contains("xxx") && message.len() < 300, "{message}");
    }
    let constrained = json!({
        "run_id": RunId(7).to_string(), "step_id": "a", "dispatch_no": 1, "provider": "mock",
        "timeout_ms": 5, "governance_constraints": {"never_heard_of": true},
    });
    assert!(DispatchBody::read(constrained.to_string().as_bytes()).is_err());
}

#[test]
fn a_reply_may_omit_its_ids_but_not_have_others() {
    let read = |body: Value| CallbackBody::read_reply(body.to_string().as_bytes(), worked());
    assert!(read(json!({"status": "completed"})).is_ok());
    assert!(read(json!({"status": "completed", "step_id": "ask[2]"})).is_ok());
    assert!(read(json!({"status": "completed", "step_id": "ask[1]"})).is_err());
    assert!(read(json!({"status": "completed", "dispatch_no": 2})).is_err());
    assert!(read(json!({"status": "completed", "run_id": RunId(8).to_string()})).is_err());
    assert!(read(json!([])).is_err());
}

#[test]
fn a_result_too_long_to_send_keeps_its_cost() {
    let usage = Usage { cost: Money::from_micro_cents(5), ..Usage::default() };
    let talk = vec![json!("y".repeat(17 << 20))];
    let answer = Answer { text: Some("t".to_owned()), usage, ..Answer::default() };
    let wordy = Answer { conversation: talk, ..answer.clone() };
    let read = |answer| CallbackBody::read(&CallbackBody::new(worked(), answer).bytes()).unwrap();
    assert_eq!(read(wordy).answer(), answer);
    let long = Answer { text: Some("z".repeat(17 << 20)), ..answer.clone() };
    let kept = read(long).answer();
    assert_eq!(kept.error.map(|error| error.code), Some(CallErrorCode::ProviderError));
    assert_eq!(kept.usage, answer.usage);
}

#[test]
fn a_hash_identifies_one_dispatch() {
    let key = DispatchHash::new(RunId(1), "a", 2);
    assert_eq!(DispatchHash::parse(&key.to_string()), Some(key));
    assert_ne!(key, DispatchHash::new(RunId(1), "a", 1));
    assert_ne!(key, DispatchHash::new(RunId(2), "a", 2));
    assert_ne!(key, DispatchHash::new(RunId(1), "b", 2));
    for wrong in ["", "a", &"G".repeat(64), &"é".repeat(32)] {
        assert_eq!(DispatchHash::parse(wrong), None);
    }
    let recall = Recall { run: RunId(1), step: "a".to_owned(), dispatch_no: 2 };
    assert_eq!(CancelBody::from(&recall).key(), key);
}
