//! The arguments of `runs`.

use super::run::{CommandTarget, Data, Name, RunInputs, View, WorkOptions, WriteData, pair};
use clap::{Args, Subcommand, ValueEnum};
use sluice_core::choice::{Choice, find};
use sluice_core::status::RunStatus;

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first
    #[command(after_help = "Example:\n  sluice runs list --status paused --status running")]
    List(RunsList),
    /// Show a run: its steps, approvals and checkpoints; or one of its steps
    #[command(
        after_help = "With STEP: the step's inputs, prompt, answer, outputs, attempts, logs and cost.\n\n\
        Example:\n  sluice runs show run_0198c7d2\n  sluice runs show run_0198c7d2 write_offer"
    )]
    Show(RunsShow),
    /// Print the log lines of a run's steps
    #[command(after_help = "A shell step logs its standard error; tool calls are logged \
        too. `sluice runs show RUN STEP` shows the answer of a step.\n\nExample:\n  \
        sluice runs logs run_0198c7d2 --follow\n  sluice runs logs run_0198c7d2 build")]
    Logs(Logs),
    /// Follow a run in any process until it ends
    #[command(after_help = "Exit code: as of `sluice run`, by how the run ended.\n\nExample:\n  \
        sluice runs watch run_0198c7d2 --events")]
    Watch(Watch),
    /// Cancel a run
    #[command(after_help = "Example:\n  sluice runs cancel run_0198c7d2 --reason 'wrong vendor'")]
    Cancel(Cancel),
    /// Pause a run: no further step starts
    #[command(after_help = "Example:\n  sluice runs pause run_0198c7d2")]
    Pause(RunCommandArgs),
    /// Resume a paused run
    #[command(after_help = "Example:\n  sluice runs unpause run_0198c7d2")]
    Unpause(RunCommandArgs),
    /// Retry a failed run: its failed steps and all that depend on them
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs retry run_0198c7d2")]
    Retry(Retry),
    /// Start a new run that reuses the results of another, and repeats some steps
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs restart run_0198c7d2 --from write_offer")]
    Restart(Restart),
    /// Rewind a run to a checkpoint; later steps are repeated
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs rewind run_0198c7d2 --to 3")]
    Rewind(Rewind),
    /// Start a new run from a checkpoint, with changed arguments or outputs
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs branch run_0198c7d2 --at 2 --set assess_risk.risk_score=90")]
    Branch(Branch),
    /// Trace the sources and consumers of values, also across runs
    #[command(after_help = "Example:\n  \
        sluice runs provenance run_0198c7d2 --step write_offer --direction up")]
    Provenance(Provenance),
    /// Print everything about a run as one JSON object
    #[command(after_help = "Example:\n  sluice runs export run_0198c7d2 --json > run.json")]
    Export(Export),
    /// Assign a member to a step that no member of the team fits
    #[command(after_help = "Example:\n  sluice runs assign run_0198c7d2 trace iris")]
    Assign(Assign),
    /// Erase the inputs and outputs of an ended run; its hashes and figures stay
    #[command(after_help = "The audit log records the principal and the reason, and \
        `sluice audit verify` still succeeds.\n\nExample:\n  \
        sluice runs erase run_0198c7d2 --reason 'the customer asked'")]
    Erase(Erase),
    /// Drop the streamed partial answers of ended runs
    #[command(
        after_help = "The final answers stay. The audit log records the events, and `sluice audit \
        verify` still succeeds.\n\nExample:\n  \
        sluice runs elide --older-than 30d\n  sluice runs elide run_0198c7d2"
    )]
    Elide(Elide),
}

#[derive(Debug, Args)]
pub(crate) struct RunsList {
    /// List only runs in this status; repeatable
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub(crate) status: Vec<RunStatus>,
    /// List only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// List at most N runs
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// List only runs older than this one, the `next_cursor` of the previous page
    #[arg(long, value_name = "RUN")]
    pub(crate) before: Option<String>,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct RunsShow {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Show only this step; `STEP[0]` selects an instance of `for_each`
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Print only the lines of this step and its instances
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// Print new lines until the run ends
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) run: RunArg,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) view: View,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Record this reason in the journal
    #[arg(long, value_name = "TEXT", default_value = "cancelled at the command line")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) command: RunCommandArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Assign {
    #[command(flatten)]
    pub(crate) command: RunCommandArgs,
    /// Select the step
    #[arg(value_name = "STEP")]
    pub(crate) step: String,
    /// Assign this member of the team, or this agent
    #[arg(value_name = "MEMBER")]
    pub(crate) whom: String,
}

#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// Erase only this event; repeatable [default: all events]
    #[arg(long, value_name = "N")]
    pub(crate) event: Vec<u64>,
    /// Record this reason in the audit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) command: RunCommandArgs,
}

#[derive(Debug, Args)]
#[group(id = "elided", required = true, multiple = true, args = ["one", "older_than"])]
pub(crate) struct Elide {
    /// Select a run by its id or a unique prefix of it [default: all runs that `--older-than` selects]
    #[arg(id = "one", value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Select only runs that ended at least this long ago
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) older_than: Option<u64>,
    /// Record this reason in the audit log
    #[arg(long, value_name = "TEXT", default_value = "elided at the command line")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) name: Name,
}

/// A command to a run.
#[derive(Debug, Args)]
pub(crate) struct RunCommandArgs {
    #[command(flatten)]
    pub(crate) run: RunArg,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) name: Name,
}

#[derive(Debug, Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub(crate) run: RunArg,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Repeat this step and all that depend on it [default: the failed steps]; repeatable
    #[arg(long, value_name = "STEP")]
    pub(crate) from: Vec<String>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Rewind {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Select a checkpoint by its number in `runs show`; 0 is the beginning
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) to: usize,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Branch {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Select a checkpoint by its number in `runs show`; 0 is the beginning
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) at: usize,
    #[command(flatten)]
    pub(crate) inputs: RunInputs,
    /// Override an output of a step: `STEP.OUTPUT=JSON`; repeatable
    #[arg(long, value_name = "STEP.OUTPUT=JSON", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// Options of a command that starts or reopens a run.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// Record the request without executing it; the next `sluice resume` or server executes it
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) options: WorkOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) run: RunArg,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Provenance {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Show only values of this step
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// Choose the direction of the trace
    #[arg(long, value_enum, default_value_t = TraceDirection::Both)]
    pub(crate) direction: TraceDirection,
    /// Choose the output format
    #[arg(long, value_enum, default_value_t = TraceFormat::Table)]
    pub(crate) format: TraceFormat,
    /// Follow values across at most N other runs
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) hops: u8,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

/// The direction of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceDirection {
    /// Sources of values
    Up,
    /// Consumers of values
    Down,
    /// Sources and consumers
    Both,
}

/// How a trace is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// A table for people
    Table,
    /// One JSON object
    Json,
    /// A Mermaid flowchart
    Mermaid,
}

#[derive(Debug, Args)]
pub(crate) struct RunArg {
    /// Select a run by its id or a unique prefix of it
    #[arg(id = "run", value_name = "RUN")]
    pub(crate) id: String,
}

fn status(word: &str) -> Result<RunStatus, String> {
    find(word).ok_or_else(|| format!("expected one of: {}", RunStatus::NAMES.join(", ")))
}

fn duration(text: &str) -> Result<u64, String> {
    sluice_core::duration::parse(text).map_err(|fault| fault.message)
}
