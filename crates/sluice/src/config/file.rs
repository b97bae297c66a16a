//! Finds and parses `sluice.toml`, and reports every problem with its line.

use super::secrets;
use super::setting::{SETTINGS, Setting, SettingKind};
use super::tool_server::{self, ToolServer};
use super::value::{self, Value};
use super::{CONFIG_INVALID, FILE};
use crate::input;
use crate::refused::unreadable;
use sluice_bridge::secret::keyring::Declared;
use sluice_core::limits::DOCUMENT_BYTES_MAX;
use sluice_core::suggest::suggest;
use sluice_server::refused::Refused;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct FileSettings {
    /// Indices into the table of settings, and values.
    pub(super) settings: Vec<(usize, Value)>,
    pub(super) tool_servers: Vec<ToolServer>,
    pub(super) secrets: Vec<Declared>,
}

/// Reads the named file, else the one in this directory, else the one in the data directory.
pub(super) fn find(
    named: Option<&Path>,
    data: &Path,
) -> Result<Option<(PathBuf, FileSettings)>, Refused> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let places = [PathBuf::from(FILE), data.join(FILE)];
            let Some(path) = places.into_iter().find(|path| path.is_file()) else {
                return Ok(None);
            };
            path
        }
    };
    let input = input::read(path.as_os_str()).map_err(|file| unreadable(&file))?;
    let refused = |notes: Vec<String>| {
        let message = format!("`{}` cannot be used", path.display());
        let remedy = "correct it; `docs/guide/configuration.md` lists the settings";
        Refused::new(CONFIG_INVALID, message, remedy).with_notes(notes)
    };
    if input.bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(refused(vec![format!("it has more than {DOCUMENT_BYTES_MAX} bytes")]));
    }
    let Ok(text) = input.text() else { return Err(refused(vec!["it is not UTF-8".to_owned()])) };
    let dir = path.parent().unwrap_or(Path::new(""));
    let mut found = read(text, dir).map_err(refused)?;
    // A file in the data directory cannot set the data directory.
    if path.parent() == Some(data) && named.is_none() {
        found.settings.retain(|(at, _)| SETTINGS[*at].name != "data");
    }
    Ok(Some((path, found)))
}

/// Parses a file, or returns all of its problems.
pub(super) fn read(text: &str, dir: &Path) -> Result<FileSettings, Vec<String>> {
    let mut reader = TomlReader { text, dir, found: FileSettings::default(), notes: Vec::new() };
    match DeTable::parse(text) {
        Ok(table) => reader.table("", table.get_ref()),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            reader.note(at, error.message());
        }
    }
    if reader.notes.is_empty() { Ok(reader.found) } else { Err(reader.notes) }
}

struct TomlReader<'t> {
    text: &'t str,
    dir: &'t Path,
    found: FileSettings,
    notes: Vec<String>,
}

impl TomlReader<'_> {
    fn note(&mut self, at: usize, what: &str) {
        let at = self.text.floor_char_boundary(at);
        let line = self.text[..at].matches('\n').count() + 1;
        self.notes.push(format!("line {line}: {what}"));
    }

    fn table(&mut self, within: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = match within {
                "" => key.get_ref().to_string(),
                within => format!("{within}.{}", key.get_ref()),
            };
            let at = SETTINGS.iter().position(|setting| setting.name == name);
            let begins = |setting: &Setting| setting.name.starts_with(&format!("{name}."));
            match (at, value.get_ref()) {
                (Some(at), value_there) => match self.value(&SETTINGS[at], value_there) {
                    Ok(value) => self.found.settings.push((at, value)),
                    Err(why) => self.note(value.span().start, &format!("`{name}`: {why}")),
                },
                (None, DeValue::Table(below)) if name == tool_server::TABLE => {
                    self.tool_servers(below);
                }
                (None, DeValue::Table(below)) if name == secrets::TABLE => self.secrets(below),
                (None, _) if name == tool_server::TABLE || name == secrets::TABLE => {
                    self.note(key.span().start, &format!("`{name}` is to be a table of tables"));
                }
                (None, DeValue::Table(below)) if SETTINGS.iter().any(begins) => {
                    self.table(&name, below);
                }
                (None, _) => {
                    let known = SETTINGS.iter().map(|setting| setting.name);
                    let near = suggest(&name, known.chain([tool_server::TABLE, secrets::TABLE]));
                    let near =
                        near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    self.note(key.span().start, &format!("there is no setting `{name}`{near}"));
                }
            }
        }
    }

    fn tool_servers(&mut self, table: &DeTable<'_>) {
        match tool_server::read(table, self.dir) {
            Ok(servers) => self.found.tool_servers = servers,
            Err(notes) => {
                for (at, what) in notes {
                    self.note(at, &what);
                }
            }
        }
    }

    fn secrets(&mut self, table: &DeTable<'_>) {
        match secrets::read(table, self.dir) {
            Ok(secrets) => self.found.secrets = secrets,
            Err(notes) => {
                for (at, what) in notes {
                    self.note(at, &what);
                }
            }
        }
    }

    fn value(&self, setting: &Setting, value: &DeValue<'_>) -> Result<Value, String> {
        let takes = || format!("this is not {}", setting.kind.takes());
        let text = |text: &str| value::read(setting, OsStr::new(text), self.dir);
        match (setting.kind, value) {
            (SettingKind::Words | SettingKind::Paths, DeValue::Array(items)) => {
                let words: Option<Vec<String>> =
                    items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
                let words = value::bounded(words.ok_or_else(takes)?)?;
                Ok(match setting.kind {
                    SettingKind::Paths => {
                        Value::Paths(words.iter().map(|word| self.dir.join(word)).collect())
                    }
                    _ => Value::Words(words),
                })
            }
            (SettingKind::Words | SettingKind::Paths, _) => Err(takes()),
            (SettingKind::Number { .. }, DeValue::Integer(number)) if number.radix() == 10 => {
                text(number.as_str())
            }
            (SettingKind::Switch, DeValue::Boolean(on)) => Ok(Value::Switch(*on)),
            (SettingKind::Number { .. } | SettingKind::Switch, _) => Err(takes()),
            (_, DeValue::String(word)) => text(word),
            _ => Err(takes()),
        }
    }
}
