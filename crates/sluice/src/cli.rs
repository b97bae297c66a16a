//! The command line's words. What they do is in `cmd`.

pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod bridge;
pub(crate) mod cost;
pub(crate) mod gateways;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod registry;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod tools;

use crate::config::setting::SETTINGS;
use crate::config::{self, Given, Sources};
use approvals::Approvals;
use audit::Audit;
use bridge::Bridge;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use cost::Cost;
use mcp::Mcp;
use registry::{Agents, Apply, Budgets, Gateways, Policies, Workflows};
use rows::Rows;
use run::{Resume, Run};
use runs::Runs;
use schedules::{Lenses, Schedules};
use serve::{Organisations, Serve, Tokens};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use tools::Tools;

/// A governed, durable workflow engine for AI agents.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, arg_required_else_help = true)]
#[command(
    after_help = "A server explains each error code at /api/docs/errors/CODE.\n\nExample:\n  \
    sluice validate examples/vendor-review.lobsterx.yaml"
)]
pub(crate) struct Cli {
    /// Read settings from this file; by default `sluice.toml` here, then in the data directory
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Talk to this server instead of a data directory; by default what SLUICE_URL says
    #[arg(long, value_name = "URL", global = true)]
    url: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// Every word there is, with examples.
pub(crate) fn words() -> clap::Command {
    rows::with_examples(Cli::command())
}

/// What the user asks for.
pub(crate) struct Invocation {
    pub(crate) command: Command,
    /// Where the settings come from.
    pub(crate) sources: Sources,
    /// Who reads the output, and what went wrong.
    pub(crate) reader: Reader,
}

/// Reads the arguments of this process.
pub(crate) fn invocation() -> Result<Invocation, clap::Error> {
    let matches = words().try_get_matches()?;
    let cli = Cli::from_arg_matches(&matches)?;
    let variables = config::variables();
    let named = variables.iter().find(|(name, _)| name == "SLUICE_CONFIG");
    let named = named.and_then(|(_, values)| values.first()).map(PathBuf::from);
    let file = cli.config.or(named);
    let command = cli.command;
    if command.names_stdin() > 1 {
        let message = "standard input can be read only once, but `-` is named twice";
        return Err(Cli::command().error(ErrorKind::ArgumentConflict, message));
    }
    let reader = if writes_json(&matches) { Reader::Program } else { Reader::Person };
    Ok(Invocation { command, sources: Sources { file, flags: flags(&matches), variables }, reader })
}

/// Whether arguments that make no sense ask for JSON.
pub(crate) fn reader_of_usage() -> Reader {
    let mut options = std::env::args_os().skip(1).take_while(|word| word != "--");
    if options.any(|word| word == "--json") { Reader::Program } else { Reader::Person }
}

/// Whether `--json` was given, at any level.
fn writes_json(matches: &ArgMatches) -> bool {
    let given = matches!(matches.try_get_one::<bool>("json"), Ok(Some(true)));
    given || matches.subcommand().is_some_and(|(_, below)| writes_json(below))
}

/// The flags that are settings, as far as they were given.
fn flags(matches: &ArgMatches) -> Given {
    let mut flags = Given::new();
    let mut level = Some(matches);
    while let Some(matches) = level {
        for flag in SETTINGS.iter().filter_map(|setting| setting.flag) {
            let id = flag.replace('-', "_");
            let there = matches.try_contains_id(&id).unwrap_or(false);
            if !there || matches.value_source(&id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = matches.get_raw(&id).into_iter().flatten().map(OsStr::to_owned);
            flags.retain(|(name, _)| name != flag);
            flags.push((flag.to_owned(), values.collect()));
        }
        level = matches.subcommand().map(|(_, below)| below);
    }
    flags
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check workflow documents and report every problem
    #[command(
        after_help = "Exit code: 0 when every document is valid, 2 when one is not.\n\nExample:\n  \
        sluice validate --registry examples/registry.yaml examples/*.lobsterx.yaml"
    )]
    Validate(Validate),
    /// Show what a document becomes: its steps, wave by wave
    #[command(after_help = "Exit code: 0, or 2 when the document is refused.\n\nExample:\n  \
        sluice plan examples/fan-out-join.lobsterx.yaml --format mermaid")]
    Plan(Plan),
    /// Print the schema of a document format or of the HTTP API
    #[command(
        after_help = "Document formats are described in JSON Schema, for editors; the HTTP API in OpenAPI 3.1, \
        for client generators. Needs no server and no data directory.\n\nExample:\n  \
        sluice schema lobsterx > lobsterx.schema.json\n  sluice schema openapi > openapi.json"
    )]
    Schema(Schema),
    /// Evaluate an expression against values
    #[command(
        after_help = "The values are an object: `steps` (id to {outputs, stdout, skipped}), `args`, \
        `variables`, `outputs`, `item`, `index`, `value`; any other key is a variable.\n\n\
        Exit code: 0, 1 when the evaluation fails, 2 when the expression or the values are refused.\n\nExample:\n  \
        echo '{\"steps\": {\"review\": {\"outputs\": {\"score\": 7}}}}' |\n    \
        sluice eval 'review.outputs.score >= 5' --with -"
    )]
    Eval(Eval),
    /// Run a workflow here
    #[command(
        after_help = "Exit code: 0 completed, 1 failed, 2 refused, 3 cancelled, 4 waiting for an \
        approval, 5 timed out.\n\nExample:\n  \
        sluice run examples/vendor-review.lobsterx.yaml --arg vendor='Northwind Paper' \\\n    \
        --mock examples/mocks/vendor-review.yaml"
    )]
    Run(Box<Run>),
    /// Serve the API, and do the work of all runs here
    #[command(after_help = "The first start makes a token of an admin and writes it to \
        `admin.token` in the data directory.\n\nExample:\n  \
        sluice serve --data /var/lib/sluice --listen 127.0.0.1:8484")]
    Serve(Box<Serve>),
    /// Do the work of steps for a server elsewhere, as one of its gateways
    #[command(after_help = "What is under way is remembered in the spool; results are \
        delivered until the server has them.\n\nExample:\n  \
        sluice bridge bridge.yaml --listen 127.0.0.1:7410")]
    Bridge(Bridge),
    /// Let an agent use Sluice through tools, over standard input and output
    #[command(after_help = "Works on a data directory, or with SLUICE_URL and SLUICE_TOKEN \
        through a server.\n\nExample:\n  sluice mcp --data /var/lib/sluice")]
    Mcp(Mcp),
    /// Who may ask for what over the network
    #[command(subcommand, after_help = "Example:\n  sluice tokens list")]
    Tokens(Tokens),
    /// Organisations, each with a store of its own
    #[command(subcommand, after_help = "Example:\n  sluice organisations list")]
    Organisations(Organisations),
    /// Take an unfinished run up here
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice resume run_0198c7d2")]
    Resume(Resume),
    /// Look at runs, and change their course
    #[command(subcommand, after_help = "Example:\n  sluice runs list")]
    Runs(Runs),
    /// Answer questions that runs ask
    #[command(subcommand, after_help = "Example:\n  sluice approvals list")]
    Approvals(Approvals),
    /// See what happened, and prove it
    #[command(subcommand, after_help = "Example:\n  sluice audit verify")]
    Audit(Audit),
    /// Make the registry say what a file says, and show what changes
    #[command(after_help = "Exit code: 0, or 2 when the file is refused.\n\nExample:\n  \
        sluice apply -f examples/governance/config.yaml --dry-run")]
    Apply(Apply),
    /// Who does work
    #[command(subcommand, after_help = "Example:\n  sluice agents list")]
    Agents(Agents),
    /// Where work is done
    #[command(subcommand, after_help = "Example:\n  sluice gateways list")]
    Gateways(Gateways),
    /// Bounds on whoever acts in a role
    #[command(subcommand, after_help = "Example:\n  sluice roles list")]
    Roles(Rows),
    /// Who and where, for one workflow each
    #[command(subcommand, after_help = "Example:\n  sluice deployments list")]
    Deployments(Rows),
    /// Caps on money
    #[command(subcommand, after_help = "Example:\n  sluice budgets list")]
    Budgets(Budgets),
    /// See what work has cost
    #[command(
        after_help = "A step that cost neither money nor tokens is not counted. Weeks begin on \
        Sunday.\n\nExample:\n  sluice cost --by agent --by model --bucket day --since 7d"
    )]
    Cost(Cost),
    /// Texts that memory profiles load
    #[command(subcommand, after_help = "Example:\n  sluice notes list")]
    Notes(Rows),
    /// What steps are told of the past
    #[command(subcommand, after_help = "Example:\n  sluice memories list")]
    Memories(Rows),
    /// Standing instructions of the platform and the owner
    #[command(subcommand, after_help = "Example:\n  sluice instructions list")]
    Instructions(Rows),
    /// What models cost
    #[command(subcommand, after_help = "Example:\n  sluice prices list")]
    Prices(Rows),
    /// Rules about what may be done
    #[command(subcommand, after_help = "Example:\n  sluice policies list")]
    Policies(Policies),
    /// Workflows that can be run by name
    #[command(subcommand, after_help = "Example:\n  sluice workflows list")]
    Workflows(Workflows),
    /// Prompts with contracts that workflows can use by name
    #[command(subcommand, after_help = "Example:\n  sluice lenses list")]
    Lenses(Lenses),
    /// Members that share the steps of workflows
    #[command(subcommand, after_help = "Example:\n  sluice teams list")]
    Teams(Rows),
    /// Workflows that are started by themselves
    #[command(subcommand, after_help = "Example:\n  sluice schedules list")]
    Schedules(Schedules),
    /// Whom events are sent to
    #[command(subcommand, after_help = "Example:\n  sluice webhooks list")]
    Webhooks(Rows),
    /// Doors through which others start runs
    #[command(subcommand, after_help = "Example:\n  sluice hooks list")]
    Hooks(Rows),
    /// Definitions of tools, and which of them are accepted
    #[command(subcommand, after_help = "Example:\n  sluice tools list")]
    Tools(Tools),
    /// Check that everything Sluice needs here is in order
    #[command(
        after_help = "Exit code: 0 when nothing failed, 1 when something did.\n\nExample:\n  \
        sluice doctor --data /var/lib/sluice"
    )]
    Doctor(Doctor),
    /// Copy the stores of all organisations, while others work on them
    #[command(
        after_help = "The first organisation is copied to FILE, the others into the directory \
        `FILE.organisations`. Keys are not copied; the command lists them.\n\nTo restore, put \
        FILE into an empty directory as `sluice.db`, `FILE.organisations` as `organisations`, and \
        the keys where they were.\n\nExample:\n  sluice backup /mnt/elsewhere/monday.db"
    )]
    Backup(Backup),
    /// Move everything of a data directory into a PostgreSQL database that nodes share
    #[command(after_help = "Nothing may work on the directory meanwhile. Begun again, it goes on \
        where it was.\n\nExit code: 0 when everything was moved and compared, 1 when something \
        failed on the way, 2 when it is refused.\n\nExample:\n  \
        sluice migrate --from sqlite:/var/lib/sluice --to env:DATABASE_URL")]
    Migrate(migrate::Migrate),
    /// Settings and where they come from
    #[command(subcommand, after_help = "Example:\n  sluice config show")]
    Config(Config),
    /// Write a script that completes commands in a shell
    #[command(after_help = "Example:\n  \
        sluice completions bash > ~/.local/share/bash-completion/completions/sluice")]
    Completions(Completions),
}

