//! Doors for programs elsewhere: only what is signed, now, once, for this door.

use crate::client::Ask;
use crate::world::{Side, World, settings};
use serde_json::json;
use sluice_bridge::secret::Secret;
use sluice_core::port::Clock as _;
use sluice_core::port::store::Filter;
use sluice_engine::world::SystemClock;
use sluice_server::app::Settings;
use sluice_server::signature;

fn knock(hook: &str, secret: &str, at_s: u64, body: &str) -> Ask {
    let stamp = at_s.to_string();
    let signed = signature::sign(&Secret::new(secret), &stamp, body.as_bytes());
    Ask::new("POST", &format!("/hooks/{hook}"))
        .text("application/json", body)
        .header("sluice-timestamp", &stamp)
        .header("sluice-signature", &signed)
}

async fn runs(side: &Side) -> usize {
    let filter = Filter { limit: 500, ..Filter::default() };
    side.service().store.list(filter).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_signed_now_and_for_this_door_passes_and_once() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    for side in [alfa, bravo] {
        let body = json!({"workflow": format!("{}-flow", side.name), "secret": "secret:hook"});
        let ask = Ask::new("PUT", "/api/v1/hooks/shared").json(&body).bearer(side.admin());
        world.done(200, &ask).await;
    }
    let now = SystemClock.now_ms() / 1000;
    let before = (runs(alfa).await, runs(bravo).await);
    let right = knock("shared", "SECRET-alfa", now, "{}");
    let refused = [
        Ask::post("/hooks/shared", &json!({})),
        Ask::post("/hooks/shared", &json!({})).bearer(alfa.admin()),
        knock("shared", "SECRET-nobody", now, "{}"),
        knock("shared", "", now, "{}"),
        knock("alfa-hooks", "SECRET-bravo", now, "{}"),
        knock("bravo-hooks", "SECRET-alfa", now, "{}"),
        knock("nowhere", "SECRET-alfa", now, "{}"),
        knock("shared", "SECRET-alfa", now - 301, "{}"),
        knock("shared", "SECRET-alfa", now + 302, "{}"),
        knock("shared", "SECRET-alfa", 0, "{}"),
        right.clone().text("application/json", "{\"more\": 1}"),
    ];
    let mut told = None;
    for ask in refused {
        let answer = world.send(&ask).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"), "{ask:?}");
        // Nobody learns which doors there are.
        let mut body = answer.json();
        body["request_id"] = "".into();
        assert_eq!(*told.get_or_insert(body.clone()), body, "{ask:?}");
    }
    assert_eq!((runs(alfa).await, runs(bravo).await), before);
    let started = world.send(&right).await;
    assert_eq!(started.status, 202, "{}", started.text());
    assert_eq!((runs(alfa).await, runs(bravo).await), (before.0 + 1, before.1));
    let again = world.send(&right).await;
    assert_eq!((again.status, again.code().as_str()), (409, "replayed"));
    let other = world.send(&knock("shared", "SECRET-bravo", now, "{}")).await;
    assert_eq!(other.status, 202, "{}", other.text());
    assert_eq!((runs(alfa).await, runs(bravo).await), (before.0 + 1, before.1 + 1));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_beyond_the_rate_reads_no_secret_and_stops_no_sender() {
    let settings = Settings { strangers_per_minute: 10, ..settings() };
    let world = World::with(settings, "'*': {text: a}\n").await;
    let side = &world.alfa;
    let body = json!({"workflow": format!("{}-flow", side.name), "secret": "secret:hook"});
    let ask = Ask::new("PUT", "/api/v1/hooks/door").json(&body).bearer(side.admin());
    world.done(200, &ask).await;
    let now = SystemClock.now_ms() / 1000;
    assert_eq!(world.send(&knock("door", "SECRET-alfa", now, "{}")).await.status, 202);
    let mut refused = 0;
    for n in 0..200 {
        let body = format!("{{\"n\": {n}}}");
        let answer = world.send(&knock("door", "SECRET-guessed", now, &body)).await;
        refused += usize::from(answer.status == 429);
        if refused > 5 {
            break;
        }
    }
    assert!(refused > 5, "the rate never ends");
    let key = world.directory(side).with_extension("key");
    std::fs::write(&key, "SECRET-changed\n").unwrap();
    // Nothing is read for this address now: a new secret is not known, the old one is.
    let mut told = Vec::new();
    for n in 0..3 {
        let body = format!("{{\"new\": {n}}}");
        let wrong = world.send(&knock("door", "SECRET-guessed", now, &body)).await.status;
        let new = world.send(&knock("door", "SECRET-changed", now, &body)).await.status;
        let old = world.send(&knock("door", "SECRET-alfa", now, &body)).await.status;
        told.push((wrong, new, old));
    }
    assert!(told.contains(&(429, 429, 202)), "{told:?}");
    // Once the rate allows it the new one is read.
    let later = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let answer = world.send(&knock("door", "SECRET-changed", now, "{\"last\": 1}")).await;
        if answer.status == 202 {
            break;
        }
        assert!(std::time::Instant::now() < later, "{}", answer.text());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    world.stop().await;
}
