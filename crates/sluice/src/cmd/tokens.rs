//! `sluice tokens`: who may ask for what over the network.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::serve::{CreateToken, ListTokens, Of, RevokeToken, Tokens};
use crate::client::{Client, fields, only_here};
use crate::desk;
use crate::local;
use crate::organisation::{self, make_token};
use crate::out::{Layout, Out};
use crate::table::Table;
use reqwest::Method;
use serde_json::{Value, json};
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::Clock as _;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use sluice_govern::registry::{Kind, Row, Token};
use sluice_server::auth::identities::{Identities, granted};
use sluice_server::auth::permission::{Permission, Permissions, Role};
use sluice_server::refused::{Done, ROW_UNKNOWN, Refused};
use sluice_server::service::registry::{self, Asked, Author, Mode};

/// Most tokens that a server is asked for.
const TOKENS_MAX: usize = 10_000;
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
    let tokens: Vec<Value> = match desk::server()? {
        Some(client) => {
            of_the_token(&args.of.organisation)?;
            client.list(&["tokens"], TOKENS_MAX).await?
        }
        None => here(&args.of).await?,
    };
    if args.json.reader() == Reader::Program {
        out.json(Layout::Line, &json!({"data": tokens, "meta": {"next_cursor": null}}))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TOKEN", "NAME", "ROLES", "EXPIRES", ""]);
    for token in &tokens {
        let word = |name: &str| token[name].as_str().unwrap_or_default().to_owned();
        let ends = amount::ms(&word("expires_at")).map(amount::moment).unwrap_or_default();
        // One that counts no more may do nothing.
        let counts = token["permissions"].as_array().is_some_and(|list| !list.is_empty());
        let note = match (counts, token["session"] == true) {
            (false, _) => "counts no more",
            (true, true) => "session",
            (true, false) => "",
        };
        let roles = token["roles"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let roles = roles.collect::<Vec<_>>().join(", ");
        table.row([word("token_id"), word("principal"), roles, ends, note.to_owned()]);
    }
    out.print(&table.draw())?;
    Ok(Exit::Done)
}

/// A server knows the organisation by the token that asks.
fn of_the_token(organisation: &str) -> Result<(), Refused> {
    if organisation == organisation::DEFAULT { Ok(()) } else { Err(only_here("`--organisation`")) }
}

async fn here(of: &Of) -> anyhow::Result<Vec<Value>> {
    let local = organisation::read(&of.data, &of.organisation).await?;
    let rows = local.store.registry(None).await?;
    local.close().await;
    let all = Identities::read(rows.epoch, &rows.rows);
    let now_ms = SystemClock.now_ms();
    let shown = all.iter().map(|(id, token)| {
        let standing = all.standing(id, now_ms).map(|(_, permissions)| permissions);
        object(id, token, standing.unwrap_or_default())
    });
    Ok(shown.collect())
}

fn object(id: &str, token: &Token, permissions: Permissions) -> Value {
    json!({
        "token_id": id,
        "principal": token.principal,
        "roles": token.roles,
        "permissions": permissions.iter().map(Permission::as_str).collect::<Vec<_>>(),
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
    if let Some(client) = desk::server_for(&args.of.data)? {
        return create_there(&client, args, out).await;
    }
    let local = organisation::open(&args.of.data, &args.of.organisation).await?;
    let who = local::who(&args.name);
    let author = Author { name: &who, break_glass: args.glass.reason.as_deref() };
    let made = make_token(&local, author, about.clone()).await;
    local.close().await;
    let (id, secret) = made?;
    let mut shown = object(&id, &about, granted(&about));
    shown["token"] = secret.into();
    told(&shown, args, out)
}

async fn create_there(client: &Client, args: &CreateToken, out: &mut Out) -> anyhow::Result<Exit> {
    of_the_token(&args.of.organisation)?;
    desk::by_token(&args.name)?;
    desk::without_glass(&args.glass)?;
    let scopes = (!args.scope.is_empty()).then_some(&args.scope);
    let body = fields([
        ("principal", json!(args.principal)),
        ("roles", json!(args.role)),
        ("scopes", json!(scopes)),
        ("groups", json!(args.group)),
        ("expires_in_s", json!(args.expires_in.map(|ms| ms.div_ceil(1000)))),
    ]);
    let made = client.post(&["tokens"], &body).await?.data;
    told(&made, args, out)
}

/// A token that was just made; its secret is shown this once.
fn told(made: &Value, args: &CreateToken, out: &mut Out) -> anyhow::Result<Exit> {
    if args.json.reader() == Reader::Program {
        out.json(Layout::Line, made)?;
        return Ok(Exit::Done);
    }
    let word = |name: &str| visible::brief(made[name].as_str().unwrap_or_default()).into_owned();
    out.print(&format!("{}\n", word("token")))?;
    out.note(&format!("{}; it is not shown again", word("token_id")))?;
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
    if let Some(client) = desk::server_for(&args.of.data)? {
        of_the_token(&args.of.organisation)?;
        desk::by_token(&args.name)?;
        let gone = client.send(Method::DELETE, &["tokens", &args.id], &json!({})).await?.data;
        if args.json.reader() == Reader::Program {
            out.json(Layout::Line, &gone)?;
        } else {
            out.print(&format!("- token {}\n", visible::brief(&args.id)))?;
        }
        return Ok(Exit::Done);
    }
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
