//! The commands and flags of the command line. What they do is in `cmd`.

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
use crate::config::{self, FlagValues, Sources};
use approvals::Approvals;
use audit::Audit;
use bridge::Bridge;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use cost::Cost;
use mcp::Mcp;
use registry::{Agents, Apply, Budgets, Gateways, Policies, Workflows};
use rows::RowCommand;
use run::{Resume, Run};
use runs::Runs;
use schedules::{Lenses, Schedules};
use serve::{Organisations, Serve, Tokens};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use tools::Tools;

/// The heading of flags that every command has.
const GLOBAL: &str = "Global options";
/// The heading of flags that select a store.
const STORAGE: &str = "Storage options";

/// The commands in the order in which help lists them.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Author workflows",
        &[
            "validate",
            "plan",
            "schema",
            "eval",
            "workflows",
            "lenses",
            "teams",
            "instructions",
            "notes",
            "memories",
        ],
    ),
    ("Run", &["run", "resume", "runs", "schedules", "hooks"]),
    ("Decide", &["approvals"]),
    (
        "Govern",
        &[
            "apply",
            "agents",
            "gateways",
            "roles",
            "deployments",
            "policies",
            "budgets",
            "prices",
            "cost",
            "audit",
        ],
    ),
    (
        "Operate",
        &[
            "serve",
            "tokens",
            "organisations",
            "doctor",
            "backup",
            "migrate",
            "config",
            "completions",
        ],
    ),
    ("Extend", &["bridge", "mcp", "tools", "webhooks"]),
];

