//! The words of what an operator sets up: `apply`, and a noun for each kind of row.

use super::Json;
use super::gateways::CheckGateway;
use super::rows::{By, List, Named, One, Remove, Rows, Show};
use super::run::{Data, Run};
use clap::{Args, Subcommand};
use sluice_core::choice::{Choice, find};
use sluice_govern::registry::Phase;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The setup; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: OsString,
    /// Only show what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove rows that the file does not have; versions of workflows and lenses stay
    #[arg(long)]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    #[command(flatten)]
    Rows(Rows),
    /// Let an agent begin nothing more for now
    #[command(after_help = "Example:\n  sluice agents pause scribe")]
    Pause(One),
    /// Let a paused agent work again
    #[command(after_help = "Example:\n  sluice agents resume scribe")]
    Resume(One),
    /// Put an agent into another phase: poc, staging, production or sunset
    #[command(after_help = "Example:\n  sluice agents promote scribe staging")]
    Promote(Promote),
    /// Let an agent's trial go on for longer
    #[command(after_help = "Example:\n  sluice agents extend scribe 30d")]
    Extend(Extend),
}

#[derive(Debug, Args)]
pub(crate) struct Promote {
    #[command(flatten)]
    pub(crate) row: Named,
    /// The phase
    #[arg(value_name = "PHASE", value_parser = choice::<Phase>)]
    pub(crate) phase: Phase,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct Extend {
    #[command(flatten)]
    pub(crate) row: Named,
    /// By how much: `30d`, `12h`
    #[arg(value_name = "DURATION", value_parser = duration)]
    pub(crate) by_ms: u64,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Gateways {
    #[command(flatten)]
    Rows(Rows),
    /// Send nothing more through a gateway for now, or through any
    #[command(after_help = "Example:\n  sluice gateways pause --all")]
    Pause(Which),
    /// Let a paused gateway work again, or all of them
    #[command(after_help = "Example:\n  sluice gateways resume local")]
    Resume(Which),
    /// Give a gateway a new token, shown once
    #[command(after_help = "Only the token's SHA-256 is kept.\n\nExample:\n  \
        sluice gateways token local")]
    Token(One),
    /// Check that a gateway elsewhere keeps to the protocol; its provider is really asked
    #[command(after_help = "Example:\n  \
        sluice gateways check http://127.0.0.1:7410 --key env:SLUICE_BRIDGE_KEY --provider shell")]
    Check(CheckGateway),
}

/// One gateway, or the switch for everything.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Its name
    #[arg(id = "row", value_name = "NAME", required_unless_present = "all")]
    pub(crate) name: Option<String>,
    /// Everything, whatever gateway it goes through
    #[arg(long, conflicts_with = "row")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Budgets {
    #[command(flatten)]
    Rows(Rows),
    /// Accept what was spent beyond a budget, so that it counts as open again
    #[command(after_help = "Example:\n  sluice budgets reopen everything")]
    Reopen(One),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workflows {
    /// List the versions there are
    #[command(after_help = "Example:\n  sluice workflows list")]
    List(List),
    /// Show a version; without one, the newest
    #[command(after_help = "Example:\n  sluice workflows show credit-check@2")]
    Show(Show),
    /// Start a run of a registered workflow: at the server, or here
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice workflows start credit-check --arg customer=4711 --detach")]
    Start(Box<Start>),
    /// Add a document as a version
    #[command(after_help = "The version is the document's own, else the next number. The same \
        text again is no new version.\n\nExample:\n  \
        sluice workflows put examples/credit-check.lobsterx.yaml")]
    Put(Put),
    /// Remove a version
    #[command(after_help = "Example:\n  sluice workflows remove credit-check@1")]
    Remove(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Do not follow the run; only where a server does the work
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Args)]
pub(crate) struct Put {
    /// Document; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policies {
    /// List the files there are, active and in shadow
    #[command(after_help = "Example:\n  sluice policies list")]
    List(List),
    /// Show a file
    #[command(after_help = "Example:\n  sluice policies show default.cedar")]
    Show(Show),
    /// Remove a file
    #[command(after_help = "Example:\n  sluice policies remove no-mail.cedar")]
    Remove(Remove),
    /// Check policies in files, or those that are stored
    #[command(after_help = "Exit code: 0 when they can be used, 2 when not.\n\nExample:\n  \
        sluice policies check examples/governance/policies")]
    Check(Check),
    /// Try changed policies on what was decided before
    #[command(after_help = "Example:\n  \
        sluice policies test --with examples/governance/policies --since 7d")]
    Test(Test),
    /// Compare two sets: files, directories, `active`, `shadow`
    #[command(after_help = "Example:\n  \
        sluice policies diff active examples/governance/policies --decisions")]
    Diff(Diff),
    /// Put a set in shadow: asked and recorded, never enforced; `off` ends it
    #[command(after_help = "Example:\n  \
        sluice policies shadow examples/governance/policies")]
    Shadow(Shadow),
    /// Write the default policies out where they can be read and changed
    #[command(after_help = "Example:\n  sluice policies init policies")]
    Init(Init),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Files and directories that make up a set; without any, what is stored
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Files and directories that make up the changed set, or `active` or `shadow`
    #[arg(long, value_name = "SET", required = true, num_args = 1..)]
    pub(crate) with: Vec<OsString>,
    #[command(flatten)]
    pub(crate) past: Past,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Which decisions of the past.
#[derive(Debug, Args)]
pub(crate) struct Past {
    /// Only decisions that are no older than this: `7d`, `12h`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<u64>,
    /// Only decisions of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

impl Past {
    pub(crate) fn wanted(&self) -> sluice_server::service::past::Past {
        sluice_server::service::past::Past { since: self.since, run: self.run.clone() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A file, a directory, `active` or `shadow`
    #[arg(value_name = "A")]
    pub(crate) before: OsString,
    /// What it is compared with
    #[arg(value_name = "B")]
    pub(crate) after: OsString,
    /// Also try both on what was decided before
    #[arg(long)]
    pub(crate) decisions: bool,
    #[command(flatten)]
    pub(crate) past: Past,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Shadow {
    /// A directory or a file, or `off`
    #[arg(value_name = "SET")]
    pub(crate) set: OsString,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where to; made if it is not there
    #[arg(value_name = "DIR", default_value = "policies")]
    pub(crate) dir: PathBuf,
}

pub(super) fn duration(text: &str) -> Result<u64, String> {
    sluice_core::duration::parse(text).map_err(|fault| fault.message)
}

pub(super) fn choice<T: Choice>(word: &str) -> Result<T, String> {
    find(word).ok_or_else(|| {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        format!("use one of: {}", words.join(", "))
    })
}
