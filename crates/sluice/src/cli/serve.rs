//! The arguments of `serve`, `tokens` and `organisations`.

use super::Json;
use super::rows::BreakGlass;
use super::run::{CommandTarget, Data, Name, WriteData};
use clap::{Args, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Listen at this address [env: SLUICE_LISTEN] [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Allow an address that is not loopback; put a TLS proxy in front
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Let a mock script answer for gateways with `provider: mock`, and for steps without an agent
    #[arg(long, value_name = "FILE")]
    pub(crate) mock: Option<OsString>,
    /// Allow steps to run shell commands on this machine
    #[arg(long)]
    pub(crate) shell: bool,
    /// Use the policies in this file or directory instead of the registered ones
    #[arg(long, value_name = "PATH")]
    pub(crate) policies: Vec<OsString>,
    /// Moderate steps with `moderation` by this word list or URL [env: SLUICE_MODERATION]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) moderation: Option<OsString>,
    /// Send cookies over TLS only
    #[arg(long)]
    pub(crate) secure_cookies: bool,
    #[command(flatten)]
    pub(crate) data: WriteData,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// List tokens and sessions
    #[command(after_help = "Example:\n  sluice tokens list")]
    List(ListTokens),
    /// Create a token, shown once
    #[command(after_help = "Example:\n  sluice tokens create ada --role approver --expires-in 90d")]
    Create(Box<CreateToken>),
    /// Revoke a token, and all tokens created with it
    #[command(after_help = "Example:\n  sluice tokens revoke tok_0123456789abcdef")]
    Revoke(RevokeToken),
}

/// The organisation of tokens.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// Use this organisation
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) organisation: String,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// [`Of`] for a command that writes.
#[derive(Debug, Args)]
pub(crate) struct WriteOf {
    /// Use this organisation
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) organisation: String,
    #[command(flatten)]
    pub(crate) data: WriteData,
}

#[derive(Debug, Args)]
pub(crate) struct ListTokens {
    #[command(flatten)]
    pub(crate) of: Of,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct CreateToken {
    /// Name the principal that the token acts as
    #[arg(value_name = "NAME")]
    pub(crate) principal: String,
    /// Grant this role: viewer, operator, approver or admin; repeatable
    #[arg(long, value_name = "ROLE", required = true)]
    pub(crate) role: Vec<String>,
    /// Restrict the token to this permission of its roles; repeatable
    #[arg(long, value_name = "PERMISSION")]
    pub(crate) scope: Vec<String>,
    /// Add the token to this group of approvers, as policies name it; repeatable
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Vec<String>,
    /// Expire after this long: `90d`, `12h` [default: never]
    #[arg(long, value_name = "DURATION", value_parser = super::registry::duration)]
    pub(crate) expires_in: Option<u64>,
    #[command(flatten)]
    pub(crate) of: WriteOf,
    #[command(flatten)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) glass: BreakGlass,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeToken {
    /// Select a token by its id
    #[arg(value_name = "TOKEN")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) of: WriteOf,
    #[command(flatten)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Organisations {
    /// List organisations
    #[command(after_help = "Example:\n  sluice organisations list")]
    List(ListOrganisations),
    /// Add an organisation, with its own store and an admin token
    #[command(after_help = "A server on the same data directory serves it at once.\n\n\
        Example:\n  sluice organisations add acme")]
    Add(AddOrganisation),
}

#[derive(Debug, Args)]
pub(crate) struct ListOrganisations {
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct AddOrganisation {
    /// Name the organisation: lower-case letters, digits, `-`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) json: Json,
}
