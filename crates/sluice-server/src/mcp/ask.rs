//! Tools go through the routes of the API, in this process.
//!
//! INVARIANT: what a tool does is what its route does: the same permission, the
//! same checks, the same refusals. There is no second way in.

use super::answer::{Answered, Refusal};
use crate::api::ask::bad;
use crate::api::gate;
use crate::api::problem::{REQUEST_TIMEOUT, Rejection};
use crate::api::route::{Incoming, Need, Route};
use crate::app::App;
use crate::auth::Caller;
use crate::house::House;
use crate::places::Holder;
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

    /// A route.
    pub(super) fn get(&self, (method, path): (&str, &'static str)) -> &Route {
        let found = self.0.get(&(method.to_owned(), path));
        found.expect("a tool stands for routes that are there")
    }

    /// What a route needs.
    pub(super) fn need(&self, route: (&str, &'static str)) -> Need {
        self.get(route).need
    }
}

/// A request of the API that a tool makes.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    route: (&'static str, &'static str),
    values: Vec<(&'static str, String)>,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

impl Asked {
    /// A request of this route.
    pub(super) fn new(method: &'static str, path: &'static str) -> Asked {
        Asked { route: (method, path), values: Vec::new(), query: Vec::new(), body: None }
    }

    /// With a value in its path, by the rules of paths.
    pub(super) fn at(mut self, name: &'static str, value: String) -> Result<Asked, Refused> {
        if value.is_empty() || value.chars().any(char::is_control) {
            return Err(bad(format!("`{name}` is empty, or no plain text")));
        }
        self.values.push((name, value));
        Ok(self)
    }

    /// With something after the question mark.
    pub(super) fn query(mut self, name: &'static str, value: String) -> Asked {
        self.query.push((name, value));
        self
    }

    /// With a body.
    pub(super) fn with(mut self, body: Value) -> Asked {
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
                    write!(text, "%{byte:02X}").expect("a string takes everything");
                }
            }
        }
        text.parse().map_err(|_| bad("the arguments are too long"))
    }
}

/// Makes a request in somebody's name.
pub(super) async fn ask(
    app: &App,
    routes: &Routes,
    who: (&Arc<House>, &Caller),
    asked: Asked,
) -> Result<Answered, Refusal> {
    let route = routes.get(asked.route);
    gate::permitted(route.need, who.1)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let uri = asked.uri()?;
    let body = asked.body.map(|body| body.to_string()).unwrap_or_default();
    let incoming = Incoming {
        gateway: None,
        app: app.clone(),
        who: Some((Arc::clone(who.0), who.1.clone())),
        uri,
        path: asked.values,
        headers,
        body: Bytes::from(body),
        request_id: gate::new_id(app),
        // Whoever it is was identified before: no address is held against them.
        from: Ipv4Addr::LOCALHOST.into(),
    };
    let patience = Duration::from_millis(app.settings().request_ms);
    let holder = Holder::token(who.0.name(), &who.1.counted_as);
    let answering = gate::perform(app, route, &holder, incoming);
    let response = tokio::time::timeout(patience, answering).await;
    let response = response.map_err(|_| {
        let message = "it took too long; whether it was done is not known";
        Refused::new(REQUEST_TIMEOUT, message, "look, then try again")
    })?;
    let status = response.status();
    let internal = || Refusal::from(Rejection::internal().into_refused());
    let body = response.into_body().collect().await.map_err(|_| internal())?.to_bytes();
    let mut whole: Value = serde_json::from_slice(&body).map_err(|_| internal())?;
    if !status.is_success() {
        return Err(Refusal::of_problem(&whole));
    }
    let next_cursor = whole["meta"]["next_cursor"].as_str().map(str::to_owned);
    Ok(Answered { data: whole["data"].take(), next_cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_in_its_place() {
        let asked = Asked::new("GET", "/api/v1/runs").query("workflow", "a&limit=9 é#".to_owned());
        assert_eq!(asked.uri().unwrap(), "/?workflow=a%26limit%3D9%20%C3%A9%23");
        for odd in ["", "a\nb", "\u{7f}"] {
            assert!(Asked::new("GET", "/").at("name", odd.to_owned()).is_err(), "{odd:?}");
        }
    }
}
