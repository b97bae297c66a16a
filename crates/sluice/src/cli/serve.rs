//! The words of `serve`, `tokens` and `organisations`.

use super::Json;
use super::rows::BreakGlass;
use super::run::{Data, Name, WriteData};
use clap::{Args, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; by default what SLUICE_LISTEN says, else 127.0.0.1:7400
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Listen also where others reach it; have something in front that speaks TLS
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Let a script answer for gateways with `provider: mock`, and for steps that name no agent
    #[arg(long, value_name = "FILE")]
    pub(crate) mock: Option<OsString>,
    /// Let steps run commands on this machine
    #[arg(long)]
    pub(crate) shell: bool,
    /// Policies to run under, a file or a directory, instead of the registry's
    #[arg(long, value_name = "PATH")]
    pub(crate) policies: Vec<OsString>,
    /// Who judges what steps with `moderation` are given and say: a word list, or an address; by default what SLUICE_MODERATION says
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
    /// Make a token, shown once
    #[command(after_help = "Example:\n  sluice tokens create ada --role approver --expires-in 90d")]
    Create(Box<CreateToken>),
    /// Revoke a token, and all that were made with it
    #[command(after_help = "Example:\n  sluice tokens revoke tok_0123456789abcdef")]
    Revoke(RevokeToken),
}

/// Whose tokens.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// Of this organisation
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) organisation: String,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// The same for a command that writes.
#[derive(Debug, Args)]
pub(crate) struct WriteOf {
    /// Of this organisation
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
    /// In whose name it acts
    #[arg(value_name = "NAME")]
    pub(crate) principal: String,
    /// viewer, operator, approver or admin; several may be named
    #[arg(long, value_name = "ROLE", required = true)]
    pub(crate) role: Vec<String>,
    /// Only this permission of those roles; several may be named
    #[arg(long, value_name = "PERMISSION")]
    pub(crate) scope: Vec<String>,
    /// A group of approvers, as policies name it; several may be named
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Vec<String>,
    /// How long it counts: `90d`, `12h`; for ever without this
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
    /// The token's id
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
    /// Add an organisation: a store of its own, and a token of an admin
    #[command(after_help = "A server that runs on the same data directory serves it at once.\n\n\
        Example:\n  sluice organisations add acme")]
    Add(AddOrganisation),
}

#[derive(Debug, Args)]
pub(crate) struct ListOrganisations {
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct AddOrganisation {
    /// Its name: small letters, digits, `-`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) json: Json,
}
