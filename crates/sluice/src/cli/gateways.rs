//! The arguments of `gateways check`.

use super::Json;
use clap::Args;
use std::net::SocketAddr;

/// A remote gateway, and the commands that the checks send to it.
#[derive(Debug, Args)]
pub(crate) struct CheckGateway {
    /// Check the gateway at this URL, without the path of the protocol
    #[arg(id = "gateway_url", value_name = "URL")]
    pub(crate) url: String,
    /// Send this key to the gateway: `env:NAME` or `file:PATH`
    #[arg(long, value_name = "REF")]
    pub(crate) key: String,
    /// Expect this token from the gateway: `env:NAME` or `file:PATH` [default: any token]
    #[arg(long, value_name = "REF")]
    pub(crate) token: Option<String>,
    /// Check this adapter of the gateway
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: String,
    /// Send this command, which ends quickly, as the step `quick`
    #[arg(long, value_name = "TEXT", default_value = "echo conformance")]
    pub(crate) command: String,
    /// Send this command, which takes ten seconds or more, as the step `slow`
    #[arg(long, value_name = "TEXT", default_value = "sleep 60")]
    pub(crate) slow: String,
    /// Expect the capability `sync`: results in the response
    #[arg(long)]
    pub(crate) sync: bool,
    /// Receive results at this local address; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) json: Json,
}
