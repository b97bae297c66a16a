//! The words of `runs`.

use super::Json;
use super::run::{Data, Given, Here, Name, View, WriteData, pair};
use clap::{Args, Subcommand, ValueEnum};
use sluice_core::choice::{Choice, find};
use sluice_core::run::status::RunStatus;

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first
    #[command(after_help = "Example:\n  sluice runs list --status paused --status running")]
    List(List),
    /// Show a run: its steps, questions and checkpoints; or one of its steps
    #[command(
        after_help = "With STEP: its inputs, prompt, answer, outputs, attempts, logs and cost.\n\n\
        Example:\n  sluice runs show run_0198c7d2\n  sluice runs show run_0198c7d2 write_offer"
    )]
    Show(Show),
    /// Print the lines that a run's steps logged
    #[command(
        after_help = "A shell step logs what it writes to standard error; calls of tools are logged \
        too. `sluice runs show RUN STEP` shows what a step answered.\n\nExample:\n  \
        sluice runs logs run_0198c7d2 --follow\n  sluice runs logs run_0198c7d2 build"
    )]
    Logs(Logs),
    /// Follow a run until it ends, whoever works on it
    #[command(after_help = "Exit code: as of `sluice run`, by how the run ended.\n\nExample:\n  \
        sluice runs watch run_0198c7d2 --events")]
    Watch(Watch),
    /// Stop a run for good
    #[command(after_help = "Example:\n  sluice runs cancel run_0198c7d2 --reason 'wrong vendor'")]
    Cancel(Cancel),
    /// Start nothing more in a run for now
    #[command(after_help = "Example:\n  sluice runs pause run_0198c7d2")]
    Pause(Told),
    /// Let a paused run go on
    #[command(after_help = "Example:\n  sluice runs unpause run_0198c7d2")]
    Unpause(Told),
    /// Take a failed run up again: its failed steps and all that depend on them
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs retry run_0198c7d2")]
    Retry(Retry),
    /// Start a new run that takes over what another did, and does some steps again
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs restart run_0198c7d2 --from write_offer")]
    Restart(Restart),
    /// Go back to a checkpoint in the same run; what came later is done again
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs rewind run_0198c7d2 --to 3")]
    Rewind(Rewind),
    /// Start a new run from a checkpoint of another, with changed arguments or outputs
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice runs branch run_0198c7d2 --at 2 --set assess_risk.risk_score=90")]
    Branch(Branch),
    /// Show where values came from and where they went, also from run to run
    #[command(after_help = "Example:\n  \
        sluice runs provenance run_0198c7d2 --step write_offer --direction up")]
    Provenance(Provenance),
    /// Print everything there is about a run as one JSON object
    #[command(after_help = "Example:\n  sluice runs export run_0198c7d2 --json > run.json")]
    Export(Export),
    /// Choose who does a step that no member of the team fits
    #[command(after_help = "Example:\n  sluice runs assign run_0198c7d2 trace iris")]
    Assign(Assign),
    /// Erase what a run that ended was given and answered; its hashes and figures stay
    #[command(after_help = "Without `--event`, all of it. The audit says who did it and why, and \
        `sluice audit verify` still finds nothing wrong.\n\nExample:\n  \
        sluice runs erase run_0198c7d2 --reason 'the customer asked'")]
    Erase(Erase),
    /// Drop what steps said on the way to their answers, of runs that ended
    #[command(
        after_help = "The answers stay. The audit says which events went, and `sluice audit \
        verify` still finds nothing wrong.\n\nExample:\n  \
        sluice runs elide --older-than 30d\n  sluice runs elide run_0198c7d2"
    )]
    Elide(Elide),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only runs in this status; several may be named
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub(crate) status: Vec<RunStatus>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// Most runs to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Only runs older than this one: the `next_cursor` of the page before
    #[arg(long, value_name = "RUN")]
    pub(crate) before: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) run: Named,
    /// Show only this step, with everything about it; `STEP[0]` names an instance of `for_each`
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) run: Named,
    /// Print only the lines of this step and its instances
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// Print new lines as they come, until the run ends
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) run: Named,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) view: View,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Why, for the journal
    #[arg(long, value_name = "TEXT", default_value = "cancelled at the command line")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) told: Told,
}

#[derive(Debug, Args)]
pub(crate) struct Assign {
    #[command(flatten)]
    pub(crate) told: Told,
    /// The step
    #[arg(value_name = "STEP")]
    pub(crate) step: String,
    /// A member of the team, or an agent
    #[arg(value_name = "MEMBER")]
    pub(crate) whom: String,
}

#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// Only this event; several may be named
    #[arg(long, value_name = "N")]
    pub(crate) event: Vec<u64>,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) told: Told,
}

#[derive(Debug, Args)]
#[group(id = "elided", required = true, multiple = true, args = ["one", "older_than"])]
pub(crate) struct Elide {
    /// The run; a unique beginning of its id is enough. Without it, all that are old enough
    #[arg(id = "one", value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Only runs that ended so long ago
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) older_than: Option<u64>,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT", default_value = "elided at the command line")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) name: Name,
}

/// A run that is told something.
#[derive(Debug, Args)]
pub(crate) struct Told {
    #[command(flatten)]
    pub(crate) run: Named,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) name: Name,
}

#[derive(Debug, Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub(crate) run: Named,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    #[command(flatten)]
    pub(crate) run: Named,
    /// A step to do again, with all that depends on it; without it, the failed ones
    #[arg(long, value_name = "STEP")]
    pub(crate) from: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Rewind {
    #[command(flatten)]
    pub(crate) run: Named,
    /// The number of the checkpoint, as `runs show` lists them; 0 is the beginning
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) to: usize,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Branch {
    #[command(flatten)]
    pub(crate) run: Named,
    /// The number of the checkpoint, as `runs show` lists them; 0 is the beginning
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) at: usize,
    #[command(flatten)]
    pub(crate) given: Given,
    /// An output that a step is taken to have had
    #[arg(long, value_name = "STEP.OUTPUT=JSON", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Here, or noted down for another process.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Only note it down: whoever takes the run up does the work
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) here: Here,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) run: Named,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Provenance {
    #[command(flatten)]
    pub(crate) run: Named,
    /// Only what has to do with this step
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// Which way values are followed
    #[arg(long, value_enum, default_value_t = Way::Both)]
    pub(crate) direction: Way,
    /// How it is shown
    #[arg(long, value_enum, default_value_t = Shape::Table)]
    pub(crate) format: Shape,
    /// Over how many other runs values are followed
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) hops: u8,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Which way values are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// To where they came from
    Up,
    /// To where they went
    Down,
    /// Both
    Both,
}

/// How crossings are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// A table for people
    Table,
    /// One JSON object
    Json,
    /// A Mermaid flowchart
    Mermaid,
}

/// One run.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The run; a unique beginning of its id is enough
    #[arg(id = "run", value_name = "RUN")]
    pub(crate) id: String,
}

fn status(word: &str) -> Result<RunStatus, String> {
    find::<RunStatus>(word).ok_or_else(|| {
        let words: Vec<&str> = RunStatus::WORDS.iter().map(|(word, _)| *word).collect();
        format!("there is {}", words.join(", "))
    })
}

fn duration(text: &str) -> Result<u64, String> {
    sluice_core::duration::parse(text).map_err(|fault| fault.message)
}
