//! Any bytes as the body of any API request: accepted, or rejected with a code, never an
//! internal error, and no response contains a secret of the machine.

#![no_main]

use fuzz::server::{self, Server};
use fuzz::{CANARY, replaced, split_line};
use libfuzzer_sys::fuzz_target;
use sluice_server::api;
use sluice_server::api::route::{Need, Route};
use std::sync::OnceLock;

fuzz_target!(|bytes: &[u8]| {
    server::with(|server| {
        // The first line is a request such as `POST /api/v1/runs/RUN/branch`.
        let (line, body) = split_line(bytes);
        let (method, path) = named(server, line).unwrap_or_else(|| any(server, line));
        let body = replaced(body, "RUN", &server.waiting);
        let Some(answer) = server.send(&method, &path, &[], &body) else { return };
        assert!(answer.status != 500, "{method} {path}: {answer:?}");
        assert!(!answer.body.contains(CANARY), "{method} {path}: {answer:?}");
        if answer.status >= 400 {
            assert!(!answer.code().is_empty(), "{method} {path}: {answer:?}");
        }
    });
});

/// The routes of the API that read a body.
fn routes() -> &'static [Route] {
    static ROUTES: OnceLock<Vec<Route>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let takes = |route: &Route| {
            route.body.is_some() && matches!(route.need, Need::Token | Need::Permission(_))
        };
        api::routes().into_iter().filter(takes).collect()
    })
}

/// The request that a line names.
fn named(server: &Server, line: &str) -> Option<(String, String)> {
    let (method, path) = line.split_once(' ')?;
    let path = path.replace("RUN", &server.waiting).replace("APPROVAL", &server.approval);
    let uri: axum::http::Uri = path.parse().ok()?;
    let fits = |route: &Route| {
        route.method.as_str() == method && api::admission::matches(route, &uri).is_some()
    };
    routes().iter().any(fits).then(|| (method.to_owned(), path))
}

/// A request of any route, selected by the bytes of the line.
fn any(server: &Server, line: &str) -> (String, String) {
    let routes = routes();
    let at = line.bytes().map(usize::from).sum::<usize>() % routes.len();
    let route = &routes[at];
    let mut path = route.path.to_owned();
    for name in route.names() {
        let value = match name {
            "run" => server.waiting.as_str(),
            "approval" => server.approval.as_str(),
            "step" => "ask",
            "version" => "1",
            _ => "flow",
        };
        path = path.replace(&format!("{{{name}}}"), value);
    }
    (route.method.to_string(), path)
}
