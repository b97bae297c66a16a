//! Overload: too many, too large or too slow requests are refused, without harm to others.

use crate::client::{PATIENCE, TestRequest, Wire, connect, raw};
use crate::world::{World, settings};
use axum::extract::Request;
use serde_json::json;
use sluice_bridge::limits::CALLBACK_BYTES_MAX;
use sluice_server::api;
use sluice_server::api::router::Router;
use sluice_server::app::Settings;
use sluice_server::auth::permission::Role;
use sluice_server::capacity::{Holder, Shares};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const SCRIPT: &str = "'*': {text: a}\n";

/// What idle connections send before they wait: nothing, half a head, half of the HTTP/2
/// preface, all of it, a request whose body never comes, and a complete request.
const WAITING: [&[u8]; 7] = [
    b"",
    b"G",
    b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ",
    b"PRI * HT",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    b"POST /hooks/alfa-hooks HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{",
    b"GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n",
];

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_at_once_for_new_ones() {
    // In this test only the lack of capacity closes a connection.
    let settings = Settings { connections: 16, head_ms: 60_000, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let request = TestRequest::get("/api/v1/workflows").bearer(world.alfa.admin());
    // The connection of an earlier user is not closed.
    let mut user = connect(world.address).await;
    let text = String::from_utf8(request.bytes()).unwrap().replace("connection: close\r\n", "");
    for sent in WAITING {
        user.write_all(text.as_bytes()).await.unwrap();
        assert!(reads(&mut user).await > 0, "the user was closed");
        let mut idle = Vec::new();
        for _ in 0..40 {
            let mut stream = connect(world.address).await;
            // The connection may be closed already.
            let _ = stream.write_all(sent).await;
            idle.push(stream);
        }
        let began = Instant::now();
        assert_eq!(world.send(&TestRequest::get("/healthz")).await.status, 200);
        world.done(200, &request).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{}", sent.escape_ascii());
    }
    assert!(world.app.connections().displaced() > 0);
    world.stop().await;
}

async fn reads(stream: &mut tokio::net::TcpStream) -> usize {
    let mut bytes = [0; 64 * 1024];
    tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_after_a_while() {
    let settings = Settings { head_ms: 400, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    for sent in WAITING {
        let mut stream = connect(world.address).await;
        stream.write_all(sent).await.unwrap();
        let mut bytes = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        assert!(ended.is_ok(), "{} is kept", sent.escape_ascii());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_token_has_a_share_of_connections_of_its_own() {
    let shares = Shares { token: 10, organisation: 75, strangers: 12 };
    let settings = Settings { connections: 40, shares, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let hostile = TestRequest::get("/api/v1/events").bearer(world.alfa.token(Role::Viewer));
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(world.begin(&hostile).await);
    }
    let refused = world.send(&hostile).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    for other in [world.alfa.token(Role::Operator), world.bravo.token(Role::Viewer)] {
        world.done(200, &TestRequest::get("/api/v1/workflows").bearer(other)).await;
    }
    drop(streams);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_charged_to_the_token_that_opened_it() {
    let settings = Settings { rate_per_second: 1, rate_burst: 60, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let token = world.alfa.token(Role::Viewer);
    let mut cookies = Vec::new();
    for _ in 0..6 {
        let made =
            world.send(&TestRequest::post("/api/v1/session", &json!({})).bearer(token)).await;
        let cookie = made.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        cookies.push(cookie);
    }
    let mut answered = 0;
    for turn in 0..120 {
        let request =
            TestRequest::get("/api/v1/session").header("cookie", &cookies[turn % cookies.len()]);
        answered += usize::from(world.send(&request).await.status == 200);
    }
    assert!(answered < 90, "{answered} requests of a token that may make 60 at once");
    world
        .done(200, &TestRequest::get("/api/v1/session").bearer(world.alfa.token(Role::Operator)))
        .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_more_session_ends_the_oldest_and_sessions_are_opened_at_a_rate() {
    let settings = Settings { sessions: 3, sessions_per_minute: 6, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let token = world.alfa.token(Role::Viewer);
    let open = TestRequest::post("/api/v1/session", &json!({})).bearer(token);
    let mut sessions = Vec::new();
    for _ in 0..6 {
        let made = world.send(&open).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let cookie = made.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        sessions.push(TestRequest::get("/api/v1/session").header("cookie", &cookie));
        // The oldest is determined by its creation time.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut statuses = Vec::new();
    for session in &sessions {
        statuses.push(world.send(session).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 200, 200, 200]);
    let refused = world.send(&open).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    let other =
        TestRequest::post("/api/v1/session", &json!({})).bearer(world.alfa.token(Role::Operator));
    world.done(201, &other).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_over_its_rate_does_not_slow_another() {
    let settings = Settings { rate_per_second: 1, rate_burst: 60, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let request = TestRequest::get("/api/v1/workflows").bearer(world.alfa.token(Role::Viewer));
    let mut refused = None;
    for _ in 0..70 {
        let response = world.send(&request).await;
        if response.status != 200 {
            refused = Some(response);
            break;
        }
    }
    let refused = refused.expect("the token exceeds its rate");
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&after), "{after}");
    for other in [world.alfa.token(Role::Operator), world.bravo.token(Role::Viewer)] {
        world.done(200, &TestRequest::get("/api/v1/workflows").bearer(other)).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_guesses_secrets_is_stopped_and_other_clients_are_not() {
    let settings = Settings { strangers_per_minute: 5, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let mut codes = Vec::new();
    for n in 0..8 {
        let guess = format!("slk_{n:043}");
        let response = world.send(&TestRequest::get("/api/v1/session").bearer(&guess)).await;
        codes.push(response.status);
    }
    assert_eq!(codes, [401, 401, 401, 401, 401, 429, 429, 429]);
    world.done(200, &TestRequest::get("/api/v1/session").bearer(world.alfa.admin())).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_server_answers_503_with_retry_after() {
    let world = World::with(Settings { in_flight: 2, ..settings() }, SCRIPT).await;
    let pool = &world.app.capacity().requests;
    let request = TestRequest::get("/api/v1/workflows").bearer(world.alfa.admin());
    let own = Holder::token("default", &world.alfa.tokens[&Role::Admin].1);
    let held = pool.take(&own, 1).unwrap();
    let refused = world.send(&request).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    let other = TestRequest::get("/api/v1/workflows").bearer(world.bravo.admin());
    world.done(200, &other).await;
    let more = pool.take(&Holder::token("more", "x"), 1).unwrap();
    let refused = world.send(&other).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(world.send(&TestRequest::get("/healthz")).await.status, 200);
    drop((held, more));
    world.done(200, &request).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_body_uses_no_request_capacity_and_times_out() {
    let settings = Settings { in_flight: 1, request_ms: 1500, head_ms: 1500, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let admin = world.alfa.admin();
    let half = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin}\r\n\
             content-type: application/json\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{{"
        )
    };
    for path in ["/api/v1/runs", "/hooks/alfa-hooks"] {
        let mut slow = Vec::new();
        for _ in 0..5 {
            let mut stream = connect(world.address).await;
            stream.write_all(half(path).as_bytes()).await.unwrap();
            slow.push(stream);
        }
        for _ in 0..10 {
            world.done(200, &TestRequest::get("/api/v1/workflows").bearer(admin)).await;
        }
        for stream in slow {
            let response = Wire::head(stream).await.unwrap().response().await;
            assert_eq!((response.status, response.code().as_str()), (503, "request_timeout"));
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_strangers_have_little_memory_and_unknown_webhooks_none() {
    let settings = Settings { body_bytes: 64 * 1024, body_memory_bytes: 1, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let begin = |hook: &str, bytes: usize| {
        let head = format!("POST /hooks/{hook} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        format!("{head}content-length: {}\r\n\r\n{}", bytes + 1, " ".repeat(bytes))
    };
    // A request to an unknown webhook is refused before its body is read.
    let began = Instant::now();
    let response = raw(world.address, begin("none", 1).as_bytes()).await.unwrap();
    assert_eq!((response.status, response.code().as_str()), (401, "unauthenticated"));
    assert!(began.elapsed() < Duration::from_secs(5));
    let other = Holder::stranger([10, 0, 0, 1].into());
    let all = world.app.capacity().body_bytes.take(&other, CALLBACK_BYTES_MAX).unwrap();
    let response = raw(world.address, begin("alfa-hooks", 1000).as_bytes()).await.unwrap();
    assert_eq!((response.status, response.code().as_str()), (503, "overloaded"));
    drop(all);
    assert_eq!(world.app.capacity().body_bytes.used(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_too_long_are_refused() {
    let settings = Settings { body_bytes: 4096, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let admin = world.alfa.admin();
    let body = json!({"document": "x".repeat(5000)});
    let response = world.send(&TestRequest::post("/api/v1/runs", &body).bearer(admin)).await;
    assert_eq!((response.status, response.code().as_str()), (413, "body_too_large"));
    // Without a content length.
    let chunked = format!(
        "POST /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin}\r\nconnection: close\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1388\r\n{}\r\n0\r\n\r\n",
        " ".repeat(5000)
    );
    assert_eq!(raw(world.address, chunked.as_bytes()).await.unwrap().status, 413);
    let target = format!("/api/v1/runs?workflow={}", "x".repeat(9000));
    let response = world.send(&TestRequest::get(&target).bearer(admin)).await;
    assert_eq!((response.status, response.code().as_str()), (400, "bad_request"));
    let request = TestRequest::get("/healthz").header("x-long", &"x".repeat(1_000_000));
    if let Some(response) = raw(world.address, &request.bytes()).await {
        assert!(matches!(response.status, 400 | 431), "{}", response.status);
    }
    assert_eq!(world.send(&TestRequest::get("/healthz")).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_refuses_new_requests() {
    let world = World::new().await;
    let router = Router::new(world.app.clone(), api::routes());
    let status = async |path: &str| {
        let request = Request::get(path)
            .header("authorization", format!("Bearer {}", world.alfa.admin()))
            .body(axum::body::Body::empty())
            .unwrap();
        router.clone().answer(request).await.status().as_u16()
    };
    let before = (status("/healthz").await, status("/readyz").await, status("/api/v1/runs").await);
    assert_eq!(before, (200, 200, 200));
    world.app.stop().cancel();
    let after = (status("/healthz").await, status("/readyz").await, status("/api/v1/runs").await);
    assert_eq!(after, (200, 503, 503));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_two_lengths_is_refused() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let request = |headers: &str, body: &str| {
        format!(
            "POST /api/v1/workflows/validate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin}\r\n\
             content-type: application/json\r\n{headers}\r\n{body}"
        )
    };
    let hidden = "GET /api/v1/tokens HTTP/1.1\r\nhost: x\r\n\r\n";
    let cases = [
        request(
            "content-length: 4\r\ntransfer-encoding: chunked\r\n",
            &format!("0\r\n\r\n{hidden}"),
        ),
        request(
            "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
            &format!("0\r\n\r\n{hidden}"),
        ),
        request("content-length: 2\n", &format!("{{}}{hidden}")),
        request("x: y\ncontent-length: 2\r\n", &format!("{{}}{hidden}")),
        request("content-length: 2\r\n", "{}").replace(" HTTP/1.1\r\n", " HTTP/1.1\n"),
        request("content-length: 2\r\ncontent-length: 50\r\n", &format!("{{}}{hidden}")),
        request("content-length: 2, 50\r\n", &format!("{{}}{hidden}")),
        request("content-length: +2\r\n", &format!("{{}}{hidden}")),
        request("content-length: 0x2\r\n", &format!("{{}}{hidden}")),
        request("content-length: -1\r\n", hidden),
        request("transfer-encoding: xchunked\r\n", &format!("0\r\n\r\n{hidden}")),
        request("transfer-encoding: chunked, identity\r\n", &format!("0\r\n\r\n{hidden}")),
        request("transfer-encoding : chunked\r\n", &format!("0\r\n\r\n{hidden}")),
        request("transfer-encoding: chunked\r\n", &format!("zz\r\n\r\n{hidden}")),
        request("transfer-encoding: chunked\r\n", &format!("fffffffffffffffff\r\n{hidden}")),
        request(" folded: x\r\ncontent-length: 2\r\n", &format!("{{}}{hidden}")),
        request("x: a\rb\r\ncontent-length: 2\r\n", &format!("{{}}{hidden}")),
    ];
    // Two equal lengths are refused as well: a proxy may read only one of them.
    let body = r#"{"document": "name: a\nsteps: [{id: a, command: b}]\n"}"#;
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = format!("content-length: {}\r\n", body.len());
    let cases = cases.into_iter().chain([
        request(&format!("transfer-encoding: chunked\r\n{length}"), &chunk),
        request(&format!("{length}transfer-encoding: chunked\r\n"), &chunk),
    ]);
    for case in cases {
        let mut stream = connect(world.address).await;
        stream.write_all(case.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        let reading = stream.read_to_end(&mut response);
        let ended = tokio::time::timeout(Duration::from_secs(15), reading).await;
        let text = String::from_utf8_lossy(&response).into_owned();
        assert!(ended.is_ok(), "the connection is kept: {case}\n{text}");
        let answers = text.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "something hidden was answered: {case}\n{text}");
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 400"), "{case}\n{text}");
    }
    world.stop().await;
}
