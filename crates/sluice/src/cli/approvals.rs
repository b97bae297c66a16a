//! The words of `approvals`.

use super::Json;
use super::run::{Data, Name, WriteData, pair};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the questions that wait for an answer, oldest first
    #[command(after_help = "Example:\n  sluice approvals list")]
    List(List),
    /// Show one question and what an answer would do
    #[command(after_help = "Example:\n  sluice approvals show apr_0198c7d2")]
    Show(Show),
    /// Agree
    #[command(after_help = "Example:\n  \
        sluice approvals approve apr_0198c7d2 --set closing_line='See you soon.'")]
    Approve(Approve),
    /// Say no, and why
    #[command(after_help = "Example:\n  \
        sluice approvals reject apr_0198c7d2 --reason 'too expensive'")]
    Reject(Reject),
    /// Let a step that failed be tried again
    #[command(after_help = "Example:\n  sluice approvals retry apr_0198c7d2")]
    Retry(Choose),
    /// Go on without a step that failed
    #[command(after_help = "Example:\n  sluice approvals skip apr_0198c7d2")]
    Skip(Choose),
    /// Give a step that failed up
    #[command(after_help = "Example:\n  sluice approvals abort apr_0198c7d2")]
    Abort(Choose),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) approval: Named,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// A value that is asked for; the text is read as the declared type
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Hold the step to less: `tools_allow=search`, `tools_deny=mail,shell`, `environments=dev`,
    /// `data_access=read_only`, `max_cost_cents=50`, `max_output_tokens=1000`
    #[arg(long, value_name = "FIELD=VALUE", value_parser = pair)]
    pub(crate) tighten: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) choose: Choose,
}

#[derive(Debug, Args)]
pub(crate) struct Reject {
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) approval: Named,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct Choose {
    #[command(flatten)]
    pub(crate) approval: Named,
    /// Something to go with the answer
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
}

/// Who answers, and where.
#[derive(Debug, Args)]
pub(crate) struct By {
    #[command(flatten)]
    pub(crate) name: Name,
    /// A role to answer in, where the question names roles
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Vec<String>,
    #[command(flatten)]
    pub(crate) data: WriteData,
}

/// One question.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The approval; a unique beginning of its id is enough
    #[arg(id = "approval", value_name = "ID")]
    pub(crate) id: String,
}
