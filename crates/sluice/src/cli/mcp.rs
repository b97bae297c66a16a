//! The words of `mcp`.

use super::run::{Name, WriteData};
use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Do the work of runs here too, as `sluice serve` does; else they are only noted down
    #[arg(long)]
    pub(crate) work: bool,
    /// Let a script answer for gateways with `provider: mock`, and for steps that name no agent
    #[arg(long, value_name = "FILE", requires = "work")]
    pub(crate) mock: Option<OsString>,
    /// Let steps run commands on this machine
    #[arg(long, requires = "work")]
    pub(crate) shell: bool,
    /// A role to answer in, where a question names roles; several may be named
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Vec<String>,
    #[command(flatten)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) data: WriteData,
}
