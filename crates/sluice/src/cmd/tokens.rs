//! `sluice tokens`: the tokens that callers of a server authenticate with.

use crate::Exit;
use crate::amount;
use crate::backend::{self, Identity};
use crate::cli::OutputFormat;
use crate::cli::serve::{CreateToken, ListTokens, RevokeToken, Tokens, WriteOf};
use crate::client::{Client, fields, only_local};
use crate::organisation;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_core::choice::Choice as _;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_server::auth::permission::{Permission, Role};
use sluice_server::refused::Refused;

/// Most tokens that are listed.
const TOKENS_MAX: usize = 10_000;
const ROLE_UNKNOWN: &str = "role_unknown";

pub(super) async fn run(command: &Tokens, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Tokens::List(args) => list(args, out).await,
        Tokens::Create(args) => create(args, out).await,
        Tokens::Revoke(args) => revoke(args, out).await,
    }
}

async fn list(args: &ListTokens, out: &mut Out) -> anyhow::Result<Exit> {
    let client = match backend::server()? {
        Some(client) => for_server(client, &args.of.organisation)?,
        None => {
            let local = organisation::read(&args.of.data, &args.of.organisation).await?;
            let data = organisation::data(&args.of.data, &args.of.organisation);
            backend::in_process(&local, &data, &Identity::default()).await?
        }
    };
    let tokens = client.list(&["tokens"], TOKENS_MAX).await?;
    client.close().await;
    if args.json.output() == OutputFormat::Json {
        out.json(Layout::Line, &json!({"data": tokens, "meta": {"next_cursor": null}}))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TOKEN", "NAME", "ROLES", "EXPIRES", ""]);
    for token in &tokens {
        let word = |name: &str| token[name].as_str().unwrap_or_default().to_owned();
        let ends = amount::ms(&word("expires_at")).map(amount::moment).unwrap_or_default();
        // A token that has expired or lost its parent has no permissions.
        let is_valid = token["permissions"].as_array().is_some_and(|list| !list.is_empty());
        let note = match (is_valid, token["session"] == true) {
            (false, _) => "not valid",
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

/// A server knows the organisation by the token of the caller.
fn for_server(client: Client, organisation: &str) -> Result<Client, Refused> {
    match organisation {
        organisation::DEFAULT => Ok(client),
        _ => Err(only_local("`--organisation`")),
    }
}

async fn write(of: &WriteOf, identity: &Identity<'_>) -> anyhow::Result<Client> {
    if let Some(client) = backend::server_for(&of.data, identity)? {
        return Ok(for_server(client, &of.organisation)?);
    }
    let local = organisation::open(&of.data, &of.organisation).await?;
    let data = organisation::data(&of.data, &of.organisation);
    backend::in_process(&local, &data, identity).await
}

async fn create(args: &CreateToken, out: &mut Out) -> anyhow::Result<Exit> {
    check_words("role", &args.role, Role::NAMES)?;
    check_words("permission", &args.scope, Permission::NAMES)?;
    let identity =
        Identity { break_glass: args.glass.reason.as_deref(), ..Identity::from(&args.name) };
    let client = write(&args.of, &identity).await?;
    let scopes = (!args.scope.is_empty()).then_some(&args.scope);
    let body = fields([
        ("principal", json!(args.principal)),
        ("roles", json!(args.role)),
        ("scopes", json!(scopes)),
        ("groups", json!(args.group)),
        ("expires_in_s", json!(args.expires_in.map(|ms| ms.div_ceil(1000)))),
    ]);
    let made = client.post(&["tokens"], &body).await?.data;
    client.close().await;
    if args.json.output() == OutputFormat::Json {
        out.json(Layout::Line, &made)?;
        return Ok(Exit::Done);
    }
    let word = |name: &str| visible::brief(made[name].as_str().unwrap_or_default()).into_owned();
    out.print(&format!("{}\n", word("token")))?;
    out.note(&format!("{}; the token is not shown again", word("token_id")))?;
    Ok(Exit::Done)
}

fn check_words(what: &str, given: &[String], known: &[&str]) -> Result<(), Refused> {
    let Some(odd) = given.iter().find(|word| !known.contains(&word.as_str())) else {
        return Ok(());
    };
    let message = format!("there is no {what} `{}`", visible::brief(odd));
    let remedy = match suggest(odd, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of: {}", known.join(", ")),
    };
    Err(Refused::new(ROLE_UNKNOWN, message, remedy))
}

async fn revoke(args: &RevokeToken, out: &mut Out) -> anyhow::Result<Exit> {
    let client = write(&args.of, &Identity::from(&args.name)).await?;
    let revoked = client.delete(&["tokens", &args.id]).await?.data;
    client.close().await;
    match args.json.output() {
        OutputFormat::Json => out.json(Layout::Line, &revoked)?,
        OutputFormat::Text => out.print(&format!("- token {}\n", visible::brief(&args.id)))?,
    }
    Ok(Exit::Done)
}
