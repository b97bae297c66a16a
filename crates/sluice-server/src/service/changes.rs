//! Several rows changed together or not at all, as a setup wants them.

use super::document::Input;
use super::registry::{self, Asked, Wanted, Wish};
use super::rows::{Manner, wanted};
use super::versions::{self, Document};
use crate::refused::{Done, ROW_UNREADABLE, Refused};
use serde_json::{Map, Value};
use sluice_core::rows;
use sluice_core::visible;
use sluice_govern::registry::{Kind, PolicyFile, Row, WorkflowVersion};

/// What stands for a secret that is never shown.
pub const REDACTED: &str = "[redacted]";
/// Fields whose values are never shown.
pub const SECRET: [&str; 2] = ["secret", "token_sha256"];
/// The only name of a switch.
pub const ALL: &str = "all";

/// Rows that somebody sends.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Rows as they should be.
    pub put: Vec<Row>,
    /// Rows that go.
    pub remove: Vec<(Kind, String)>,
}

/// A row without its secrets.
pub fn redacted(mut row: Row) -> Row {
    if let Value::Object(fields) = &mut row.body {
        for field in SECRET {
            if let Some(value) = fields.get_mut(field) {
                *value = REDACTED.into();
            }
        }
    }
    row
}

impl Wish for Changes {
    fn rows(&self, there: &[Row]) -> Done<Wanted> {
        let (mut put, mut documents) = (Vec::new(), Vec::new());
        for row in &self.put {
            match row.kind {
                Kind::Workflow => documents.push(document(row)?),
                Kind::Policy | Kind::Switch => put.push(plain(row)?),
                _ => {
                    let sent = restored(row, there)?;
                    let asked = wanted(there, (row.kind, &row.name), &sent, Manner::Whole)?;
                    put.extend(asked.put);
                }
            }
        }
        put.extend(versions::rows(&documents, there)?);
        let mut remove = Vec::new();
        for (kind, name) in &self.remove {
            remove.push((*kind, registry::row(there, *kind, name)?.name.clone()));
        }
        let refused = versions::check(&documents, &rows::with(there, &put, &remove))?;
        if !refused.is_empty() {
            return Ok(Wanted::Refused(refused));
        }
        Ok(Wanted::Rows(Asked { put, remove }))
    }
}

fn odd(row: &Row, why: &str) -> Refused {
    let (kind, name) = (row.kind.as_str(), visible::brief(&row.name));
    let message = format!("the {kind} `{name}` makes no sense: {why}");
    Refused::new(ROW_UNREADABLE, message, "write the row anew")
}

/// A version of a workflow, out of its text. Which version it is, is for the
/// text and the versions there are to say.
fn document(row: &Row) -> Result<Document, Refused> {
    let text = row.body["text"].as_str().ok_or_else(|| odd(row, "it has no text"))?;
    let ending = match row.body["format"].as_str() {
        None => "",
        Some("lobsterx") => ".lobsterx.yaml",
        Some("lens") => ".lens.yaml",
        Some(_) => return Err(odd(row, "its format is `lobsterx` or `lens`")),
    };
    let name = WorkflowVersion::split(&row.name).map_or(row.name.as_str(), |(name, _)| name);
    Ok(Document::new(Input { name: format!("{name}{ending}"), bytes: text.as_bytes().to_vec() }))
}

/// A row whose body has a shape of its own.
fn plain(row: &Row) -> Result<Row, Refused> {
    let fits = match row.kind {
        Kind::Policy => serde_json::from_value::<PolicyFile>(row.body.clone()).is_ok(),
        _ => {
            let held = row.body.get("held").is_some_and(Value::is_boolean);
            let fields = row.body.as_object().map_or(0, Map::len);
            row.name == ALL && held && fields == 1
        }
    };
    if fits { Ok(row.clone()) } else { Err(odd(row, "its fields are not those of its kind")) }
}

/// The fields of a row, with the secrets that were never shown.
fn restored(row: &Row, there: &[Row]) -> Result<Map<String, Value>, Refused> {
    let Value::Object(mut sent) = row.body.clone() else { return Err(odd(row, "it is no map")) };
    let before = rows::find(there, row.kind, &row.name).map(|row| &row.body);
    for field in SECRET {
        if sent.get(field).is_some_and(|value| value == REDACTED) {
            match before.and_then(|before| before.get(field)) {
                Some(value) => sent.insert(field.to_owned(), value.clone()),
                None => sent.shift_remove(field),
            };
        } else if field == "token_sha256" && sent.contains_key(field) {
            return Err(odd(row, "a gateway's token is made by the server"));
        }
    }
    Ok(sent)
}
