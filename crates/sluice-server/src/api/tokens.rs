//! Creates, lists and revokes tokens.
//!
//! INVARIANT: no token grants more than it has. A token that is created over the API is a
//! child of the caller's, with at most its permissions and lifetime. A caller without all
//! permissions revokes only tokens that its own token created.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad};
use super::route::{Need, Route};
use crate::auth::identities::{Identities, granted, hash, row};
use crate::auth::permission::{Permission, Permissions, Role};
use crate::auth::secret;
use crate::limits::TOKEN_MS_MAX;
use crate::refused::{ROW_UNKNOWN, Refused, ServiceResult};
use crate::service::registry::{self, ChangeOutcome, Mode, RowChange};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::journal::envelope::timestamp;
use sluice_govern::registry::{Kind, Row, Token};

/// Maximum length of a principal or group, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Maximum number of groups of a token.
const GROUPS_MAX: usize = 32;

pub(super) fn routes() -> Vec<Route> {
    let manage = Need::Permission(Permission::TokenManage);
    vec![
        Route::new((Method::GET, "/api/v1/tokens"), manage, "List tokens", list).paged(),
        Route::new(
            (Method::POST, "/api/v1/tokens"),
            manage,
            "Create a token; its secret is shown once",
            create,
        )
        .with_status(201),
        Route::new((Method::GET, "/api/v1/tokens/{token}"), manage, "Show a token", show),
        Route::new((Method::DELETE, "/api/v1/tokens/{token}"), manage, "Revoke a token", revoke),
    ]
}

/// A token, without its secret.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct TokenShown {
    /// Id of the token.
    pub(super) token_id: String,
    /// The principal it acts for.
    principal: String,
    /// Roles of the token.
    roles: Vec<String>,
    /// Its current permissions.
    permissions: Vec<String>,
    /// Approver groups it belongs to.
    groups: Vec<String>,
    /// The token that created it.
    parent: Option<String>,
    /// Whether it is a session of the console.
    session: bool,
    /// When it was created.
    created_at: String,
    /// When it expires.
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

/// A new token, with its secret.
#[derive(Debug, Serialize, JsonSchema)]
struct TokenMade {
    /// The secret. It is not stored, and never shown again.
    token: String,
    /// The token.
    #[serde(flatten)]
    shown: TokenShown,
}

async fn current_identities<Q, B>(
    request: &ApiRequest<Q, B>,
) -> ServiceResult<std::sync::Arc<Identities>> {
    request.organisation.rows().await?;
    Ok(request.organisation.identities())
}

async fn list(request: ApiRequest) -> ServiceResult<Reply<Vec<TokenShown>>> {
    let (known, now_ms) = (current_identities(&request).await?, request.app.now_ms());
    let shown = known.iter().map(|(id, token)| {
        let standing = known.standing(id, now_ms).map(|(_, permissions)| permissions);
        TokenShown::new(id, token, standing.unwrap_or_default())
    });
    Ok(Reply::ok(shown.collect()))
}

fn unknown(id: &str) -> Refused {
    let message = format!("there is no token `{}`", sluice_core::visible::brief(id));
    Refused::new(ROW_UNKNOWN, message, "`sluice tokens list` lists them")
}

async fn show(request: ApiRequest) -> ServiceResult<Reply<TokenShown>> {
    let (known, now_ms, id) =
        (current_identities(&request).await?, request.app.now_ms(), request.path("token"));
    let (_, token) = known.iter().find(|(one, _)| *one == id).ok_or_else(|| unknown(id))?;
    let standing = known.standing(id, now_ms).map(|(_, permissions)| permissions);
    Ok(Reply::ok(TokenShown::new(id, token, standing.unwrap_or_default())))
}

/// The token to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    /// The principal it acts for.
    principal: String,
    /// Roles of the token.
    roles: Vec<Role>,
    /// Only these permissions of the roles (default: all of them).
    scopes: Option<Vec<String>>,
    /// Approver groups it belongs to.
    #[serde(default)]
    groups: Vec<String>,
    /// Lifetime in seconds (default: unlimited).
    expires_in_s: Option<u64>,
}

