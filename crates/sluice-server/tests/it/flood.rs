//! Too many, too long, too slow: refused in time, and nobody else suffers.

use crate::client::{Ask, PATIENCE, Wire, connect, raw};
use crate::world::{World, settings};
use axum::extract::Request;
use serde_json::json;
use sluice_bridge::limits::CALLBACK_BYTES_MAX;
use sluice_server::api;
use sluice_server::api::router::Router;
use sluice_server::app::Settings;
use sluice_server::auth::permission::Role;
use sluice_server::places::{Holder, Shares};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const SCRIPT: &str = "'*': {text: a}\n";

/// What connections send that then only wait: nothing, half a head, half of what
/// HTTP/2 begins with, all of it, a request whose body never comes, one that is
/// answered and followed by none.
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
async fn connections_that_only_wait_make_room_for_others_at_once() {
    // Nothing but the need for room ends a connection here.
    let settings = Settings { connections: 16, head_ms: 60_000, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let ask = Ask::get("/api/v1/workflows").bearer(world.alfa.admin());
    // A user who was there before is not closed.
    let mut user = connect(world.address).await;
    let request = String::from_utf8(ask.bytes()).unwrap().replace("connection: close\r\n", "");
    for said in WAITING {
        user.write_all(request.as_bytes()).await.unwrap();
        assert!(reads(&mut user).await > 0, "the user was closed");
        let mut idle = Vec::new();
        for _ in 0..40 {
            let mut stream = connect(world.address).await;
            // It may be closed by now.
            let _ = stream.write_all(said).await;
            idle.push(stream);
        }
        let began = Instant::now();
        assert_eq!(world.send(&Ask::get("/healthz")).await.status, 200);
        world.done(200, &ask).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{}", said.escape_ascii());
    }
    assert!(world.app.connections().displaced() > 0);
    world.stop().await;
}

async fn reads(stream: &mut tokio::net::TcpStream) -> usize {
    let mut bytes = [0; 64 * 1024];
    tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_only_wait_are_cut_after_a_while() {
    let settings = Settings { head_ms: 400, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    for said in WAITING {
        let mut stream = connect(world.address).await;
        stream.write_all(said).await.unwrap();
        let mut bytes = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        assert!(ended.is_ok(), "{} is kept", said.escape_ascii());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_its_share_of_connections_and_others_have_theirs() {
    let shares = Shares { token: 10, organisation: 75, strangers: 12 };
    let settings = Settings { connections: 40, shares, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let hostile = Ask::get("/api/v1/events").bearer(world.alfa.token(Role::Viewer));
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(world.begin(&hostile).await);
    }
    let refused = world.send(&hostile).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    for other in [world.alfa.token(Role::Operator), world.bravo.token(Role::Viewer)] {
        world.done(200, &Ask::get("/api/v1/workflows").bearer(other)).await;
    }
    drop(streams);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_counts_as_the_token_that_opened_it() {
    let settings = Settings { rate_per_second: 1, rate_burst: 60, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let token = world.alfa.token(Role::Viewer);
    let mut cookies = Vec::new();
    for _ in 0..6 {
        let made = world.send(&Ask::post("/api/v1/session", &json!({})).bearer(token)).await;
        let cookie = made.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        cookies.push(cookie);
    }
    let mut answered = 0;
    for turn in 0..120 {
        let ask = Ask::get("/api/v1/session").header("cookie", &cookies[turn % cookies.len()]);
        answered += usize::from(world.send(&ask).await.status == 200);
    }
    assert!(answered < 90, "{answered} requests of a token that may make 60 at once");
    world.done(200, &Ask::get("/api/v1/session").bearer(world.alfa.token(Role::Operator))).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_more_session_ends_the_oldest_and_sessions_are_opened_at_a_rate() {
    let settings = Settings { sessions: 3, sessions_per_minute: 6, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let token = world.alfa.token(Role::Viewer);
    let open = Ask::post("/api/v1/session", &json!({})).bearer(token);
    let mut sessions = Vec::new();
    for _ in 0..6 {
        let made = world.send(&open).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let cookie = made.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        sessions.push(Ask::get("/api/v1/session").header("cookie", &cookie));
        // The oldest is known by when it was made.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut statuses = Vec::new();
    for session in &sessions {
        statuses.push(world.send(session).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 200, 200, 200]);
    let refused = world.send(&open).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    let other = Ask::post("/api/v1/session", &json!({})).bearer(world.alfa.token(Role::Operator));
    world.done(201, &other).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_that_asks_too_often_does_not_slow_another() {
    let settings = Settings { rate_per_second: 1, rate_burst: 60, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let ask = Ask::get("/api/v1/workflows").bearer(world.alfa.token(Role::Viewer));
    let mut refused = None;
    for _ in 0..70 {
        let answer = world.send(&ask).await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("it asks too often");
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&after), "{after}");
    for other in [world.alfa.token(Role::Operator), world.bravo.token(Role::Viewer)] {
        world.done(200, &Ask::get("/api/v1/workflows").bearer(other)).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_secrets_is_stopped_and_others_are_not() {
    let settings = Settings { strangers_per_minute: 5, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let mut codes = Vec::new();
    for n in 0..8 {
        let guess = format!("slk_{n:043}");
        let answer = world.send(&Ask::get("/api/v1/session").bearer(&guess)).await;
        codes.push(answer.status);
    }
    assert_eq!(codes, [401, 401, 401, 401, 401, 429, 429, 429]);
    world.done(200, &Ask::get("/api/v1/session").bearer(world.alfa.admin())).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_at_once_is_told_to_come_again() {
    let world = World::with(Settings { in_flight: 2, ..settings() }, SCRIPT).await;
    let places = &world.app.room().requests;
    let ask = Ask::get("/api/v1/workflows").bearer(world.alfa.admin());
    let own = Holder::token("default", &world.alfa.tokens[&Role::Admin].1);
    let held = places.take(&own, 1).unwrap();
    let refused = world.send(&ask).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    let other = Ask::get("/api/v1/workflows").bearer(world.bravo.admin());
    world.done(200, &other).await;
    let more = places.take(&Holder::token("more", "x"), 1).unwrap();
    let refused = world.send(&other).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(world.send(&Ask::get("/healthz")).await.status, 200);
    drop((held, more));
    world.done(200, &ask).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_half_sent_holds_no_place_and_is_not_waited_for() {
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
            world.done(200, &Ask::get("/api/v1/workflows").bearer(admin)).await;
        }
        for stream in slow {
            let answer = Wire::head(stream).await.unwrap().answer().await;
            assert_eq!((answer.status, answer.code().as_str()), (503, "request_timeout"));
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_strangers_have_little_memory_and_unknown_hooks_none() {
    let settings = Settings { body_bytes: 64 * 1024, body_memory_bytes: 1, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let begin = |hook: &str, bytes: usize| {
        let head = format!("POST /hooks/{hook} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        format!("{head}content-length: {}\r\n\r\n{}", bytes + 1, " ".repeat(bytes))
    };
    // One that no organisation has is refused before its body is there.
    let began = Instant::now();
    let answer = raw(world.address, begin("none", 1).as_bytes()).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"));
    assert!(began.elapsed() < Duration::from_secs(5));
    let other = Holder::stranger([10, 0, 0, 1].into());
    let all = world.app.room().body_bytes.take(&other, CALLBACK_BYTES_MAX).unwrap();
    let answer = raw(world.address, begin("alfa-hooks", 1000).as_bytes()).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
    drop(all);
    assert_eq!(world.app.room().body_bytes.used(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_is_refused() {
    let settings = Settings { body_bytes: 4096, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let admin = world.alfa.admin();
    let body = json!({"document": "x".repeat(5000)});
    let answer = world.send(&Ask::post("/api/v1/runs", &body).bearer(admin)).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "body_too_large"));
    // Without saying how long it will be.
    let chunked = format!(
        "POST /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin}\r\nconnection: close\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1388\r\n{}\r\n0\r\n\r\n",
        " ".repeat(5000)
    );
    assert_eq!(raw(world.address, chunked.as_bytes()).await.unwrap().status, 413);
    let target = format!("/api/v1/runs?workflow={}", "x".repeat(9000));
    let answer = world.send(&Ask::get(&target).bearer(admin)).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "bad_request"));
    let ask = Ask::get("/healthz").header("x-long", &"x".repeat(1_000_000));
    if let Some(answer) = raw(world.address, &ask.bytes()).await {
        assert!(matches!(answer.status, 400 | 431), "{}", answer.status);
    }
    assert_eq!(world.send(&Ask::get("/healthz")).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_takes_nothing_new_and_says_so() {
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
async fn a_request_has_one_length() {
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
    // What both lengths leave no doubt about is refused too: a proxy may read the other.
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
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        let ended = tokio::time::timeout(Duration::from_secs(15), reading).await;
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(ended.is_ok(), "the connection is kept: {case}\n{text}");
        let answers = text.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "something hidden was answered: {case}\n{text}");
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 400"), "{case}\n{text}");
    }
    world.stop().await;
}
