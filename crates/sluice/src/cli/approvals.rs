//! The arguments of `approvals`.

use super::run::{CommandTarget, Name, WriteData, pair};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List pending approvals, oldest first
    #[command(after_help = "Example:\n  sluice approvals list")]
    List(ApprovalsList),
    /// Show an approval, and the action it is about
    #[command(after_help = "Example:\n  sluice approvals show apr_0198c7d2")]
    Show(ApprovalsShow),
    /// Approve an action
    #[command(after_help = "Example:\n  \
        sluice approvals approve apr_0198c7d2 --set closing_line='See you soon.'")]
    Approve(Approve),
    /// Reject an action, with a reason
    #[command(after_help = "Example:\n  \
        sluice approvals reject apr_0198c7d2 --reason 'too expensive'")]
    Reject(Reject),
    /// Retry the failed step
    #[command(after_help = "Example:\n  sluice approvals retry apr_0198c7d2")]
    Retry(Choose),
    /// Skip the failed step, and continue the run
    #[command(after_help = "Example:\n  sluice approvals skip apr_0198c7d2")]
    Skip(Choose),
    /// Abort the failed step
    #[command(after_help = "Example:\n  sluice approvals abort apr_0198c7d2")]
    Abort(Choose),
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsList {
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsShow {
    #[command(flatten)]
    pub(crate) approval: ApprovalArg,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// Set a value that the approval asks for; it is parsed as its declared type
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Tighten a constraint of the step: `tools_allow=search`, `tools_deny=mail,shell`, `environments=dev`,
    /// `data_access=read_only`, `max_cost_cents=50`, `max_output_tokens=1000`
    #[arg(long, value_name = "FIELD=VALUE", value_parser = pair)]
    pub(crate) tighten: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) choose: Choose,
}

#[derive(Debug, Args)]
pub(crate) struct Reject {
    /// Give the reason for the rejection
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) approval: ApprovalArg,
    #[command(flatten)]
    pub(crate) by: ApproverArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Choose {
    #[command(flatten)]
    pub(crate) approval: ApprovalArg,
    /// Add a comment to the decision
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) by: ApproverArgs,
}

/// The identity of an approver.
#[derive(Debug, Args)]
pub(crate) struct ApproverArgs {
    #[command(flatten)]
    pub(crate) name: Name,
    /// Decide in this role, if the approval names roles; repeatable
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Vec<String>,
    #[command(flatten)]
    pub(crate) data: WriteData,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalArg {
    /// Select an approval by its id or a unique prefix of it
    #[arg(id = "approval", value_name = "ID")]
    pub(crate) id: String,
}
