//! Finds the route of a request.

use super::admission::{self, matches};
use super::cors;
use super::route::Route;
use crate::app::App;
use crate::console;
use axum::extract::Request;
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All routes, by the number of segments of their paths.
///
/// INVARIANT: a path is matched as sent. A path has only one spelling: no trailing slash,
/// no empty segment, no case folding, no `..`.
#[derive(Clone)]
pub struct Router {
    app: App,
    by_length: Arc<BTreeMap<usize, Vec<Arc<Route>>>>,
}

impl Router {
    /// A router over these routes.
    pub fn new(app: App, routes: Vec<Route>) -> Router {
        let mut by_length: BTreeMap<usize, Vec<Arc<Route>>> = BTreeMap::new();
        for route in routes {
            by_length.entry(segments(route.path)).or_default().push(Arc::new(route));
        }
        // A literal segment takes precedence over a parameter.
        for routes in by_length.values_mut() {
            routes.sort_by_key(|route| route.names().count());
        }
        Router { app, by_length: Arc::new(by_length) }
    }

    /// Answers a request.
    pub async fn answer(self, request: Request) -> Response {
        let app = self.app.clone();
        let origin = cors::origin(&app, request.headers());
        let mut response = self.routed(request, origin.as_ref()).await;
        cors::allow(&app, origin, &mut response);
        response
    }

    async fn routed(self, request: Request, page: Option<&HeaderValue>) -> Response {
        let mut methods = Vec::new();
        let routes = self.by_length.get(&segments(request.uri().path()));
        for route in routes.into_iter().flatten() {
            let Some(values) = matches(route, request.uri()) else { continue };
            let head = request.method() == Method::HEAD && route.method == Method::GET;
            if route.method == *request.method() || head {
                return admission::handle(self.app.clone(), Arc::clone(route), values, request)
                    .await;
            }
            methods.push(route.method.clone());
        }
        let preflight = cors::is_preflight(request.method(), request.headers());
        if preflight && page.is_some() && !methods.is_empty() {
            return admission::finish(cors::preflight(&methods), &admission::new_id(&self.app));
        }
        if !methods.is_empty() {
            return admission::no_route(&self.app, &methods);
        }
        // A path that is not part of the API may be a page of the console.
        let Some(page) = console::answer(request.uri().path(), request.headers()) else {
            return admission::no_route(&self.app, &[]);
        };
        if console::METHODS.contains(request.method()) {
            return admission::finish(page, &admission::new_id(&self.app));
        }
        admission::no_route(&self.app, &console::METHODS)
    }
}

fn segments(path: &str) -> usize {
    path.split('/').count()
}
