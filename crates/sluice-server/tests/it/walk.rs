//! Two organisations: neither sees, touches or guesses anything of the other.

use crate::client::Ask;
use crate::matrix::has_own_secret;
use crate::sse::Stream;
use crate::world::World;
use serde_json::json;
use sluice_server::api;
use sluice_server::api::route::{Need, Route};
use sluice_server::auth::permission::Role;

/// What no answer to bravo may hold.
fn hidden(world: &World) -> Vec<String> {
    let place = &world.alfa.place;
    let mut all = vec![world.alfa.mark(), "SECRET-alfa".to_owned()];
    all.extend([&place.ended, &place.waiting, &place.approval, &place.spare].map(Clone::clone));
    all.extend(world.alfa.tokens.values().flat_map(|(secret, id)| [secret.clone(), id.clone()]));
    all
}

/// Holds an answer against what it may not hold, except what was asked for by name.
fn closed(hidden: &[String], asked: &str, answer: &str) {
    for one in hidden.iter().filter(|one| !asked.contains(one.as_str())) {
        assert!(!answer.contains(one), "{asked} tells {one}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_reaches_into_another_organisation() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    let hidden = hidden(&world);
    let before = alfa.everything().await;
    let mut routes = api::routes();
    // A row of that name may be made at home, after which it is there.
    routes.sort_by_key(|route| route.method == "PUT");
    let mut walked = 0;
    // What nobody needs a token for tells nothing of anybody, but doors.
    let open = |route: &&Route| route.need != Need::Nothing || has_own_secret(route);
    for route in routes.iter().filter(|route| route.names().count() > 0).filter(open) {
        let target = alfa.place.target(route);
        for role in Role::ALL {
            let mut ask = Ask::new(route.method.as_str(), &target).bearer(bravo.token(role));
            if route.method != "GET" {
                ask = ask.json(&alfa.place.body(route));
            }
            let answer = if route.lasting {
                let wire = world.begin(&ask).await;
                assert_eq!(wire.status, 404, "{route:?}");
                wire.answer().await
            } else {
                world.send(&ask).await
            };
            closed(&hidden, &target, &answer.text());
            // Everybody has a switch.
            let own = route.method == "PUT" || target.contains("/switches/");
            let told = if has_own_secret(route) { 401 } else { 404 };
            let fits = own || matches!(answer.status, 403) || answer.status == told;
            assert!(fits && answer.status < 500, "{route:?}: {}", answer.text());
            walked += 1;
        }
    }
    assert!(walked > 300, "{walked}");
    assert_eq!(before, alfa.everything().await, "something of alfa changed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_list_shows_anything_of_another_organisation() {
    let world = World::new().await;
    let mut hidden = hidden(&world);
    hidden.push("alfa".to_owned());
    let routes = api::routes();
    let listed = routes
        .iter()
        .filter(|route| route.method == "GET" && route.names().count() == 0 && !route.lasting);
    for route in listed {
        let answer = world.send(&Ask::get(route.path).bearer(world.bravo.admin())).await;
        // What the server counts is about everybody.
        let told = if route.path == "/metrics" { 403 } else { 200 };
        assert_eq!(answer.status, told, "{route:?}: {}", answer.text());
        closed(&hidden, route.path, &answer.text());
    }
    // Whose it is comes from the token alone.
    for sent in ["x-organisation", "x-sluice-organisation", "organisation", "x-tenant"] {
        let ask = Ask::get("/api/v1/session").bearer(world.bravo.admin()).header(sent, "default");
        assert_eq!(world.done(200, &ask).await["organisation"], "bravo", "{sent}");
    }
    let asked = Ask::get("/api/v1/runs?organisation=default").bearer(world.bravo.admin());
    assert_eq!(world.send(&asked).await.code(), "bad_request");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_keys_and_parents_of_another_organisation_lead_nowhere() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    let hidden = hidden(&world);
    let page = world.send(&Ask::get("/api/v1/runs?limit=1").bearer(alfa.admin())).await.json();
    let cursor = page["meta"]["next_cursor"].as_str().unwrap();
    for query in [format!("cursor={cursor}"), format!("parent={}", alfa.place.ended)] {
        let target = format!("/api/v1/runs?{query}");
        let answer = world.send(&Ask::get(&target).bearer(bravo.admin())).await;
        assert_eq!(answer.status, 200);
        closed(&hidden, &target, &answer.text());
    }
    let run = &alfa.place.ended;
    let elide = json!({"run": run, "reason": "mine"});
    let asked = [
        Ask::get(&format!("/api/v1/audit?run={run}")),
        Ask::get(&format!("/api/v1/audit/verify?run={run}")),
        Ask::post("/api/v1/elide", &elide),
        Ask::post("/api/v1/policies/test", &json!({"set": "active", "run": run})),
    ];
    for ask in asked {
        let answer = world.send(&ask.clone().bearer(bravo.admin())).await;
        assert_eq!(answer.code(), "run_unknown", "{ask:?}: {}", answer.text());
        closed(&hidden, run, &answer.text());
    }
    // The same key, workflow and arguments in two places are two runs.
    let document = "name: keyed\nsteps: [{id: one, command: Say it.}]\n";
    let body = json!({"document": document, "default_agent": "mock", "idempotency_key": "k"});
    let mut runs = Vec::new();
    for side in [alfa, bravo] {
        let made = world.done(202, &Ask::post("/api/v1/runs", &body).bearer(side.admin())).await;
        assert_eq!(made["existed"], false);
        runs.push(made["run_id"].clone());
    }
    assert_ne!(runs[0], runs[1]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_cannot_be_guessed_by_their_beginnings() {
    let world = World::new().await;
    let hidden = hidden(&world);
    let place = &world.alfa.place;
    let ids = [("runs", &place.ended), ("runs", &place.waiting), ("approvals", &place.approval)];
    let digits = ids.iter().flat_map(|(kind, id)| {
        let bare = id.split_once('_').unwrap().1;
        (1..=bare.len()).map(move |length| (*kind, bare[..length].to_owned()))
    });
    let hexadecimal = "0123456789abcdef".chars();
    let single = hexadecimal.flat_map(|c| [("runs", c.to_string()), ("approvals", c.to_string())]);
    for (kind, beginning) in digits.chain(single) {
        let target = format!("/api/v1/{kind}/{beginning}");
        let answer = world.send(&Ask::get(&target).bearer(world.bravo.admin())).await;
        assert!(matches!(answer.status, 200 | 400 | 404), "{target}: {}", answer.text());
        closed(&hidden, &target, &answer.text());
        let whole = beginning.len() == 32;
        assert!(!whole || answer.status == 404, "{target}: {}", answer.text());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_all_runs_is_of_one_organisation() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    let stream = |query: &str| Ask::get(&format!("/api/v1/events{query}"));
    let mut of_alfa = Stream::open(&world, &stream("").bearer(alfa.admin())).await;
    let mut of_bravo = Stream::open(&world, &stream("").bearer(bravo.admin())).await;
    let document = |side: &str| format!("name: {side}-live\nsteps: [{{id: s, command: Go.}}]\n");
    let (first, second) =
        (world.start(alfa, &document("alfa")).await, world.start(bravo, &document("bravo")).await);
    let mut cursor = None;
    for (stream, own) in [(&mut of_alfa, &first), (&mut of_bravo, &second)] {
        loop {
            let frame = stream.next().await.unwrap();
            if frame.comment.is_some() {
                continue;
            }
            let event = frame.json();
            assert_eq!(event["runId"], **own, "{event}");
            cursor.get_or_insert_with(|| frame.id.clone().unwrap());
            if event["type"] == "run.completed" {
                break;
            }
        }
    }
    // A place in one journal is a place in the other, and nothing more.
    let ask = stream(&format!("?cursor={}", cursor.unwrap())).bearer(bravo.admin());
    let mut resumed = Stream::open(&world, &ask).await;
    let third = world.start(bravo, &document("bravo")).await;
    loop {
        let frame = resumed.next().await.unwrap();
        let event = frame.json();
        let workflow = event["workflowId"].as_str().unwrap();
        let name = workflow.strip_prefix("inline/").unwrap_or(workflow);
        assert!(name.starts_with("bravo"), "{event}");
        if event["runId"] == third {
            break;
        }
    }
    world.stop().await;
}
