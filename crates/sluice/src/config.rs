//! Settings: `sluice.toml` < environment < flags.
//!
//! `setting` is the only table of settings; `value` parses a setting from text, `file` from
//! `sluice.toml`; `tool_server` and `secrets` parse the two tables with any number of entries.
//! Values and their sources are resolved once, before the command runs: `sluice config show`
//! prints them, and the table of the guide is tested against the same list.
//!
//! INVARIANT: no other module reads a `SLUICE_*` variable or a configuration file.

mod file;
pub(crate) mod secrets;
pub(crate) mod setting;
mod tool_declaration;
pub(crate) mod tool_server;
pub(crate) mod value;

#[cfg(test)]
mod tests;

use crate::keyring;
use file::FileSettings;
use setting::{Name, SETTINGS, Setting};
use sluice_bridge::secret::keyring::{Declared, NamedSecret};
use sluice_bridge::secret::known;
use sluice_core::suggest::suggest;
use sluice_govern::catalog::ServerDeclaration;
use sluice_server::refused::Refused;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tool_server::ToolServer;
use value::{Secret, Value};

pub(crate) const CONFIG_INVALID: &str = "config_invalid";
/// The default name of a configuration file.
pub(crate) const FILE: &str = "sluice.toml";
/// Prefix of the environment variables.
const PREFIX: &str = "SLUICE_";
/// Variables that are not settings: the name of the file, and those that steps receive.
const BESIDE: [&str; 8] = [
    "SLUICE_CONFIG",
    "SLUICE_ATTEMPT",
    "SLUICE_DISPATCH_NO",
    "SLUICE_IDEMPOTENCY_KEY",
    "SLUICE_MEMORY",
    "SLUICE_RUN_ID",
    "SLUICE_STEP_ID",
    "SLUICE_V",
];

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Environment,
    Flag,
}

/// Values by the name of their flag or variable.
pub(crate) type FlagValues = Vec<(String, Vec<OsString>)>;

/// The sources of settings.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// `--config`, else `SLUICE_CONFIG`.
    pub(crate) file: Option<PathBuf>,
    /// Flags of the command, by name; each may be repeated.
    pub(crate) flags: FlagValues,
    /// Environment variables that begin with `SLUICE_`.
    pub(crate) variables: FlagValues,
}

/// All settings, resolved.
#[derive(Debug)]
pub(crate) struct Config {
    held: Vec<(Option<Value>, Source)>,
    /// MCP servers, and the file that configures them.
    tool_servers: Option<(PathBuf, Vec<ToolServer>)>,
    /// Secrets that rows may name, and the file that declares them.
    secrets: Option<(PathBuf, Vec<Declared>)>,
    /// Variables that look like settings and are not.
    pub(crate) strays: Vec<String>,
}

static SETTLED: OnceLock<Config> = OnceLock::new();

/// Resolves the settings of this process.
pub(crate) fn resolve(sources: &Sources) -> Result<(), Refused> {
    let config = Config::load(sources)?;
    // Only fails if the settings were resolved before.
    let _ = SETTLED.set(config);
    Ok(())
}

/// The settings of this process.
pub(crate) fn get() -> &'static Config {
    SETTLED.get().expect("settings are settled before a command begins")
}

/// The agent of steps that name none.
pub(crate) fn agent() -> Option<String> {
    get().text(Name::Agent).map(str::to_owned)
}

/// The environment variables of Sluice.
pub(crate) fn variables() -> FlagValues {
    let ours = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let variables = std::env::vars_os().filter(|(name, value)| ours(name) && !value.is_empty());
    variables.map(|(name, value)| (name.to_string_lossy().into_owned(), vec![value])).collect()
}

impl Config {
    /// Resolves settings from these sources; only the file is read.
    pub(crate) fn load(sources: &Sources) -> Result<Config, Refused> {
        let held = SETTINGS.iter().map(|setting| {
            let default = setting.default.map(OsStr::new);
            let read = default.map(|text| value::read(setting, text, Path::new("")));
            let value = read.map(|read| read.expect("defaults make sense"));
            (value, Source::Default)
        });
        let held = held.collect();
        let mut config = Config { held, tool_servers: None, secrets: None, strays: Vec::new() };
        config.apply_given(&sources.variables, &Source::Environment)?;
        config.apply_given(&sources.flags, &Source::Flag)?;
        let by_flag = |name| *config.source(name) == Source::Flag;
        for (name, flag) in [(Name::Data, "data"), (Name::DatabaseUrl, "database-url")] {
            if by_flag(name) && by_flag(Name::Url) {
                let message = format!("`--{flag}` and `--url` name two places");
                return Err(Refused::new(CONFIG_INVALID, message, "leave one of them out"));
            }
        }
        if let Some((path, found)) = file::find(sources.file.as_deref(), &config.data())? {
            config.apply_file(&path, found);
        }
        config.strays = strays(&sources.variables);
        Ok(config)
    }