async fn create(request: ApiRequest<Nothing, TokenBody>) -> ServiceResult<Reply<TokenMade>> {
    let body = &request.body;
    let now_ms = request.app.now_ms();
    let known = current_identities(&request).await?;
    for name in std::iter::once(&body.principal).chain(&body.groups) {
        self::name(name)?;
    }
    if body.roles.is_empty() || body.groups.len() > GROUPS_MAX {
        return Err(bad(format!(
            "a token needs at least one role, and has at most {GROUPS_MAX} groups"
        ))
        .into());
    }
    if let Some(odd) = body.scopes.iter().flatten().find(|word| Permission::parse(word).is_none()) {
        let shown = sluice_core::visible::brief(odd);
        return Err(bad(format!("`{shown}` is not a permission")).into());
    }
    let lifetime = body.expires_in_s.map(|s| s.saturating_mul(1000));
    if lifetime.is_some_and(|ms| ms == 0 || ms > TOKEN_MS_MAX) {
        return Err(bad("`expires_in_s` must be between 1 second and 10 years").into());
    }
    let mut entropy = request.app.entropy();
    let secret = secret::make(&mut *entropy);
    let id = secret::id(&mut *entropy);
    let token = Token {
        principal: body.principal.clone(),
        sha256: hash(&secret),
        roles: body.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        scopes: body.scopes.clone(),
        groups: body.groups.clone(),
        parent: (!request.caller.is_local()).then(|| request.caller.token.clone()),
        session: false,
        created_at_ms: now_ms,
        expires_at_ms: lifetime.map(|ms| now_ms.saturating_add(ms)),
    };
    let wanted = granted(&token);
    if !wanted.within(request.caller.permissions) {
        let message = "the token would have more permissions than the token that creates it";
        let remedy = "leave out the roles or scopes that your own token does not have";
        return Err(Refused::new(super::problem::FORBIDDEN, message, remedy).into());
    }
    if !request.caller.is_local() {
        let standing = known.standing(&request.caller.token, now_ms);
        standing.ok_or_else(|| unknown(&request.caller.token))?;
    }
    write(&request, vec![row(&id, &token)], Vec::new()).await?;
    let shown = TokenShown::new(&id, &token, wanted);
    Ok(Reply::created(TokenMade { token: secret, shown }))
}

fn name(name: &str) -> Result<(), Refused> {
    let fits = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.chars().all(|c| !c.is_control() && !sluice_core::visible::hides(c));
    if fits {
        Ok(())
    } else {
        Err(bad("a principal or group has 1 to 128 bytes, without control characters"))
    }
}

/// Writes rows of tokens. Policies on changes decide about new tokens.
pub(super) async fn write<Q, B>(
    request: &ApiRequest<Q, B>,
    put: Vec<Row>,
    remove: Vec<(Kind, String)>,
) -> ServiceResult<()> {
    let edit = |_: &[Row]| -> ServiceResult<RowChange> {
        Ok(RowChange { put: put.clone(), remove: remove.clone() })
    };
    let outcome = registry::change(request.service(), &request.caller, Mode::Write, &edit).await?;
    debug_assert!(
        matches!(outcome, ChangeOutcome::Done { .. }),
        "there are no documents to refuse"
    );
    request.organisation.rows().await?;
    Ok(())
}

/// Only an admin with all permissions revokes tokens that the caller's own token did not
/// create. A session acts for the token that it was opened with.
fn may_revoke(request: &ApiRequest, known: &Identities, id: &str) -> Result<(), Refused> {
    let caller = &request.caller;
    if caller.permissions == Permissions::all() {
        return Ok(());
    }
    let (_, own) = known.iter().find(|(one, _)| *one == caller.token).unzip();
    let root = own.filter(|token| token.session).and_then(|token| token.parent.as_ref());
    let root = root.unwrap_or(&caller.token);
    if known.family(root).is_some_and(|family| family.contains(id)) {
        return Ok(());
    }
    let message = "the token was not created with yours";
    let remedy = "use an admin token with all permissions";
    Err(Refused::new(super::problem::FORBIDDEN, message, remedy))
}

async fn revoke(request: ApiRequest) -> ServiceResult<Reply<TokenShown>> {
    let (known, id) = (current_identities(&request).await?, request.path("token").to_owned());
    let (_, token) = known.iter().find(|(one, _)| *one == id).ok_or_else(|| unknown(&id))?;
    may_revoke(&request, &known, &id)?;
    // Tokens that it created are not valid without it, and are removed as well.
    let gone = known.family(&id).ok_or_else(|| unknown(&id))?;
    let remove = gone.into_iter().map(|id| (Kind::Token, id)).collect();
    write(&request, Vec::new(), remove).await?;
    Ok(Reply::ok(TokenShown::new(&id, token, Permissions::default())))
}
