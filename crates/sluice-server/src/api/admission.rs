//! The steps that every request passes before its handler, and every response after it.
//!
//! In this order: request id, route, authentication, rate limit, connection, permission,
//! body, capacity, timeout. A panic of a handler becomes a response as well.
//!
//! INVARIANT: a client that sends its body slowly holds nothing that another client needs:
//! its bytes are charged as they arrive, and request capacity is taken when the body is
//! complete.

use super::cookie;
use super::gateways::sender;
use super::problem::{
    FORBIDDEN, METHOD_NOT_ALLOWED, NOT_FOUND, OVERLOADED, REQUEST_TIMEOUT, Rejection, STOPPING,
    TOO_MANY_REQUESTS, UNAUTHENTICATED,
};
use super::route::{GatewayCaller, Incoming, Need, Route, too_large};
use crate::app::App;
use crate::auth::Caller;
use crate::auth::permission::Permission;
use crate::capacity::{CapacityGuard, Holder, PoolFull};
use crate::limits::URI_BYTES_MAX;
use crate::organisation::Organisation;
use crate::refused::Refused;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header, request};
use axum::response::Response;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Limited};
use sluice_bridge::connections::Connection;
use sluice_core::port::ledger::Entry;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The response header with the id of the request.
const REQUEST_ID: &str = "x-request-id";

/// The connection of a request.
#[derive(Debug, Clone)]
pub struct Peer(pub Arc<Connection>);

/// Handles a request of a route.
pub async fn handle(
    app: App,
    route: Arc<Route>,
    path: Vec<(&'static str, String)>,
    request: Request,
) -> Response {
    let (begun, request_id) = (Instant::now(), new_id(&app));
    let passed = AssertUnwindSafe(admit(&app, &route, path, request, &request_id));
    let response = match passed.catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(rejection)) => rejection.into_response(&request_id),
        Err(_) => {
            tracing::error!(request_id, path = route.path, "a handler panicked");
            Rejection::internal().into_response(&request_id)
        }
    };
    let status = response.status().as_u16();
    app.metrics().answered(route.verb(), route.path, status, begun.elapsed());
    finish(response, &request_id)
}

/// The response to a request that matches no route.
pub(crate) fn no_route(app: &App, methods: &[Method]) -> Response {
    let request_id = new_id(app);
    let refused = if methods.is_empty() {
        Refused::new(NOT_FOUND, "no such resource", "see /api/docs for the list of routes")
    } else {
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        let remedy = format!("use one of: {}", names.join(", "));
        Refused::new(METHOD_NOT_ALLOWED, "method not allowed", remedy)
    };
    let mut response = Rejection::from(refused).into_response(&request_id);
    if !methods.is_empty() {
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        if let Ok(allow) = HeaderValue::from_str(&names.join(", ")) {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    finish(response, &request_id)
}

/// A new request id.
pub fn new_id(app: &App) -> String {
    format!("req_{:016x}", app.entropy().bits())
}

/// Adds the headers of every response.
pub(super) fn finish(mut response: Response, request_id: &str) -> Response {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn admit(
    app: &App,
    route: &Route,
    path: Vec<(&'static str, String)>,
    request: Request,
    request_id: &str,
) -> Result<Response, Rejection> {
    let (head, body) = request.into_parts();
    let length = head.uri.path_and_query().map_or(0, |uri| uri.as_str().len());
    if length > URI_BYTES_MAX {
        return Err(super::request::bad("the request URI is too long").into());
    }
    if app.stop().is_cancelled() && route.need != Need::Nothing {
        let message = "this process is stopping";
        return Err(Rejection::later(STOPPING, message, Duration::from_secs(2)));
    }
    let peer = head.extensions.get::<Peer>().cloned();
    let from = peer.as_ref().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.from());
    let Client { caller, gateway, holder } = client(app, route, &head, from).await?;
    if let (Some(peer), Some((organisation, name))) = (&peer, holder.owner())
        && !app.connections().sign_in(&peer.0, organisation, &name)
    {
        return Err(full(app, "connections", PoolFull::Share));
    }
    if let Some(check) = route.before_body {
        check(app, &path, from).await?;
    }
    let (body, _memory) = read_body(app, route, &holder, body).await?;
    let _capacity = request_capacity(app, route, &holder)?;
    let in_progress = peer.as_ref().map(|peer| peer.0.begin());
    let incoming = Incoming {
        app: app.clone(),
        caller,
        gateway,
        uri: head.uri,
        path,
        headers: head.headers,
        body,
        request_id: request_id.to_owned(),
        from,
    };
    let answering = perform(app, route, &holder, incoming);
    let response = if route.lasting {
        answering.await
    } else {
        let patience = Duration::from_millis(app.settings().request_ms);
        tokio::time::timeout(patience, answering).await.map_err(|_| late())?
    };
    Ok(until_sent(response, in_progress))
}

/// The client of a request, and the key that its capacity is charged to.
struct Client {
    caller: Option<(Arc<Organisation>, Caller)>,
    gateway: Option<GatewayCaller>,
    holder: Holder,
}

/// Identifies the client, within its rate and its permissions.
async fn client(
    app: &App,
    route: &Route,
    head: &request::Parts,
    from: IpAddr,
) -> Result<Client, Rejection> {
    match route.need {
        Need::Nothing => Ok(Client { caller: None, gateway: None, holder: Holder::stranger(from) }),
        Need::Gateway => {
            let gateway = sender(app, &head.headers, from).await?;
            let holder = Holder::gateway(gateway.organisation.name(), &gateway.name);
            app.rates().gateway(gateway.organisation.name(), &gateway.name).map_err(|after| {
                too_often(app, "gateway_rate", "this gateway sends too many requests", after)
            })?;
            Ok(Client { caller: None, gateway: Some(gateway), holder })
        }
        Need::Token | Need::Permission(_) => {
            let (organisation, caller) = authenticate(app, route, head, from).await?;
            let holder = Holder::token(organisation.name(), &caller.counted_as);
            app.rates().token(organisation.name(), &caller.counted_as).map_err(|after| {
                too_often(app, "token_rate", "this token sends too many requests", after)
            })?;
            if let Err(refused) = permitted(route.need, &caller) {
                let refusal = (caller.name.as_str(), "permission_refused");
                audit_refusal(app, Some(&organisation), refusal, route, from).await;
                return Err(refused.into());
            }
            Ok(Client { caller: Some((organisation, caller)), gateway: None, holder })
        }
    }
}

/// Executes the handler of a route. A handler that needs much processor time runs on a
/// thread of its own when the client has a free slot.
pub async fn perform(app: &App, route: &Route, holder: &Holder, incoming: Incoming) -> Response {
    if !route.is_heavy(incoming.body.len()) {
        return route.answer(incoming).await;
    }
    let capacity = app.capacity();
    let checks = if route.is_long() { &capacity.long_checks } else { &capacity.checks };
    checks.run(holder, route.answer(incoming)).await
}

/// A response that holds a value until its stream has ended.
pub fn until_sent<T: Send + 'static>(response: Response, held: T) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &held;
            frame
        }))
    })
}

