//! Inbound webhooks: only requests that are signed, recent, and sent for the first time.

use crate::client::TestRequest;
use crate::world::{Side, World, settings};
use serde_json::json;
use sluice_bridge::secret::Secret;
use sluice_core::port::Clock as _;
use sluice_core::port::store::Filter;
use sluice_engine::world::SystemClock;
use sluice_server::app::Settings;
use sluice_server::signature;

fn signed_request(hook: &str, secret: &str, at_s: u64, body: &str) -> TestRequest {
    let stamp = at_s.to_string();
    let signed = signature::sign(&Secret::new(secret), &stamp, body.as_bytes());
    TestRequest::new("POST", &format!("/hooks/{hook}"))
        .text("application/json", body)
        .header("sluice-timestamp", &stamp)
        .header("sluice-signature", &signed)
}

async fn runs(side: &Side) -> usize {
    let filter = Filter { limit: 500, ..Filter::default() };
    side.service().store.list(filter).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_recent_request_signed_for_this_webhook_starts_a_run_once() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    for side in [alfa, bravo] {
        let body = json!({"workflow": format!("{}-flow", side.name), "secret": "secret:hook"});
        let request =
            TestRequest::new("PUT", "/api/v1/hooks/shared").json(&body).bearer(side.admin());
        world.done(200, &request).await;
    }
    let now = SystemClock.now_ms() / 1000;
    let before = (runs(alfa).await, runs(bravo).await);
    let right = signed_request("shared", "SECRET-alfa", now, "{}");
    let refused = [
        TestRequest::post("/hooks/shared", &json!({})),
        TestRequest::post("/hooks/shared", &json!({})).bearer(alfa.admin()),
        signed_request("shared", "SECRET-unknown", now, "{}"),
        signed_request("shared", "", now, "{}"),
        signed_request("alfa-hooks", "SECRET-bravo", now, "{}"),
        signed_request("bravo-hooks", "SECRET-alfa", now, "{}"),
        signed_request("nowhere", "SECRET-alfa", now, "{}"),
        signed_request("shared", "SECRET-alfa", now - 301, "{}"),
        signed_request("shared", "SECRET-alfa", now + 302, "{}"),
        signed_request("shared", "SECRET-alfa", 0, "{}"),
        right.clone().text("application/json", "{\"more\": 1}"),
    ];
    let mut told = None;
    for request in refused {
        let response = world.send(&request).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (401, "unauthenticated"),
            "{request:?}"
        );
        // A sender cannot find out which webhooks exist.
        let mut body = response.json();
        body["request_id"] = "".into();
        assert_eq!(*told.get_or_insert(body.clone()), body, "{request:?}");
    }
    assert_eq!((runs(alfa).await, runs(bravo).await), before);
    let started = world.send(&right).await;
    assert_eq!(started.status, 202, "{}", started.text());
    assert_eq!((runs(alfa).await, runs(bravo).await), (before.0 + 1, before.1));
    let again = world.send(&right).await;
    assert_eq!((again.status, again.code().as_str()), (409, "replayed"));
    let other = world.send(&signed_request("shared", "SECRET-bravo", now, "{}")).await;
    assert_eq!(other.status, 202, "{}", other.text());
    assert_eq!((runs(alfa).await, runs(bravo).await), (before.0 + 1, before.1 + 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_over_its_rate_reads_no_secret_and_blocks_no_valid_sender() {
    let settings = Settings { strangers_per_minute: 10, ..settings() };
    let world = World::with(settings, "'*': {text: a}\n").await;
    let side = &world.alfa;
    let body = json!({"workflow": format!("{}-flow", side.name), "secret": "secret:hook"});
    let request = TestRequest::new("PUT", "/api/v1/hooks/door").json(&body).bearer(side.admin());
    world.done(200, &request).await;
    let now = SystemClock.now_ms() / 1000;
    assert_eq!(world.send(&signed_request("door", "SECRET-alfa", now, "{}")).await.status, 202);
    let mut refused = 0;
    for n in 0..200 {
        let body = format!("{{\"n\": {n}}}");
        let response = world.send(&signed_request("door", "SECRET-guessed", now, &body)).await;
        refused += usize::from(response.status == 429);
        if refused > 5 {
            break;
        }
    }
    assert!(refused > 5, "the rate never ends");
    let key = world.directory(side).with_extension("key");
    std::fs::write(&key, "SECRET-changed\n").unwrap();
    // No secret is read for this address now: the cached one is valid, the new one is not.
    let mut told = Vec::new();
    for n in 0..3 {
        let body = format!("{{\"new\": {n}}}");
        let wrong = world.send(&signed_request("door", "SECRET-guessed", now, &body)).await.status;
        let new = world.send(&signed_request("door", "SECRET-changed", now, &body)).await.status;
        let old = world.send(&signed_request("door", "SECRET-alfa", now, &body)).await.status;
        told.push((wrong, new, old));
    }
    assert!(told.contains(&(429, 429, 202)), "{told:?}");
    // The new secret is read as soon as the rate allows it.
    let later = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let response =
            world.send(&signed_request("door", "SECRET-changed", now, "{\"last\": 1}")).await;
        if response.status == 202 {
            break;
        }
        assert!(std::time::Instant::now() < later, "{}", response.text());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    world.stop().await;
}
