//! The arguments of `apply`, and of the commands for each kind of row.

use super::gateways::CheckGateway;
use super::rows::{ChangeArgs, ChangeRow, RemoveRow, RowArg, RowCommand, RowsList, RowsShow};
use super::run::{CommandTarget, Run};
use super::runs::RunArg;
use clap::{Args, Subcommand};
use sluice_core::choice::{Choice, find};
use sluice_govern::registry::Phase;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// Apply this setup file; `-` reads standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: OsString,
    /// Show the changes without applying them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove rows that the file does not name; versions of workflows and lenses stay
    #[arg(long)]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    #[command(flatten)]
    RowCommand(RowCommand),
    /// Pause an agent: it starts no further step
    #[command(after_help = "Example:\n  sluice agents pause scribe")]
    Pause(ChangeRow),
    /// Resume a paused agent
    #[command(after_help = "Example:\n  sluice agents resume scribe")]
    Resume(ChangeRow),
    /// Move an agent to a phase: poc, staging, production or sunset
    #[command(after_help = "Example:\n  sluice agents promote scribe staging")]
    Promote(Promote),
    /// Extend an agent's trial
    #[command(after_help = "Example:\n  sluice agents extend scribe 30d")]
    Extend(Extend),
}

#[derive(Debug, Args)]
pub(crate) struct Promote {
    #[command(flatten)]
    pub(crate) row: RowArg,
    /// Select the phase
    #[arg(value_name = "PHASE", value_parser = choice::<Phase>)]
    pub(crate) phase: Phase,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Extend {
    #[command(flatten)]
    pub(crate) row: RowArg,
    /// Extend by this much: `30d`, `12h`
    #[arg(value_name = "DURATION", value_parser = duration)]
    pub(crate) by_ms: u64,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Gateways {
    #[command(flatten)]
    RowCommand(RowCommand),
    /// Pause a gateway, or all of them: nothing more is sent
    #[command(after_help = "Example:\n  sluice gateways pause --all")]
    Pause(Which),
    /// Resume a paused gateway, or all of them
    #[command(after_help = "Example:\n  sluice gateways resume local")]
    Resume(Which),
    /// Create a new token for a gateway, shown once
    #[command(after_help = "Only the SHA-256 of the token is stored.\n\nExample:\n  \
        sluice gateways token local")]
    Token(ChangeRow),
    /// Check that a remote gateway follows the protocol; its provider is called
    #[command(after_help = "Example:\n  \
        sluice gateways check http://127.0.0.1:7410 --key env:SLUICE_BRIDGE_KEY --provider shell")]
    Check(CheckGateway),
}

/// One gateway, or the switch for all of them.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Select a gateway by its name
    #[arg(id = "row", value_name = "NAME", required_unless_present = "all")]
    pub(crate) name: Option<String>,
    /// Select all gateways
    #[arg(long, conflicts_with = "row")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Budgets {
    #[command(flatten)]
    RowCommand(RowCommand),
    /// Accept the overrun of a budget, and reopen it
    #[command(after_help = "Example:\n  sluice budgets reopen everything")]
    Reopen(ChangeRow),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workflows {
    /// List all versions of workflows
    #[command(after_help = "Example:\n  sluice workflows list")]
    List(RowsList),
    /// Show a version of a workflow [default: the newest]
    #[command(after_help = "Example:\n  sluice workflows show credit-check@2")]
    Show(RowsShow),
    /// Start a run of a registered workflow, at the server or in this process
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice workflows start credit-check --arg customer=4711 --detach")]
    Start(Box<Start>),
    /// Register a document as a version of a workflow
    #[command(
        after_help = "The version is the one that the document declares, else the next number. \
        An unchanged text makes no new version.\n\nExample:\n  \
        sluice workflows put examples/credit-check.lobsterx.yaml"
    )]
    Put(Put),
    /// Remove a version of a workflow
    #[command(after_help = "Example:\n  sluice workflows remove credit-check@1")]
    Remove(RemoveRow),
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Return without following the run; needs a server
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Args)]
pub(crate) struct Put {
    /// Register this document; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policies {
    /// List the policy files, active and in shadow
    #[command(after_help = "Example:\n  sluice policies list")]
    List(RowsList),
    /// Show a policy file
    #[command(after_help = "Example:\n  sluice policies show default.cedar")]
    Show(RowsShow),
    /// Remove a policy file
    #[command(after_help = "Example:\n  sluice policies remove no-mail.cedar")]
    Remove(RemoveRow),
    /// Check policies in files, or the stored ones
    #[command(after_help = "Exit code: 0 when they are valid, 2 when not.\n\nExample:\n  \
        sluice policies check examples/governance/policies")]
    Check(CheckPolicies),
    /// Test changed policies against past decisions
    #[command(after_help = "Example:\n  \
        sluice policies test --with examples/governance/policies --since 7d")]
    Test(Test),
    /// Compare two policy sets: files, directories, `active`, `shadow`
    #[command(after_help = "Example:\n  \
        sluice policies diff active examples/governance/policies --decisions")]
    Diff(Diff),
    /// Explain the decisions about a step: which policies matched, and on which values
    #[command(after_help = "Examples:\n  sluice policies explain run_0198c7d2 refund\n  \
        sluice policies explain run_0198c7d2 refund --call 2")]
    Explain(Explain),
    /// Evaluate a policy set in shadow: recorded, never enforced; `off` ends it
    #[command(after_help = "Example:\n  \
        sluice policies shadow examples/governance/policies")]
    Shadow(Shadow),
    /// Write the default policies to a directory, to be edited
    #[command(after_help = "Example:\n  sluice policies init policies")]
    Init(Init),
}

#[derive(Debug, Args)]
pub(crate) struct CheckPolicies {
    /// Check these files and directories as one set [default: the stored policies]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Test this set: files and directories, or `active` or `shadow`
    #[arg(long, value_name = "SET", required = true, num_args = 1..)]
    pub(crate) with: Vec<OsString>,
    #[command(flatten)]
    pub(crate) past: Past,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

/// A selection of past decisions.
#[derive(Debug, Args)]
pub(crate) struct Past {
    /// Select decisions of the last: `7d`, `12h`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<u64>,
    /// Select decisions of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Compare this set: a file, a directory, `active` or `shadow`
    #[arg(value_name = "A")]
    pub(crate) before: OsString,
    /// Compare with this set
    #[arg(value_name = "B")]
    pub(crate) after: OsString,
    /// Also test both sets against past decisions
    #[arg(long)]
    pub(crate) decisions: bool,
    #[command(flatten)]
    pub(crate) past: Past,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Explain the decisions about this step; `STEP[0]` selects an instance of `for_each`
    #[arg(value_name = "STEP")]
    pub(crate) step: String,
    /// Explain only this tool call, counted from 1
    #[arg(long, value_name = "N", conflicts_with = "attempt")]
    pub(crate) call: Option<u64>,
    /// Explain only the decisions of this attempt, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u64>,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Shadow {
    /// Evaluate this directory or file, or `off`
    #[arg(value_name = "SET")]
    pub(crate) set: OsString,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Write to this directory, which is created if needed
    #[arg(value_name = "DIR", default_value = "policies")]
    pub(crate) dir: PathBuf,
}

pub(super) fn duration(text: &str) -> Result<u64, String> {
    sluice_core::duration::parse(text).map_err(|fault| fault.message)
}

pub(super) fn choice<T: Choice>(word: &str) -> Result<T, String> {
    find(word).ok_or_else(|| format!("use one of: {}", T::NAMES.join(", ")))
}
