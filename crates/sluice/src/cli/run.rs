//! The words of `run` and `resume`, and what they share with their kin.

use super::{Reader, Registry};
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgMatches, Args, FromArgMatches};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::ops::Deref;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Document to run, or a workflow of the registry, `NAME` or `NAME@VERSION`; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    #[command(flatten)]
    pub(crate) given: Given,
    #[command(flatten)]
    pub(crate) registry: Registry,
    /// Who does steps that name neither an agent nor a bound role
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Model of steps that name none, instead of the document's default
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// How many runs may be above a run that this one starts; never more than is configured
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<u32>,
    /// Which agent stands for a role
    #[arg(long, value_name = "ROLE=AGENT", value_parser = pair)]
    pub(crate) bind: Vec<(String, String)>,
    /// The same key within a day means the same run; `auto` makes one from the arguments
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Take over what an earlier run of the document did, but do this step and all after it again
    #[arg(long, value_name = "STEP", requires = "of")]
    pub(crate) from_step: Vec<String>,
    /// The earlier run, for `--from-step`
    #[arg(long, value_name = "RUN", requires = "from_step")]
    #[arg(conflicts_with_all = ["arg", "args_json", "agent", "model", "max_depth", "bind", "idempotency_key"])]
    pub(crate) of: Option<String>,
    /// Keep everything that providers and tools are asked and answer in a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mock", "replay"])]
    pub(crate) record: Option<PathBuf>,
    /// Let a file that `--record` made answer for providers and tools, and say where the run asks something else
    #[arg(long, value_name = "FILE", conflicts_with = "mock")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) here: Here,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run; a unique beginning of its id is enough
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) here: Here,
}

/// What a run is given.
#[derive(Debug, Args)]
pub(crate) struct Given {
    /// An argument of the workflow; the text is read as the declared type
    #[arg(id = "arg", long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    args: Vec<(String, String)>,
    /// Arguments as a JSON object; `--arg` wins over it
    #[arg(long, value_name = "JSON", value_parser = object)]
    args_json: Option<Object>,
}

impl Given {
    /// All of it as one object.
    pub(crate) fn args(&self) -> Map<String, Value> {
        let mut args = self.args_json.clone().map(|object| object.0).unwrap_or_default();
        let written = self.args.iter().map(|(name, text)| (name.clone(), text.clone().into()));
        args.extend(written);
        args
    }
}

/// What every command that works on a run in this process takes.
#[derive(Debug, Args)]
pub(crate) struct Here {
    /// Let a script answer for every agent and gateway: nothing is called
    #[arg(long, value_name = "FILE")]
    pub(crate) mock: Option<OsString>,
    /// Policies to run under, a file or a directory, instead of the registry's
    #[arg(long, value_name = "PATH")]
    pub(crate) policies: Vec<OsString>,
    /// Who judges what steps with `moderation` are given and say: a word list, or an address; by default what SLUICE_MODERATION says
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) moderation: Option<OsString>,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) view: View,
    /// Approve whatever is asked; what needs values or a choice is left to people
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) name: Name,
}

/// How a run that goes on is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct View {
    /// Print the run as one line of JSON when the command ends
    #[arg(long)]
    pub(crate) json: bool,
    /// Print every event of the run as a line of JSON when it is journalled
    #[arg(long)]
    pub(crate) events: bool,
}

impl View {
    pub(crate) fn reader(self) -> Reader {
        if self.json { Reader::Program } else { Reader::Person }
    }
}

/// Who speaks.
#[derive(Debug, Args)]
pub(crate) struct Name {
    /// In whose name; by default the user's
    #[arg(id = "as", long = "as", value_name = "NAME")]
    pub(crate) who: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Data {
    /// Where runs are kept; by default what SLUICE_DATA says, else `.sluice`
    #[arg(id = "data", long = "data", value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Copy every seal made here to this file, those of another organisation NAME to FILE.NAME; by default what SLUICE_SEAL_FILE says
    #[arg(long, value_name = "FILE")]
    pub(crate) seal_file: Option<PathBuf>,
    /// Keep runs in this PostgreSQL database, which nodes share: a URL, or `env:NAME` or `file:PATH` where it is; by default what SLUICE_DATABASE_URL says
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Whose they are; none for the first organisation
    #[arg(skip)]
    pub(crate) organisation: Option<String>,
    /// Why a store that was rolled back is opened; set by commands that write
    #[arg(skip)]
    pub(crate) accept_rollback: Option<String>,
}

/// [`Data`] of a command that writes.
#[derive(Debug)]
pub(crate) struct WriteData(Data);

#[derive(Debug, Args)]
struct AcceptRollback {
    /// Start although the store is older than its seal file, for this reason, which is recorded in the audit
    #[arg(long = "accept-rollback", value_name = "REASON", value_parser = NonEmptyStringValueParser::new())]
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
        _ => Err("write it as `name=value`".to_owned()),
    }
}

fn object(text: &str) -> Result<Object, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Object(object)),
        Ok(_) => Err("a JSON object is needed, such as `{\"name\": \"value\"}`".to_owned()),
        Err(error) => Err(format!("this is no JSON: {error}")),
    }
}