    fn apply_given(&mut self, given: &FlagValues, source: &Source) -> Result<(), Refused> {
        for (at, setting) in SETTINGS.iter().enumerate() {
            let name = match source {
                Source::Flag => setting.flag.map(str::to_owned),
                _ => Some(setting.variable()),
            };
            let Some((name, texts)) = given.iter().find(|(given, _)| Some(given) == name.as_ref())
            else {
                continue;
            };
            let read = value::read_all(setting, texts);
            let named = match source {
                Source::Flag => format!("--{name}"),
                _ => name.clone(),
            };
            let value = read.map_err(|why| refused(format!("`{named}`: {why}"), setting))?;
            self.held[at] = (Some(value), source.clone());
        }
        Ok(())
    }

    /// Uses a value of the file where no variable or flag sets one.
    fn apply_file(&mut self, path: &Path, found: FileSettings) {
        self.tool_servers = Some((path.to_owned(), found.tool_servers));
        self.secrets = Some((path.to_owned(), found.secrets));
        for (at, value) in found.settings {
            if self.held[at].1 == Source::Default {
                self.held[at] = (Some(value), Source::File(path.to_owned()));
            }
        }
    }

    /// Every setting with its value and source.
    pub(crate) fn all(
        &self,
    ) -> impl Iterator<Item = (&'static Setting, Option<&Value>, &Source)> + '_ {
        SETTINGS
            .iter()
            .zip(&self.held)
            .map(|(setting, (value, from))| (setting, value.as_ref(), from))
    }

    /// The configured MCP servers.
    pub(crate) fn tool_servers(&self) -> &[ToolServer] {
        self.tool_servers.as_ref().map(|(_, servers)| servers.as_slice()).unwrap_or_default()
    }

    /// What is declared about their tools.
    pub(crate) fn tool_declarations(&self) -> Vec<ServerDeclaration> {
        self.tool_servers().iter().map(ToolServer::declaration).collect()
    }

    /// The servers, with the file of each.
    pub(crate) fn tool_servers_from(&self) -> impl Iterator<Item = (&ToolServer, &Path)> + '_ {
        let named = self.tool_servers.iter();
        named.flat_map(|(path, servers)| servers.iter().map(|server| (server, path.as_path())))
    }

