//! `sluice tokens`: who may ask for what over the network.

use crate::Exit;
use crate::cli::Reader;
use crate::cli::serve::{CreateToken, ListTokens, RevokeToken, Tokens};
use crate::local;
use crate::organisation::{self, make_token};
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::json;
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::Clock as _;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use sluice_govern::registry::{Kind, Row, Token};
use sluice_server::auth::identities::{Identities, granted};
use sluice_server::auth::permission::{Permission, Role};
use sluice_server::refused::{Done, ROW_UNKNOWN, Refused};
use sluice_server::service::registry::{self, Asked, Mode};

/// A role or a permission that there is none of.
const ROLE_UNKNOWN: &str = "role_unknown";

pub(super) async fn run(command: &Tokens, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Tokens::List(args) => list(args, out).await,
        Tokens::Create(args) => create(args, out).await,
        Tokens::Revoke(args) => revoke(args, out).await,
    }
}

async fn list(args: &ListTokens, out: &mut Out) -> anyhow::Result<Exit> {
    let local = organisation::open(&args.of.data, &args.of.organisation).await?;
    let rows = local.store.registry(None).await?;
    local.close().await;
    let all = Identities::read(rows.epoch, &rows.rows);
    if args.json.reader() == Reader::Program {
        let data: Vec<_> = all.iter().map(|(id, token)| object(id, token)).collect();
        out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TOKEN", "NAME", "ROLES", "EXPIRES", ""]);
    for (id, token) in all.iter() {
        let ends = token.expires_at_ms.map(crate::amount::moment).unwrap_or_default();
        let counts = all.standing(id, SystemClock.now_ms()).is_some();
        let note = match (counts, token.session) {
            (false, _) => "counts no more",
            (true, true) => "session",
            (true, false) => "",
        };
        let roles = token.roles.join(", ");
        table.row([id.to_owned(), token.principal.clone(), roles, ends, note.to_owned()]);
    }
    out.print(&table.draw())?;
    Ok(Exit::Done)
}

fn object(id: &str, token: &Token) -> serde_json::Value {
    json!({
        "token_id": id,
        "principal": token.principal,
        "roles": token.roles,
        "permissions": granted(token).iter().map(Permission::as_str).collect::<Vec<_>>(),
        "groups": token.groups,
        "parent": token.parent,
        "session": token.session,
        "created_at": timestamp(token.created_at_ms),
        "expires_at": token.expires_at_ms.map(timestamp),
    })
}

async fn create(args: &CreateToken, out: &mut Out) -> anyhow::Result<Exit> {
    let roles: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let permissions: Vec<&str> = Permission::ALL.iter().map(|one| one.as_str()).collect();
    known("role", &args.role, &roles)?;
    known("permission", &args.scope, &permissions)?;
    let now_ms = SystemClock.now_ms();
    let about = Token {
        principal: args.principal.clone(),
        sha256: String::new(),
        roles: args.role.clone(),
        scopes: (!args.scope.is_empty()).then(|| args.scope.clone()),
        groups: args.group.clone(),
        parent: None,
        session: false,
        created_at_ms: now_ms,
        expires_at_ms: args.expires_in.map(|ms| now_ms.saturating_add(ms)),
    };
    let local = organisation::open(&args.of.data, &args.of.organisation).await?;
    let made = make_token(&local, &local::who(&args.name), about.clone()).await;
    local.close().await;
    let (id, secret) = made?;
    if args.json.reader() == Reader::Program {
        let mut shown = object(&id, &about);
        shown["token"] = secret.into();
        out.json(Layout::Line, &shown)?;
    } else {
        out.print(&format!("{secret}\n"))?;
        out.note(&format!("{id}; it is not shown again"))?;
    }
    Ok(Exit::Done)
}

fn known(what: &str, said: &[String], there: &[&str]) -> Result<(), Refused> {
    let Some(odd) = said.iter().find(|word| !there.contains(&word.as_str())) else {
        return Ok(());
    };
    let message = format!("there is no {what} `{}`", visible::brief(odd));
    let remedy = match suggest(odd, there.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of: {}", there.join(", ")),
    };
    Err(Refused::new(ROLE_UNKNOWN, message, remedy))
}

async fn revoke(args: &RevokeToken, out: &mut Out) -> anyhow::Result<Exit> {
    let local = organisation::open(&args.of.data, &args.of.organisation).await?;
    let wish = |there: &[Row]| -> Done<Asked> {
        let all = Identities::read(0, there);
        let gone = all.family(&args.id).ok_or_else(|| {
            let message = format!("there is no token `{}`", visible::brief(&args.id));
            Refused::new(ROW_UNKNOWN, message, "`sluice tokens list` shows those there are")
        })?;
        let remove = gone.into_iter().map(|id| (Kind::Token, id)).collect();
        Ok(Asked { put: Vec::new(), remove })
    };
    let changed = registry::change(&local, &local::who(&args.name), Mode::Write, &wish).await;
    local.close().await;
    crate::registry::tell(&changed?, args.json.reader(), out)
}