/// Lists commands by group in the help of the program, which clap cannot do.
fn grouped(command: clap::Command) -> clap::Command {
    let heading = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut list = String::new();
    for (group, names) in GROUPS {
        list.push_str(&format!("{heading}{group}:{heading:#}\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            list.push_str(&format!("  {literal}{name:width$}{literal:#}  {about}\n"));
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\
         {heading}Options:{heading:#}\n{{options}}{{after-help}}"
    ))
}

/// A governed, durable workflow engine for AI agents.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, arg_required_else_help = true)]
#[command(
    after_help = "A server explains each error code at /api/docs/errors/CODE.\n\nExample:\n  \
    sluice validate examples/vendor-review.lobsterx.yaml"
)]
pub(crate) struct Cli {
    /// Read settings from this file [default: `sluice.toml` in this directory, then in the data directory]
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    config: Option<PathBuf>,
    /// Call this server instead of opening a data directory [env: SLUICE_URL]
    #[arg(long, value_name = "URL", global = true, help_heading = GLOBAL)]
    url: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// All commands, with examples, in groups.
pub(crate) fn command() -> clap::Command {
    grouped(rows::with_examples(Cli::command()))
}

/// The parsed arguments of this process.
pub(crate) struct Invocation {
    pub(crate) command: Command,
    pub(crate) sources: Sources,
    /// How output and errors are printed.
    pub(crate) output: OutputFormat,
}

/// Parses the arguments of this process.
pub(crate) fn invocation() -> Result<Invocation, clap::Error> {
    let matches = command().try_get_matches()?;
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
    let output = if writes_json(&matches) { OutputFormat::Json } else { OutputFormat::Text };
    Ok(Invocation { command, sources: Sources { file, flags: flags(&matches), variables }, output })
}

/// The output format of arguments that cannot be parsed.
pub(crate) fn output_of_usage() -> OutputFormat {
    let mut options = std::env::args_os().skip(1).take_while(|word| word != "--");
    if options.any(|word| word == "--json") { OutputFormat::Json } else { OutputFormat::Text }
}

/// Whether `--json` was given, at any level of subcommands.
fn writes_json(matches: &ArgMatches) -> bool {
    let given = matches!(matches.try_get_one::<bool>("json"), Ok(Some(true)));
    given || matches.subcommand().is_some_and(|(_, below)| writes_json(below))
}

/// The flags that are settings and were given.
fn flags(matches: &ArgMatches) -> FlagValues {
    let mut flags = FlagValues::new();
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
    /// Show the plan of a document: its steps, wave by wave
    #[command(after_help = "Exit code: 0, or 2 when the document is refused.\n\nExample:\n  \
        sluice plan examples/fan-out-join.lobsterx.yaml --format mermaid")]
    Plan(Plan),
    /// Print the schema of a document format, of the HTTP API or of policies
    #[command(
        after_help = "Document formats are described in JSON Schema, for editors; the HTTP API in OpenAPI 3.1, \
        for client generators; policies in Cedar, with the names of the tools that this machine knows. \
        Needs no server.\n\nExample:\n  \
        sluice schema lobsterx > lobsterx.schema.json\n  sluice schema openapi > openapi.json\n  \
        sluice schema policies --tool mail.send"
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
    /// Run a workflow in this process
    #[command(
        after_help = "Exit code: 0 completed, 1 failed, 2 refused, 3 cancelled, 4 waiting for an \
        approval, 5 timed out.\n\nExample:\n  \
        sluice run examples/vendor-review.lobsterx.yaml --arg vendor='Northwind Paper' \\\n    \
        --mock examples/mocks/vendor-review.yaml"
    )]
    Run(Box<Run>),
    /// Serve the API and the console, and execute all runs
    #[command(after_help = "The first start creates an admin token and writes it to \
        `admin.token` in the data directory.\n\nExample:\n  \
        sluice serve --data /var/lib/sluice --listen 127.0.0.1:8484")]
    Serve(Box<Serve>),
    /// Execute steps for a remote server, as one of its gateways
    #[command(after_help = "Dispatches and results are kept in the spool; each result is \
        delivered until the server acknowledges it.\n\nExample:\n  \
        sluice bridge bridge.yaml --listen 127.0.0.1:7410")]
    Bridge(Bridge),
    /// Serve Sluice's tools to an agent over MCP, on standard input and output
    #[command(after_help = "Works on a data directory, or with SLUICE_URL and SLUICE_TOKEN \
        through a server.\n\nExample:\n  sluice mcp --data /var/lib/sluice")]
    Mcp(Mcp),
    /// Manage the tokens that callers of a server authenticate with
    #[command(subcommand, after_help = "Example:\n  sluice tokens list")]
    Tokens(Tokens),
    /// Manage organisations, each with its own store
    #[command(subcommand, after_help = "Example:\n  sluice organisations list")]
    Organisations(Organisations),
    /// Continue an unfinished run in this process
    #[command(after_help = "Exit code: as of `sluice run`.\n\nExample:\n  \
        sluice resume run_0198c7d2")]
    Resume(Resume),
    /// Inspect, control and export runs
    #[command(subcommand, after_help = "Example:\n  sluice runs list")]
    Runs(Runs),
    /// Approve or reject what runs wait for
    #[command(subcommand, after_help = "Example:\n  sluice approvals list")]
    Approvals(Approvals),
    /// Read, verify and export the audit log
    #[command(subcommand, after_help = "Example:\n  sluice audit verify")]
    Audit(Audit),
    /// Apply a setup file to the registry, and show the changes
    #[command(after_help = "Exit code: 0, or 2 when the file is refused.\n\nExample:\n  \
        sluice apply -f examples/governance/config.yaml --dry-run")]
    Apply(Apply),
    /// Manage agents, which execute steps
    #[command(subcommand, after_help = "Example:\n  sluice agents list")]
    Agents(Agents),
    /// Manage gateways, through which agents are reached
    #[command(subcommand, after_help = "Example:\n  sluice gateways list")]
    Gateways(Gateways),
    /// Manage roles: limits on the agents bound to them
    #[command(subcommand, after_help = "Example:\n  sluice roles list")]
    Roles(RowCommand),
    /// Bind a workflow's roles to agents and gateways
    #[command(subcommand, after_help = "Example:\n  sluice deployments list")]
    Deployments(RowCommand),
    /// Manage budgets: caps on spending
    #[command(subcommand, after_help = "Example:\n  sluice budgets list")]
    Budgets(Budgets),
    /// Show what runs have cost
    #[command(
        after_help = "Steps without cost and tokens are left out. Weeks begin on Sunday.\n\nExample:\n  sluice cost --by agent --by model --bucket day --since 7d"
    )]
    Cost(Cost),
    /// Manage notes: texts that memory profiles load
    #[command(subcommand, after_help = "Example:\n  sluice notes list")]
    Notes(RowCommand),
    /// Manage memory profiles: which past results prompts include
    #[command(subcommand, after_help = "Example:\n  sluice memories list")]
    Memories(RowCommand),
    /// Manage standing instructions of the platform and the owner
    #[command(subcommand, after_help = "Example:\n  sluice instructions list")]
    Instructions(RowCommand),
    /// Manage the prices of models
    #[command(subcommand, after_help = "Example:\n  sluice prices list")]
    Prices(RowCommand),
    /// Manage, test and compare Cedar policies
    #[command(subcommand, after_help = "Example:\n  sluice policies list")]
    Policies(Policies),
    /// Manage registered workflows, and start them by name
    #[command(subcommand, after_help = "Example:\n  sluice workflows list")]
    Workflows(Workflows),
    /// Show lenses: prompts with contracts that workflows use by name
    #[command(subcommand, after_help = "Example:\n  sluice lenses list")]
    Lenses(Lenses),
    /// Manage teams: members that share the steps of workflows
    #[command(subcommand, after_help = "Example:\n  sluice teams list")]
    Teams(RowCommand),
    /// Manage schedules, which start workflows
    #[command(subcommand, after_help = "Example:\n  sluice schedules list")]
    Schedules(Schedules),
    /// Manage outbound webhooks, which send events
    #[command(subcommand, after_help = "Example:\n  sluice webhooks list")]
    Webhooks(RowCommand),
    /// Manage inbound webhooks, which start runs
    #[command(subcommand, after_help = "Example:\n  sluice hooks list")]
    Hooks(RowCommand),
    /// Review and accept the definitions of MCP tools
    #[command(subcommand, after_help = "Example:\n  sluice tools list")]
    Tools(Tools),
    /// Check the settings, the store, the keys and the gateways
    #[command(
        after_help = "Exit code: 0 when every check passes, 1 when one fails.\n\nExample:\n  \
        sluice doctor --data /var/lib/sluice"
    )]
    Doctor(Doctor),
    /// Copy the stores of all organisations, also while they are in use
    #[command(
        after_help = "The first organisation is copied to FILE, every other one into the directory \
        `FILE.organisations`. Keys are not copied; the command lists them.\n\nTo restore, put \
        FILE into an empty directory as `sluice.db`, `FILE.organisations` as `organisations`, and \
        the keys where they were.\n\nExample:\n  sluice backup /mnt/backup/monday.db"
    )]
    Backup(Backup),
    /// Move a data directory into a PostgreSQL database that nodes share
    #[command(after_help = "Stop every process on the directory first. An interrupted migration \
        continues when the command is repeated.\n\nExit code: 0 when everything was moved and compared, 1 when it failed, \
        2 when it was refused.\n\nExample:\n  \
        sluice migrate --from sqlite:/var/lib/sluice --to env:DATABASE_URL")]
    Migrate(migrate::Migrate),
    /// Show the settings and their sources
    #[command(subcommand, after_help = "Example:\n  sluice config show")]
    Config(ConfigCommand),
    /// Print a completion script for a shell
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
                    [Some(&args.file), args.registry.file.as_ref(), args.options.mock.as_ref()];
                files.into_iter().flatten().filter(stdin).count()
            }
            _ => 0,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Check these documents; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<OsString>,
    #[command(flatten)]
    pub(crate) registry: Registry,
    /// Report where data can flow although these policies stop it: a file or directory, or `active` for the set in force
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<OsString>,
    #[command(flatten)]
    pub(crate) rows: FlowRows,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Rows for the flow of data.