impl Command {
    fn names_stdin(&self) -> usize {
        let stdin = |name: &&OsString| *name == "-";
        match self {
            Command::Validate(args) => {
                args.files.iter().chain(&args.registry.file).filter(stdin).count()
            }
            Command::Plan(args) => {
                [&args.file].into_iter().chain(&args.registry.file).filter(stdin).count()
            }
            Command::Run(args) => {
                let files =
                    [Some(&args.file), args.registry.file.as_ref(), args.here.mock.as_ref()];
                files.into_iter().flatten().filter(stdin).count()
            }
            _ => 0,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Documents to check; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<OsString>,
    #[command(flatten)]
    pub(crate) registry: Registry,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Document to show; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    #[command(flatten)]
    pub(crate) registry: Registry,
    /// How to show it
    #[arg(long, value_enum, default_value_t = Shape::Text)]
    pub(crate) format: Shape,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

impl Plan {
    pub(crate) fn shape(&self) -> Shape {
        if self.json { Shape::Json } else { self.format }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Format to describe
    #[arg(value_name = "FORMAT", value_enum)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The expression
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) expression: String,
    /// JSON or YAML file with the values; `-` is standard input; none without it
    #[arg(long, value_name = "FILE")]
    pub(crate) with: Option<OsString>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) data: run::Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// File for the copy; it must not exist yet
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: run::Data,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every setting, its value, and where that came from
    #[command(after_help = "Secrets are not shown.\n\nExample:\n  sluice config show --json")]
    Show(ConfigShow),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShow {
    #[command(flatten)]
    pub(crate) data: run::Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Registry {
    /// Library steps, workflows and lenses that documents may refer to
    #[arg(id = "registry", long, value_name = "FILE")]
    pub(crate) file: Option<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Write for programs: compact JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Who reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Person,
    Program,
}

impl Json {
    pub(crate) fn reader(&self) -> Reader {
        if self.json { Reader::Program } else { Reader::Person }
    }
}

/// How a plan is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// A table for people
    Text,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz graph
    Dot,
    /// The plan itself, its hash and its waves
    Json,
}

/// What `sluice schema` describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// `.lobsterX`: a list of steps
    Lobsterx,
    /// A lens graph: nodes and edges
    Lens,
    /// A setup: what `sluice apply` takes
    Setup,
    /// The HTTP API of `sluice serve`, in OpenAPI 3.1
    Openapi,
}
