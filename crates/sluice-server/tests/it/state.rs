//! Stored data: secrets that are never shown, and damaged journals.

use crate::client::TestRequest;
use crate::sse::Stream;
use crate::world::World;
use sluice_server::api;

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_a_row_is_never_shown() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let mut looked = 0;
    for route in api::routes() {
        if route.method != "GET" || route.path == "/api/v1/events" {
            continue;
        }
        let target = world.alfa.fixture.target(&route);
        let response = world.send(&TestRequest::get(&target).bearer(admin)).await;
        assert!(!response.text().contains("SECRET-"), "{target}: {}", response.text());
        looked += 1;
    }
    assert!(looked > 40, "{looked}");
    for kind in ["webhooks", "hooks"] {
        let request = TestRequest::get(&format!("/api/v1/{kind}/alfa-{kind}")).bearer(admin);
        let shown = world.done(200, &request).await;
        assert_eq!(shown["secret"], "[redacted]");
        // A row as shown can be sent back, and changes nothing.
        let mut sent = shown.clone();
        sent.as_object_mut().unwrap().retain(|field, _| field != "kind" && field != "id");
        let path = format!("/api/v1/{kind}/alfa-{kind}");
        let request = TestRequest::new("PATCH", &path).json(&sent).bearer(admin);
        let changed = world.send(&request).await;
        assert!(matches!(changed.status, 200 | 422), "{}", changed.text());
        let rows = world.alfa.service().store.registry(None).await.unwrap().rows;
        let row = rows.iter().find(|row| row.name == format!("alfa-{kind}")).unwrap();
        assert_eq!(row.body["secret"], "secret:hook", "{row:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_journal_affects_no_other_run() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let run = world.start(&world.alfa, "name: bad\nsteps: [{id: a, command: b}]\n").await;
    world.until(&world.alfa, &run, "completed").await;
    let file = world.directory(&world.alfa).join("sluice.db");
    let id = u128::from_str_radix(run.strip_prefix("run_").unwrap(), 16).unwrap();
    let store = rusqlite::Connection::open(file).unwrap();
    let num = "(SELECT num FROM run WHERE id = ?1)";
    let spoil = format!(
        "UPDATE frame SET body = x'00ff00ff' WHERE seq = (SELECT seq FROM tip WHERE run = {num})"
    );
    assert_eq!(store.execute(&spoil, [id.to_be_bytes()]).unwrap(), 1, "no frame was found");
    let forget = format!("DELETE FROM snapshot WHERE run = {num}");
    store.execute(&forget, [id.to_be_bytes()]).unwrap();
    drop(store);
    for part in ["", "/state", "/journal", "/tags", "/export", "/steps/a", "/checkpoints"] {
        let request = TestRequest::get(&format!("/api/v1/runs/{run}{part}")).bearer(admin);
        let response = world.send(&request).await;
        assert_eq!((response.status, response.code().as_str()), (500, "run_unreadable"), "{part}");
    }
    for target in [
        "/api/v1/runs".to_owned(),
        "/api/v1/approvals".to_owned(),
        format!("/api/v1/runs/{}/state", world.alfa.fixture.ended),
        format!("/api/v1/approvals/{}", world.alfa.fixture.approval),
        "/readyz".to_owned(),
    ] {
        assert_eq!(
            world.send(&TestRequest::get(&target).bearer(admin)).await.status,
            200,
            "{target}"
        );
    }
    let other = world.start(&world.alfa, "name: good\nsteps: [{id: a, command: b}]\n").await;
    world.until(&world.alfa, &other, "completed").await;
    // A reader of all events from the beginning gets past it.
    let request = TestRequest::get("/api/v1/events?cursor=1.0.0").bearer(admin);
    let mut all = Stream::open(&world, &request).await;
    let mut seen = std::collections::BTreeSet::new();
    while !seen.contains(&other) {
        let frame = all.next().await.expect("the stream goes on");
        assert_eq!(frame.comment, None);
        seen.insert(frame.json()["runId"].as_str().unwrap().to_owned());
    }
    assert!(seen.contains(&world.alfa.fixture.ended), "{seen:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_failed_step_can_be_read_until_it_is_erased() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let flow = "name: unfit\nsteps: [{id: a, command: b, outputs: {n: integer}, \
                retry: {attempts: 2, backoff_ms: 1, retry_on: [contract_violated]}}]\n";
    let run = world.start(&world.alfa, flow).await;
    world.until(&world.alfa, &run, "failed").await;
    let answers = async || {
        let request = TestRequest::get(&format!("/api/v1/runs/{run}/steps/a")).bearer(admin);
        let step = world.done(200, &request).await;
        let attempts = step["attempts"].as_array().unwrap().iter();
        let response = |one: &serde_json::Value| {
            let text = one.pointer("/payload/answer/text")?.as_str()?.to_owned();
            Some((one["type"].as_str()?.to_owned(), text))
        };
        attempts.filter_map(response).collect::<Vec<_>>()
    };
    let said = |kind: &str| (kind.to_owned(), "MARK-alfa was said".to_owned());
    assert_eq!(answers().await, [said("node.retried"), said("node.failed")]);
    let export = TestRequest::get(&format!("/api/v1/runs/{run}/export")).bearer(admin);
    let exported = world.done(200, &export).await.to_string();
    assert_eq!(exported.matches("MARK-alfa was said").count(), 2, "{exported}");
    let erase = TestRequest::post(
        &format!("/api/v1/runs/{run}/erase"),
        &serde_json::json!({"reason": "asked for"}),
    );
    world.done(200, &erase.bearer(admin)).await;
    assert_eq!(answers().await, []);
    world.stop().await;
}
