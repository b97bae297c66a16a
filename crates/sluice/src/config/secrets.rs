//! Secrets that rows may name: `[secrets.NAME]` in `sluice.toml`, and nowhere else.
//!
//! Only the operator decides where a secret is stored, which organisations may name it, and
//! which hosts it may be sent to.

use crate::organisation::{self, DEFAULT};
use serde_json::{Value, json};
use sluice_bridge::secret::hosts::Hosts;
use sluice_bridge::secret::keyring::{Declared, EVERY_ORGANISATION};
use sluice_core::secret::SecretRef;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use std::path::Path;
use toml::de::{DeTable, DeValue};

pub(super) const TABLE: &str = "secrets";
/// Fields of a secret.
const FIELDS: [&str; 3] = ["from", "organisations", "hosts"];
/// Most secrets.
const SECRETS_MAX: usize = 1000;
/// Most organisations, and most hosts, of one secret.
const WORDS_MAX: usize = 1000;

/// A problem, and its offset in the text.
type Notes = Vec<(usize, String)>;

/// The name of a secret among the settings.
pub(crate) fn setting(secret: &Declared) -> String {
    format!("{TABLE}.{}", secret.name)
}

/// A secret as JSON, without its value.
pub(crate) fn to_json(secret: &Declared) -> Value {
    json!({
        "from": secret.from,
        "organisations": secret.organisations,
        "hosts": secret.hosts.to_string(),
    })
}

/// A secret as text, without its value.
pub(crate) fn shown(secret: &Declared) -> String {
    let hosts = secret.hosts.to_string();
    let hosts = if hosts.is_empty() { "sent nowhere".to_owned() } else { format!("for {hosts}") };
    format!("{} ({hosts}; named by {})", secret.from, secret.organisations.join(", "))
}

/// Parses the table, or returns all of its problems.
pub(super) fn read(table: &DeTable<'_>, dir: &Path) -> Result<Vec<Declared>, Notes> {
    let (mut secrets, mut notes) = (Vec::new(), Notes::new());
    if table.len() > SECRETS_MAX {
        return Err(vec![(0, format!("there are more than {SECRETS_MAX} secrets"))]);
    }
    for (name, value) in table {
        let (at, name) = (name.span().start, name.get_ref().as_ref());
        let mut reading = SecretReader { name, dir, notes: Notes::new() };
        if !SecretRef::is_name(name) {
            let what = "is not the name of a secret: letters, digits, `_` and `-`, at most 64";
            reading.note(at, what);
        }
        match value.get_ref() {
            DeValue::Table(fields) => secrets.extend(reading.secret(at, fields)),
            _ => reading.note(at, "is to be a table with `from` and `hosts`"),
        }
        notes.extend(reading.notes);
    }
    if notes.is_empty() { Ok(secrets) } else { Err(notes) }
}

struct SecretReader<'t> {
    name: &'t str,
    dir: &'t Path,
    notes: Notes,
}

impl SecretReader<'_> {
    /// Problems do not repeat the text, which may be the secret itself.
    fn note(&mut self, at: usize, what: &str) {
        let name = visible::brief(self.name);
        self.notes.push((at, format!("`{TABLE}.{name}` {what}")));
    }

    fn secret(&mut self, at: usize, fields: &DeTable<'_>) -> Option<Declared> {
        for key in fields.keys() {
            let field = key.get_ref().as_ref();
            if !FIELDS.contains(&field) {
                let near = suggest(field, FIELDS);
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let field = visible::brief(field);
                self.note(key.span().start, &format!("has no field `{field}`{near}"));
            }
        }
        let from = self.from(at, fields);
        let organisations = self.organisations(fields);
        let hosts = self.hosts(at, fields);
        Some(Declared {
            name: self.name.to_owned(),
            from: from?,
            organisations: organisations?,
            hosts: hosts?,
        })
    }

    fn from(&mut self, at: usize, fields: &DeTable<'_>) -> Option<SecretRef> {
        let Some(value) = fields.get("from") else {
            self.note(at, "needs `from`: `env:NAME` or `file:PATH`");
            return None;
        };
        let at = value.span().start;
        let read = value.get_ref().as_str().map(str::parse::<SecretRef>);
        match read {
            Some(Ok(SecretRef::File(path))) => {
                // Paths are relative to the file.
                let path = self.dir.join(path).to_string_lossy().into_owned();
                Some(SecretRef::File(path))
            }
            Some(Ok(reference @ SecretRef::Env(_))) => Some(reference),
            Some(Ok(SecretRef::Named(_)) | Err(_)) | None => {
                self.note(at, "has a `from` that is neither `env:NAME` nor `file:PATH`");
                None
            }
        }
    }

    fn organisations(&mut self, fields: &DeTable<'_>) -> Option<Vec<String>> {
        if !fields.contains_key("organisations") {
            return Some(vec![DEFAULT.to_owned()]);
        }
        let (at, names) = self.words(fields, "organisations")?;
        let fits = |name: &String| name == EVERY_ORGANISATION || organisation::fits(name);
        if let Some(bad) = names.iter().find(|name| !fits(name)) {
            let bad = visible::brief(bad).into_owned();
            self.note(at, &format!("names the organisation `{bad}`, which cannot exist"));
            return None;
        }
        Some(names)
    }

    fn hosts(&mut self, at: usize, fields: &DeTable<'_>) -> Option<Hosts> {
        if !fields.contains_key("hosts") {
            let what = "needs `hosts`: those it may be shown to, such as [\"api.example.com\"]; \
                        [] if it is never sent";
            self.note(at, what);
            return None;
        }
        let (at, words) = self.words(fields, "hosts")?;
        match Hosts::parse(words.iter().map(String::as_str)) {
            Ok(hosts) => Some(hosts),
            Err(bad) => {
                self.note(at, &format!("has `hosts` with an entry that cannot be used: {bad}"));
                None
            }
        }
    }

    fn words(&mut self, fields: &DeTable<'_>, name: &str) -> Option<(usize, Vec<String>)> {
        let value = fields.get(name)?;
        let at = value.span().start;
        let words: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(items) if items.len() <= WORDS_MAX => {
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        if words.is_none() {
            self.note(at, &format!("has `{name}` that is not a list of at most {WORDS_MAX} texts"));
        }
        words.map(|words| (at, words))
    }
}
