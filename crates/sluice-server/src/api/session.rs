//! Sign-in of people at a console: a token becomes a session in a cookie.
//!
//! INVARIANT: a session is a child of the token it was opened with: it can do no
//! more, and falls with it. Scripts of a page never see its secret.

use super::ask::{Ask, Nothing};
use super::cookie;
use super::reply::Reply;
use super::route::{Need, Route};
use super::tokens::write;
use crate::auth::identities::{Identities, hash, row};
use crate::auth::secret;
use crate::limits::SESSION_MS;
use crate::refused::{Done, Refused};
use crate::service::registry::{self, Asked, Mode};
use axum::http::{Method, header};
use schemars::JsonSchema;
use serde::Serialize;
use sluice_core::journal::envelope::timestamp;
use sluice_govern::registry::{Kind, Row, Token};

/// The routes of sessions.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new((Method::POST, "/api/v1/session"), Need::Token, "Open a session", open)
            .answering(201),
        Route::new((Method::GET, "/api/v1/session"), Need::Token, "Who asks", show),
        Route::new((Method::DELETE, "/api/v1/session"), Need::Token, "End the session", close),
    ]
}

/// Whoever asks.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionShown {
    /// In whose name.
    principal: String,
    /// The organisation.
    organisation: String,
    /// The token or session.
    token_id: String,
    /// Roles and groups.
    roles: Vec<String>,
    /// What may be asked for.
    permissions: Vec<String>,
    /// What a page sends as `X-CSRF-Token` with every change; none without a session.
    csrf_token: Option<String>,
    /// Until when the session lasts; none without one.
    expires_at: Option<String>,
    /// The version of the server.
    version: &'static str,
}

fn shown<Q, B>(ask: &Ask<Q, B>, csrf: Option<String>, expires_at_ms: Option<u64>) -> SessionShown {
    let caller = &ask.caller;
    SessionShown {
        principal: caller.name.clone(),
        organisation: ask.house.name().to_owned(),
        token_id: caller.token.clone(),
        roles: caller.roles.clone(),
        permissions: caller.permissions.iter().map(|one| one.as_str().to_owned()).collect(),
        csrf_token: csrf,
        expires_at: expires_at_ms.map(timestamp),
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// Opens a session with the token in the header.
async fn open(ask: Ask<Nothing, Nothing>) -> Done<Reply<SessionShown>> {
    if ask.caller.session {
        let remedy = "send the token itself as `Authorization: Bearer TOKEN`";
        let message = "a session opens no other";
        return Err(Refused::new(super::problem::FORBIDDEN, message, remedy).into());
    }
    if ask.app.rates().session(&ask.caller.token).is_err() {
        ask.app.metrics().refused("sessions");
        let (code, remedy) =
            (super::problem::TOO_MANY_REQUESTS, "wait a minute, then sign in again");
        return Err(Refused::new(code, "this token opens sessions too often", remedy).into());
    }
    let now_ms = ask.app.now_ms();
    let identities = ask.house.identities();
    let parent = identities.iter().find(|(id, _)| *id == ask.caller.token);
    let Some((_, parent)) = parent else {
        let message = "no token that counts";
        let unauthenticated = super::problem::UNAUTHENTICATED;
        return Err(Refused::new(unauthenticated, message, "sign in again").into());
    };
    let mut entropy = ask.app.entropy();
    let (secret, id) = (secret::make(&mut *entropy), secret::id(&mut *entropy));
    let expires_at_ms = now_ms.saturating_add(SESSION_MS);
    let session = Token {
        sha256: hash(&secret),
        parent: Some(ask.caller.token.clone()),
        session: true,
        created_at_ms: now_ms,
        expires_at_ms: Some(expires_at_ms),
        ..parent.clone()
    };
    let (token, most) = (&ask.caller.token, ask.app.settings().sessions);
    // Counted where they are written: others may be opened at the same time.
    let wish = |there: &[Row]| -> Done<Asked> {
        let remove = over(&Identities::read(0, there), token, most, now_ms);
        Ok(Asked { put: vec![row(&id, &session)], remove })
    };
    registry::change(ask.service(), &ask.caller.name, Mode::Write, &wish).await?;
    ask.house.rows().await?;
    let shown = SessionShown {
        token_id: id,
        ..shown(&ask, Some(secret::csrf(&secret)), Some(expires_at_ms))
    };
    let cookie = cookie::set(&ask.app, &secret, SESSION_MS / 1000);
    Ok(Reply::created(shown).with(header::SET_COOKIE, &cookie))
}

/// The sessions that end when a token opens one more: those that have expired, and the
/// oldest of this token beyond the most it may have.
fn over(identities: &Identities, token: &str, most: usize, now_ms: u64) -> Vec<(Kind, String)> {
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

async fn show(ask: Ask) -> Done<Reply<SessionShown>> {
    let secret = cookie::secret(&ask.app, &ask.headers).filter(|_| ask.caller.session);
    let csrf = secret.map(secret::csrf);
    let identities = ask.house.identities();
    let token = identities.iter().find(|(id, _)| *id == ask.caller.token);
    let ends = token.filter(|_| ask.caller.session).and_then(|(_, token)| token.expires_at_ms);
    Ok(Reply::ok(shown(&ask, csrf, ends)))
}

async fn close(ask: Ask) -> Done<Reply<SessionShown>> {
    if ask.caller.session {
        write(&ask, Vec::new(), vec![(Kind::Token, ask.caller.token.clone())]).await?;
    }
    Ok(Reply::ok(shown(&ask, None, None)).with(header::SET_COOKIE, &cookie::set(&ask.app, "", 0)))
}
