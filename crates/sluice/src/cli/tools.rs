//! The arguments of `tools`.

use super::run::{CommandTarget, Data};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List known tools, and those whose definition changed
    #[command(after_help = "Example:\n  sluice tools list")]
    List(ListTools),
    /// Show the accepted and the current definition of a tool
    #[command(after_help = "Example:\n  sluice tools show files.read_text_file")]
    Show(ShowTool),
    /// Accept the current definitions of tools
    #[command(
        after_help = "A tool whose description or input schema changed is not offered to models \
        until its new definition is accepted.\n\nExample:\n  sluice tools accept files.read_text_file"
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
