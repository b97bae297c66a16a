//! The arguments of `tools`.

use super::run::{CommandTarget, Data};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools with their states and labels
    #[command(after_help = "Example:\n  sluice tools list")]
    List(ListTools),
    /// Show what is declared about a tool, its definition, and what changed in it
    #[command(after_help = "Example:\n  sluice tools show files.read_text_file")]
    Show(ShowTool),
    /// Accept the current definitions of tools
    #[command(
        after_help = "The first listing of a server is accepted as a whole. A tool that appears later, \
        or whose description or input schema changes, cannot be used until its definition is \
        accepted.\n\nExample:\n  sluice tools accept files.read_text_file"
    )]
    Accept(AcceptTools),
}

#[derive(Debug, Args)]
pub(crate) struct ListTools {
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct ShowTool {
    /// Select a tool by its full name, such as `server.tool`
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptTools {
    /// Accept these tools by their full names; `server.*` selects all tools of a server
    #[arg(value_name = "TOOL", required = true)]
    pub(crate) tools: Vec<String>,
    #[command(flatten)]
    pub(crate) data: Data,
}
