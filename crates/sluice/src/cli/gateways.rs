//! The words of `gateways check`.

use super::Json;
use clap::Args;
use std::net::SocketAddr;

/// A gateway elsewhere, and how to make it do what a case needs.
#[derive(Debug, Args)]
pub(crate) struct CheckGateway {
    /// Where it is, without the path of the protocol
    #[arg(id = "gateway_url", value_name = "URL")]
    pub(crate) url: String,
    /// What it must be shown: a reference, `env:NAME` or `file:PATH`
    #[arg(long, value_name = "REF")]
    pub(crate) key: String,
    /// What it must show, as a reference; without this anything it shows will do
    #[arg(long, value_name = "REF")]
    pub(crate) token: Option<String>,
    /// Which of its adapters is meant
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: String,
    /// An instruction that is soon done, sent as the step `quick`
    #[arg(long, value_name = "TEXT", default_value = "echo conformance")]
    pub(crate) command: String,
    /// One that takes ten seconds or more, sent as the step `slow`
    #[arg(long, value_name = "TEXT", default_value = "sleep 60")]
    pub(crate) slow: String,
    /// It has the capability `sync`: it answers with results
    #[arg(long)]
    pub(crate) sync: bool,
    /// Where results are taken, on this machine; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) json: Json,
}
