//! The words of `bridge`.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct Bridge {
    /// What it does and for whom: a YAML file with `gateway`, `server`, `token`, `spool` and `adapters`
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7410")]
    pub(crate) listen: String,
    /// Listen also where others reach it; have something in front that speaks TLS
    #[arg(long)]
    pub(crate) allow_remote: bool,
}