#[derive(Debug, Args)]
pub(crate) struct FlowRows {
    /// Use the agents, gateways and memory of this setup for the flow of data [default: the rows in force]
    #[arg(long, value_name = "FILE")]
    pub(crate) setup: Option<OsString>,
    #[command(flatten)]
    pub(crate) data: run::Data,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Show this document; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    #[command(flatten)]
    pub(crate) registry: Registry,
    /// Choose the output format
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) format: PlanFormat,
    /// Show where data comes from, which labels it can have, and where it can go
    #[arg(long)]
    pub(crate) flow: bool,
    #[command(flatten)]
    pub(crate) rows: FlowRows,
    /// Print JSON, like `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

impl Plan {
    pub(crate) fn shape(&self) -> PlanFormat {
        if self.json { PlanFormat::Json } else { self.format }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Describe this format
    #[arg(value_name = "FORMAT", value_enum)]
    pub(crate) format: SchemaFormat,
    /// Show the typed arguments of this tool, `SERVER.TOOL` (with `policies`)
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Show the arguments and the inputs of the steps of this document (with `policies`)
    #[arg(long, value_name = "FILE")]
    pub(crate) workflow: Option<OsString>,
    #[command(flatten)]
    pub(crate) data: run::Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Evaluate this expression
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) expression: String,
    /// Read values from this JSON or YAML file; `-` reads standard input [default: no values]
    #[arg(long, value_name = "FILE")]
    pub(crate) with: Option<OsString>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) target: run::CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Write the copy to this file, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: run::Data,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value and its source
    #[command(after_help = "Secrets are not shown.\n\nExample:\n  sluice config show --json")]
    Show(ConfigShow),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShow {
    #[command(flatten)]
    pub(crate) target: run::CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Choose the shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Registry {
    /// Resolve references to library steps, workflows and lenses from this file
    #[arg(id = "registry", long, value_name = "FILE")]
    pub(crate) file: Option<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Print compact JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// How a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

impl Json {
    pub(crate) fn output(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { OutputFormat::Text }
    }
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
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
pub(crate) enum SchemaFormat {
    /// `.lobsterX`: a list of steps
    Lobsterx,
    /// A lens graph: nodes and edges
    Lens,
    /// The setup file of `sluice apply`
    Setup,
    /// The HTTP API of `sluice serve`, in OpenAPI 3.1
    Openapi,
    /// What a policy may refer to: names of tools, labels and servers, and the Cedar schema
    Policies,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn every_help_text_starts_with_a_verb() {
        // Words that begin no instruction.
        const NOUNS: [&str; 14] = [
            "the", "a", "an", "its", "which", "who", "whom", "where", "what", "how", "why", "only",
            "one", "in",
        ];
        fn check(command: &clap::Command, path: &str) {
            let arguments = command.get_arguments().filter_map(|one| one.get_help());
            for text in command.get_about().into_iter().chain(arguments) {
                let text = text.to_string();
                let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
                assert!(!NOUNS.contains(&first.as_str()), "{path}: {text}");
            }
            for below in command.get_subcommands() {
                check(below, &format!("{path} {}", below.get_name()));
            }
        }
        for command in Cli::command().get_subcommands() {
            check(command, command.get_name());
        }
    }
}
