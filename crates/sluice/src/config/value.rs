//! Parses a setting from the text of a variable, a flag, or a file.

use super::setting::{Setting, SettingKind};
use sluice_bridge::secret::known;
use sluice_core::duration;
use sluice_core::secret::SecretRef;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Longest file that holds a secret.
const SECRET_BYTES_MAX: u64 = 64 * 1024;
/// Most items of a list.
const ITEMS_MAX: usize = 1000;
/// Switches off what a duration would delay.
const OFF: &str = "off";

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    Words(Vec<String>),
    Number(u64),
    /// In milliseconds.
    Duration(u64),
    /// Instead of a duration.
    Off,
    Switch(bool),
    Secret(Secret),
}

/// A secret, or a reference to one. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    Literal(String),
    Variable(String),
    File(PathBuf),
    /// A secret that is declared under `[secrets.NAME]`.
    Named(String),
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Literal(_) => f.write_str("(hidden)"),
            Secret::Variable(name) => write!(f, "env:{name}"),
            Secret::File(path) => write!(f, "file:{}", path.display()),
            Secret::Named(name) => write!(f, "secret:{name}"),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Secret {
    /// Resolves the secret.
    pub(crate) fn resolve(&self) -> Result<String, String> {
        let found = match self {
            Secret::Literal(text) => text.clone(),
            Secret::Variable(name) => {
                std::env::var(name).map_err(|_| "the variable is not set".to_owned())?
            }
            Secret::File(path) => {
                let kind = std::fs::metadata(path).map_err(|error| error.to_string())?;
                if !kind.is_file() || kind.len() > SECRET_BYTES_MAX {
                    return Err("the file does not hold a secret".to_owned());
                }
                std::fs::read_to_string(path).map_err(|error| error.to_string())?
            }
            Secret::Named(_) => {
                return Err("this setting takes `env:NAME` or `file:PATH`".to_owned());
            }
        };
        let found = found.trim();
        if found.is_empty() || found.contains(|c: char| !c.is_ascii_graphic()) {
            return Err("not a token: it must be one word".to_owned());
        }
        let secret = sluice_bridge::secret::Secret::new(found);
        let noted = known::process().note(&format!("setting {self}"), &secret);
        noted.map_err(|error| error.to_string())?;
        Ok(found.to_owned())
    }

    /// The reference; none if the secret is given literally.
    pub(super) fn reference(&self) -> Option<SecretRef> {
        match self {
            Secret::Literal(_) => None,
            Secret::Variable(name) => Some(SecretRef::Env(name.clone())),
            Secret::File(path) => Some(SecretRef::File(path.to_string_lossy().into_owned())),
            Secret::Named(name) => Some(SecretRef::Named(name.clone())),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Path(path) => write!(f, "{}", path.display()),
            Value::Paths(paths) => {
                let shown: Vec<String> =
                    paths.iter().map(|path| path.display().to_string()).collect();
                f.write_str(&shown.join(", "))
            }
            Value::Words(words) => f.write_str(&words.join(", ")),
            Value::Number(number) => write!(f, "{number}"),
            Value::Duration(ms) => f.write_str(&duration::format(*ms)),
            Value::Off => f.write_str(OFF),
            Value::Switch(on) => write!(f, "{on}"),
            Value::Secret(secret) => write!(f, "{secret}"),
        }
    }
}

impl Value {
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Paths(paths) => {
                paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().into()
            }
            Value::Words(words) => words.clone().into(),
            Value::Number(number) => (*number).into(),
            Value::Switch(on) => (*on).into(),
            _ => self.to_string().into(),
        }
    }
}

