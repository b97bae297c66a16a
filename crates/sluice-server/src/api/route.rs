//! A route: where it is, who may use it, what it takes and answers.
//!
//! INVARIANT: there is one table of routes. The router, the checks of who may
//! ask, the API's description and the tests of denials are made from it, and
//! what a route reads and answers are the types that are described.

use super::ask::{Ask, Nothing, bad};
use super::problem::{BODY_TOO_LARGE, Rejection, UNSUPPORTED_MEDIA_TYPE};
use super::reply::Reply;
use super::strict;
use crate::app::App;
use crate::auth::Caller;
use crate::auth::permission::Permission;
use crate::house::House;
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

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Anybody, without a token.
    Nothing,
    /// A gateway, by its own token.
    Gateway,
    /// Anybody with a token that counts.
    Token,
    /// A token with this permission.
    Permission(Permission),
}

/// A request on its way to its handler.
pub struct Incoming {
    /// The server.
    pub app: App,
    /// Whoever asks, and where; none where nobody needs to be.
    pub who: Option<(Arc<House>, Caller)>,
    /// The gateway that asks, where one must.
    pub gateway: Option<Asking>,
    /// Its address.
    pub uri: Uri,
    /// The values in the path.
    pub path: Vec<(&'static str, String)>,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, whole.
    pub body: Bytes,
    /// Its own id.
    pub request_id: String,
    /// Whom it comes from.
    pub from: IpAddr,
}

/// A gateway that asks, known by its token.
#[derive(Clone)]
pub struct Asking {
    /// Its organisation.
    pub house: Arc<House>,
    /// Its name.
    pub name: String,
    /// Its row.
    pub row: Gateway,
}

type Handler = Arc<dyn Fn(Incoming) -> BoxFuture<'static, Response> + Send + Sync>;
/// Makes a schema.
pub type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// A check before the body of a request is read, by the values in its path.
pub type BeforeBody = for<'a> fn(
    &'a App,
    &'a [(&'static str, String)],
    IpAddr,
) -> BoxFuture<'a, Result<(), Rejection>>;

/// Whether answering needs much time of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heavy {
    Never,
    Always,
    /// With a body of more bytes than these.
    Over(usize),
    /// Always, and perhaps for minutes.
    Long,
}

