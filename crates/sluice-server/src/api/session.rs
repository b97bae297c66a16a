//! Sign-in of people at the console: a token opens a session, which is kept in a cookie.
//!
//! INVARIANT: a session is a child of the token it was opened with: it has no further
//! permissions, and ends with it. Scripts of a page cannot read its secret.

use super::cookie;
use super::reply::Reply;
use super::request::{ApiRequest, Nothing};
use super::route::{Need, Route};
use super::tokens::write;
use crate::auth::identities::{Identities, hash, row};
use crate::auth::secret;
use crate::limits::SESSION_MS;
use crate::refused::{Refused, ServiceResult};
use crate::service::registry::{self, Mode, RowChange};
use axum::http::{Method, header};
use schemars::JsonSchema;
use serde::Serialize;
use sluice_core::journal::envelope::timestamp;
use sluice_govern::registry::{Kind, Row, Token};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new((Method::POST, "/api/v1/session"), Need::Token, "Open a session", open)
            .with_status(201),
        Route::new((Method::GET, "/api/v1/session"), Need::Token, "Show the current session", show),
        Route::new((Method::DELETE, "/api/v1/session"), Need::Token, "End the session", close),
    ]
}

/// The current session or token.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionShown {
    /// The principal it acts for.
    principal: String,
    /// Name of the organisation.
    organisation: String,
    /// Id of the token or session.
    token_id: String,
    /// Roles and groups.
    roles: Vec<String>,
    /// The permissions of the principal.
    permissions: Vec<String>,
    /// The value that a page sends as `X-CSRF-Token` with every change; null without a session.
    csrf_token: Option<String>,
    /// When the session ends; null without a session.
    expires_at: Option<String>,
    /// Version of the server.
    version: &'static str,
}

fn shown<Q, B>(
    request: &ApiRequest<Q, B>,
    csrf: Option<String>,
    expires_at_ms: Option<u64>,
) -> SessionShown {
    let caller = &request.caller;
    SessionShown {
        principal: caller.name.clone(),
        organisation: request.organisation.name().to_owned(),
        token_id: caller.token.clone(),
        roles: caller.roles.clone(),
        permissions: caller.permissions.iter().map(|one| one.as_str().to_owned()).collect(),
        csrf_token: csrf,
        expires_at: expires_at_ms.map(timestamp),
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// Opens a session with the token in the header.
async fn open(request: ApiRequest<Nothing, Nothing>) -> ServiceResult<Reply<SessionShown>> {
    if request.caller.session {
        let remedy = "send the token itself as `Authorization: Bearer TOKEN`";
        let message = "a session cannot open another session";
        return Err(Refused::new(super::problem::FORBIDDEN, message, remedy).into());
    }
    if request.app.rates().session(&request.caller.token).is_err() {
        request.app.metrics().refused("sessions");
        let (code, remedy) =
            (super::problem::TOO_MANY_REQUESTS, "wait a minute, then sign in again");
        return Err(Refused::new(code, "this token opens too many sessions", remedy).into());
    }
    let now_ms = request.app.now_ms();
    let identities = request.organisation.identities();
    let parent = identities.iter().find(|(id, _)| *id == request.caller.token);
    let Some((_, parent)) = parent else {
        let message = "the token is invalid, expired or revoked";
        let unauthenticated = super::problem::UNAUTHENTICATED;
        return Err(Refused::new(unauthenticated, message, "sign in again").into());
    };
    let mut entropy = request.app.entropy();
    let (secret, id) = (secret::make(&mut *entropy), secret::id(&mut *entropy));
    let expires_at_ms = now_ms.saturating_add(SESSION_MS);
    let session = Token {
        sha256: hash(&secret),
        parent: Some(request.caller.token.clone()),
        session: true,
        created_at_ms: now_ms,
        expires_at_ms: Some(expires_at_ms),
        ..parent.clone()
    };
    let (token, most) = (&request.caller.token, request.app.settings().sessions);
    // Computed on the rows that are written: other sessions may be opened concurrently.
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let remove = surplus(&Identities::read(0, stored), token, most, now_ms);
        Ok(RowChange { put: vec![row(&id, &session)], remove })
    };
    registry::change(request.service(), &request.caller.name, Mode::Write, &edit).await?;
    request.organisation.rows().await?;
    let shown = SessionShown {
        token_id: id,
        ..shown(&request, Some(secret::csrf(&secret)), Some(expires_at_ms))
    };
    let cookie = cookie::set(&request.app, &secret, SESSION_MS / 1000);
    Ok(Reply::created(shown).with(header::SET_COOKIE, &cookie))
}

/// The sessions that end when a token opens another one: those that have expired, and the
/// oldest ones of this token beyond its limit.
fn surplus(identities: &Identities, token: &str, most: usize, now_ms: u64) -> Vec<(Kind, String)> {
    let sessions = identities.iter().filter(|(_, one)| one.session);
    let (expired, open): (Vec<_>, Vec<_>) = sessions
        .map(|(id, one)| (one, id))
        .partition(|(one, _)| one.expires_at_ms.is_some_and(|at| at <= now_ms));
    let mut own: Vec<(u64, &str)> = open
        .iter()
        .filter(|(one, _)| one.parent.as_deref() == Some(token))
        .map(|(one, id)| (one.created_at_ms, *id))
        .collect();
    own.sort_unstable();
    let beyond = (own.len() + 1).saturating_sub(most.max(1));
    let oldest = own.into_iter().take(beyond).map(|(_, id)| id);
    let ended = expired.iter().map(|(_, id)| *id).chain(oldest);
    ended.map(|id| (Kind::Token, id.to_owned())).collect()
}

async fn show(request: ApiRequest) -> ServiceResult<Reply<SessionShown>> {
    let secret = cookie::secret(&request.app, &request.headers).filter(|_| request.caller.session);
    let csrf = secret.map(secret::csrf);
    let identities = request.organisation.identities();
    let token = identities.iter().find(|(id, _)| *id == request.caller.token);
    let ends = token.filter(|_| request.caller.session).and_then(|(_, token)| token.expires_at_ms);
    Ok(Reply::ok(shown(&request, csrf, ends)))
}

async fn close(request: ApiRequest) -> ServiceResult<Reply<SessionShown>> {
    if request.caller.session {
        write(&request, Vec::new(), vec![(Kind::Token, request.caller.token.clone())]).await?;
    }
    Ok(Reply::ok(shown(&request, None, None))
        .with(header::SET_COOKIE, &cookie::set(&request.app, "", 0)))
}
