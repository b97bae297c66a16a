//! The words of `bridge`.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct Bridge {
    /// Read the bridge from this YAML file, with `gateway`, `server`, `token`, `spool` and `adapters`
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    /// Listen at this address; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7410")]
    pub(crate) listen: String,
    /// Allow an address that is not loopback; put a TLS proxy in front
    #[arg(long)]
    pub(crate) allow_remote: bool,
}