/// Parses the values of a flag or variable.
pub(super) fn read_all(setting: &Setting, texts: &[OsString]) -> Result<Value, String> {
    let here = Path::new("");
    if let (SettingKind::Paths, [_, _, ..]) = (setting.kind, texts) {
        return Ok(Value::Paths(texts.iter().map(PathBuf::from).collect()));
    }
    if setting.kind == SettingKind::Words {
        let words = texts.iter().map(|text| text.to_str().map(str::to_owned));
        let words: Option<Vec<String>> = words.collect();
        let commas = |words: Vec<String>| {
            let parts = words.iter().flat_map(|word| word.split(',').map(str::trim));
            parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let words = words.map(commas).ok_or_else(|| "this is not a text".to_owned())?;
        return bounded(words).map(Value::Words);
    }
    match texts.last() {
        Some(text) => read(setting, text, here),
        // A switch has no value.
        None => Ok(Value::Switch(true)),
    }
}

/// Parses one text. Paths are relative to `dir`.
pub(super) fn read(setting: &Setting, text: &OsStr, dir: &Path) -> Result<Value, String> {
    let takes = || format!("this is not {}", setting.kind.takes());
    match setting.kind {
        SettingKind::Path => return Ok(Value::Path(dir.join(text))),
        SettingKind::Paths => {
            let paths = std::env::split_paths(text).map(|path| dir.join(path));
            return bounded(paths.collect()).map(Value::Paths);
        }
        _ => {}
    }
    let text = text.to_str().ok_or_else(takes)?;
    let found = match setting.kind {
        SettingKind::Path | SettingKind::Paths => None,
        SettingKind::PathOrUrl if is_url(text) => Some(Value::Text(text.to_owned())),
        SettingKind::PathOrUrl => {
            Some(Value::Text(dir.join(text).to_str().ok_or_else(takes)?.to_owned()))
        }
        SettingKind::Text => (!text.is_empty()).then(|| Value::Text(text.to_owned())),
        SettingKind::Address => is_address(text).then(|| Value::Text(text.to_owned())),
        SettingKind::Url => {
            is_url(text).then(|| Value::Text(text.trim_end_matches('/').to_owned()))
        }
        SettingKind::Secret => Some(Value::Secret(secret(text, dir))),
        SettingKind::Words => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            return bounded(words.map(str::to_owned).collect()).map(Value::Words);
        }
        SettingKind::Number { min, max } => {
            let number = text.trim().parse::<u64>().ok();
            number.filter(|number| (min..=max).contains(number)).map(Value::Number)
        }
        SettingKind::Duration { min_ms, max_ms } => duration_between(text, min_ms, max_ms),
        SettingKind::DurationOrOff { .. } if text.trim() == OFF => Some(Value::Off),
        SettingKind::DurationOrOff { min_ms, max_ms } => duration_between(text, min_ms, max_ms),
        SettingKind::Switch => match text {
            "true" | "1" => Some(Value::Switch(true)),
            "false" | "0" => Some(Value::Switch(false)),
            _ => None,
        },
        SettingKind::Choice(words) => words.contains(&text).then(|| Value::Text(text.to_owned())),
    };
    found.ok_or_else(takes)
}

fn duration_between(text: &str, min_ms: u64, max_ms: u64) -> Option<Value> {
    let ms = duration::parse(text.trim()).ok()?;
    (min_ms..=max_ms).contains(&ms).then_some(Value::Duration(ms))
}

/// Refuses a list that is too long.
pub(super) fn bounded<T>(items: Vec<T>) -> Result<Vec<T>, String> {
    if items.len() > ITEMS_MAX {
        return Err(format!("there are more than {ITEMS_MAX} of them"));
    }
    Ok(items)
}

pub(crate) fn secret(text: &str, dir: &Path) -> Secret {
    match (text.strip_prefix("env:"), text.strip_prefix("file:")) {
        (Some(name), _) => Secret::Variable(name.to_owned()),
        (_, Some(path)) => Secret::File(dir.join(path)),
        _ => match text.strip_prefix("secret:").filter(|name| SecretRef::is_name(name)) {
            Some(name) => Secret::Named(name.to_owned()),
            None => Secret::Literal(text.to_owned()),
        },
    }
}

/// Whether a text is a URL with a host, and without a user name and password, which would end
/// up in logs.
fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_graphic();
    !host.is_empty() && !host.contains('@') && text.chars().all(plain)
}

/// The password in the URL of a database, as written.
pub(super) fn password(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let (user, _) = rest.split(['/', '?']).next()?.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
}

/// Parses a host or an address, and a port.
fn is_address(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((host, port)) => !host.is_empty() && port.parse::<u16>().is_ok(),
        None => false,
    }
}
