//! MCP over HTTP: the single route `/mcp`, behind the same admission as the API.
//!
//! There are no MCP sessions: each message carries its token and gets one response. So
//! there is no session to hijack, a revoked token is refused with the next message, and
//! there is no state to clean up.
//!
//! INVARIANT: a page of another origin cannot use this route. The `Host` of a request must
//! be one of the server's names, and its `Origin`, if any, a configured one.

use super::Server;
use super::route_call::Routes;
use crate::api;
use crate::api::admission;
use crate::api::problem::Rejection;
use crate::api::request::bad;
use crate::api::route::{Incoming, Need, ResponseKind, Route};
use crate::api::strict;
use crate::app::App;
use crate::capacity::Holder;
use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use schemars::json_schema;
use std::sync::Arc;

/// The path of the MCP endpoint.
pub const PATH: &str = "/mcp";
/// Names of this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The MCP route. It is not part of the OpenAPI description, because the protocol defines
/// its content.
pub fn route() -> Route {
    let routes = Arc::new(Routes::new(api::routes()));
    let response = ResponseKind::Json(|_| json_schema!({"type": "object"}));
    let about = "The Model Context Protocol";
    Route::open((Method::POST, PATH), Need::Token, about, response, move |incoming| {
        answer(Arc::clone(&routes), incoming)
    })
    .lasting()
}

async fn answer(routes: Arc<Routes>, incoming: Incoming) -> Response {
    let Incoming { app, caller, uri, headers, body, request_id, .. } = incoming;
    let refuse = |rejection: Rejection| rejection.into_response(&request_id);
    let (organisation, caller) = caller.expect("the route needs a token");
    let holder = Holder::token(organisation.name(), &caller.counted_as);
    let permit = match app.capacity().mcp_calls.take(&holder, 1) {
        Ok(permit) => permit,
        Err(why) => return refuse(admission::full(&app, "mcp_calls", why)),
    };
    // As strict as the API: ambiguous JSON is refused.
    if let Err(why) = strict::parse(&body) {
        return refuse(bad(format!("the body: {why}")).into());
    }
    let server = {
        let app = app.clone();
        move || {
            let (app, organisation, caller) =
                (app.clone(), Arc::clone(&organisation), caller.clone());
            Ok(Server { app, organisation, caller, routes: Arc::clone(&routes) })
        }
    };
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(server, sessions, config(&app));
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let response = service.handle(request).await;
    admission::until_sent(response.map(Body::new), permit)
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

/// An origin with its port; the default port of the scheme if it has none.
fn with_port(origin: &str) -> String {
    let origin = origin.trim_end_matches('/');
    let Some((scheme, host)) = origin.split_once("://") else { return origin.to_owned() };
    // An IPv6 address itself contains colons.
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
        for (origin, expected) in [
            ("https://a.example", "https://a.example:443"),
            ("http://a.example/", "http://a.example:80"),
            ("http://a.example:3000", "http://a.example:3000"),
            ("https://[::1]", "https://[::1]:443"),
            ("https://[::1]:8443", "https://[::1]:8443"),
            ("null", "null"),
        ] {
            assert_eq!(with_port(origin), expected);
        }
    }
}