/// The refusal of a client that exceeds a rate limit.
pub(crate) fn too_often(
    app: &App,
    what: &'static str,
    message: &str,
    after: Duration,
) -> Rejection {
    app.metrics().refused(what);
    Rejection::later(TOO_MANY_REQUESTS, message, after)
}

/// The refusal of a client for lack of capacity.
pub fn full(app: &App, what: &'static str, full: PoolFull) -> Rejection {
    app.metrics().refused(what);
    let (code, message, seconds) = match full {
        PoolFull::All => (OVERLOADED, "the server is overloaded", 1),
        PoolFull::Share => {
            (TOO_MANY_REQUESTS, "this client already uses its share of the server's capacity", 1)
        }
    };
    Rejection::later(code, message, Duration::from_secs(seconds))
}

/// Authenticates the caller; an invalid token is audited.
async fn authenticate(
    app: &App,
    route: &Route,
    head: &request::Parts,
    from: IpAddr,
) -> Result<(Arc<Organisation>, Caller), Rejection> {
    let tried = bearer(&head.headers).is_some() || cookie::secret(app, &head.headers).is_some();
    let found = caller_of(app, head, from).await;
    let denied = found.as_ref().is_err_and(|rejection| rejection.code() == UNAUTHENTICATED);
    if tried && denied {
        audit_refusal(app, app.organisations().first(), ("", "sign_in_failed"), route, from).await;
    }
    found
}

/// Audits a refused request. Requests without a valid token are recorded for the
/// organisation of the server's operator; their number is bounded by a rate limit.
async fn audit_refusal(
    app: &App,
    organisation: Option<&Arc<Organisation>>,
    (actor, what): (&str, &str),
    route: &Route,
    from: IpAddr,
) {
    let Some(organisation) = organisation else { return };
    let client = if actor.is_empty() { from.to_string() } else { actor.to_owned() };
    let entry = Entry {
        at_ms: app.now_ms(),
        category: "security",
        what: what.to_owned(),
        actor: if actor.is_empty() { "unknown".to_owned() } else { actor.to_owned() },
        resource_type: "route".to_owned(),
        resource_id: format!("{} {}", route.method, route.path),
        event: None,
        detail: serde_json::json!({"from": from.to_string()}),
    };
    if let Err(error) = organisation.record_refusal(&client, entry).await {
        tracing::warn!(%error, what, "a refused request could not be audited");
    }
}

