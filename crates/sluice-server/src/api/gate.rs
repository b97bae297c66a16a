//! What every request passes before its handler, and every answer after it.
//!
//! In this order: an id, the route, who asks, the rate, the connection, the permission,
//! the body, room, the time. A panic of a handler is an answer too.
//!
//! INVARIANT: a client that sends its body slowly holds nothing that another one
//! needs: its bytes are counted as they come, and its place is taken when they are there.

use super::cookie;
use super::gateways::sender;
use super::problem::{
    FORBIDDEN, METHOD_NOT_ALLOWED, NOT_FOUND, OVERLOADED, REQUEST_TIMEOUT, Rejection, STOPPING,
    TOO_MANY_REQUESTS, UNAUTHENTICATED,
};
use super::route::{Asking, Incoming, Need, Route, too_large};
use crate::app::App;
use crate::auth::Caller;
use crate::auth::permission::Permission;
use crate::house::House;
use crate::limits::URI_BYTES_MAX;
use crate::places::{Full, Holder, Place};
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

/// The id of a request, in its answer.
const REQUEST_ID: &str = "x-request-id";

/// The connection that a request came on.
#[derive(Debug, Clone)]
pub struct Peer(pub Arc<Connection>);

/// A request by its route: what is common to all.
pub async fn pass(
    app: App,
    route: Arc<Route>,
    path: Vec<(&'static str, String)>,
    request: Request,
) -> Response {
    let (begun, request_id) = (Instant::now(), new_id(&app));
    let passed = AssertUnwindSafe(through(&app, &route, path, request, &request_id));
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

/// A request that no route is there for.
pub fn nowhere(app: &App, methods: &[Method]) -> Response {
    let request_id = new_id(app);
    let refused = if methods.is_empty() {
        Refused::new(NOT_FOUND, "there is nothing here", "/api/docs lists what there is")
    } else {
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        let remedy = format!("use one of: {}", names.join(", "));
        Refused::new(METHOD_NOT_ALLOWED, "not by this method", remedy)
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

/// An id for a request.
pub fn new_id(app: &App) -> String {
    format!("req_{:016x}", app.entropy().bits())
}

/// Headers of every answer.
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

async fn through(
    app: &App,
    route: &Route,
    path: Vec<(&'static str, String)>,
    request: Request,
    request_id: &str,
) -> Result<Response, Rejection> {
    let (head, body) = request.into_parts();
    let length = head.uri.path_and_query().map_or(0, |uri| uri.as_str().len());
    if length > URI_BYTES_MAX {
        return Err(super::ask::bad("the address is too long").into());
    }
    if app.stop().is_cancelled() && route.need != Need::Nothing {
        let message = "this process is about to end";
        return Err(Rejection::later(STOPPING, message, Duration::from_secs(2)));
    }
    let peer = head.extensions.get::<Peer>().cloned();
    let from = peer.as_ref().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.from());
    let Client { who, gateway, holder } = client(app, route, &head, from).await?;
    if let (Some(peer), Some((organisation, name))) = (&peer, holder.owner())
        && !app.connections().sign_in(&peer.0, organisation, &name)
    {
        return Err(full(app, "connections", Full::Share));
    }
    if let Some(check) = route.before_body {
        check(app, &path, from).await?;
    }
    let (body, _memory) = whole(app, route, &holder, body).await?;
    let _place = place(app, route, &holder)?;
    let under_way = peer.as_ref().map(|peer| peer.0.begin());
    let incoming = Incoming {
        app: app.clone(),
        who,
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
    Ok(until_sent(response, under_way))
}

/// The client of a request, and what it is counted as.
struct Client {
    who: Option<(Arc<House>, Caller)>,
    gateway: Option<Asking>,
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
        Need::Nothing => Ok(Client { who: None, gateway: None, holder: Holder::stranger(from) }),
        Need::Gateway => {
            let asking = sender(app, &head.headers, from).await?;
            let holder = Holder::gateway(asking.house.name(), &asking.name);
            app.rates().gateway(asking.house.name(), &asking.name).map_err(|after| {
                too_often(app, "gateway_rate", "this gateway sends too often", after)
            })?;
            Ok(Client { who: None, gateway: Some(asking), holder })
        }
        Need::Token | Need::Permission(_) => {
            let (house, caller) = known(app, route, head, from).await?;
            let holder = Holder::token(house.name(), &caller.counted_as);
            app.rates().token(house.name(), &caller.counted_as).map_err(|after| {
                too_often(app, "token_rate", "this token asks too often", after)
            })?;
            if let Err(refused) = permitted(route.need, &caller) {
                let told = (caller.name.as_str(), "permission_refused");
                note(app, Some(&house), told, route, from).await;
                return Err(refused.into());
            }
            Ok(Client { who: Some((house, caller)), gateway: None, holder })
        }
    }
}

/// Has a request answered. What needs much time of a processor runs on a thread of
/// its own, when it is the client's turn.
pub async fn perform(app: &App, route: &Route, holder: &Holder, incoming: Incoming) -> Response {
    if !route.is_heavy(incoming.body.len()) {
        return route.answer(incoming).await;
    }
    let room = app.room();
    let checks = if route.is_long() { &room.long_checks } else { &room.checks };
    checks.run(holder, route.answer(incoming)).await
}

/// An answer, with what must be held until a stream in it has ended.
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

/// A refusal of a client that asks more often than it may.
pub fn too_often(app: &App, what: &'static str, message: &str, after: Duration) -> Rejection {
    app.metrics().refused(what);
    Rejection::later(TOO_MANY_REQUESTS, message, after)
}

/// A refusal for lack of places.
pub fn full(app: &App, what: &'static str, full: Full) -> Rejection {
    app.metrics().refused(what);
    let (code, message, seconds) = match full {
        Full::All => (OVERLOADED, "too much is being asked at once", 1),
        Full::Share => (TOO_MANY_REQUESTS, "this client has its share of what is there", 1),
    };
    Rejection::later(code, message, Duration::from_secs(seconds))
}

/// Whoever asks; who has no token that counts is written down.
async fn known(
    app: &App,
    route: &Route,
    head: &request::Parts,
    from: IpAddr,
) -> Result<(Arc<House>, Caller), Rejection> {
    let tried = bearer(&head.headers).is_some() || cookie::secret(app, &head.headers).is_some();
    let found = who(app, head, from).await;
    let denied = found.as_ref().is_err_and(|rejection| rejection.code() == UNAUTHENTICATED);
    if tried && denied {
        note(app, app.houses().first(), ("", "sign_in_failed"), route, from).await;
    }
    found
}

/// Writes down that somebody asked for what they may not. Those who are nobody's
/// are noted with the organisation of whoever operates the server. How often they
/// may try is bounded before.
async fn note(
    app: &App,
    house: Option<&Arc<House>>,
    (actor, what): (&str, &str),
    route: &Route,
    from: IpAddr,
) {
    let Some(house) = house else { return };
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
    if let Err(error) = house.refused(&client, entry).await {
        tracing::warn!(%error, what, "what somebody tried could not be written down");
    }
}

/// Room for one more request. Looking at what needs no token is cheap, and must be
/// answered also when there is none.
fn place(app: &App, route: &Route, holder: &Holder) -> Result<Option<Place>, Rejection> {
    if route.lasting || (route.need == Need::Nothing && route.method == Method::GET) {
        return Ok(None);
    }
    let taken = app.room().requests.take(holder, 1);
    taken.map(Some).map_err(|why| full(app, "requests", why))
}

fn late() -> Rejection {
    let message = "it took too long; whether it was done is not known";
    Rejection::later(REQUEST_TIMEOUT, message, Duration::from_secs(1))
}

/// Whoever asks: by a bearer token, else by the cookie of a session.
async fn who(
    app: &App,
    head: &request::Parts,
    from: IpAddr,
) -> Result<(Arc<House>, Caller), Rejection> {
    let nobody = || {
        let remedy = "send `Authorization: Bearer TOKEN`; `sluice tokens create` makes one";
        Refused::new(UNAUTHENTICATED, "no token that counts", remedy)
    };
    let bearer = bearer(&head.headers);
    let secret = match (bearer, cookie::secret(app, &head.headers)) {
        (Some(secret), _) => secret,
        (None, Some(secret)) => {
            cookie::own_page(head, secret)?;
            secret
        }
        (None, None) => return Err(nobody().into()),
    };
    let found = app.identify(secret, from).await.map_err(|after| {
        too_often(app, "stranger_rate", "too many secrets that are none", after)
    })?;
    // A secret in a cookie is one of a session, and one in a header is not.
    let found = found.filter(|(_, caller)| caller.session == bearer.is_none());
    Ok(found.ok_or_else(nobody)?)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let sent = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = sent.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// Refuses somebody who may not.
pub fn permitted(need: Need, caller: &Caller) -> Result<(), Refused> {
    match need {
        Need::Permission(permission) if !caller.may(permission) => Err(forbidden(permission)),
        _ => Ok(()),
    }
}

/// A permission that is missing.
pub fn forbidden(permission: Permission) -> Refused {
    let message = format!("this needs the permission `{}`", permission.as_str());
    let remedy = "use a token of a role that has it, or ask an admin for one";
    Refused::new(FORBIDDEN, message, remedy)
}

/// The whole body, if it is not too long and comes in time. Its bytes are counted as
/// they come and until the request is answered, so that bodies never need more memory
/// than there may be.
async fn whole(
    app: &App,
    route: &Route,
    holder: &Holder,
    body: Body,
) -> Result<(Bytes, Option<Place>), Rejection> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    let settings = app.settings();
    let stranger = route.need == Need::Nothing;
    let patience_ms = if stranger { settings.head_ms } else { settings.request_ms };
    let bytes_max = route.body_bytes.unwrap_or(settings.body_bytes);
    let reading = read(app, holder, body, bytes_max);
    let read = tokio::time::timeout(Duration::from_millis(patience_ms), reading).await;
    let (body, memory) = read.map_err(|_| late())??;
    Ok((body, Some(memory)))
}

async fn read(
    app: &App,
    holder: &Holder,
    body: Body,
    bytes_max: usize,
) -> Result<(Bytes, Place), Rejection> {
    let no_room = |why| full(app, "body_bytes", why);
    let mut memory = app.room().body_bytes.take(holder, 0).map_err(no_room)?;
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
            Err(_) => return Err(super::ask::bad("the body broke off").into()),
        }
    }
    Ok((whole.into(), memory))
}

/// The values of a path that fits a route's.
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

/// One part of a path. An empty one, one that is no text or one that holds a
/// control character names nothing.
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
