//! Every route by everybody: made from the table of routes, so that none is left
//! out. What is denied is denied with its code, and changes nothing.

use crate::client::Ask;
use crate::place::rows;
use crate::world::{World, settings};
use expect_test::expect_file;
use serde_json::json;
use sluice_server::api;
use sluice_server::api::cookie;
use sluice_server::api::route::{Need, Route};
use sluice_server::auth::permission::Role;
use sluice_server::auth::secret;
use std::fmt::Write as _;

/// Who asks.
#[derive(Debug, Clone)]
enum Who {
    Nobody,
    /// A secret in the header that lets nobody in, and what it is.
    Stranger(&'static str, String),
    Role(Role),
    /// An admin at a console, whose page does not say that it is ours.
    Forged(String),
}

impl Who {
    fn name(&self) -> &'static str {
        match self {
            Who::Nobody => "nobody",
            Who::Stranger(name, _) => name,
            Who::Role(role) => role.as_str(),
            Who::Forged(_) => "forged",
        }
    }

    /// The code of the refusal that a route must give them; none if they may.
    fn refused(&self, route: &Route) -> Option<&'static str> {
        match (self, route.need) {
            (_, Need::Nothing) => None,
            (_, Need::Gateway) => Some("unauthenticated"),
            (Who::Nobody | Who::Stranger(..), _) => Some("unauthenticated"),
            (Who::Forged(_), _) => (route.method != "GET").then_some("csrf_refused"),
            (Who::Role(_), Need::Token) => None,
            (Who::Role(role), Need::Permission(permission)) => {
                (!role.permissions().has(permission)).then_some("forbidden")
            }
        }
    }

    fn sign(&self, world: &World, ask: Ask) -> Ask {
        match self {
            Who::Nobody => ask,
            Who::Stranger(_, secret) => ask.bearer(secret),
            Who::Role(role) => ask.bearer(world.alfa.token(*role)),
            Who::Forged(session) => {
                ask.header("cookie", &format!("{}={session}", cookie::name(&settings())))
            }
        }
    }
}

async fn everybody(world: &World) -> Vec<Who> {
    let made = Ask::new("POST", "/api/v1/session").bearer(world.alfa.admin());
    let made = world.send(&made).await;
    let cookie = made.header("set-cookie").unwrap().to_owned();
    let session = cookie.split([';', '=']).nth(1).unwrap().to_owned();
    let unknown = secret::make(&mut sluice_engine::world::SystemEntropy);
    let mut all = vec![
        Who::Nobody,
        Who::Stranger("unknown", unknown),
        Who::Stranger("rubbish", "slk_'; drop table tokens".to_owned()),
        Who::Stranger("expired", world.alfa.expired.clone()),
        Who::Stranger("revoked", world.alfa.revoked.clone()),
        Who::Stranger("session", session.clone()),
        Who::Forged(session),
    ];
    all.extend(Role::ALL.map(Who::Role));
    all
}

/// Asks for a route as somebody. Of what lasts, only the head is read.
async fn ask(world: &World, route: &Route, who: &Who) -> (u16, String) {
    let place = &world.alfa.place;
    let mut ask = Ask::new(route.method.as_str(), &place.target(route));
    if route.method != "GET" {
        ask = ask.json(&place.body(route));
    }
    let ask = who.sign(world, ask);
    if route.lasting {
        let wire = world.begin(&ask).await;
        if wire.status == 200 {
            return (200, String::new());
        }
    }
    let answer = world.send(&ask).await;
    (answer.status, answer.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_gets_what_they_may_have_and_nothing_else() {
    let world = World::new().await;
    let everybody = everybody(&world).await;
    let routes = api::routes();
    let before = world.alfa.everything().await;
    let mut told: Vec<Vec<&str>> = vec![vec!["+"; everybody.len()]; routes.len()];
    for (route, told) in routes.iter().zip(&mut told) {
        for (who, told) in everybody.iter().zip(told) {
            let Some(code) = who.refused(route) else { continue };
            let (status, found) = ask(&world, route, who).await;
            let wanted = if code == "unauthenticated" { 401 } else { 403 };
            assert_eq!((status, found.as_str()), (wanted, code), "{route:?} by {}", who.name());
            *told = "-";
        }
    }
    assert_eq!(before, world.alfa.everything().await, "what was denied changed something");
    // What is allowed may well end things, so that it comes last.
    for route in &routes {
        for who in &everybody {
            if who.refused(route).is_some() {
                continue;
            }
            let (status, code) = ask(&world, route, who).await;
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

/// Doors and gateways have secrets of their own, which no token stands for.
pub(crate) fn has_own_secret(route: &Route) -> bool {
    route.need == Need::Gateway || (route.need == Need::Nothing && route.method != "GET")
}

fn drawn(routes: &[Route], everybody: &[Who], told: &[Vec<&str>]) -> String {
    let mut text = String::new();
    for (route, told) in routes.iter().zip(told) {
        let may = everybody.iter().zip(told).filter(|(_, told)| **told == "+");
        let may: Vec<&str> = may.map(|(who, _)| who.name()).collect();
        let may = match may.len() == everybody.len() {
            true if has_own_secret(route) => "whoever has its own secret".to_owned(),
            true => "everybody".to_owned(),
            false => may.join(" "),
        };
        writeln!(text, "{} {}: {may}", route.method, route.path).unwrap();
    }
    text
}

/// What changes several kinds at once needs for each what changing it alone does.
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
            let alone = Ask::new("PUT", &path).json(&json!({"no such field": 1})).bearer(token);
            let may = world.send(&alone).await.status != 403;
            denied += usize::from(!may);
            for sent in [json!({"rows": [put]}), json!({"remove": [row]})] {
                let mut sent = sent;
                sent["dry_run"] = true.into();
                let answer = world.send(&Ask::post("/api/v1/apply", &sent).bearer(token)).await;
                let what = format!("{role:?}: {sent}: {}", answer.text());
                assert_eq!(answer.code() != "forbidden", may, "{what}");
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
            let ask = Ask::post("/api/v1/apply", &sent).bearer(world.alfa.token(role));
            let refused = world.send(&ask).await.code() == "forbidden";
            assert_eq!(refused, role != least, "{role:?}: {sent}");
        }
    }
    // Tokens are made where their rules are.
    let token = json!({"kind": "token", "name": "tok_1", "body": {"principal": "me"}});
    let ask = Ask::post("/api/v1/apply", &json!({"rows": [token]})).bearer(world.alfa.admin());
    assert_eq!(world.send(&ask).await.code(), "bad_request");
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
