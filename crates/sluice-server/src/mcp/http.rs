//! Agents over HTTP: one address, `/mcp`, behind the same gate as the API.
//!
//! There are no sessions: each message comes with its token, is answered, and is
//! over. So nothing can be taken over, a token that is revoked counts no more with
//! the next message, and there is nothing to keep or to clean up.
//!
//! INVARIANT: a page of somebody else cannot ask here. The name that a request is
//! sent to must be one of ours, and its origin, if it has one, a configured one.

use super::Server;
use super::ask::Routes;
use crate::api;
use crate::api::ask::bad;
use crate::api::gate;
use crate::api::problem::Rejection;
use crate::api::route::{Answers, Incoming, Need, Route};
use crate::api::strict;
use crate::app::App;
use crate::places::Holder;
use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use schemars::json_schema;
use std::sync::Arc;

/// Where agents ask.
pub const PATH: &str = "/mcp";
/// How this machine names itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The route of agents. It is not part of the API's description: what it takes
/// and answers is the protocol's.
pub fn route() -> Route {
    let routes = Arc::new(Routes::new(api::routes()));
    let answers = Answers::Json(|_| json_schema!({"type": "object"}));
    let about = "The Model Context Protocol";
    Route::open((Method::POST, PATH), Need::Token, about, answers, move |incoming| {
        answer(Arc::clone(&routes), incoming)
    })
    .lasting()
}

async fn answer(routes: Arc<Routes>, incoming: Incoming) -> Response {
    let Incoming { app, who, uri, headers, body, request_id, .. } = incoming;
    let refuse = |rejection: Rejection| rejection.into_response(&request_id);
    let (house, caller) = who.expect("the route needs a token");
    let holder = Holder::token(house.name(), &caller.counted_as);
    let place = match app.room().mcp_calls.take(&holder, 1) {
        Ok(place) => place,
        Err(why) => return refuse(gate::full(&app, "mcp_calls", why)),
    };
    // As strictly as the API reads: what has two meanings is refused.
    if let Err(why) = strict::parse(&body) {
        return refuse(bad(format!("the body: {why}")).into());
    }
    let server = {
        let app = app.clone();
        move || {
            let (app, house, caller) = (app.clone(), Arc::clone(&house), caller.clone());
            Ok(Server { app, house, caller, routes: Arc::clone(&routes) })
        }
    };
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(server, sessions, config(&app));
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let response = service.handle(request).await;
    gate::until_sent(response.map(Body::new), place)
}

fn config(app: &App) -> StreamableHttpServerConfig {
    let settings = app.settings();
    let ours = LOOPBACK.into_iter().map(str::to_owned);
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_cancellation_token(app.stop().clone())
        .with_max_request_body_bytes(settings.body_bytes)
        .with_allowed_hosts(ours.chain(settings.hosts.iter().cloned()))
        .with_allowed_origins(settings.cors_origins.iter().map(|origin| with_port(origin)))
        .enforce_origin_validation()
}

/// An origin as it is meant: without a port, the scheme's own.
fn with_port(origin: &str) -> String {
    let origin = origin.trim_end_matches('/');
    let Some((scheme, host)) = origin.split_once("://") else { return origin.to_owned() };
    // An IPv6 address has colons of its own.
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    match (scheme, after.contains(':')) {
        ("https", false) => format!("{origin}:443"),
        ("http", false) => format!("{origin}:80"),
        _ => origin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_without_a_port_is_the_one_of_its_scheme() {
        for (said, meant) in [
            ("https://a.example", "https://a.example:443"),
            ("http://a.example/", "http://a.example:80"),
            ("http://a.example:3000", "http://a.example:3000"),
            ("https://[::1]", "https://[::1]:443"),
            ("https://[::1]:8443", "https://[::1]:8443"),
            ("null", "null"),
        ] {
            assert_eq!(with_port(said), meant);
        }
    }
}
