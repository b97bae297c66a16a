//! Every route with every kind of caller, generated from the table of routes. A denied
//! request has its error code, and changes nothing.

use crate::client::TestRequest;
use crate::fixture::rows;
use crate::world::{World, settings};
use expect_test::expect_file;
use serde_json::json;
use sluice_server::api;
use sluice_server::api::cookie;
use sluice_server::api::route::{Need, Route};
use sluice_server::auth::permission::Role;
use sluice_server::auth::secret;
use std::fmt::Write as _;

/// A kind of caller.
#[derive(Debug, Clone)]
enum TestCaller {
    Anonymous,
    /// A header with an invalid secret, and its description.
    Stranger(&'static str, String),
    Role(Role),
    /// An admin with a session cookie, but without the CSRF token.
    Forged(String),
}

impl TestCaller {
    fn name(&self) -> &'static str {
        match self {
            TestCaller::Anonymous => "anonymous",
            TestCaller::Stranger(name, _) => name,
            TestCaller::Role(role) => role.as_str(),
            TestCaller::Forged(_) => "forged",
        }
    }

    /// The code with which a route must refuse the caller; `None` if it is allowed.
    fn refused(&self, route: &Route) -> Option<&'static str> {
        match (self, route.need) {
            (_, Need::Nothing) => None,
            (_, Need::Gateway) => Some("unauthenticated"),
            (TestCaller::Anonymous | TestCaller::Stranger(..), _) => Some("unauthenticated"),
            (TestCaller::Forged(_), _) => (route.method != "GET").then_some("csrf_refused"),
            (TestCaller::Role(_), Need::Token) => None,
            (TestCaller::Role(role), Need::Permission(permission)) => {
                (!role.permissions().has(permission)).then_some("forbidden")
            }
        }
    }

    fn sign(&self, world: &World, request: TestRequest) -> TestRequest {
        match self {
            TestCaller::Anonymous => request,
            TestCaller::Stranger(_, secret) => request.bearer(secret),
            TestCaller::Role(role) => request.bearer(world.alfa.token(*role)),
            TestCaller::Forged(session) => {
                request.header("cookie", &format!("{}={session}", cookie::name(&settings())))
            }
        }
    }
}

async fn all_callers(world: &World) -> Vec<TestCaller> {
    let made = TestRequest::new("POST", "/api/v1/session").bearer(world.alfa.admin());
    let made = world.send(&made).await;
    let cookie = made.header("set-cookie").unwrap().to_owned();
    let session = cookie.split([';', '=']).nth(1).unwrap().to_owned();
    let unknown = secret::make(&mut sluice_engine::world::SystemEntropy);
    let mut all = vec![
        TestCaller::Anonymous,
        TestCaller::Stranger("unknown", unknown),
        TestCaller::Stranger("rubbish", "slk_'; drop table tokens".to_owned()),
        TestCaller::Stranger("expired", world.alfa.expired.clone()),
        TestCaller::Stranger("revoked", world.alfa.revoked.clone()),
        TestCaller::Stranger("session", session.clone()),
        TestCaller::Forged(session),
    ];
    all.extend(Role::ALL.map(TestCaller::Role));
    all
}

