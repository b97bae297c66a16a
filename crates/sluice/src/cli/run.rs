//! The arguments of `run` and `resume`, and those that several commands share.

use super::{Json, OutputFormat, Registry, STORAGE};
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgMatches, Args, FromArgMatches};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::ops::Deref;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Run this document, or a registered workflow, `NAME` or `NAME@VERSION`; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    #[command(flatten)]
    pub(crate) inputs: RunInputs,
    #[command(flatten)]
    pub(crate) registry: Registry,
    /// Use this agent for steps that name neither an agent nor a bound role [env: SLUICE_AGENT]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Use this model for steps that name none, instead of the document's default
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Limit the depth of nested runs to N, within the configured limit
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<u32>,
    /// Bind a role to an agent; repeatable
    #[arg(long, value_name = "ROLE=AGENT", value_parser = pair)]
    pub(crate) bind: Vec<(String, String)>,
    /// Return the run that was started with the same key within a day; `auto` derives a key from the arguments
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Reuse the results of an earlier run, but repeat this step and all that depend on it
    #[arg(long, value_name = "STEP", requires = "of")]
    pub(crate) from_step: Vec<String>,
    /// Name the earlier run for `--from-step`
    #[arg(long, value_name = "RUN", requires = "from_step")]
    #[arg(conflicts_with_all = ["arg", "args_json", "agent", "model", "max_depth", "bind", "idempotency_key"])]
    pub(crate) of: Option<String>,
    /// Record every exchange with providers and tools in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mock", "replay"])]
    pub(crate) record: Option<PathBuf>,
    /// Replay a file of `--record` instead of calling providers and tools, and report every difference
    #[arg(long, value_name = "FILE", conflicts_with = "mock")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: WorkOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Select a run by its id or a unique prefix of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) options: WorkOptions,
}

/// The arguments of a workflow.
#[derive(Debug, Args)]
pub(crate) struct RunInputs {
    /// Set an argument of the workflow; the value is parsed as its declared type
    #[arg(id = "arg", long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    args: Vec<(String, String)>,
    /// Set arguments from a JSON object; `--arg` takes precedence
    #[arg(long, value_name = "JSON", value_parser = object)]
    args_json: Option<Object>,
}

impl RunInputs {
    pub(crate) fn args(&self) -> Map<String, Value> {
        let mut args = self.args_json.clone().map(|object| object.0).unwrap_or_default();
        let written = self.args.iter().map(|(name, text)| (name.clone(), text.clone().into()));
        args.extend(written);
        args
    }
}

/// Options of every command that executes a run in this process.
#[derive(Debug, Args)]
pub(crate) struct WorkOptions {
    /// Let a mock script answer for every agent and gateway; no provider is called
    #[arg(long, value_name = "FILE")]
    pub(crate) mock: Option<OsString>,
    /// Use the policies in this file or directory instead of the registered ones
    #[arg(long, value_name = "PATH")]
    pub(crate) policies: Vec<OsString>,
    /// Moderate steps with `moderation` by this word list or URL [env: SLUICE_MODERATION]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) moderation: Option<OsString>,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) view: View,
    /// Approve every approval request; those that need values or a choice stay open
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) name: Name,
}

/// How a run is printed while it executes.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct View {
    /// Print the final state of the run as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print every event of the run as a line of JSON
    #[arg(long)]
    pub(crate) events: bool,
}

impl View {
    pub(crate) fn output(self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { OutputFormat::Text }
    }
}

/// The identity of a command.
#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Act as this principal [default: the user's name]
    #[arg(id = "as", long = "as", value_name = "NAME")]
    pub(crate) who: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Data {
    /// Use this data directory [env: SLUICE_DATA] [default: .sluice]
    #[arg(id = "data", long = "data", value_name = "DIR", help_heading = STORAGE)]
    pub(crate) dir: Option<PathBuf>,
    /// Append every new seal to this file, those of another organisation NAME to FILE.NAME [env: SLUICE_SEAL_FILE]
    #[arg(long, value_name = "FILE", help_heading = STORAGE)]
    pub(crate) seal_file: Option<PathBuf>,
    /// Use this PostgreSQL database: a URL, or a reference to one, `env:NAME` or `file:PATH` [env: SLUICE_DATABASE_URL]
    #[arg(long, value_name = "URL", help_heading = STORAGE)]
    pub(crate) database_url: Option<String>,
    /// The organisation; none for the first one.
    #[arg(skip)]
    pub(crate) organisation: Option<String>,
    /// Set by [`WriteData`].
    #[arg(skip)]
    pub(crate) accept_rollback: Option<String>,
}

/// What a command reads, and how it prints.
#[derive(Debug, Args)]
pub(crate) struct CommandTarget {
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    json: Json,
}

impl CommandTarget {
    pub(crate) fn output(&self) -> OutputFormat {
        self.json.output()
    }
}

/// [`Data`] of a command that writes.
#[derive(Debug)]
pub(crate) struct WriteData(Data);

#[derive(Debug, Args)]
struct AcceptRollback {
    /// Open a store that is older than its seal file; the reason is recorded in the audit log
    #[arg(long = "accept-rollback", value_name = "REASON", help_heading = STORAGE, help_heading = STORAGE, value_parser = NonEmptyStringValueParser::new())]
    accept_rollback: Option<String>,
}

impl Deref for WriteData {
    type Target = Data;

    fn deref(&self) -> &Data {
        &self.0
    }
}

impl FromArgMatches for WriteData {
    fn from_arg_matches(matches: &ArgMatches) -> Result<WriteData, clap::Error> {
        let AcceptRollback { accept_rollback } = AcceptRollback::from_arg_matches(matches)?;
        Ok(WriteData(Data { accept_rollback, ..Data::from_arg_matches(matches)? }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = WriteData::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for WriteData {
    fn augment_args(command: clap::Command) -> clap::Command {
        AcceptRollback::augment_args(Data::augment_args(command))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        WriteData::augment_args(command)
    }
}

/// A JSON object.
#[derive(Debug, Clone)]
pub(crate) struct Object(Map<String, Value>);

/// `name=value`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected `name=value`".to_owned()),
    }
}

fn object(text: &str) -> Result<Object, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Object(object)),
        Ok(_) => Err("expected a JSON object, such as `{\"name\": \"value\"}`".to_owned()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}
