//! Callbacks of remote gateways: accepted once, and only from the gateway of the dispatch.

use crate::client::{PATIENCE, TestRequest, TestResponse};
use crate::world::{Side, World, dispatch_key, settings};
use serde_json::{Value, json};
use sluice_bridge::secret::{Secret, known};
use sluice_bridge::token::Dispatched;
use sluice_core::id::RunId;
use sluice_server::app::Settings;
use std::time::{Duration, Instant};

const FLOW: &str = "name: far\nsteps:\n  - {id: one, agent: away, command: go, \
                    tools: [mail.send, files.read]}\n  - {id: two, agent: away, command: go}\n";

/// A gateway, and its token.
struct Gateway {
    name: &'static str,
    token: String,
}

/// Two remote gateways; the agent works at the first.
async fn gateways(world: &World, side: &Side) -> [Gateway; 2] {
    let mut made = Vec::new();
    for name in ["near", "far"] {
        let put = TestRequest::new("PUT", &format!("/api/v1/gateways/{name}"));
        let row = json!({"provider": "away", "url": "https://away.example"});
        world.done(200, &put.json(&row).bearer(side.admin())).await;
        let path = format!("/api/v1/gateways/{name}/token");
        let token =
            world.done(201, &TestRequest::post(&path, &json!({})).bearer(side.admin())).await;
        made.push(Gateway { name, token: token["token"].as_str().unwrap().to_owned() });
    }
    let agent = json!({"gateway": "near"});
    world
        .done(
            200,
            &TestRequest::new("PUT", "/api/v1/agents/away").json(&agent).bearer(side.admin()),
        )
        .await;
    made.try_into().unwrap_or_else(|_| panic!("two were made"))
}

fn token(side: &Side, gateway: &str, run: &str, step: &str, dispatch_no: u32) -> String {
    let run = RunId::parse(run).unwrap();
    dispatch_key(side.name).token(Dispatched { gateway, run, step, dispatch_no })
}

fn result(run: &str, step: &str, dispatch_no: u32) -> Value {
    json!({"run_id": run, "step_id": step, "dispatch_no": dispatch_no, "status": "completed",
        "stdout": "done", "input_tokens": 10, "output_tokens": 5, "cost": 0.25,
        "started_at": 1_790_000_000_123_u64, "completed_at": 1_790_000_000.5})
}

fn request(body: &Value, gateway: Option<&str>, dispatch: Option<&str>) -> TestRequest {
    let mut request = TestRequest::post("/api/workflow/step-complete", body);
    if let Some(token) = gateway {
        request = request.header("x-gateway-token", token);
    }
    if let Some(token) = dispatch {
        request = request.header("x-dispatch-token", token);
    }
    request
}

async fn told(world: &World, request: &TestRequest) -> (u16, Value) {
    let response: TestResponse = world.send(request).await;
    (response.status, response.json())
}

