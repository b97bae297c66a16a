//! A route: its path, who may use it, what it accepts and returns.
//!
//! INVARIANT: there is one table of routes. The router, the permission checks, the OpenAPI
//! description and the denial tests are made from it, and the types that a route reads and
//! returns are the types that are described.

use super::problem::{BODY_TOO_LARGE, Rejection, UNSUPPORTED_MEDIA_TYPE};
use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad};
use super::strict;
use crate::app::App;
use crate::auth::Caller;
use crate::auth::permission::Permission;
use crate::organisation::Organisation;
use crate::refused::{Failure, Refused};
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use sluice_govern::registry::Gateway;
use std::net::IpAddr;
use std::sync::Arc;

/// The authentication that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// None.
    Nothing,
    /// The token of a gateway.
    Gateway,
    /// Any valid token.
    Token,
    /// A token with this permission.
    Permission(Permission),
}

/// An admitted request, before its handler.
pub struct Incoming {
    /// The server.
    pub app: App,
    /// The caller and its organisation; `None` where the route needs no token.
    pub caller: Option<(Arc<Organisation>, Caller)>,
    /// The gateway that sent the request, where the route needs one.
    pub gateway: Option<GatewayCaller>,
    /// URI of the request.
    pub uri: Uri,
    /// The path parameters, by name.
    pub path: Vec<(&'static str, String)>,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// The complete body.
    pub body: Bytes,
    /// Id of the request, as in the response header.
    pub request_id: String,
    /// Address of the client.
    pub from: IpAddr,
}

/// A gateway, authenticated by its token.
#[derive(Clone)]
pub struct GatewayCaller {
    /// Organisation of the gateway.
    pub organisation: Arc<Organisation>,
    /// Name of the gateway.
    pub name: String,
    /// Registry row of the gateway.
    pub row: Gateway,
}

type Handler = Arc<dyn Fn(Incoming) -> BoxFuture<'static, Response> + Send + Sync>;
/// Generates a JSON Schema.
pub type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// A check that runs before the body is read, with the path parameters.
pub type BeforeBody = for<'a> fn(
    &'a App,
    &'a [(&'static str, String)],
    IpAddr,
) -> BoxFuture<'a, Result<(), Rejection>>;

/// Whether a route needs much processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heavy {
    Never,
    Always,
    /// Only with a body larger than this.
    Over(usize),
    /// Always, and possibly for minutes.
    Long,
}

/// The successful response of a route.
#[derive(Clone, Copy)]
pub enum ResponseKind {
    /// `{data, meta}` with this schema for `data`.
    Data(MakeSchema),
    /// A page: `{data, meta}` with a cursor.
    Page(MakeSchema),
    /// JSON without the `{data, meta}` wrapper.
    Json(MakeSchema),
    /// Any other media type.
    Text(&'static str),
}

/// An entry of the route table.
#[derive(Clone)]
pub struct Route {
    /// HTTP method.
    pub method: Method,
    /// Path, with `{name}` for parameters.
    pub path: &'static str,
    /// The authentication that it needs.
    pub need: Need,
    /// Summary in one line.
    pub about: &'static str,
    /// Schema of the query parameters.
    pub query: Option<MakeSchema>,
    /// Schema of the body.
    pub body: Option<MakeSchema>,
    /// Status of a successful response.
    pub status: u16,
    /// Content of a successful response.
    pub response: ResponseKind,
    /// Operation id, where the generated one would not be unique.
    pub operation: Option<&'static str>,
    /// Whether the request timeout does not apply.
    pub lasting: bool,
    /// Maximum size of the body, if it differs from the server's.
    pub body_bytes: Option<usize>,
    /// Check before the body is read, for routes without a token.
    pub before_body: Option<BeforeBody>,
    heavy: Heavy,
    handler: Handler,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Route {
    /// A route that reads `Q` and `B` and returns `{data: A, meta}`.
    pub fn new<Q, B, A, H, F>(
        (method, path): (Method, &'static str),
        need: Need,
        about: &'static str,
        handle: H,
    ) -> Route
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        B: DeserializeOwned + JsonSchema + 'static,
        A: serde::Serialize + JsonSchema + 'static,
        H: Fn(ApiRequest<Q, B>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Reply<A>, Failure>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |incoming| {
            let request_id = incoming.request_id.clone();
            let parsed = read::<Q, B>(incoming).map(&handle);
            async move {
                let done = match parsed {
                    Ok(with_status) => with_status.await,
                    Err(refused) => Err(refused.into()),
                };
                match done {
                    Ok(reply) => reply.into_response(&request_id),
                    Err(failure) => Rejection::from(failure).into_response(&request_id),
                }
            }
            .boxed()
        });
        let response = ResponseKind::Data(schema::<A>);
        Route::build((method, path), need, about, response, handler).reading::<Q, B>()
    }

    /// A route that reads `Q` and no body, and builds its own response.
    pub fn raw<Q, H, F>(
        (method, path): (Method, &'static str),
        need: Need,
        about: &'static str,
        response: ResponseKind,
        handle: H,
    ) -> Route
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        H: Fn(ApiRequest<Q>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response, Failure>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |incoming| {
            let request_id = incoming.request_id.clone();
            let parsed = read::<Q, Nothing>(incoming).map(&handle);
            async move {
                let done = match parsed {
                    Ok(with_status) => with_status.await,
                    Err(refused) => Err(refused.into()),
                };
                let reject = |failure| Rejection::from(failure).into_response(&request_id);
                done.unwrap_or_else(reject)
            }
            .boxed()
        });
        Route::build((method, path), need, about, response, handler).reading::<Q, Nothing>()
    }

    /// A route whose handler parses the request itself.
    pub fn open<H, F>(
        (method, path): (Method, &'static str),
        need: Need,
        about: &'static str,
        response: ResponseKind,
        handle: H,
    ) -> Route
    where
        H: Fn(Incoming) -> F + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |incoming| handle(incoming).boxed());
        Route::build((method, path), need, about, response, handler)
    }