/// Calls a route as a caller. Of a stream only the head is read.
async fn request(world: &World, route: &Route, caller: &TestCaller) -> (u16, String) {
    let fixture = &world.alfa.fixture;
    let mut request = TestRequest::new(route.method.as_str(), &fixture.target(route));
    if route.method != "GET" {
        request = request.json(&fixture.body(route));
    }
    let request = caller.sign(world, request);
    if route.lasting {
        let wire = world.begin(&request).await;
        if wire.status == 200 {
            return (200, String::new());
        }
    }
    let response = world.send(&request).await;
    (response.status, response.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_caller_reaches_exactly_the_permitted_routes() {
    let world = World::new().await;
    let everybody = all_callers(&world).await;
    let routes = api::routes();
    let before = world.alfa.everything().await;
    let mut told: Vec<Vec<&str>> = vec![vec!["+"; everybody.len()]; routes.len()];
    for (route, told) in routes.iter().zip(&mut told) {
        for (who, told) in everybody.iter().zip(told) {
            let Some(code) = who.refused(route) else { continue };
            let (status, found) = request(&world, route, who).await;
            let wanted = if code == "unauthenticated" { 401 } else { 403 };
            assert_eq!((status, found.as_str()), (wanted, code), "{route:?} by {}", who.name());
            *told = "-";
        }
    }
    assert_eq!(before, world.alfa.everything().await, "what was denied changed something");
    // Allowed requests come last, because they may end or remove things.
    for route in &routes {
        for who in &everybody {
            if who.refused(route).is_some() {
                continue;
            }
            let (status, code) = request(&world, route, who).await;
            if has_own_secret(route) {
                assert_eq!((status, code.as_str()), (401, "unauthenticated"), "{route:?}");
                continue;
            }
            assert!(!matches!(status, 401 | 403), "{route:?} by {}: {code}", who.name());
            assert!(status < 500, "{route:?} by {}: {status} {code}", who.name());
        }
    }
    expect_file!["./matrix.txt"].assert_eq(&drawn(&routes, &everybody, &told));
    world.stop().await;
}

/// Inbound webhooks and gateways have secrets of their own, which no token replaces.
pub(crate) fn has_own_secret(route: &Route) -> bool {
    route.need == Need::Gateway || (route.need == Need::Nothing && route.method != "GET")
}

fn drawn(routes: &[Route], everybody: &[TestCaller], told: &[Vec<&str>]) -> String {
    let mut text = String::new();
    for (route, told) in routes.iter().zip(told) {
        let may = everybody.iter().zip(told).filter(|(_, told)| **told == "+");
        let may: Vec<&str> = may.map(|(who, _)| who.name()).collect();
        let may = match may.len() == everybody.len() {
            true if has_own_secret(route) => "its own secret".to_owned(),
            true => "everybody".to_owned(),
            false => may.join(" "),
        };
        writeln!(text, "{} {}: {may}", route.method, route.path).unwrap();
    }
    text
}

/// A change of several kinds needs the permission of each kind.
#[tokio::test(flavor = "multi_thread")]
async fn a_setup_needs_the_permission_of_everything_in_it() {
    let world = World::new().await;
    let before = world.alfa.everything().await;
    let mut denied = 0;
    for (kind, path, body) in rows("other", "text") {
        let name = path.rsplit('/').next().unwrap();
        let row = json!({"kind": kind.as_str(), "name": name});
        let mut put = row.clone();
        put["body"] = body.clone();
        for role in Role::ALL {
            let token = world.alfa.token(role);
            let alone =
                TestRequest::new("PUT", &path).json(&json!({"no such field": 1})).bearer(token);
            let may = world.send(&alone).await.status != 403;
            denied += usize::from(!may);
            for sent in [json!({"rows": [put]}), json!({"remove": [row]})] {
                let mut sent = sent;
                sent["dry_run"] = true.into();
                let response =
                    world.send(&TestRequest::post("/api/v1/apply", &sent).bearer(token)).await;
                let what = format!("{role:?}: {sent}: {}", response.text());
                assert_eq!(response.code() != "forbidden", may, "{what}");
            }
        }
    }
    assert!(denied > 30, "{denied}");
    let file = json!({"name": "w.lobsterx.yaml", "text": "name: w\nsteps: [{id: a, command: b}]"});
    for (sent, least) in
        [(json!({"documents": [file]}), Role::Operator), (json!({"prune": true}), Role::Admin)]
    {
        let mut sent = sent;
        sent["dry_run"] = true.into();
        for role in [Role::Viewer, Role::Approver, Role::Operator] {
            let request = TestRequest::post("/api/v1/apply", &sent).bearer(world.alfa.token(role));
            let refused = world.send(&request).await.code() == "forbidden";
            assert_eq!(refused, role != least, "{role:?}: {sent}");
        }
    }
    // Tokens have their own routes.
    let token = json!({"kind": "token", "name": "tok_1", "body": {"principal": "me"}});
    let request =
        TestRequest::post("/api/v1/apply", &json!({"rows": [token]})).bearer(world.alfa.admin());
    assert_eq!(world.send(&request).await.code(), "bad_request");
    assert_eq!(before, world.alfa.everything().await);
    world.stop().await;
}

#[test]
fn every_route_states_its_permission_in_the_description() {
    let routes = api::routes();
    let document = api::openapi::document(&routes);
    for route in &routes {
        let method = route.method.as_str().to_ascii_lowercase();
        let told = &document["paths"][route.path][method];
        match route.need {
            Need::Nothing => assert_eq!(told["security"], serde_json::json!([]), "{route:?}"),
            Need::Gateway => {
                assert_eq!(told["security"], serde_json::json!([{"gateway": []}]), "{route:?}");
            }
            Need::Token => assert_eq!(told["security"].as_array().unwrap().len(), 2, "{route:?}"),
            Need::Permission(permission) => {
                assert_eq!(told["x-permission"], permission.as_str(), "{route:?}");
            }
        }
    }
    let mut ids: Vec<String> = routes.iter().map(api::openapi::operation_id).collect();
    ids.sort();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all, "two operations of one name");
}
