//! Event streams: resuming, revoked tokens, slow readers, shutdown.

use crate::client::{PATIENCE, TestRequest, Wire};
use crate::sse::{Frame, Stream};
use crate::world::{World, settings, token};
use serde_json::json;
use sluice_govern::registry::{Kind, Row};
use sluice_server::app::Settings;
use sluice_server::capacity::Shares;
use sluice_server::refused::ServiceResult;
use sluice_server::service::registry::{self, Mode, RowChange};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

const ODD: &str = "a\n\nevent: fake\ndata: {}\n\nid: 99\r\rretry: 1\r\n\r\n\u{2028}: x\u{85}\u{0}";

fn events(run: &str, query: &str) -> TestRequest {
    TestRequest::get(&format!("/api/v1/runs/{run}/events{query}"))
}

fn ids(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id.as_ref()?.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_content_of_an_event_breaks_its_frame() {
    let script = format!("'*': {{chunks: [{0}, {0}]}}\n", json!(ODD));
    let world = World::with(settings(), &script).await;
    let admin = world.alfa.admin();
    let run = &world.alfa.fixture.ended;
    let frames = Stream::open(&world, &events(run, "").bearer(admin)).await.rest().await;
    let expected: Vec<u64> = (1..=frames.len() as u64).collect();
    assert_eq!(ids(&frames), expected, "ids are dense, and belong to this run");
    let mut told = false;
    for frame in &frames {
        let envelope = frame.json();
        assert_eq!(Some(envelope["type"].as_str().unwrap()), frame.event.as_deref());
        assert_eq!(envelope["eventId"].to_string(), *frame.id.as_ref().unwrap());
        told |= envelope.to_string().contains("fake");
    }
    assert!(told, "what was said is told, as text");
    assert_eq!(frames.last().unwrap().event.as_deref(), Some("run.completed"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_resumes_from_every_position() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let run = &world.alfa.fixture.ended;
    let all = Stream::open(&world, &events(run, "").bearer(admin)).await.rest().await;
    for after in 0..=all.len() {
        let query = events(run, &format!("?afterEventId={after}")).bearer(admin);
        let header = events(run, "").header("last-event-id", &after.to_string()).bearer(admin);
        let [under, root] = ["/api/v1", ""].map(|base| {
            let path = format!("{base}/execute/workflows/{run}/events?afterEventId={after}");
            TestRequest::get(&path).bearer(admin)
        });
        for request in [query, header, under, root] {
            let rest = Stream::open(&world, &request).await.rest().await;
            assert_eq!(rest, all[after..], "after {after}");
        }
    }
    for odd in ["x", "-1", "1.5", "", "%20", "99999999999999999999999", "1%0a"] {
        let request = events(run, &format!("?afterEventId={odd}")).bearer(admin);
        assert_eq!(world.send(&request).await.code(), "bad_request", "{odd}");
    }
    for odd in ["x", "1 2", "-1"] {
        let request = events(run, "").header("last-event-id", odd).bearer(admin);
        assert_eq!(world.send(&request).await.code(), "bad_request", "{odd}");
        let request = TestRequest::get("/api/v1/events").header("last-event-id", odd).bearer(admin);
        assert_eq!(world.send(&request).await.code(), "bad_request", "{odd}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_sends_heartbeats_and_ends_with_its_token() {
    let world = World::with(Settings { heartbeat_ms: 30, ..settings() }, "'*': {text: a}\n").await;
    let (secret, id) = world.alfa.grant(token("reader", &["viewer"])).await;
    let run = &world.alfa.fixture.waiting;
    let mut streams = Vec::new();
    for target in [format!("/api/v1/runs/{run}/events"), "/api/v1/events".to_owned()] {
        let mut stream = Stream::open(&world, &TestRequest::get(&target).bearer(&secret)).await;
        for _ in 0..2 {
            let beat = loop {
                let frame = stream.next().await.unwrap();
                if frame.id.is_none() {
                    break frame;
                }
            };
            assert_eq!((beat.event.as_deref(), &beat.comment), (Some("heartbeat"), &None));
            let data = beat.json();
            assert_eq!(data["type"], "heartbeat");
            assert!(data["timestamp"].as_str().unwrap().ends_with('Z'), "{data}");
            let of = target.contains("/runs/").then_some(run.as_str());
            assert_eq!(data["runId"].as_str(), of, "{data}");
        }
        streams.push(stream);
    }
    let revoke =
        TestRequest::new("DELETE", &format!("/api/v1/tokens/{id}")).bearer(world.alfa.admin());
    world.done(200, &revoke).await;
    for stream in streams {
        let last = stream.rest().await.pop().unwrap();
        assert_eq!(last.comment.as_deref(), Some("the token has expired or was revoked"));
    }
    world.stop().await;
}

/// A stream with constant events sends no heartbeats.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_stream_ends_with_its_token() {
    let chunks: Vec<String> = (0..400).map(|n| format!("part {n} ")).collect();
    let script =
        format!("'*': {{text: a}}\nbusy: {{chunks: {}, chunk_delay_ms: 25}}\n", json!(chunks));
    let world = World::with(Settings { heartbeat_ms: 200, ..settings() }, &script).await;
    let (secret, id) = world.alfa.grant(token("reader", &["viewer"])).await;
    let run = world.start(&world.alfa, "name: b\nsteps: [{id: busy, command: Go.}]\n").await;
    let mut stream = Stream::open(&world, &events(&run, "").bearer(&secret)).await;
    while stream.next().await.unwrap().event.as_deref() != Some("node.stream.delta") {}
    let revoke =
        TestRequest::new("DELETE", &format!("/api/v1/tokens/{id}")).bearer(world.alfa.admin());
    world.done(200, &revoke).await;
    let began = Instant::now();
    let last = stream.rest().await.pop().unwrap();
    assert_eq!(last.comment.as_deref(), Some("the token has expired or was revoked"));
    assert!(began.elapsed() < Duration::from_secs(5), "it went on");
    let cancel = TestRequest::post(&format!("/api/v1/runs/{run}/cancel"), &json!({}));
    world.done(200, &cancel.bearer(world.alfa.admin())).await;
    world.stop().await;
}

/// There are no events, and the next heartbeat is far: the change of the token ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_ends_with_its_token_at_once() {
    let settings = Settings { heartbeat_ms: 600_000, ..settings() };
    let world = World::with(settings, "'*': {text: a}\n").await;
    let (secret, id) = world.alfa.grant(token("reader", &["viewer"])).await;
    let run = &world.alfa.fixture.waiting;
    let one = Stream::open(&world, &events(run, "").bearer(&secret)).await;
    let all = Stream::open(&world, &TestRequest::get("/api/v1/events").bearer(&secret)).await;
    let began = Instant::now();
    // By another process, which does not notify this one.
    let edit = |_: &[Row]| -> ServiceResult<RowChange> {
        Ok(RowChange { put: vec![], remove: vec![(Kind::Token, id.clone())] })
    };
    registry::change(world.alfa.service(), "test", Mode::Write, &edit).await.unwrap();
    for stream in [one, all] {
        let last = stream.rest().await.pop().unwrap();
        assert_eq!(last.comment.as_deref(), Some("the token has expired or was revoked"));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "they went on");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_server_does_and_when_there_are_too_many() {
    let shares = Shares { token: 100, organisation: 100, strangers: 12 };
    let settings = Settings { streams: 2, shares, ..settings() };
    let world = World::with(settings, "'*': {text: a}\n").await;
    let admin = world.alfa.admin();
    let run = &world.alfa.fixture.waiting;
    let one = Stream::open(&world, &events(run, "").bearer(admin)).await;
    let two = Stream::open(&world, &TestRequest::get("/api/v1/events").bearer(admin)).await;
    let refused = world.send(&events(run, "").bearer(world.bravo.admin())).await;
    assert_eq!(refused.status, 404, "whose run it is comes first");
    let refused = world.send(&events(run, "").bearer(admin)).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
    assert!(refused.header("retry-after").is_some());
    let app = world.app.clone();
    app.stop().cancel();
    for stream in [one, two] {
        let last = stream.rest().await.pop().unwrap();
        assert_eq!(last.comment.as_deref(), Some("the server is stopping; reconnect to resume"));
    }
    world.stop().await;
}

/// A run with more output than all buffers hold.
async fn long(world: &World) -> String {
    let steps: Vec<String> = (0..16).map(|n| format!("  - {{id: s{n}, command: Go.}}")).collect();
    let run = world.start(&world.alfa, &format!("name: l\nsteps:\n{}\n", steps.join("\n"))).await;
    world.until(&world.alfa, &run, "completed").await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_reads_nothing_is_disconnected_and_can_resume() {
    let script = format!("'*': {{text: {}}}\n", "x".repeat(700_000));
    let settings = Settings { slow_reader_ms: 300, streams: 1, ..settings() };
    let world = World::with(settings, &script).await;
    let admin = world.alfa.admin();
    let run = long(&world).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(world.address).await.unwrap();
    stream.write_all(&events(&run, "").bearer(admin).bytes()).await.unwrap();
    // Its capacity is free again, although the client neither reads nor disconnects.
    let began = Instant::now();
    let all = loop {
        let request = events(&run, "").bearer(admin);
        let wire = world.begin(&request).await;
        if wire.status == 200 {
            break wire.response().await.text();
        }
        assert!(began.elapsed() < PATIENCE, "its place is never free");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let mut read = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut read)).await.unwrap();
    assert!(read.len() < all.len(), "it was cut");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_receives_the_reason() {
    let script = format!("'*': {{text: {}}}\n", "x".repeat(700_000));
    let settings = Settings { slow_reader_ms: 2000, ..settings() };
    let world = World::with(settings, &script).await;
    let admin = world.alfa.admin();
    let run = long(&world).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(world.address).await.unwrap();
    stream.write_all(&events(&run, "").bearer(admin).bytes()).await.unwrap();
    // Long enough to be slow, too short to be disconnected.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let wire = Wire::head(stream).await.unwrap();
    let text = wire.response().await.text();
    let comment = ": closed: read too slowly; resume after the last id\n\n";
    assert!(text.ends_with(comment), "…{}", &text[text.len().saturating_sub(200)..]);
    let last = text.rmatch_indices("\nid: ").next().unwrap().0;
    let last: u64 = text[last + 5..].lines().next().unwrap().parse().unwrap();
    let request = events(&run, &format!("?afterEventId={last}")).bearer(admin);
    let rest = Stream::open(&world, &request).await.rest().await;
    assert_eq!(ids(&rest).first(), Some(&(last + 1)), "nothing is missed");
    assert_eq!(rest.last().unwrap().event.as_deref(), Some("run.completed"));
    world.stop().await;
}
