//! From a request to its route.

use super::cors;
use super::gate::{self, matches};
use super::route::Route;
use crate::app::App;
use crate::console;
use axum::extract::Request;
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All routes, by how many parts their paths have.
///
/// INVARIANT: a path is taken as it is sent. There is no second spelling of one:
/// no trailing slash, no empty part, no case folding, no `..`.
#[derive(Clone)]
pub struct Router {
    app: App,
    by_length: Arc<BTreeMap<usize, Vec<Arc<Route>>>>,
}

impl Router {
    /// A router over these.
    pub fn new(app: App, routes: Vec<Route>) -> Router {
        let mut by_length: BTreeMap<usize, Vec<Arc<Route>>> = BTreeMap::new();
        for route in routes {
            by_length.entry(parts(route.path)).or_default().push(Arc::new(route));
        }
        // What is spelt out is meant before what is any name.
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
        let routes = self.by_length.get(&parts(request.uri().path()));
        for route in routes.into_iter().flatten() {
            let Some(values) = matches(route, request.uri()) else { continue };
            let head = request.method() == Method::HEAD && route.method == Method::GET;
            if route.method == *request.method() || head {
                return gate::pass(self.app.clone(), Arc::clone(route), values, request).await;
            }
            methods.push(route.method.clone());
        }
        let preflight = cors::is_preflight(request.method(), request.headers());
        if preflight && page.is_some() && !methods.is_empty() {
            return gate::finish(cors::preflight(&methods), &gate::new_id(&self.app));
        }
        if !methods.is_empty() {
            return gate::nowhere(&self.app, &methods);
        }
        // What the API does not know may be a page.
        let Some(page) = console::answer(request.uri().path(), request.headers()) else {
            return gate::nowhere(&self.app, &[]);
        };
        if console::METHODS.contains(request.method()) {
            return gate::finish(page, &gate::new_id(&self.app));
        }
        gate::nowhere(&self.app, &console::METHODS)
    }
}

fn parts(path: &str) -> usize {
    path.split('/').count()
}
