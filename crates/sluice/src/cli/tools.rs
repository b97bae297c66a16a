//! The words of `tools`.

use super::Json;
use super::run::Data;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools that were seen, and those whose definition changed
    #[command(after_help = "Example:\n  sluice tools list")]
    List(ListTools),
    /// Show what a tool's server says of it, as accepted and as it is now
    #[command(after_help = "Example:\n  sluice tools show files.read_text_file")]
    Show(ShowTool),
    /// Accept the definitions that tools have now
    #[command(
        after_help = "A tool whose description or input schema changed is not offered to models \
        until its new definition is accepted.\n\nExample:\n  sluice tools accept files.read_text_file"
    )]
    Accept(AcceptTools),
}

#[derive(Debug, Args)]
pub(crate) struct ListTools {
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct ShowTool {
    /// Full name of the tool, such as `server.tool`
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) json: Json,
    #[command(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptTools {
    /// Full names of tools; `server.*` stands for all tools of a server
    #[arg(value_name = "TOOL", required = true)]
    pub(crate) tools: Vec<String>,
    #[command(flatten)]
    pub(crate) data: Data,
}
