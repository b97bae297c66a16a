//! The API without a listener: commands on a data directory call its routes in their
//! own process.
//!
//! INVARIANT: a command does what its route does: the same permissions, checks and
//! refusals. Only what protects a listener is left out: tokens, rates and time limits.

use super::admission;
use super::problem::{Rejection, StoreCause};
use super::route::{Incoming, Route};
use crate::app::{App, Settings};
use crate::auth::Caller;
use crate::capacity::Holder;
use crate::organisation::Organisation;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use sluice_core::port::store::StoreError;
use sluice_engine::world::{SystemClock, SystemEntropy};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The routes of one organisation, for one caller.
#[derive(Clone)]
pub struct InProcess {
    app: App,
    organisation: Arc<Organisation>,
    caller: Caller,
    routes: Arc<Vec<Route>>,
}

/// A request. The path is the one of the route, with its values percent-encoded.
pub struct InProcessRequest {
    /// The method.
    pub method: Method,
    /// The path and the query.
    pub uri: Uri,
    /// The JSON body; none where nothing is sent.
    pub body: Option<String>,
    /// The last event that was seen, of a stream that is resumed.
    pub last_event_id: Option<u64>,
}

/// A response, read chunk by chunk: streams end with their run.
pub struct InProcessResponse {
    /// The HTTP status.
    pub status: StatusCode,
    /// Why the store failed, if it did.
    pub store_error: Option<Arc<StoreError>>,
    body: Body,
}

impl InProcess {
    /// Calls routes of this organisation. No task is started.
    pub fn new(organisation: Organisation, caller: Caller) -> InProcess {
        let entropy = Arc::new(|| Box::new(SystemEntropy) as _);
        let app = App::new(Settings::default(), Arc::new(SystemClock), entropy);
        let organisation = app.add(organisation);
        let mut routes = super::routes();
        // A literal segment takes precedence over a placeholder, as in the router.
        routes.sort_by_key(|route| route.names().count());
        InProcess { app, organisation, caller, routes: Arc::new(routes) }
    }

    /// Answers a request.
    pub async fn call(&self, request: InProcessRequest) -> InProcessResponse {
        let request_id = admission::new_id(&self.app);
        let found = self.routes.iter().filter(|route| route.method == request.method);
        let mut found =
            found.filter_map(|route| Some((route, admission::matches(route, &request.uri)?)));
        let response = match found.next() {
            None => admission::no_route(&self.app, &[]),
            Some((route, path)) => match admission::permitted(route.need, &self.caller) {
                Err(refused) => Rejection::from(refused).into_response(&request_id),
                Ok(()) => self.perform(route, path, request, request_id).await,
            },
        };
        let cause = response.extensions().get::<StoreCause>();
        InProcessResponse {
            status: response.status(),
            store_error: cause.map(|StoreCause(error)| Arc::clone(error)),
            body: response.into_body(),
        }
    }

    async fn perform(
        &self,
        route: &Route,
        path: Vec<(&'static str, String)>,
        request: InProcessRequest,
        request_id: String,
    ) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(id) = request.last_event_id {
            headers.insert("last-event-id", id.into());
        }
        let incoming = Incoming {
            app: self.app.clone(),
            caller: Some((Arc::clone(&self.organisation), self.caller.clone())),
            gateway: None,
            uri: request.uri,
            path,
            headers,
            body: request.body.map(Bytes::from).unwrap_or_default(),
            request_id,
            from: Ipv4Addr::LOCALHOST.into(),
        };
        let holder = Holder::token(self.organisation.name(), &self.caller.counted_as);
        admission::perform(&self.app, route, &holder, incoming).await
    }
}

impl InProcessResponse {
    /// The next bytes of the body; none at its end.
    pub async fn chunk(&mut self) -> Option<Bytes> {
        loop {
            // A body that is made in this process is not cut off.
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                return Some(bytes);
            }
        }
    }
}
