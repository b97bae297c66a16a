//! Tokens: made, listed, revoked.
//!
//! INVARIANT: no token gives away more than it has. A token that is made here is
//! a child of the caller's, with at most its permissions and its time. A caller without
//! every permission revokes only what its own token made.

use super::ask::{Ask, Nothing, bad};
use super::reply::Reply;
use super::route::{Need, Route};
use crate::auth::identities::{Identities, granted, hash, row};
use crate::auth::permission::{Permission, Permissions, Role};
use crate::auth::secret;
use crate::limits::TOKEN_MS_MAX;
use crate::refused::{Done, ROW_UNKNOWN, Refused};
use crate::service::registry::{self, Asked, Mode, Outcome};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::journal::envelope::timestamp;
use sluice_govern::registry::{Kind, Row, Token};

/// Longest name of a principal or a group, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Most groups of a token.
const GROUPS_MAX: usize = 32;

/// The routes of tokens.
pub(super) fn routes() -> Vec<Route> {
    let manage = Need::Permission(Permission::TokenManage);
    vec![
        Route::new((Method::GET, "/api/v1/tokens"), manage, "List tokens", list).paged(),
        Route::new((Method::POST, "/api/v1/tokens"), manage, "Make a token, shown once", create)
            .answering(201),
        Route::new((Method::GET, "/api/v1/tokens/{token}"), manage, "Show a token", show),
        Route::new((Method::DELETE, "/api/v1/tokens/{token}"), manage, "Revoke a token", revoke),
    ]
}

/// A token as it is shown: never its secret.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct TokenShown {
    /// Its id.
    pub(super) token_id: String,
    /// In whose name it acts.
    principal: String,
    /// Its roles.
    roles: Vec<String>,
    /// What it may ask for at this moment.
    permissions: Vec<String>,
    /// Groups of approvers it is in.
    groups: Vec<String>,
    /// The token that made it.
    parent: Option<String>,
    /// Whether it is a session at a console.
    session: bool,
    /// When it was made.
    created_at: String,
    /// From when on it counts no more.
    expires_at: Option<String>,
}

impl TokenShown {
    pub(super) fn new(id: &str, token: &Token, permissions: Permissions) -> TokenShown {
        let words = permissions.iter().map(|one| one.as_str().to_owned());
        TokenShown {
            token_id: id.to_owned(),
            principal: token.principal.clone(),
            roles: token.roles.clone(),
            permissions: words.collect(),
            groups: token.groups.clone(),
            parent: token.parent.clone(),
            session: token.session,
            created_at: timestamp(token.created_at_ms),
            expires_at: token.expires_at_ms.map(timestamp),
        }
    }
}

/// A token that was just made, with its secret.
#[derive(Debug, Serialize, JsonSchema)]
struct TokenMade {
    /// The secret. It is not kept, and never shown again.
    token: String,
    /// What it is.
    #[serde(flatten)]
    shown: TokenShown,
}

async fn known<Q, B>(ask: &Ask<Q, B>) -> Done<std::sync::Arc<Identities>> {
    ask.house.rows().await?;
    Ok(ask.house.identities())
}

async fn list(ask: Ask) -> Done<Reply<Vec<TokenShown>>> {
    let (known, now_ms) = (known(&ask).await?, ask.app.now_ms());
    let shown = known.iter().map(|(id, token)| {
        let standing = known.standing(id, now_ms).map(|(_, permissions)| permissions);
        TokenShown::new(id, token, standing.unwrap_or_default())
    });
    Ok(Reply::ok(shown.collect()))
}

fn unknown(id: &str) -> Refused {
    let message = format!("there is no token `{}`", sluice_core::visible::brief(id));
    Refused::new(ROW_UNKNOWN, message, "`sluice tokens list` shows those there are")
}

async fn show(ask: Ask) -> Done<Reply<TokenShown>> {
    let (known, now_ms, id) = (known(&ask).await?, ask.app.now_ms(), ask.path("token"));
    let (_, token) = known.iter().find(|(one, _)| *one == id).ok_or_else(|| unknown(id))?;
    let standing = known.standing(id, now_ms).map(|(_, permissions)| permissions);
    Ok(Reply::ok(TokenShown::new(id, token, standing.unwrap_or_default())))
}

/// A token to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    /// In whose name it acts.
    principal: String,
    /// Its roles.
    roles: Vec<Role>,
    /// Only these permissions of those roles.
    scopes: Option<Vec<String>>,
    /// Groups of approvers it is in.
    #[serde(default)]
    groups: Vec<String>,
    /// How long it counts; for ever if it is not said.
    expires_in_s: Option<u64>,
}