/// What a route answers when all is well.
#[derive(Clone, Copy)]
pub enum Answers {
    /// `{data, meta}` with this as `data`.
    Data(MakeSchema),
    /// A page of these.
    Page(MakeSchema),
    /// JSON of its own shape.
    Json(MakeSchema),
    /// Something else, by its media type.
    Text(&'static str),
}

/// A route.
#[derive(Clone)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// Where, with `{name}` for values.
    pub path: &'static str,
    /// Who may use it.
    pub need: Need,
    /// What it does, in a line.
    pub about: &'static str,
    /// What may stand after the question mark.
    pub query: Option<MakeSchema>,
    /// The body.
    pub body: Option<MakeSchema>,
    /// The status when all is well.
    pub status: u16,
    /// What is answered then.
    pub answers: Answers,
    /// Its name in the description, where another path would have the same.
    pub operation: Option<&'static str>,
    /// Whether it may take as long as it likes.
    pub lasting: bool,
    /// Longest body, where it is another than the server's.
    pub body_bytes: Option<usize>,
    /// What is checked before the body is read, where clients need no token.
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
    /// A route that takes `Q` and `B` and answers `{data: A, meta}`.
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
        H: Fn(Ask<Q, B>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Reply<A>, Failure>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |incoming| {
            let request_id = incoming.request_id.clone();
            let asked = read::<Q, B>(incoming).map(&handle);
            async move {
                let done = match asked {
                    Ok(answering) => answering.await,
                    Err(refused) => Err(refused.into()),
                };
                match done {
                    Ok(reply) => reply.into_response(&request_id),
                    Err(failure) => Rejection::from(failure).into_response(&request_id),
                }
            }
            .boxed()
        });
        let answers = Answers::Data(schema::<A>);
        Route::made((method, path), need, about, answers, handler).taking::<Q, B>()
    }

    /// A route that takes `Q` and no body, and answers in its own way.
    pub fn raw<Q, H, F>(
        (method, path): (Method, &'static str),
        need: Need,
        about: &'static str,
        answers: Answers,
        handle: H,
    ) -> Route
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        H: Fn(Ask<Q>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response, Failure>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |incoming| {
            let request_id = incoming.request_id.clone();
            let asked = read::<Q, Nothing>(incoming).map(&handle);
            async move {
                let done = match asked {
                    Ok(answering) => answering.await,
                    Err(refused) => Err(refused.into()),
                };
                let reject = |failure| Rejection::from(failure).into_response(&request_id);
                done.unwrap_or_else(reject)
            }
            .boxed()
        });
        Route::made((method, path), need, about, answers, handler).taking::<Q, Nothing>()
    }

    /// A route whose request is read by its handler.
    pub fn open<H, F>(
        (method, path): (Method, &'static str),
        need: Need,
        about: &'static str,
        answers: Answers,
        handle: H,
    ) -> Route
    where
        H: Fn(Incoming) -> F + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |incoming| handle(incoming).boxed());
        Route::made((method, path), need, about, answers, handler)
    }

    fn made(
        (method, path): (Method, &'static str),
        need: Need,
        about: &'static str,
        answers: Answers,
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
            answers,
            operation: None,
            lasting: false,
            body_bytes: None,
            before_body: None,
            heavy: Heavy::Never,
            handler,
        }
    }

    fn taking<Q: JsonSchema + 'static, B: JsonSchema + 'static>(mut self) -> Route {
        let is = |id: std::any::TypeId| id != std::any::TypeId::of::<Nothing>();
        self.query = is(std::any::TypeId::of::<Q>()).then_some(schema::<Q> as MakeSchema);
        self.body = is(std::any::TypeId::of::<B>()).then_some(schema::<B> as MakeSchema);
        self
    }

    /// Answered with this status when all is well.
    #[must_use]
    pub fn answering(mut self, status: u16) -> Route {
        self.status = status;
        self
    }

    /// Answered page by page.
    #[must_use]
    pub fn paged(mut self) -> Route {
        if let Answers::Data(make) = self.answers {
            self.answers = Answers::Page(make);
        }
        self
    }

    /// Not bound by the time a request may take.
    #[must_use]
    pub fn lasting(mut self) -> Route {
        self.lasting = true;
        self
    }

    /// Answered on a thread of its own, since that needs much time of a processor.
    #[must_use]
    pub fn heavy(mut self) -> Route {
        self.heavy = Heavy::Always;
        self
    }

    /// The same, with a body of more bytes than these.
    #[must_use]
    pub fn heavy_over(mut self, bytes: usize) -> Route {
        self.heavy = Heavy::Over(bytes);
        self
    }

    /// The same, where that may take minutes: others do not wait behind it.
    #[must_use]
    pub fn long(mut self) -> Route {
        self.heavy = Heavy::Long;
        self
    }

    /// Whether it may take minutes.
    pub fn is_long(&self) -> bool {
        self.heavy == Heavy::Long
    }

    /// Whether answering a body of this length needs much time of a processor.
    pub fn is_heavy(&self, body_bytes: usize) -> bool {
        match self.heavy {
            Heavy::Never => false,
            Heavy::Always | Heavy::Long => true,
            Heavy::Over(bytes) => body_bytes > bytes,
        }
    }

    /// Checked by this before its body is read.
    #[must_use]
    pub fn before_body(mut self, check: BeforeBody) -> Route {
        self.before_body = Some(check);
        self
    }

    /// Described under this name.
    #[must_use]
    pub fn called(mut self, operation: &'static str) -> Route {
        self.operation = Some(operation);
        self
    }

    /// Answers a request of somebody who may ask.
    pub fn answer(&self, incoming: Incoming) -> BoxFuture<'static, Response> {
        (self.handler)(incoming)
    }

    /// The method's word, for counting.
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

    /// The names in the path.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Reads a request.
fn read<Q, B>(incoming: Incoming) -> Result<Ask<Q, B>, Refused>
where
    Q: DeserializeOwned,
    B: DeserializeOwned + 'static,
{
    let Incoming { app, who, uri, path, headers, body, request_id, .. } = incoming;
    let query = axum::extract::Query::<Q>::try_from_uri(&uri)
        .map_err(|error| bad(format!("the query: {}", error.body_text())))?;
    let body = if std::any::TypeId::of::<B>() == std::any::TypeId::of::<Nothing>() {
        nothing(&headers, &body)?;
        serde_json::from_str("{}").expect("nothing is read from nothing")
    } else {
        self::body(&headers, &body)?
    };
    let (house, caller) = who.expect("a route with a handler has somebody who asks");
    Ok(Ask { app, house, caller, path, query: query.0, body, headers, request_id })
}

/// Refuses a body that says something where nothing is taken: whoever sent it
/// would think that it counted.
fn nothing(headers: &HeaderMap, sent: &[u8]) -> Result<(), Refused> {
    if !sent.is_empty() {
        body::<Option<Nothing>>(headers, sent)?;
    }
    Ok(())
}

/// Reads a JSON body.
pub fn body<B: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<B, Refused> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let sent = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !sent.eq_ignore_ascii_case("application/json") {
        let message = "the body must be `application/json`";
        return Err(Refused::new(UNSUPPORTED_MEDIA_TYPE, message, "set `Content-Type`"));
    }
    let value = strict::parse(body).map_err(|why| bad(format!("the body: {why}")))?;
    // A list would be taken for fields without their names.
    if value.is_array() {
        return Err(bad("the body: an object is expected"));
    }
    serde_json::from_value(value).map_err(|why| bad(format!("the body: {why}")))
}

/// A body that is longer than may be.
pub fn too_large(bytes_max: usize) -> Refused {
    let message = format!("the body has more than {bytes_max} bytes");
    Refused::new(BODY_TOO_LARGE, message, "send less at once")
}
