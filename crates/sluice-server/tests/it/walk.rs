//! Isolation: neither of two organisations sees, changes or guesses data of the other.

use crate::client::TestRequest;
use crate::matrix::has_own_secret;
use crate::sse::Stream;
use crate::world::World;
use serde_json::json;
use sluice_server::api;
use sluice_server::api::route::{Need, Route};
use sluice_server::auth::permission::Role;

/// What no response to bravo may contain.
fn hidden(world: &World) -> Vec<String> {
    let fixture = &world.alfa.fixture;
    let mut all = vec![world.alfa.mark(), "SECRET-alfa".to_owned()];
    all.extend(
        [&fixture.ended, &fixture.waiting, &fixture.approval, &fixture.spare].map(Clone::clone),
    );
    all.extend(world.alfa.tokens.values().flat_map(|(secret, id)| [secret.clone(), id.clone()]));
    all
}

/// Checks that a response contains no data of the other organisation, except what the
/// request itself names.
fn closed(hidden: &[String], asked: &str, response: &str) {
    for one in hidden.iter().filter(|one| !asked.contains(one.as_str())) {
        assert!(!response.contains(one), "{asked} tells {one}: {response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_reaches_into_another_organisation() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    let hidden = hidden(&world);
    let before = alfa.everything().await;
    let mut routes = api::routes();
    // A row of that name may be created in the own organisation, and then exists.
    routes.sort_by_key(|route| route.method == "PUT");
    let mut walked = 0;
    // Routes without a token reveal no data, except that of inbound webhooks.
    let open = |route: &&Route| route.need != Need::Nothing || has_own_secret(route);
    for route in routes.iter().filter(|route| route.names().count() > 0).filter(open) {
        let target = alfa.fixture.target(route);
        for role in Role::ALL {
            let mut request =
                TestRequest::new(route.method.as_str(), &target).bearer(bravo.token(role));
            if route.method != "GET" {
                request = request.json(&alfa.fixture.body(route));
            }
            let response = if route.lasting {
                let wire = world.begin(&request).await;
                assert_eq!(wire.status, 404, "{route:?}");
                wire.response().await
            } else {
                world.send(&request).await
            };
            closed(&hidden, &target, &response.text());
            // Every organisation has a switch.
            let own = route.method == "PUT" || target.contains("/switches/");
            let told = if has_own_secret(route) { 401 } else { 404 };
            let fits = own || matches!(response.status, 403) || response.status == told;
            assert!(fits && response.status < 500, "{route:?}: {}", response.text());
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
        let response = world.send(&TestRequest::get(route.path).bearer(world.bravo.admin())).await;
        // The metrics cover all organisations.
        let told = if route.path == "/metrics" { 403 } else { 200 };
        assert_eq!(response.status, told, "{route:?}: {}", response.text());
        closed(&hidden, route.path, &response.text());
    }
    // Only the token selects the organisation.
    for sent in ["x-organisation", "x-sluice-organisation", "organisation", "x-tenant"] {
        let request =
            TestRequest::get("/api/v1/session").bearer(world.bravo.admin()).header(sent, "default");
        assert_eq!(world.done(200, &request).await["organisation"], "bravo", "{sent}");
    }
    let asked = TestRequest::get("/api/v1/runs?organisation=default").bearer(world.bravo.admin());
    assert_eq!(world.send(&asked).await.code(), "bad_request");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_keys_and_parents_of_another_organisation_lead_nowhere() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    let hidden = hidden(&world);
    let page =
        world.send(&TestRequest::get("/api/v1/runs?limit=1").bearer(alfa.admin())).await.json();
    let cursor = page["meta"]["next_cursor"].as_str().unwrap();
    for query in [format!("cursor={cursor}"), format!("parent={}", alfa.fixture.ended)] {
        let target = format!("/api/v1/runs?{query}");
        let response = world.send(&TestRequest::get(&target).bearer(bravo.admin())).await;
        assert_eq!(response.status, 200);
        closed(&hidden, &target, &response.text());
    }
    let run = &alfa.fixture.ended;
    let elide = json!({"run": run, "reason": "mine"});
    let asked = [
        TestRequest::get(&format!("/api/v1/audit?run={run}")),
        TestRequest::get(&format!("/api/v1/audit/verify?run={run}")),
        TestRequest::post("/api/v1/elide", &elide),
        TestRequest::post("/api/v1/policies/test", &json!({"set": "active", "run": run})),
    ];
    for request in asked {
        let response = world.send(&request.clone().bearer(bravo.admin())).await;
        assert_eq!(response.code(), "run_unknown", "{request:?}: {}", response.text());
        closed(&hidden, run, &response.text());
    }
    // The same key, workflow and arguments in two organisations are two runs.
    let document = "name: keyed\nsteps: [{id: one, command: Say it.}]\n";
    let body = json!({"document": document, "default_agent": "mock", "idempotency_key": "k"});
    let mut runs = Vec::new();
    for side in [alfa, bravo] {
        let made =
            world.done(202, &TestRequest::post("/api/v1/runs", &body).bearer(side.admin())).await;
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
    let fixture = &world.alfa.fixture;
    let ids =
        [("runs", &fixture.ended), ("runs", &fixture.waiting), ("approvals", &fixture.approval)];
    let digits = ids.iter().flat_map(|(kind, id)| {
        let bare = id.split_once('_').unwrap().1;
        (1..=bare.len()).map(move |length| (*kind, bare[..length].to_owned()))
    });
    let hexadecimal = "0123456789abcdef".chars();
    let single = hexadecimal.flat_map(|c| [("runs", c.to_string()), ("approvals", c.to_string())]);
    for (kind, beginning) in digits.chain(single) {
        let target = format!("/api/v1/{kind}/{beginning}");
        let response = world.send(&TestRequest::get(&target).bearer(world.bravo.admin())).await;
        assert!(matches!(response.status, 200 | 400 | 404), "{target}: {}", response.text());
        closed(&hidden, &target, &response.text());
        let whole = beginning.len() == 32;
        assert!(!whole || response.status == 404, "{target}: {}", response.text());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_all_runs_is_of_one_organisation() {
    let world = World::new().await;
    let (alfa, bravo) = (&world.alfa, &world.bravo);
    let stream = |query: &str| TestRequest::get(&format!("/api/v1/events{query}"));
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
    // A cursor of one organisation is only a position in the other.
    let request = stream(&format!("?cursor={}", cursor.unwrap())).bearer(bravo.admin());
    let mut resumed = Stream::open(&world, &request).await;
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