async fn create(ask: Ask<Nothing, TokenBody>) -> Done<Reply<TokenMade>> {
    let body = &ask.body;
    let now_ms = ask.app.now_ms();
    let known = known(&ask).await?;
    for name in std::iter::once(&body.principal).chain(&body.groups) {
        self::name(name)?;
    }
    if body.roles.is_empty() || body.groups.len() > GROUPS_MAX {
        return Err(bad(format!("a token has a role, and at most {GROUPS_MAX} groups")).into());
    }
    if let Some(odd) = body.scopes.iter().flatten().find(|word| Permission::parse(word).is_none()) {
        let shown = sluice_core::visible::brief(odd);
        return Err(bad(format!("`{shown}` is no permission")).into());
    }
    let lifetime = body.expires_in_s.map(|s| s.saturating_mul(1000));
    if lifetime.is_some_and(|ms| ms == 0 || ms > TOKEN_MS_MAX) {
        return Err(bad("`expires_in_s` is from a second to ten years").into());
    }
    let mut entropy = ask.app.entropy();
    let secret = secret::make(&mut *entropy);
    let id = secret::id(&mut *entropy);
    let token = Token {
        principal: body.principal.clone(),
        sha256: hash(&secret),
        roles: body.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        scopes: body.scopes.clone(),
        groups: body.groups.clone(),
        parent: Some(ask.caller.token.clone()),
        session: false,
        created_at_ms: now_ms,
        expires_at_ms: lifetime.map(|ms| now_ms.saturating_add(ms)),
    };
    let wanted = granted(&token);
    if !wanted.within(ask.caller.permissions) {
        let message = "the token could do more than the one that makes it";
        let remedy = "leave out the roles or scopes that you do not have yourself";
        return Err(Refused::new(super::problem::FORBIDDEN, message, remedy).into());
    }
    known.standing(&ask.caller.token, now_ms).ok_or_else(|| unknown(&ask.caller.token))?;
    write(&ask, vec![row(&id, &token)], Vec::new()).await?;
    let shown = TokenShown::new(&id, &token, wanted);
    Ok(Reply::created(TokenMade { token: secret, shown }))
}

fn name(name: &str) -> Result<(), Refused> {
    let fits = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.chars().all(|c| !c.is_control() && !sluice_core::visible::hides(c));
    if fits { Ok(()) } else { Err(bad("a name is 1 to 128 bytes of plain text")) }
}

/// Writes rows of tokens. Policies on changes are asked about tokens that are made.
pub(super) async fn write<Q, B>(
    ask: &Ask<Q, B>,
    put: Vec<Row>,
    remove: Vec<(Kind, String)>,
) -> Done<()> {
    let wish =
        |_: &[Row]| -> Done<Asked> { Ok(Asked { put: put.clone(), remove: remove.clone() }) };
    let by = &ask.caller.name;
    let outcome = registry::change(ask.service(), by, Mode::Write, &wish).await?;
    debug_assert!(matches!(outcome, Outcome::Done { .. }), "there are no documents to refuse");
    ask.house.rows().await?;
    Ok(())
}

/// Only a full admin revokes tokens that the caller's own did not make. A session acts
/// for the token that it was opened with.
fn may_revoke(ask: &Ask, known: &Identities, id: &str) -> Result<(), Refused> {
    let caller = &ask.caller;
    if caller.permissions == Permissions::all() {
        return Ok(());
    }
    let (_, own) = known.iter().find(|(one, _)| *one == caller.token).unzip();
    let root = own.filter(|token| token.session).and_then(|token| token.parent.as_ref());
    let root = root.unwrap_or(&caller.token);
    if known.family(root).is_some_and(|family| family.contains(id)) {
        return Ok(());
    }
    let message = "the token was not made with yours";
    let remedy = "revoke tokens that yours made, or ask an admin with every permission";
    Err(Refused::new(super::problem::FORBIDDEN, message, remedy))
}

async fn revoke(ask: Ask) -> Done<Reply<TokenShown>> {
    let (known, id) = (known(&ask).await?, ask.path("token").to_owned());
    let (_, token) = known.iter().find(|(one, _)| *one == id).ok_or_else(|| unknown(&id))?;
    may_revoke(&ask, &known, &id)?;
    // What it made counts no more without it, and need not be kept.
    let gone = known.family(&id).ok_or_else(|| unknown(&id))?;
    let remove = gone.into_iter().map(|id| (Kind::Token, id)).collect();
    write(&ask, Vec::new(), remove).await?;
    Ok(Reply::ok(TokenShown::new(&id, token, Permissions::default())))
}
