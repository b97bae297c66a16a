mod parts;

use super::registration::{Registration, instance_id};
use super::spool::record::{SpoolRecord, SpoolState};
use super::test_bridge::{FunctionAdapter, KEY, TOKEN, TestBridge, local};
use super::*;
use crate::protocol::DispatchHash;
use crate::protocol::dispatch::DispatchBody;
use reqwest::Method;
use serde_json::{Value, json};
use sluice_core::id::{Entropy, RunId};
use sluice_core::port::Later;
use sluice_core::port::adapter::{Call, Request, ToolUse, ToolVerdict};
use std::sync::atomic::AtomicUsize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

const DONE: &str = "'*': {text: done, input_tokens: 3, output_tokens: 2, cost: 0.0004}";
const HANGS: &str = "'*': {hang: true}";

/// An adapter that calls a function, and its call counter.
fn does<F>(what: F) -> (Arc<dyn Adapter>, Arc<AtomicUsize>)
where
    F: for<'a> Fn(&'a Request, &'a dyn Call) -> Later<'a, Answer> + Send + Sync + 'static,
{
    let times = Arc::new(AtomicUsize::new(0));
    (Arc::new(FunctionAdapter { times: Arc::clone(&times), what }), times)
}

/// The same dispatch for another adapter.
fn to(provider: &str, body: DispatchBody) -> DispatchBody {
    DispatchBody { provider: provider.to_owned(), ..body }
}

