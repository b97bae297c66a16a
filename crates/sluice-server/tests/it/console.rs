//! The console: sessions, requests of other origins, and what pages may contain.

use crate::client::TestRequest;
use crate::world::{World, settings};
use serde_json::{Value, json};
use sluice_server::api;
use sluice_server::api::cookie;
use sluice_server::api::route::Need;
use sluice_server::app::Settings;

/// A session: its secret, and its CSRF token.
async fn sign_in(world: &World) -> (String, String) {
    let made =
        world.send(&TestRequest::new("POST", "/api/v1/session").bearer(world.alfa.admin())).await;
    assert_eq!(made.status, 201);
    let cookie = made.header("set-cookie").unwrap().to_owned();
    let parts: Vec<&str> = cookie.split("; ").collect();
    for wanted in ["Path=/", "HttpOnly", "SameSite=Strict"] {
        assert!(parts.contains(&wanted), "{cookie}");
    }
    assert!(!parts.iter().any(|part| part.starts_with("Domain")), "{cookie}");
    let (name, secret) = parts[0].split_once('=').unwrap();
    assert_eq!(name, cookie::name(&settings()));
    let secret = secret.to_owned();
    assert!(!made.text().contains(&secret), "a script could read the secret");
    (secret, made.json()["data"]["csrf_token"].as_str().unwrap().to_owned())
}

