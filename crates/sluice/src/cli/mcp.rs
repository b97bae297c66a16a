//! The arguments of `mcp`.

use super::run::{Name, WriteData};
use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Execute runs in this process, like `sluice serve` [default: only record them]
    #[arg(long)]
    pub(crate) work: bool,
    /// Let a mock script answer for gateways with `provider: mock`, and for steps without an agent
    #[arg(long, value_name = "FILE", requires = "work")]
    pub(crate) mock: Option<OsString>,
    /// Allow steps to run shell commands on this machine
    #[arg(long, requires = "work")]
    pub(crate) shell: bool,
    /// Decide approvals in this role; repeatable
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Vec<String>,
    #[command(flatten)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) data: WriteData,
}