/// Capacity for one more request. Public GET routes are cheap, and must be answered even
/// when the pool is full.
fn request_capacity(
    app: &App,
    route: &Route,
    holder: &Holder,
) -> Result<Option<CapacityGuard>, Rejection> {
    if route.lasting || (route.need == Need::Nothing && route.method == Method::GET) {
        return Ok(None);
    }
    let taken = app.capacity().requests.take(holder, 1);
    taken.map(Some).map_err(|why| full(app, "requests", why))
}

fn late() -> Rejection {
    let message = "the request timed out; it may or may not have taken effect";
    Rejection::later(REQUEST_TIMEOUT, message, Duration::from_secs(1))
}

/// The caller: identified by a bearer token, else by a session cookie.
async fn caller_of(
    app: &App,
    head: &request::Parts,
    from: IpAddr,
) -> Result<(Arc<Organisation>, Caller), Rejection> {
    let unauthenticated = || {
        let remedy = "send `Authorization: Bearer TOKEN`; `sluice tokens create` creates one";
        Refused::new(UNAUTHENTICATED, "the token is missing, invalid, expired or revoked", remedy)
    };
    let bearer = bearer(&head.headers);
    let secret = match (bearer, cookie::secret(app, &head.headers)) {
        (Some(secret), _) => secret,
        (None, Some(secret)) => {
            cookie::own_page(head, secret)?;
            secret
        }
        (None, None) => return Err(unauthenticated().into()),
    };
    let found = app.identify(secret, from).await.map_err(|after| {
        too_often(app, "stranger_rate", "too many failed sign-in attempts", after)
    })?;
    // A session secret is valid only in a cookie, a token only in a header.
    let found = found.filter(|(_, caller)| caller.session == bearer.is_none());
    Ok(found.ok_or_else(unauthenticated)?)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let sent = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = sent.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// Refuses a caller without the permission of a route.
pub fn permitted(need: Need, caller: &Caller) -> Result<(), Refused> {
    match need {
        Need::Permission(permission) if !caller.may(permission) => Err(forbidden(permission)),
        _ => Ok(()),
    }
}

/// The refusal for a missing permission.
pub fn forbidden(permission: Permission) -> Refused {
    let message = format!("this needs the permission `{}`", permission.as_str());
    let remedy = "use a token with a role that has this permission";
    Refused::new(FORBIDDEN, message, remedy)
}

/// Reads the body, within its size and time limits. Its bytes are charged as they arrive
/// and until the response is sent, so that all bodies together stay within their memory
/// limit.
async fn read_body(
    app: &App,
    route: &Route,
    holder: &Holder,
    body: Body,
) -> Result<(Bytes, Option<CapacityGuard>), Rejection> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    let settings = app.settings();
    let stranger = route.need == Need::Nothing;
    let patience_ms = if stranger { settings.head_ms } else { settings.request_ms };
    let bytes_max = route.body_bytes.unwrap_or(settings.body_bytes);
    let reading = collect(app, holder, body, bytes_max);
    let read = tokio::time::timeout(Duration::from_millis(patience_ms), reading).await;
    let (body, memory) = read.map_err(|_| late())??;
    Ok((body, Some(memory)))
}

async fn collect(
    app: &App,
    holder: &Holder,
    body: Body,
    bytes_max: usize,
) -> Result<(Bytes, CapacityGuard), Rejection> {
    let no_room = |why| full(app, "body_bytes", why);
    let mut memory = app.capacity().body_bytes.take(holder, 0).map_err(no_room)?;
    let mut body = Limited::new(body, bytes_max);
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                let Some(bytes) = frame.data_ref() else { continue };
                memory.grow(bytes.len()).map_err(no_room)?;
                whole.extend_from_slice(bytes);
            }
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                return Err(too_large(bytes_max).into());
            }
            Err(_) => return Err(super::request::bad("the body is incomplete").into()),
        }
    }
    Ok((whole.into(), memory))
}

/// The parameters of a path that matches a route.
pub fn matches(route: &Route, uri: &Uri) -> Option<Vec<(&'static str, String)>> {
    let mut values = Vec::new();
    let mut given = uri.path().split('/');
    for part in route.path.split('/') {
        let one = given.next()?;
        match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(name) => values.push((name, decoded(one)?)),
            None if part == one => {}
            None => return None,
        }
    }
    given.next().is_none().then_some(values)
}

/// Decodes one segment of a path; `None` if it is empty, not UTF-8, or contains a control
/// character.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
}