    fn build(
        (method, path): (Method, &'static str),
        need: Need,
        about: &'static str,
        response: ResponseKind,
        handler: Handler,
    ) -> Route {
        Route {
            method,
            path,
            need,
            about,
            query: None,
            body: None,
            status: 200,
            response,
            operation: None,
            lasting: false,
            body_bytes: None,
            before_body: None,
            heavy: Heavy::Never,
            handler,
        }
    }

    fn reading<Q: JsonSchema + 'static, B: JsonSchema + 'static>(mut self) -> Route {
        let is = |id: std::any::TypeId| id != std::any::TypeId::of::<Nothing>();
        self.query = is(std::any::TypeId::of::<Q>()).then_some(schema::<Q> as MakeSchema);
        self.body = is(std::any::TypeId::of::<B>()).then_some(schema::<B> as MakeSchema);
        self
    }

    /// Sets the status of a successful response.
    #[must_use]
    pub(crate) fn with_status(mut self, status: u16) -> Route {
        self.status = status;
        self
    }

    /// The response is a page.
    #[must_use]
    pub(crate) fn paged(mut self) -> Route {
        if let ResponseKind::Data(make) = self.response {
            self.response = ResponseKind::Page(make);
        }
        self
    }

    /// The request timeout does not apply.
    #[must_use]
    pub fn lasting(mut self) -> Route {
        self.lasting = true;
        self
    }

    /// The handler runs on a thread of its own, because it needs much processor time.
    #[must_use]
    pub(crate) fn heavy(mut self) -> Route {
        self.heavy = Heavy::Always;
        self
    }

    /// [`Route::heavy`] if the body is larger than this.
    #[must_use]
    pub(crate) fn heavy_over(mut self, bytes: usize) -> Route {
        self.heavy = Heavy::Over(bytes);
        self
    }

    /// [`Route::heavy`], and possibly for minutes: short checks do not wait behind it.
    #[must_use]
    pub fn long(mut self) -> Route {
        self.heavy = Heavy::Long;
        self
    }

    /// Whether the handler may take minutes.
    pub(crate) fn is_long(&self) -> bool {
        self.heavy == Heavy::Long
    }

    /// Whether a request with a body of this size needs much processor time.
    pub(crate) fn is_heavy(&self, body_bytes: usize) -> bool {
        match self.heavy {
            Heavy::Never => false,
            Heavy::Always | Heavy::Long => true,
            Heavy::Over(bytes) => body_bytes > bytes,
        }
    }

    /// Sets the check that runs before the body is read.
    #[must_use]
    pub(crate) fn before_body(mut self, check: BeforeBody) -> Route {
        self.before_body = Some(check);
        self
    }

    /// Sets the operation id.
    #[must_use]
    pub fn called(mut self, operation: &'static str) -> Route {
        self.operation = Some(operation);
        self
    }

    /// Calls the handler with an admitted request.
    pub fn answer(&self, incoming: Incoming) -> BoxFuture<'static, Response> {
        (self.handler)(incoming)
    }

    /// The method as a metric label.
    pub fn verb(&self) -> &'static str {
        match self.method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        }
    }

    /// The names of the path parameters.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Parses a request.
fn read<Q, B>(incoming: Incoming) -> Result<ApiRequest<Q, B>, Refused>
where
    Q: DeserializeOwned,
    B: DeserializeOwned + 'static,
{
    let Incoming { app, caller, uri, path, headers, body, request_id, .. } = incoming;
    let query = axum::extract::Query::<Q>::try_from_uri(&uri)
        .map_err(|error| bad(format!("the query: {}", error.body_text())))?;
    let body = if std::any::TypeId::of::<B>() == std::any::TypeId::of::<Nothing>() {
        no_body(&headers, &body)?;
        serde_json::from_str("{}").expect("an empty object is a valid `Nothing`")
    } else {
        self::body(&headers, &body)?
    };
    let (organisation, caller) = caller.expect("a route with a typed handler needs a token");
    Ok(ApiRequest { app, organisation, caller, path, query: query.0, body, headers, request_id })
}

/// Refuses a body on a route that reads none: the client would assume that it has an effect.
fn no_body(headers: &HeaderMap, sent: &[u8]) -> Result<(), Refused> {
    if !sent.is_empty() {
        body::<Option<Nothing>>(headers, sent)?;
    }
    Ok(())
}

/// Parses a JSON body.
pub fn body<B: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<B, Refused> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let sent = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !sent.eq_ignore_ascii_case("application/json") {
        let message = "the body must be `application/json`";
        return Err(Refused::new(UNSUPPORTED_MEDIA_TYPE, message, "set `Content-Type`"));
    }
    let value = strict::parse(body).map_err(|why| bad(format!("the body: {why}")))?;
    // Serde would read a list as the fields of a struct, in order.
    if value.is_array() {
        return Err(bad("the body: an object is expected"));
    }
    serde_json::from_value(value).map_err(|why| bad(format!("the body: {why}")))
}

/// The refusal of a body that is too large.
pub(crate) fn too_large(bytes_max: usize) -> Refused {
    let message = format!("the body has more than {bytes_max} bytes");
    Refused::new(BODY_TOO_LARGE, message, "send a smaller body")
}
