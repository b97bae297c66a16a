//! Too many, too long, too slow: refused in time, and nobody else suffers.

use crate::client::{Ask, PATIENCE, Wire, connect, raw};
use crate::world::{World, settings};
use axum::extract::Request;
use serde_json::json;
use sluice_server::api;
use sluice_server::api::router::Router;
use sluice_server::app::Settings;
use sluice_server::auth::permission::Role;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const SCRIPT: &str = "'*': {text: a}\n";

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_most_wait_and_idle_ones_are_cut() {
    let settings = Settings { connections: 3, head_ms: 400, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    // Half a head, none at all, half of what HTTP/2 begins with, a few bytes.
    let slow = ["GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ", "", "PRI * HT", "G"];
    for said in slow {
        let mut idle = Vec::new();
        for _ in 0..3 {
            let mut stream = connect(world.address).await;
            stream.write_all(said.as_bytes()).await.unwrap();
            idle.push(stream);
        }
        let began = Instant::now();
        // It is answered once one of those who only keep their places is cut.
        let answer = world.send(&Ask::get("/healthz")).await;
        assert_eq!(answer.status, 200, "{said}");
        assert!(began.elapsed() >= Duration::from_millis(150), "{said}: there was room for more");
        for mut stream in idle {
            let mut bytes = Vec::new();
            let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
            assert!(ended.is_ok(), "{said}: the place is kept");
        }
    }
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
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limited"));
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
    let settings = Settings { in_flight: 1, request_ms: 1000, ..settings() };
    let world = World::with(settings, SCRIPT).await;
    let admin = world.alfa.admin();
    let half = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin}\r\n\
             content-type: application/json\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{{"
        )
    };
    // A stranger at a door takes room as well.
    for path in ["/api/v1/runs", "/hooks/alfa-hooks"] {
        let mut slow = connect(world.address).await;
        slow.write_all(half(path).as_bytes()).await.unwrap();
        let began = Instant::now();
        let refused = loop {
            let answer = world.send(&Ask::get("/api/v1/workflows").bearer(admin)).await;
            if answer.status != 200 {
                break answer;
            }
            assert!(began.elapsed() < Duration::from_millis(900), "{path} takes no room");
        };
        assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
        assert!(refused.header("retry-after").is_some());
        assert_eq!(world.send(&Ask::get("/healthz")).await.status, 200);
        // What is half sent is not waited for.
        let answer = Wire::head(slow).await.unwrap().answer().await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "request_timeout"));
        world.done(200, &Ask::get("/api/v1/workflows").bearer(admin)).await;
    }
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