/// Starts a run, and waits until both steps are in flight at the remote gateway.
async fn away(world: &World, side: &Side) -> String {
    let run = world.start(side, FLOW).await;
    loop {
        let state = state(world, side, &run).await;
        let waits = |one: &Value| one["waiting_reason"] == "external_callback";
        if state["node_results"].as_array().unwrap().iter().all(waits) {
            return run;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn state(world: &World, side: &Side, run: &str) -> Value {
    let request = TestRequest::get(&format!("/api/v1/runs/{run}/state")).bearer(side.admin());
    world.done(200, &request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_accepted_once_and_only_from_the_gateway_of_the_dispatch() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    let [near, far] = gateways(&world, alfa).await;
    let [near_there, _] = gateways(&world, bravo).await;
    let (run, other) = (away(&world, alfa).await, away(&world, alfa).await);
    let right = token(alfa, near.name, &run, "one", 1);
    let body = result(&run, "one", 1);
    let before = alfa.everything().await;
    let forged = [
        ("no gateway's token", request(&body, None, Some(&right)), 401),
        ("a token that is none", request(&body, Some("gwt_0"), Some(&right)), 401),
        ("a token of the API", request(&body, Some(alfa.admin()), Some(&right)), 401),
        ("no dispatch's token", request(&body, Some(&near.token), None), 403),
        ("an empty one", request(&body, Some(&near.token), Some("")), 403),
        ("another gateway", request(&body, Some(&far.token), Some(&right)), 403),
        ("another organisation's", request(&body, Some(&near_there.token), Some(&right)), 403),
        ("another run", request(&result(&other, "one", 1), Some(&near.token), Some(&right)), 403),
        ("another step", request(&result(&run, "two", 1), Some(&near.token), Some(&right)), 403),
        (
            "another dispatch",
            request(&result(&run, "one", 2), Some(&near.token), Some(&right)),
            403,
        ),
        (
            "another organisation's key",
            request(&body, Some(&near.token), Some(&token(bravo, near.name, &run, "one", 1))),
            403,
        ),
        (
            "the number left out",
            request(
                &json!({"run_id": run, "step_id": "one", "status": "completed"}),
                Some(&near.token),
                Some(&right),
            ),
            403,
        ),
    ];
    for (what, request, status) in forged {
        let (got, said) = told(&world, &request).await;
        assert_eq!(got, status, "{what}: {said}");
    }
    assert_eq!(alfa.everything().await, before, "nothing changed");
    let once = told(&world, &request(&body, Some(&near.token), Some(&right))).await;
    assert_eq!(once, (200, json!({"received": true})));
    for _ in 0..3 {
        let again = told(&world, &request(&body, Some(&near.token), Some(&right))).await;
        assert_eq!(again, (200, json!({"received": true, "deduplicated": true})));
    }
    let second = token(alfa, near.name, &run, "two", 1);
    let second = request(&result(&run, "two", 1), Some(&near.token), Some(&second));
    assert_eq!(told(&world, &second).await.0, 200);
    world.until(alfa, &run, "completed").await;
    let done = state(&world, alfa, &run).await;
    assert_eq!((&done["cost"], &done["input_tokens"]), (&json!(0.5), &json!(20)));
    // Every refused attempt is audited.
    let page = TestRequest::get("/api/v1/audit?category=security&limit=100").bearer(alfa.admin());
    let facts = world.done(200, &page).await;
    let refused = facts.as_array().unwrap().iter();
    let refused = refused.filter(|fact| fact["type"] == "callback_refused").count();
    assert_eq!(refused, 8, "{facts}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_refusals_of_a_gateway_are_one_audit_entry_with_a_count() {
    let settings = Settings { refusals_fold_ms: 100, ..settings() };
    let world = World::with(settings, "'*': {text: a}\n").await;
    let alfa = &world.alfa;
    let [near, _] = gateways(&world, alfa).await;
    let forged = request(&result(&alfa.fixture.ended, "one", 1), Some(&near.token), Some("forged"));
    for _ in 0..100 {
        assert_eq!(told(&world, &forged).await.0, 403);
    }
    let page = TestRequest::get("/api/v1/audit?category=security&limit=500").bearer(alfa.admin());
    let began = Instant::now();
    loop {
        let facts = world.done(200, &page).await;
        let refused = facts.as_array().unwrap().iter();
        let refused: Vec<_> = refused.filter(|fact| fact["type"] == "callback_refused").collect();
        let repeated = |fact: &&Value| fact["detail"]["repeated"].as_u64().unwrap_or(1);
        // Every refusal is included in a count.
        if refused.iter().map(repeated).sum::<u64>() == 100 {
            assert!(refused.len() < 90, "{}", refused.len());
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{facts}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gateway_has_a_rate_limit_of_its_own() {
    let settings = Settings { gateway_rate_per_second: 10, ..settings() };
    let world = World::with(settings, "'*': {text: a}\n").await;
    let [near, far] = gateways(&world, &world.alfa).await;
    let beat = |gateway: &Gateway| {
        let path = format!("/api/v1/gateways/{}/heartbeat", gateway.name);
        TestRequest::post(&path, &json!({"status": "healthy"}))
            .header("x-gateway-token", &gateway.token)
    };
    let mut refused = 0;
    for _ in 0..60 {
        let (status, said) = told(&world, &beat(&near)).await;
        assert!(status == 200 || said["code"] == "too_many_requests", "{said}");
        refused += usize::from(status == 429);
    }
    assert!(refused > 0);
    assert_eq!(told(&world, &beat(&far)).await.0, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_callbacks_are_refused_and_absurd_figures_are_left_out() {
    let world = World::new().await;
    let alfa = &world.alfa;
    let [near, _] = gateways(&world, alfa).await;
    let run = away(&world, alfa).await;
    let right = token(alfa, near.name, &run, "one", 1);
    let send = |text: String| {
        TestRequest::new("POST", "/api/workflow/step-complete")
            .text("application/json", &text)
            .header("x-gateway-token", &near.token)
            .header("x-dispatch-token", &right)
    };
    let twice = format!(
        r#"{{"run_id":"{run}","run_id":"{run}","step_id":"one","dispatch_no":1,"status":"completed"}}"#
    );
    let rubbish = [
        String::new(),
        "[]".to_owned(),
        "{".to_owned(),
        twice,
        json!({"run_id": "x", "step_id": "one", "status": "completed"}).to_string(),
        json!({"run_id": run, "step_id": "", "dispatch_no": 1, "status": "completed"}).to_string(),
        json!({"run_id": run, "step_id": "one", "dispatch_no": -1, "status": "completed"})
            .to_string(),
        json!({"run_id": run, "step_id": "one", "dispatch_no": 1, "status": "fine"}).to_string(),
        "[".repeat(100_000),
    ];
    for text in rubbish {
        let (status, said) = told(&world, &send(text.clone())).await;
        assert_eq!(status, 400, "{text:.80}: {said}");
    }
    // The figures are refused, the result is kept.
    let absurd = format!(
        r#"{{"run_id":"{run}","step_id":"one","dispatch_no":1,"status":"completed",
            "stdout":"done","input_tokens":-5,"output_tokens":1e400,"cost":-3}}"#
    );
    assert_eq!(told(&world, &send(absurd)).await.0, 200);
    let two = token(alfa, near.name, &run, "two", 1);
    let two = request(&result(&run, "two", 1), Some(&near.token), Some(&two));
    assert_eq!(told(&world, &two).await.0, 200);
    world.until(alfa, &run, "completed").await;
    let done = state(&world, alfa, &run).await;
    assert_eq!(done["cost"], json!(0.25), "{done}");
    let journal = TestRequest::get(&format!("/api/v1/runs/{run}/journal")).bearer(alfa.admin());
    let journal = world.done(200, &journal).await;
    let told = journal.to_string();
    assert!(told.contains("figures_refused"), "{told}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_result_of_a_cancelled_run_only_adds_its_cost() {
    let world = World::new().await;
    let alfa = &world.alfa;
    let [near, _] = gateways(&world, alfa).await;
    let run = away(&world, alfa).await;
    let cancel =
        TestRequest::post(&format!("/api/v1/runs/{run}/cancel"), &json!({"reason": "enough"}));
    let cancelled = world.send(&cancel.bearer(alfa.admin())).await;
    assert!(cancelled.status < 300, "{}", cancelled.text());
    for step in ["one", "two"] {
        let right = token(alfa, near.name, &run, step, 1);
        let (status, said) =
            told(&world, &request(&result(&run, step, 1), Some(&near.token), Some(&right))).await;
        assert_eq!(status, 200, "{said}");
    }
    world.until(alfa, &run, "cancelled").await;
    let done = state(&world, alfa, &run).await;
    assert_eq!(done["cost"], json!(0.5), "{done}");
    assert!(done["node_results"][0]["stdout"].is_null(), "{done}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_gateway_may_omit_the_dispatch_if_its_row_allows_it() {
    let world = World::new().await;
    let alfa = &world.alfa;
    let [near, far] = gateways(&world, alfa).await;
    let run = away(&world, alfa).await;
    let bare = json!({"run_id": run, "step_id": "one", "status": "completed", "cost": 0.25});
    assert_eq!(told(&world, &request(&bare, Some(&near.token), None)).await.0, 403);
    for gateway in ["near", "far"] {
        let row = json!({"provider": "away", "url": "https://away.example",
            "legacy_callback": true});
        let put = TestRequest::new("PUT", &format!("/api/v1/gateways/{gateway}")).json(&row);
        world.done(200, &put.bearer(alfa.admin())).await;
    }
    let (status, said) = told(&world, &request(&bare, Some(&far.token), None)).await;
    assert_eq!(status, 403, "it was given to another: {said}");
    assert_eq!(
        told(&world, &request(&bare, Some(&near.token), None)).await,
        (200, json!({"received": true}))
    );
    let audit = TestRequest::get("/api/v1/audit?limit=100").bearer(alfa.admin());
    let facts = world.done(200, &audit).await.to_string();
    assert!(facts.contains("legacy_callback"), "{facts}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_needs_both_tokens_and_always_gets_the_same_decision() {
    let world = World::new().await;
    let alfa = &world.alfa;
    let [near, far] = gateways(&world, alfa).await;
    let rule = "@id(\"send\") @action(\"require_approval\") forbid (principal, \
                action == Action::\"use_tool\", resource == Tool::\"mail.send\");";
    let put = TestRequest::new("PUT", "/api/v1/policies/tools.cedar").json(&json!({"text": rule}));
    world.done(200, &put.bearer(alfa.admin())).await;
    let run = away(&world, alfa).await;
    let right = token(alfa, near.name, &run, "one", 1);
    let use_tool = |gateway: &str, dispatch: &str, call: &str, tool: &str| {
        let body = json!({"run_id": run, "step_id": "one", "dispatch_no": 1, "call_id": call,
            "tool": tool, "input": {"to": "bob"}});
        TestRequest::post("/api/workflow/tool-use", &body)
            .header("x-gateway-token", gateway)
            .header("x-dispatch-token", dispatch)
    };
    let refused = [
        use_tool(&far.token, &right, "1", "files.read"),
        use_tool(&near.token, "sld_x", "1", "files.read"),
    ];
    for request in refused {
        assert_eq!(world.send(&request).await.status, 403);
    }
    for _ in 0..2 {
        let read = world.done(200, &use_tool(&near.token, &right, "1", "files.read")).await;
        assert_eq!(read, json!({"verdict": "allowed"}));
        let other = world.done(200, &use_tool(&near.token, &right, "2", "shell.run")).await;
        assert_eq!(other["verdict"], "denied");
        let send = world.done(200, &use_tool(&near.token, &right, "3", "mail.send")).await;
        assert_eq!(send, json!({"verdict": "pending"}));
    }
    let open_approval = world.open_approval(alfa, &run).await;
    let path = format!("/api/v1/approvals/{open_approval}/resolve");
    let approve = TestRequest::post(&path, &json!({"decision": "approve"})).bearer(alfa.admin());
    world.done(200, &approve).await;
    let send = world.done(200, &use_tool(&near.token, &right, "3", "mail.send")).await;
    assert_eq!(send, json!({"verdict": "allowed"}));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_called_a_tool_is_bound_by_rules_on_untrusted_data() {
    let world = World::new().await;
    let alfa = &world.alfa;
    let [near, _] = gateways(&world, alfa).await;
    let rule = "@id(\"outside\") forbid (principal, action == Action::\"use_tool\", \
                resource == Tool::\"mail.send\") when { context.inputs.untrusted };";
    let put = TestRequest::new("PUT", "/api/v1/policies/tools.cedar").json(&json!({"text": rule}));
    world.done(200, &put.bearer(alfa.admin())).await;
    let run = away(&world, alfa).await;
    let right = token(alfa, near.name, &run, "one", 1);
    let use_tool = |call: &str, tool: &str| {
        let body = json!({"run_id": run, "step_id": "one", "dispatch_no": 1, "call_id": call,
            "tool": tool, "input": {}});
        TestRequest::post("/api/workflow/tool-use", &body)
            .header("x-gateway-token", &near.token)
            .header("x-dispatch-token", &right)
    };
    let allowed = json!({"verdict": "allowed"});
    assert_eq!(world.done(200, &use_tool("1", "mail.send")).await, allowed);
    assert_eq!(world.done(200, &use_tool("2", "files.read")).await, allowed);
    let mail = world.done(200, &use_tool("3", "mail.send")).await;
    assert_eq!(mail["verdict"], "denied", "{mail}");
    // A repeated request gets the same decision.
    assert_eq!(world.done(200, &use_tool("1", "mail.send")).await, allowed);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_an_answer_come_in_order_once_and_never_after_the_result() {
    let world = World::new().await;
    let alfa = &world.alfa;
    let [near, far] = gateways(&world, alfa).await;
    let run = away(&world, alfa).await;
    let right = token(alfa, near.name, &run, "one", 1);
    let parts = |first: u64, parts: Value| json!({"run_id": run, "step_id": "one", "dispatch_no": 1, "first": first, "parts": parts});
    let send = |body: &Value, gateway: &str, dispatch: &str| {
        TestRequest::post("/api/workflow/step-parts", body)
            .header("x-gateway-token", gateway)
            .header("x-dispatch-token", dispatch)
    };
    let text = |text: &str| json!({"kind": "text", "text": text});
    let one = parts(0, json!([text("Hel"), text("lo ")]));
    for (gateway, dispatch) in [(&far.token, &right), (&near.token, &far.token)] {
        assert_eq!(world.send(&send(&one, gateway, dispatch)).await.status, 403);
    }
    let odd = [
        parts(0, json!([])),
        parts(0, json!([{"kind": "smell"}])),
        parts(u64::MAX, json!([text("x")])),
    ];
    for body in odd {
        assert_eq!(world.send(&send(&body, &near.token, &right)).await.status, 400, "{body}");
    }
    let new = (200, json!({"received": true}));
    let again = (200, json!({"received": true, "deduplicated": true}));
    assert_eq!(told(&world, &send(&one, &near.token, &right)).await, new);
    assert_eq!(told(&world, &send(&one, &near.token, &right)).await, again);
    let media = json!({"kind": "media", "url": "https://example.com/a.png", "mime": "image/png"});
    let two = parts(2, json!([text("you"), media, {"kind": "log", "text": "drawn"}]));
    assert_eq!(told(&world, &send(&two, &near.token, &right)).await, new);
    let result = request(&result(&run, "one", 1), Some(&near.token), Some(&right));
    assert_eq!(told(&world, &result).await, new);
    let late = parts(5, json!([text("LATE")]));
    assert_eq!(told(&world, &send(&late, &near.token, &right)).await, new);
    let second = token(alfa, near.name, &run, "two", 1);
    let second = request(&self::result(&run, "two", 1), Some(&near.token), Some(&second));
    assert_eq!(told(&world, &second).await.0, 200);
    world.until(alfa, &run, "completed").await;
    let journal = TestRequest::get(&format!("/api/v1/runs/{run}/journal")).bearer(alfa.admin());
    let journal = world.done(200, &journal).await;
    let events = journal.as_array().unwrap().iter();
    let of_one = events.filter(|event| event["payload"]["nodeId"] == "one");
    let shown = |event: &Value| match event["type"].as_str().unwrap() {
        "node.stream.delta" => Some(match event["payload"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => event["payload"]["url"].as_str().unwrap().to_owned(),
        }),
        "node.log" => event["payload"]["text"].as_str().map(|line| format!("log {line}")),
        "node.completed" => Some("done".to_owned()),
        _ => None,
    };
    let course: Vec<String> = of_one.filter_map(shown).collect();
    let expected = ["Hel", "lo ", "you", "https://example.com/a.png", "log drawn", "done"];
    assert_eq!(course, expected, "{journal}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_result_repeats_is_redacted() {
    const KEY: &str = "key-of-a-gateway-0001";
    known::process().note("env:GATEWAY_KEY", &Secret::new(KEY)).unwrap();
    let world = World::new().await;
    let alfa = &world.alfa;
    let [near, _] = gateways(&world, alfa).await;
    let run = away(&world, alfa).await;
    for step in ["one", "two"] {
        let of = token(alfa, near.name, &run, step, 1);
        let parts = json!({"run_id": run, "step_id": step, "dispatch_no": 1, "first": 0, "parts": [
            {"kind": "text", "text": "part key-of-a-"}, {"kind": "text", "text": "gateway-0001"},
            {"kind": "log", "text": KEY}]});
        let parts = TestRequest::post("/api/workflow/step-parts", &parts);
        let parts = parts.header("x-gateway-token", &near.token).header("x-dispatch-token", &of);
        assert_eq!(told(&world, &parts).await.0, 200);
        let mut body = result(&run, step, 1);
        body["stdout"] = format!("done {KEY}").into();
        assert_eq!(told(&world, &request(&body, Some(&near.token), Some(&of))).await.0, 200);
    }
    world.until(alfa, &run, "completed").await;
    let page = TestRequest::get(&format!("/api/v1/runs/{run}/export")).bearer(alfa.admin());
    let exported = world.send(&page).await.text();
    assert!(!exported.contains(KEY), "{exported}");
    let state = state(&world, alfa, &run).await.to_string();
    assert!(state.contains("[redacted]") && !state.contains(KEY), "{state}");
    world.stop().await;
}
