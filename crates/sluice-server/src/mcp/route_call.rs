//! Calls routes of the API from tools, in the same process.
//!
//! INVARIANT: a tool does what its route does: the same permission, the same checks, the
//! same refusals. Tools have no other access to the service.

use super::result::{ToolData, ToolRefusal};
use crate::api::admission;
use crate::api::problem::{REQUEST_TIMEOUT, Rejection};
use crate::api::request::bad;
use crate::api::route::{Incoming, Need, Route};
use crate::app::App;
use crate::auth::Caller;
use crate::capacity::Holder;
use crate::organisation::Organisation;
use crate::refused::Refused;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// The routes that tools use, by method and path.
pub(super) struct Routes(BTreeMap<(String, &'static str), Route>);

impl Routes {
    /// All routes of the API.
    pub(super) fn new(routes: Vec<Route>) -> Routes {
        let key = |route: &Route| (route.method.as_str().to_owned(), route.path);
        Routes(routes.into_iter().map(|route| (key(&route), route)).collect())
    }

    pub(super) fn get(&self, (method, path): (&str, &'static str)) -> &Route {
        let found = self.0.get(&(method.to_owned(), path));
        found.expect("tools refer to existing routes")
    }

    pub(super) fn need(&self, route: (&str, &'static str)) -> Need {
        self.get(route).need
    }
}

/// A call of a route by a tool.
#[derive(Debug, PartialEq)]
pub(super) struct RouteCall {
    route: (&'static str, &'static str),
    values: Vec<(&'static str, String)>,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

impl RouteCall {
    pub(super) fn new(method: &'static str, path: &'static str) -> RouteCall {
        RouteCall { route: (method, path), values: Vec::new(), query: Vec::new(), body: None }
    }

    /// Sets a path parameter, with the rules of the API.
    pub(super) fn path_value(
        mut self,
        name: &'static str,
        value: String,
    ) -> Result<RouteCall, Refused> {
        if value.is_empty() || value.chars().any(char::is_control) {
            return Err(bad(format!("`{name}` is empty or contains control characters")));
        }
        self.values.push((name, value));
        Ok(self)
    }

    /// Adds a query parameter.
    pub(super) fn query(mut self, name: &'static str, value: String) -> RouteCall {
        self.query.push((name, value));
        self
    }

    /// Sets the body.
    pub(super) fn with(mut self, body: Value) -> RouteCall {
        self.body = Some(body);
        self
    }

    fn uri(&self) -> Result<Uri, Refused> {
        let mut text = String::from("/");
        for (at, (name, value)) in self.query.iter().enumerate() {
            text.push(if at == 0 { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            for byte in value.bytes() {
                if byte.is_ascii_alphanumeric() {
                    text.push(char::from(byte));
                } else {
                    write!(text, "%{byte:02X}").expect("writing to a string cannot fail");
                }
            }
        }
        text.parse().map_err(|_| bad("the arguments are too long"))
    }
}

/// Calls a route on behalf of a caller.
pub(super) async fn call_route(
    app: &App,
    routes: &Routes,
    (organisation, caller): (&Arc<Organisation>, &Caller),
    call: RouteCall,
) -> Result<ToolData, ToolRefusal> {
    let route = routes.get(call.route);
    admission::permitted(route.need, caller)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let uri = call.uri()?;
    let body = call.body.map(|body| body.to_string()).unwrap_or_default();
    let incoming = Incoming {
        gateway: None,
        app: app.clone(),
        caller: Some((Arc::clone(organisation), caller.clone())),
        uri,
        path: call.values,
        headers,
        body: Bytes::from(body),
        request_id: admission::new_id(app),
        // The caller is already authenticated, so its address is not used for rate limits.
        from: Ipv4Addr::LOCALHOST.into(),
    };
    let patience = Duration::from_millis(app.settings().request_ms);
    let holder = Holder::token(organisation.name(), &caller.counted_as);
    let answering = admission::perform(app, route, &holder, incoming);
    let response = tokio::time::timeout(patience, answering).await;
    let response = response.map_err(|_| {
        let message = "the request timed out; it may or may not have taken effect";
        Refused::new(REQUEST_TIMEOUT, message, "check whether it took effect, then try again")
    })?;
    let status = response.status();
    let internal = || ToolRefusal::from(Rejection::internal().into_refused());
    let body = response.into_body().collect().await.map_err(|_| internal())?.to_bytes();
    let mut response: Value = serde_json::from_slice(&body).map_err(|_| internal())?;
    if !status.is_success() {
        return Err(ToolRefusal::of_problem(&response));
    }
    let next_cursor = response["meta"]["next_cursor"].as_str().map(str::to_owned);
    Ok(ToolData { data: response["data"].take(), next_cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_cannot_add_query_parameters() {
        let call =
            RouteCall::new("GET", "/api/v1/runs").query("workflow", "a&limit=9 é#".to_owned());
        assert_eq!(call.uri().unwrap(), "/?workflow=a%26limit%3D9%20%C3%A9%23");
        for odd in ["", "a\nb", "\u{7f}"] {
            assert!(
                RouteCall::new("GET", "/").path_value("name", odd.to_owned()).is_err(),
                "{odd:?}"
            );
        }
    }
}