    /// The declared secrets, with the file of each.
    pub(crate) fn secrets_from(&self) -> impl Iterator<Item = (&Declared, &Path)> + '_ {
        let named = self.secrets.iter();
        named.flat_map(|(path, secrets)| secrets.iter().map(|secret| (secret, path.as_path())))
    }

    pub(crate) fn source(&self, name: Name) -> &Source {
        &self.held[name as usize].1
    }

    /// A setting as text; of a secret only its reference.
    pub(crate) fn shown(&self, name: Name) -> String {
        self.value(name).map(ToString::to_string).unwrap_or_default()
    }

    fn value(&self, name: Name) -> Option<&Value> {
        self.held[name as usize].0.as_ref()
    }

    pub(crate) fn text(&self, name: Name) -> Option<&str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn path(&self, name: Name) -> Option<&Path> {
        match self.value(name) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn paths(&self, name: Name) -> &[PathBuf] {
        match self.value(name) {
            Some(Value::Paths(paths)) => paths,
            _ => &[],
        }
    }

    pub(crate) fn words(&self, name: Name) -> &[String] {
        match self.value(name) {
            Some(Value::Words(words)) => words,
            _ => &[],
        }
    }

    pub(crate) fn is_on(&self, name: Name) -> bool {
        matches!(self.value(name), Some(Value::Switch(true)))
    }

    /// A number, which always has a default.
    pub(crate) fn number(&self, name: Name) -> u64 {
        match self.value(name) {
            Some(Value::Number(number)) => *number,
            _ => unreachable!("every number has a default"),
        }
    }

    /// A duration in milliseconds, which always has a default.
    pub(crate) fn duration_ms(&self, name: Name) -> u64 {
        match self.value(name) {
            Some(Value::Duration(ms)) => *ms,
            _ => unreachable!("every duration has a default"),
        }
    }

    /// A duration in milliseconds; `None` if it is switched off.
    pub(crate) fn duration_ms_unless_off(&self, name: Name) -> Option<u64> {
        match self.value(name) {
            Some(Value::Off) => None,
            _ => Some(self.duration_ms(name)),
        }
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.path(Name::Data).expect("the data directory has a default").to_owned()
    }

    /// The token for the server, resolved from its reference.
    pub(crate) fn token(&self) -> Result<Option<String>, Refused> {
        let Some(Value::Secret(secret)) = self.value(Name::Token) else { return Ok(None) };
        secret.resolve().map(Some).map_err(|why| {
            let remedy = "put the token where the reference points, or set SLUICE_TOKEN to it";
            Refused::new(CONFIG_INVALID, format!("the token {secret}: {why}"), remedy)
        })
    }

    /// The token for an HTTP moderator.
    pub(crate) fn moderation_token(&self) -> Result<Option<NamedSecret>, Refused> {
        let Some(Value::Secret(secret)) = self.value(Name::ModerationToken) else {
            return Ok(None);
        };
        let key = secret.reference().map(|reference| keyring::operator().of_setting(&reference));
        key.map(Some).ok_or_else(|| {
            let remedy = "set SLUICE_MODERATION_TOKEN to `secret:NAME`, `env:NAME` or `file:PATH`";
            let message = format!("`moderation_token` {secret}: it is to be a reference");
            Refused::new(CONFIG_INVALID, message, remedy)
        })
    }

    /// The configured server, unless `--data` or `--database-url` selects a store.
    pub(crate) fn server(&self) -> Option<&str> {
        let places = [Name::Data, Name::DatabaseUrl];
        let named = places.into_iter().any(|name| *self.source(name) == Source::Flag);
        self.text(Name::Url).filter(|_| !named)
    }

    /// The configured database, if any. `--data` alone selects its directory, whatever the
    /// environment sets.
    pub(crate) fn database(&self) -> Result<Option<String>, Refused> {
        let Some(Value::Secret(secret)) = self.value(Name::DatabaseUrl) else { return Ok(None) };
        let by_flag = |name| *self.source(name) == Source::Flag;
        if by_flag(Name::Data) && !by_flag(Name::DatabaseUrl) {
            return Ok(None);
        }
        database(secret, "database_url").map(Some)
    }
}

/// The URL of a database, with its password registered as a secret.
pub(crate) fn database(secret: &Secret, what: &str) -> Result<String, Refused> {
    let remedy = "give a URL such as `postgres://sluice@db.example/sluice`, or say where one \
                  is with `env:NAME` or `file:PATH`";
    let url = secret
        .resolve()
        .map_err(|why| Refused::new(CONFIG_INVALID, format!("`{what}` {secret}: {why}"), remedy))?;
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        let message = format!("`{what}` is not a URL of a PostgreSQL database");
        return Err(Refused::new(CONFIG_INVALID, message, remedy));
    }
    if let Some(password) = value::password(&url) {
        let password = sluice_bridge::secret::Secret::new(password);
        let noted = known::process().note(what, &password);
        noted
            .map_err(|error| Refused::new(CONFIG_INVALID, format!("`{what}`: {error}"), remedy))?;
    }
    Ok(url)
}

/// Variables with the prefix that are not settings: probably typing errors.
fn strays(variables: &FlagValues) -> Vec<String> {
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    let stray = |name: &&String| {
        let beside = BESIDE.iter().any(|one| name.starts_with(one));
        !beside && !known.contains(name)
    };
    let names = variables.iter().map(|(name, _)| name);
    let strays = names.filter(stray).map(|name| {
        let near = suggest(name, known.iter().map(String::as_str));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("`{name}` is not a setting{near}")
    });
    let mut strays: Vec<String> = strays.collect();
    strays.sort();
    strays
}

fn refused(message: String, setting: &Setting) -> Refused {
    Refused::new(CONFIG_INVALID, message, remedy(setting))
}

fn remedy(setting: &Setting) -> String {
    format!("{} takes {}", setting.name, setting.kind.takes())
}