impl TestBridge {
    /// Completes when the spool record of a dispatch has this state.
    async fn sees(&self, key: DispatchHash, state: SpoolState) -> SpoolRecord {
        for _ in 0..1000 {
            if let Ok(Some(kept)) = self.bridge.0.spool.read(key).await
                && kept.state == state
                && self.bridge.0.dispatches.expired(|found, _| found == state).contains(&key)
            {
                return kept;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the dispatch never becomes {state:?}");
    }
}

#[tokio::test]
async fn a_dispatch_is_answered_at_once_and_its_result_delivered() {
    let world = TestBridge::new(DONE).await;
    let body = world.body("ask[2]");
    let (status, answer) = world.dispatch(&body).await;
    assert_eq!((status, &answer["status"]), (202, &json!("dispatched")));
    assert_eq!(answer["run_id"], RunId(1).to_string());
    assert_eq!(answer["step_id"], "ask[2]");
    assert!(answer["dispatched_at"].as_str().unwrap().ends_with('Z'));
    let heard = world.engine.wait_for_requests(1).await.remove(0);
    assert_eq!(heard.path, "/api/workflow/step-complete");
    assert_eq!(heard.header("x-gateway-token"), TOKEN);
    assert_eq!(heard.header("x-dispatch-token"), "sld_of-this-dispatch");
    let said = |name: &str| heard.body[name].clone();
    assert_eq!((said("status"), said("stdout")), (json!("completed"), json!("done")));
    assert_eq!((said("dispatch_no"), said("step_id")), (json!(1), json!("ask[2]")));
    assert_eq!((said("input_tokens"), said("total_tokens")), (json!(3), json!(5)));
    assert_eq!(said("cost").to_string(), "0.0004");
    let kept = world.sees(body.key(), SpoolState::Delivered).await;
    assert_eq!((kept.dispatch_token, kept.dispatch), (None, None));
    // The former path.
    let old = serde_json::to_value(world.body("other")).unwrap();
    assert_eq!(world.post("/api/workflow/dispatch", &old).await.0, 202);
    assert_eq!(world.engine.wait_for_requests(2).await[1].body["step_id"], "other");
}

#[tokio::test]
async fn the_same_dispatch_runs_once_however_often_it_comes() {
    let world = TestBridge::new("'*': {text: done, delay_ms: 50}").await;
    let body = world.body("a");
    let both =
        futures_util::future::join_all(
            (0..20).map(|at| {
                let (world, body) = (&world, &body);
                async move {
                    if at % 2 == 0 { world.dispatch(body).await } else { world.sync(body).await }
                }
            }),
        );
    for (at, (status, answer)) in both.await.into_iter().enumerate() {
        let expected = if at % 2 == 0 { (202, "dispatched") } else { (200, "completed") };
        assert_eq!((status, answer["status"].as_str().unwrap()), expected);
    }
    assert_eq!(world.ran(), 1);
    world.sees(body.key(), SpoolState::Delivered).await;
    let again = DispatchBody { dispatch_no: 2, ..body.clone() };
    assert_eq!(world.sync(&again).await.0, 200);
    assert_eq!(world.ran(), 2);
    // Also after a restart.
    let world = world.restart(DONE).await;
    assert_eq!(world.sync(&body).await.1["status"], "completed");
    assert_eq!(world.dispatch(&body).await.0, 202);
    assert_eq!(world.ran(), 2);
}

#[tokio::test]
async fn a_result_that_was_returned_synchronously_is_not_sent_again() {
    let world = TestBridge::new(DONE).await;
    let body = world.body("a");
    let (status, result) = world.sync(&body).await;
    assert_eq!((status, &result["stdout"]), (200, &json!("done")));
    world.sees(body.key(), SpoolState::Delivered).await;
    assert_eq!(world.sync(&body).await, (200, result));
    assert!(world.engine.heard().is_empty());
    // An asynchronous dispatch of the same id has no result yet.
    assert_eq!(world.dispatch(&body).await.0, 202);
    assert_eq!(world.engine.wait_for_requests(1).await[0].body["stdout"], "done");
    assert_eq!(world.ran(), 1);
}

#[tokio::test]
async fn a_result_without_its_connection_is_sent_by_callback() {
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let (waits, times) = does(move |_, _| {
        let wait = Arc::clone(&wait);
        Box::pin(async move {
            wait.notified().await;
            Answer { text: Some("late".to_owned()), ..Answer::default() }
        })
    });
    let world = TestBridge::with(DONE, |_, adapters| {
        adapters.insert("waits".to_owned(), waits);
    })
    .await;
    let body = serde_json::to_string(&to("waits", world.body("a"))).unwrap();
    let mut stream = TcpStream::connect(world.at).await.unwrap();
    let head = format!(
        "POST /api/v2/dispatch/sync HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    while times.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(stream);
    tokio::time::sleep(Duration::from_millis(20)).await;
    go.notify_one();
    assert_eq!(world.engine.wait_for_requests(1).await[0].body["stdout"], "late");
}

#[tokio::test]
async fn a_cancelled_dispatch_ends_as_cancelled() {
    let world = TestBridge::new(HANGS).await;
    let body = world.body("a");
    world.dispatch(&body).await;
    let of = json!({"run_id": RunId(1).to_string(), "step_id": "a", "dispatch_no": 1});
    assert_eq!(world.post("/api/v2/cancel", &of).await, (200, json!({"status": "cancelling"})));
    let result = world.engine.wait_for_requests(1).await.remove(0).body;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("failed"), &json!("cancelled")));
    world.sees(body.key(), SpoolState::Delivered).await;
    assert_eq!(world.post("/api/v2/cancel", &of).await, (200, json!({"status": "finished"})));
    let other = json!({"run_id": RunId(1).to_string(), "step_id": "a", "dispatch_no": 2});
    assert_eq!(world.post("/api/v2/cancel", &other).await.0, 404);
    assert_eq!(world.post("/api/v2/cancel", &json!({})).await.0, 400);
}

#[tokio::test]
async fn a_dispatch_that_takes_too_long_is_timed_out_with_what_it_cost() {
    let (pays, _) = does(|_, call| {
        Box::pin(async move {
            call.cancelled().await;
            let cost = sluice_core::money::Money::from_micro_cents(50_000_000);
            let usage = Usage { cost, ..Usage::default() };
            Answer { usage, ..Answer::failed(CallErrorCode::Cancelled, "stopped") }
        })
    });
    let (deaf, _) = does(|_, _| Box::pin(std::future::pending()));
    let world = TestBridge::with(DONE, |_, adapters| {
        adapters.insert("pays".to_owned(), pays);
        adapters.insert("deaf".to_owned(), deaf);
    })
    .await;
    let short = |provider: &str, step: &str| DispatchBody {
        timeout_ms: 30,
        ..to(provider, world.body(step))
    };
    let (_, result) = world.sync(&short("pays", "a")).await;
    let said = (&result["status"], &result["error_code"], result["cost"].to_string());
    assert_eq!(said, (&json!("timed_out"), &json!("timeout"), "0.5".to_owned()));
    // Work that does not stop is dropped, and its cost is unknown.
    let (_, result) = world.sync(&short("deaf", "b")).await;
    assert_eq!((&result["status"], &result["cost"]), (&json!("timed_out"), &Value::Null));
    assert_eq!(result["input_tokens"], Value::Null);
}

#[tokio::test]
async fn a_panicking_adapter_has_a_result_too() {
    let (breaks, _) = does(|_, _| panic!("broken"));
    let world = TestBridge::with(DONE, |_, adapters| {
        adapters.insert("breaks".to_owned(), breaks);
    })
    .await;
    let (status, result) = world.sync(&to("breaks", world.body("a"))).await;
    assert_eq!((status, &result["error_code"]), (200, &json!("adapter_crash")));
    assert_eq!(result["cost"], Value::Null);
}

#[tokio::test]
async fn the_next_process_completes_what_the_previous_one_left() {
    let world = TestBridge::new("{a: {hang: true}, '*': {text: done}}").await;
    world.engine.answers_with(&[503]);
    let (dying, waiting) = (world.body("a"), world.body("b"));
    world.dispatch(&dying).await;
    world.dispatch(&waiting).await;
    world.engine.wait_for_requests(4).await;
    let tried = world.engine.heard().len();
    world.engine.answers_with(&[200]);
    // The hanging one is dropped when this process ends.
    let world = world.restart(DONE).await;
    let mut heard = world.engine.wait_for_requests(tried + 2).await.split_off(tried);
    heard.sort_by_key(|one| one.body["step_id"].to_string());
    let last: Vec<_> = heard
        .iter()
        .map(|one| [&one.body["step_id"], &one.body["status"], &one.body["error_code"]])
        .collect();
    assert_eq!(last[0], [&json!("a"), &json!("failed"), &json!("adapter_crash")]);
    assert!(last.contains(&[&json!("b"), &json!("completed"), &Value::Null]));
    assert_eq!(
        (&heard[0].body["cost"], &heard[0].body["input_tokens"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(heard[0].header("x-dispatch-token"), "sld_of-this-dispatch");
    world.sees(dying.key(), SpoolState::Delivered).await;
    world.sees(waiting.key(), SpoolState::Delivered).await;
    // Neither is started again.
    assert_eq!(world.sync(&dying).await.1["error_code"], "adapter_crash");
    assert_eq!(world.ran(), 2);
}

#[tokio::test]
async fn a_result_is_sent_until_it_is_accepted() {
    let world = TestBridge::new(DONE).await;
    world.engine.answers_with(&[500, 429, 408, 503, 302, 200]);
    let body = world.body("a");
    world.dispatch(&body).await;
    let heard = world.engine.wait_for_requests(6).await;
    world.sees(body.key(), SpoolState::Delivered).await;
    assert_eq!(world.engine.heard().len(), 6);
    assert!(heard.iter().all(|one| one.body == heard[0].body));
}

#[tokio::test]
async fn a_rejected_result_is_kept_and_sent_when_it_is_dispatched_again() {
    let world = TestBridge::new(DONE).await;
    world.engine.answers_with(&[404]);
    let body = world.body("a");
    world.dispatch(&body).await;
    world.sees(body.key(), SpoolState::GivenUp).await;
    assert_eq!(world.engine.heard().len(), 1);
    let world = world.restart(DONE).await;
    world.sees(body.key(), SpoolState::GivenUp).await;
    assert_eq!(world.engine.heard().len(), 1);
    world.engine.answers_with(&[200]);
    assert_eq!(world.dispatch(&body).await.0, 202);
    world.sees(body.key(), SpoolState::Delivered).await;
    assert_eq!((world.engine.heard().len(), world.ran()), (2, 1));
}

#[tokio::test]
async fn an_undeliverable_result_is_given_up_after_a_day_and_later_removed() {
    let world = TestBridge::new(DONE).await;
    world.engine.answers_with(&[500]);
    let body = world.body("a");
    world.dispatch(&body).await;
    world.engine.wait_for_requests(2).await;
    world.time.pass(DELIVERY_DAY_MS);
    world.sees(body.key(), SpoolState::GivenUp).await;
    world.bridge.0.remove_expired().await;
    assert!(world.bridge.0.dispatches.contains(body.key()));
    world.time.pass(GIVEN_UP_KEPT_MS + 1);
    world.bridge.0.remove_expired().await;
    assert!(!world.bridge.0.dispatches.contains(body.key()));
    assert_eq!(world.bridge.0.spool.read(body.key()).await.unwrap(), None);
}

const DELIVERY_DAY_MS: u64 = 24 * 3_600_000 + 1;

#[tokio::test]
async fn requests_without_the_key_are_rejected() {
    let world = TestBridge::new(DONE).await;
    let body = serde_json::to_vec(&world.body("a")).unwrap();
    let wrong = [None, Some(""), Some("key-of-the-bridgf"), Some(TOKEN)];
    for key in wrong {
        for path in [
            "/api/v2/dispatch",
            "/api/workflow/dispatch",
            "/api/v2/dispatch/sync",
            "/api/v2/cancel",
        ] {
            let (status, problem) = world.request(Method::POST, path, key, body.clone()).await;
            assert_eq!((status, &problem["code"]), (401, &json!("unauthenticated")), "{path}");
            assert!(!problem.to_string().contains(KEY));
        }
        let events = world.request(Method::GET, "/api/v2/events", key, Vec::new()).await;
        assert_eq!(events.0, 401);
        let health = world.request(Method::GET, "/api/v2/health", key, Vec::new()).await;
        assert_eq!(health, (200, json!({"status": "healthy"})));
    }
    assert_eq!(world.ran(), 0);
    let (_, health) = world.request(Method::GET, "/api/v2/health", Some(KEY), Vec::new()).await;
    assert_eq!(health["adapters"], json!({"mock": "healthy"}));
    assert_eq!((&health["instance_id"], &health["running"]), (&json!("brg_1"), &json!(0)));
}

#[tokio::test]
async fn a_malformed_dispatch_is_rejected_and_not_executed() {
    let world = TestBridge::new(DONE).await;
    let good = world.body("a");
    let elsewhere = Some("http://127.0.0.1:1/x".to_owned());
    let wrong = [
        (to("unknown", good.clone()), 422),
        (DispatchBody { callback_url: elsewhere.clone(), ..good.clone() }, 422),
        (DispatchBody { tool_url: elsewhere, ..good.clone() }, 422),
        (DispatchBody { callback_url: Some("rubbish".to_owned()), ..good.clone() }, 422),
        (DispatchBody { callback_url: None, ..good.clone() }, 422),
        (DispatchBody { step_id: String::new(), ..good.clone() }, 400),
        (DispatchBody { timeout_ms: 0, ..good.clone() }, 400),
    ];
    for (body, expected) in wrong {
        let (status, problem) = world.dispatch(&body).await;
        assert_eq!((status, &problem["status"]), (expected, &json!(expected)));
        assert!(problem["type"].as_str().unwrap().starts_with("/api/docs/errors/"));
    }
    for rubbish in [&b""[..], b"{", b"[]", b"null", &[0xff; 40], &b"[".repeat(1000)] {
        let (status, _) =
            world.request(Method::POST, "/api/v2/dispatch", Some(KEY), rubbish.to_vec()).await;
        assert_eq!(status, 400);
    }
    let long = vec![b' '; 17 << 20];
    assert_eq!(world.request(Method::POST, "/api/v2/dispatch", Some(KEY), long).await.0, 413);
    assert_eq!(world.request(Method::GET, "/api/v2/dispatch", Some(KEY), Vec::new()).await.0, 405);
    assert_eq!(world.request(Method::GET, "/api/v9", Some(KEY), Vec::new()).await.0, 404);
    assert_eq!(
        world.request(Method::GET, "/api/v2/events?run_id=x", Some(KEY), Vec::new()).await.0,
        400
    );
    assert_eq!(world.ran(), 0);
}

#[tokio::test]
async fn dispatches_beyond_the_limit_are_rejected_for_now() {
    let world = TestBridge::with(HANGS, |settings, _| settings.running_max = 1).await;
    let (one, two) = (world.body("a"), world.body("b"));
    assert_eq!(world.dispatch(&one).await.0, 202);
    let (status, problem) = world.dispatch(&two).await;
    assert_eq!((status, &problem["code"]), (503, &json!("overloaded")));
    // The running dispatch keeps its permit.
    assert_eq!(world.dispatch(&one).await.0, 202);
    let of = json!({"run_id": RunId(1).to_string(), "step_id": "a", "dispatch_no": 1});
    world.post("/api/v2/cancel", &of).await;
    world.sees(one.key(), SpoolState::Delivered).await;
    assert_eq!(world.dispatch(&two).await.0, 202);
}

#[tokio::test]
async fn events_reach_subscribers() {
    let world = TestBridge::new("'*': {chunks: [one, two], chunk_delay_ms: 20}").await;
    let run = RunId(1);
    let mut stream = TcpStream::connect(world.at).await.unwrap();
    let head = format!(
        "GET /api/v2/events?run_id={run}&step_id=a&dispatch_no=1 HTTP/1.1\r\nhost: x\r\n\
         connection: close\r\nauthorization: Bearer {KEY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = vec![0; 16];
    stream.read_exact(&mut told).await.unwrap();
    let (other, of) = (world.body("b"), world.body("a"));
    futures_util::future::join(world.sync(&other), world.sync(&of)).await;
    let mut rest = String::new();
    // The stream ends with the dispatch.
    stream.read_to_string(&mut rest).await.unwrap();
    let texts: Vec<_> = rest.lines().filter(|line| line.starts_with("data:")).collect();
    let expected = format!("\"run_id\":\"{run}\",\"step_id\":\"a\",\"dispatch_no\":1");
    assert_eq!(texts.len(), 3, "{rest}");
    assert!(texts.iter().all(|line| line.contains(&expected)));
    assert!(texts[0].contains("\"text\":\"one\"") && texts[1].contains("\"text\":\"two\""));
    assert!(texts[2].contains("finished"));
    assert!(rest.contains("event: assistant.text"));
}

/// A bridge with a `tool` adapter that requests one tool call and answers with the verdict.
async fn asking() -> TestBridge {
    let (asks, _) = does(|request, call| {
        Box::pin(async move {
            let (id, tool) = ("call_1".to_owned(), "files.read".to_owned());
            let wanted = ToolUse { id, tool, input: json!({"path": request.message}) };
            let text = match call.tool(wanted).await {
                Ok(ToolVerdict::Allowed) => "allowed".to_owned(),
                Ok(ToolVerdict::Denied(why)) => format!("denied: {why}"),
                Err(_) => "closed".to_owned(),
            };
            Answer { text: Some(text), ..Answer::default() }
        })
    });
    TestBridge::with(DONE, |_, adapters| {
        adapters.insert("asks".to_owned(), asks);
    })
    .await
}

async fn told(world: &TestBridge, step: &str) -> String {
    let (_, result) = world.sync(&to("asks", world.body(step))).await;
    result["stdout"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_tool_is_called_only_if_the_engine_allows_it() {
    let world = asking().await;
    let says = |data: Value| (200, Vec::new(), json!({"data": data, "meta": {}}));
    world.engine.answers([says(json!({"verdict": "allowed"}))]);
    assert_eq!(told(&world, "a").await, "allowed");
    let asked = world.engine.heard().remove(0);
    assert_eq!(asked.path, "/tool");
    assert_eq!(asked.header("x-gateway-token"), TOKEN);
    assert_eq!(asked.header("x-dispatch-token"), "sld_of-this-dispatch");
    let expected = json!({
        "run_id": RunId(1).to_string(), "step_id": "a", "dispatch_no": 1, "call_id": "call_1",
        "tool": "files.read", "input": {"path": "do it"},
    });
    assert_eq!(asked.body, expected);
    world.engine.answers([says(json!({"verdict": "denied", "reason": "not today"}))]);
    assert_eq!(told(&world, "b").await, "denied: not today");
    world.engine.answers([(403, Vec::new(), says(json!({"verdict": "allowed"})).2)]);
    assert_eq!(told(&world, "c").await, "denied: the engine answered 403 to the tool request");
    let pending = says(json!({"verdict": "pending"}));
    world.engine.answers([pending, says(json!({"verdict": "allowed"}))]);
    let before = world.engine.heard().len();
    assert_eq!(told(&world, "d").await, "allowed");
    let asked = world.engine.heard().split_off(before);
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].body, asked[1].body);
}

#[tokio::test]
async fn no_tool_is_called_while_the_engine_is_unreachable() {
    let world = asking().await;
    let nowhere = DispatchBody { tool_url: None, ..to("asks", world.body("a")) };
    let (_, result) = world.sync(&nowhere).await;
    assert!(
        result["stdout"].as_str().unwrap().starts_with("denied: the dispatch has no `tool_url`")
    );
    assert!(world.engine.heard().is_empty());
    let odd = [(500, json!({})), (200, json!({"data": {"verdict": "maybe"}})), (200, json!([]))];
    world.engine.answers(odd.map(|(status, body)| (status, Vec::new(), body)));
    assert_eq!(told(&world, "b").await, "denied: the engine could not be reached");
    assert_eq!(world.engine.heard().len(), 3);
    // A pending approval does not outlast the dispatch's timeout.
    let pending = json!({"data": {"verdict": "pending"}});
    world.engine.answers([(200, Vec::new(), pending)]);
    let short = DispatchBody { timeout_ms: 50, ..to("asks", world.body("c")) };
    assert_eq!(world.sync(&short).await.1["status"], "timed_out");
}

#[tokio::test]
async fn a_bridge_sends_heartbeats_until_it_stops() {
    struct Bits;
    impl Entropy for Bits {
        fn bits(&mut self) -> u64 {
            u64::MAX
        }
    }
    let world = TestBridge::new(DONE).await;
    let registration = Registration {
        server: Url::parse(&world.engine.url("/")).unwrap(),
        gateway: "far away".to_owned(),
        token: Secret::new(TOKEN),
        instance_id: instance_id(1_700_000_000_000, &mut Bits),
        every: Duration::from_millis(10),
        outbound: local(),
    };
    assert!(registration.instance_id < instance_id(1_700_000_000_001, &mut Bits));
    world.engine.answers_with(&[200, 500, 200]);
    let (registration, bridge) = (Arc::new(registration), world.bridge.clone());
    let keeping = tokio::spawn({
        let registration = Arc::clone(&registration);
        async move { registration.keep(&bridge).await }
    });
    let heard = world.engine.wait_for_requests(3).await;
    assert_eq!(heard[0].path, "/api/v1/gateways/far%20away/heartbeat");
    assert_eq!(heard[0].header("x-gateway-token"), TOKEN);
    let said = json!({"status": "healthy", "instance_id": "brg_018bcfe56800ffffffffffffffff"});
    assert_eq!(heard[2].body, said);
    world.bridge.stop();
    keeping.await.unwrap();
    registration.leave().await;
    assert_eq!(world.engine.heard().pop().unwrap().body["status"], "offline");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_dispatches_are_each_executed_once_and_delivered() {
    let world = TestBridge::new(DONE).await;
    let began = Instant::now();
    let all = futures_util::future::join_all((0..300).map(|at| {
        let body = world.body(&format!("step[{at}]"));
        let world = &world;
        async move { world.dispatch(&body).await.0 }
    }));
    assert!(all.await.into_iter().all(|status| status == 202));
    let heard = world.engine.wait_for_requests(300).await;
    let steps: std::collections::BTreeSet<_> =
        heard.iter().map(|one| one.body["step_id"].to_string()).collect();
    assert_eq!((steps.len(), world.ran()), (300, 300));
    println!("300 dispatches taken, done and delivered in {:?}", began.elapsed());
}