fn with_cookie(request: TestRequest, secret: &str) -> TestRequest {
    request.header("cookie", &format!("theme=dark; {}={secret}", cookie::name(&settings())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_cannot_be_used_by_another_port_of_the_host() {
    let world = World::new().await;
    let (secret, csrf) = sign_in(&world).await;
    let note = || TestRequest::new("PUT", "/api/v1/notes/mine").json(&json!({"text": "hello"}));
    for site in ["same-site", "cross-site", "", "Same-Origin", "sluice"] {
        let look = with_cookie(TestRequest::get("/api/v1/session"), &secret);
        let look = world.send(&look.header("sec-fetch-site", site)).await;
        assert_eq!((look.status, look.code()), (403, "csrf_refused".to_owned()), "{site}");
        let change = with_cookie(note(), &secret).header("x-csrf-token", &csrf);
        let change = world.send(&change.header("sec-fetch-site", site)).await;
        assert_eq!(change.code(), "csrf_refused", "{site}");
    }
    for site in ["same-origin", "none"] {
        let look = with_cookie(TestRequest::get("/api/v1/session"), &secret);
        world.done(200, &look.header("sec-fetch-site", site)).await;
    }
    // A browser does not send a token in a header by itself.
    let token = TestRequest::get("/api/v1/session").bearer(world.alfa.admin());
    world.done(200, &token.header("sec-fetch-site", "cross-site")).await;
    // The cookie of another server on this host is not a session.
    let other = Settings { public_url: "http://127.0.0.1:7401".to_owned(), ..settings() };
    let foreign = format!("{}={secret}", cookie::name(&other));
    let foreign = TestRequest::get("/api/v1/session").header("cookie", &foreign);
    assert_eq!(world.send(&foreign).await.code(), "unauthenticated");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_changes_nothing_with_a_session_cookie() {
    let world = World::new().await;
    let (secret, csrf) = sign_in(&world).await;
    let other = sign_in(&world).await.1;
    let before = world.alfa.everything().await;
    for route in api::routes() {
        if route.method == "GET" || matches!(route.need, Need::Nothing | Need::Gateway) {
            continue;
        }
        let target = world.alfa.fixture.target(&route);
        let request =
            TestRequest::new(route.method.as_str(), &target).json(&world.alfa.fixture.body(&route));
        let request = with_cookie(request, &secret);
        for sent in ["", "1", other.as_str(), secret.as_str()] {
            let response = world.send(&request.clone().header("x-csrf-token", sent)).await;
            assert_eq!(response.code(), "csrf_refused", "{route:?} {sent}");
        }
        // As a form of another site sends it.
        let form = TestRequest::new(route.method.as_str(), &target).text("text/plain", "{}");
        let form = with_cookie(form, &secret).header("origin", "https://evil.example");
        assert_eq!(world.send(&form).await.code(), "csrf_refused", "{route:?}");
    }
    assert_eq!(before, world.alfa.everything().await);
    // A page of the console may.
    let note = TestRequest::new("PUT", "/api/v1/notes/mine").json(&json!({"text": "hello"}));
    world.done(200, &with_cookie(note, &secret).header("x-csrf-token", &csrf)).await;
    // After the sign-out the cookie is not valid any more.
    let end = with_cookie(TestRequest::new("DELETE", "/api/v1/session"), &secret);
    let ended = world.send(&end.header("x-csrf-token", &csrf)).await;
    assert!(ended.header("set-cookie").unwrap().contains("Max-Age=0"));
    let after = world.send(&with_cookie(TestRequest::get("/api/v1/session"), &secret)).await;
    assert_eq!(after.code(), "unauthenticated");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_secret_is_not_a_token_and_a_token_is_not_a_session() {
    let world = World::new().await;
    let (secret, csrf) = sign_in(&world).await;
    let as_token = world.send(&TestRequest::get("/api/v1/session").bearer(&secret)).await;
    assert_eq!(as_token.code(), "unauthenticated");
    let as_cookie = with_cookie(TestRequest::get("/api/v1/session"), world.alfa.admin());
    assert_eq!(world.send(&as_cookie).await.code(), "unauthenticated");
    for scheme in ["Basic", "Token", "bearer bearer", ""] {
        let sent = format!("{scheme} {}", world.alfa.admin());
        let request = TestRequest::get("/api/v1/session").header("authorization", &sent);
        assert_eq!(world.send(&request).await.status, 401, "{scheme}");
    }
    // A session cannot open another one, and a token in the query is ignored.
    let again = with_cookie(TestRequest::new("POST", "/api/v1/session"), &secret);
    assert_eq!(world.send(&again.header("x-csrf-token", &csrf)).await.code(), "forbidden");
    let request = TestRequest::get(&format!("/api/v1/session?token={}", world.alfa.admin()));
    assert_eq!(world.send(&request).await.status, 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_configured_origins_may_call_the_api() {
    let open = Settings {
        cors_origins: vec!["https://console.example".to_owned()],
        secure_cookies: true,
        ..settings()
    };
    let (closed, open) = (World::new().await, World::with(open, "'*': {text: hello}\n").await);
    let preflight = |world: &World, origin: &str| {
        let target = world.alfa.fixture.approval.clone();
        TestRequest::new("OPTIONS", &format!("/api/v1/approvals/{target}/resolve"))
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization")
    };
    for (world, origin, may) in [
        (&closed, "https://console.example", false),
        (&open, "https://console.example", true),
        (&open, "https://console.example.evil.example", false),
        (&open, "https://evil.example", false),
        (&open, "http://console.example", false),
        (&open, "https://CONSOLE.example", false),
        (&open, "null", false),
        (&open, "*", false),
    ] {
        let asked = world.send(&preflight(world, origin)).await;
        let got = world.send(&TestRequest::get("/healthz").header("origin", origin)).await;
        let allowed = may.then_some(origin);
        for response in [&asked, &got] {
            assert_eq!(response.header("access-control-allow-origin"), allowed, "{origin}");
            assert_eq!(response.header("access-control-allow-credentials"), None);
        }
        assert_eq!(asked.status, if may { 204 } else { 405 }, "{origin}");
        let methods = asked.header("access-control-allow-methods");
        assert_eq!(methods, may.then_some("POST"), "{origin}");
    }
    assert_eq!(open.send(&TestRequest::get("/healthz")).await.header("vary"), Some("origin"));
    let signed = TestRequest::new("POST", "/api/v1/session").bearer(open.alfa.admin());
    assert!(open.send(&signed).await.header("set-cookie").unwrap().ends_with("; Secure"));
    closed.stop().await;
    open.stop().await;
}

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}";

#[tokio::test(flavor = "multi_thread")]
async fn user_text_is_never_served_as_a_page() {
    let script = format!("'*': {{text: {}}}\n", json!(MARKUP));
    let world = World::with(settings(), &script).await;
    let admin = world.alfa.admin();
    let put = |path: &str, body: &Value| TestRequest::new("PUT", path).json(body).bearer(admin);
    for (path, body) in [
        ("/api/v1/notes/shown", json!({"text": MARKUP})),
        ("/api/v1/agents/shown", json!({"name": MARKUP, "system_prompt": MARKUP})),
        ("/api/v1/instructions/shown", json!({"layer": "owner", "text": MARKUP})),
    ] {
        world.done(200, &put(path, &body)).await;
    }
    let document = json!({"name": "shown", "description": MARKUP, "steps": [
        {"id": "say", "command": MARKUP},
        {"id": "ask", "depends_on": ["say"], "approval": {"required": true, "summary": MARKUP}},
    ]});
    let body = json!({"document": document.to_string(), "default_agent": "mock"});
    let made = world.done(202, &TestRequest::post("/api/v1/runs", &body).bearer(admin)).await;
    let run = made["run_id"].as_str().unwrap();
    let open_approval = world.open_approval(&world.alfa, run).await;
    let response = json!({"decision": "reject", "comment": MARKUP});
    let resolve = format!("/api/v1/approvals/{open_approval}/resolve");
    world.done(200, &TestRequest::post(&resolve, &response).bearer(admin)).await;
    for target in [
        format!("/api/v1/runs/{run}"),
        format!("/api/v1/runs/{run}/state"),
        format!("/api/v1/runs/{run}/journal"),
        format!("/api/v1/runs/{run}/events"),
        format!("/api/v1/runs/{run}/steps/say"),
        format!("/api/v1/runs/{run}/export"),
        format!("/api/v1/runs/{run}/audit"),
        format!("/api/v1/approvals/{open_approval}"),
        format!("/api/v1/agents/{}", "%3Cscript%3E"),
        "/api/v1/notes".to_owned(),
        "/api/v1/agents".to_owned(),
        "/api/v1/audit?limit=500".to_owned(),
        "/api/v1/%3Cscript%3E".to_owned(),
        "/api/v1/runs?status=%3Cscript%3E".to_owned(),
    ] {
        let response = world.send(&TestRequest::get(&target).bearer(admin)).await;
        let media = response.header("content-type").unwrap().split(';').next().unwrap();
        let plain =
            ["application/json", "application/problem+json", "text/event-stream", "text/plain"];
        assert!(plain.contains(&media), "{target}: {media}");
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{target}: {policy}");
        assert_eq!(response.header("x-frame-options"), Some("DENY"));
    }
    let docs = world.send(&TestRequest::get("/api/docs").bearer(admin)).await.text();
    assert!(!docs.contains("alert") && !docs.contains("alfa"), "the page shows what people wrote");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_are_values_and_not_queries() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let all = world.done(200, &TestRequest::get("/api/v1/runs").bearer(admin)).await;
    assert!(all.as_array().unwrap().len() >= 2);
    for odd in [
        "'%20OR%201=1--",
        "%25",
        "_",
        "alfa%25",
        "alfa-flo_",
        "%27%3B%20DROP%20TABLE%20runs",
        "*",
        "%00",
    ] {
        let request = TestRequest::get(&format!("/api/v1/runs?workflow={odd}")).bearer(admin);
        let response = world.send(&request).await;
        let found = response.json()["data"].as_array().map_or(0, Vec::len);
        assert_eq!(found, 0, "{odd}: {}", response.text());
        for field in ["status", "cursor", "parent", "limit", "sort", "order"] {
            let request = TestRequest::get(&format!("/api/v1/runs?{field}={odd}")).bearer(admin);
            assert_eq!(world.send(&request).await.code(), "bad_request", "{field}={odd}");
        }
        let request = TestRequest::get(&format!("/api/v1/runs/{odd}")).bearer(admin);
        assert_eq!(world.send(&request).await.status, 404, "{odd}");
    }
    let after = world.done(200, &TestRequest::get("/api/v1/runs").bearer(admin)).await;
    assert_eq!(all, after);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_served_and_unknown_api_paths_are_problems() {
    let world = World::new().await;
    for path in ["/", "/runs", "/runs/run_1?tab=events", "/approvals", "/workflows/any"] {
        // Pages are not part of the API or its description.
        let page = world.begin(&TestRequest::get(path)).await.response().await;
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert!(page.header("set-cookie").is_none(), "{path}");
        let head = world.send(&TestRequest::new("HEAD", path)).await;
        assert_eq!((head.status, head.text().as_str()), (200, ""), "{path}");
    }
    let nowhere = ["/api", "/api/v1/nothing", "/api/v1/runs/x/nothing", "/hooks", "/assets/x.js"];
    for path in nowhere.iter().chain(&["/runs/", "/runs/a/b", "/index.html"]) {
        let none = world.send(&TestRequest::get(path)).await;
        assert_eq!(none.status, 404, "{path}");
        assert_eq!(none.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(none.json()["code"], "not_found", "{path}");
    }
    let posted = world.send(&TestRequest::post("/runs", &json!({}))).await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
    // A route of the API takes precedence over a page.
    let wrong = world.send(&TestRequest::new("PUT", "/healthz")).await;
    assert_eq!(wrong.status, 405);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_of_a_rewind_changes_nothing() {
    let world = World::new().await;
    let document = "name: two\nsteps:\n  - {id: one, command: Go.}\n  \
        - {id: two, depends_on: [one], command: Go.}\n";
    let run = world.start(&world.alfa, document).await;
    world.until(&world.alfa, &run, "completed").await;
    let shown = || TestRequest::get(&format!("/api/v1/runs/{run}")).bearer(world.alfa.admin());
    let before = world.done(200, &shown()).await;
    assert_eq!(
        before["steps"],
        json!([
            {"node_id": "one", "kind": "command", "wave": 0, "depends_on": []},
            {"node_id": "two", "kind": "command", "wave": 1, "depends_on": ["one"]},
        ])
    );
    let path = format!("/api/v1/runs/{run}/rewind");
    let back = |body: Value| TestRequest::post(&path, &body).bearer(world.alfa.admin());
    for (to, repeats) in [(0, json!(["one", "two"])), (1, json!(["two"])), (2, json!([]))] {
        let told = world.done(200, &back(json!({"to": to, "preview": true}))).await;
        assert_eq!((&told["repeats"], &told["done"]), (&repeats, &json!(false)), "{to}");
    }
    assert_eq!(world.done(200, &shown()).await, before);
    let told = world.done(200, &back(json!({"to": 1}))).await;
    assert_eq!((&told["repeats"], &told["done"]), (&json!(["two"]), &json!(true)));
    world.until(&world.alfa, &run, "completed").await;
    let after = world.done(200, &shown()).await;
    assert!(after["last_event_id"].as_u64() > before["last_event_id"].as_u64());
    world.stop().await;
}
