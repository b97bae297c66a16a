//! Versions of workflows in the registry. A version never changes.

use super::document::{Findings, Input};
use crate::refused::{ROW_UNKNOWN, ROW_UNREADABLE, Refused, VERSION_TAKEN};
use serde_json::json;
use sluice_core::diagnostic::Problems;
use sluice_core::doc::{self, Format, Registry};
use sluice_core::node::Kind as NodeKind;
use sluice_core::rows;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_core::yaml;
use sluice_govern::registry::{Kind, Row, WorkflowVersion};
use std::collections::BTreeMap;

/// A document that becomes a workflow version.
#[derive(Debug, Clone)]
pub struct Document {
    /// The document as the caller passed it in.
    pub input: Input,
    /// The `name` of the document, if it can be read.
    name: Option<String>,
    /// The `version` of the document, if it has one.
    version: Option<u64>,
}

impl Document {
    /// Reads the name and version of a document, as far as possible.
    pub fn new(input: Input) -> Document {
        let (name, version) = name_and_version(&input.lossy()).unwrap_or_default();
        Document { input, name, version }
    }
}

/// The name and version of a document. `doc::check` validates them.
fn name_and_version(text: &str) -> Option<(Option<String>, Option<u64>)> {
    let root = yaml::parse(text, &mut Problems::default())?;
    let NodeKind::Text(name) = &root.get("name")?.kind else { return None };
    let version = match root.get("version").map(|node| &node.kind) {
        Some(NodeKind::Number(number)) => number.as_u64(),
        _ => None,
    };
    Some((Some(name.clone().into_owned()), version))
}

/// The rows to add for documents, given the stored rows.
pub fn rows(documents: &[Document], stored: &[Row]) -> Result<Vec<Row>, Refused> {
    let mut put: Vec<Row> = Vec::new();
    let mut seen: BTreeMap<&str, &Document> = BTreeMap::new();
    for document in documents {
        // `check` refuses a document without a name.
        let Some(name) = document.name.as_deref() else { continue };
        if let Some(first) = seen.insert(name, document)
            && (first.version.is_none() || document.version.is_none())
        {
            let message = format!(
                "`{}` and `{}` are both the workflow `{}`",
                first.input.name,
                document.input.name,
                visible::brief(name)
            );
            let remedy = "give each a `version` of its own";
            return Err(Refused::new(VERSION_TAKEN, message, remedy));
        }
        let known = rows::with(stored, &put, &[]);
        put.extend(row(document, name, &known)?);
    }
    Ok(put)
}

/// The row of a document; `None` if the same version is already stored.
fn row(document: &Document, name: &str, stored: &[Row]) -> Result<Option<Row>, Refused> {
    let text = document.input.lossy();
    let newest = versions(stored, name).max();
    let text_of = |version: u64| {
        let row = rows::find(stored, Kind::Workflow, &WorkflowVersion::row(name, version));
        row.and_then(|row| row.body["text"].as_str())
    };
    let version = match (document.version, newest) {
        (Some(own), _) => own,
        (None, Some(newest)) if text_of(newest) == Some(&text) => return Ok(None),
        (None, newest) => newest.unwrap_or(0) + 1,
    };
    match text_of(version) {
        Some(old) if old == text => return Ok(None),
        Some(_) => {
            let message = format!(
                "{} exists already, with different content",
                visible::brief(&WorkflowVersion::row(name, version))
            );
            let remedy = "a version never changes: raise `version` in the document";
            return Err(Refused::new(VERSION_TAKEN, message, remedy));
        }
        None => {}
    }
    let format = Format::of_file(&document.input.name).map(|format| match format {
        Format::Lobsterx => "lobsterx",
        Format::Lens => "lens",
    });
    let body = json!({ "format": format, "text": text });
    Ok(Some(Row { kind: Kind::Workflow, name: WorkflowVersion::row(name, version), body }))
}

/// The stored versions of a workflow.
pub fn versions<'r>(stored: &'r [Row], name: &str) -> impl Iterator<Item = u64> + use<'r> {
    let name = name.to_owned();
    let split = rows::names(stored, Kind::Workflow).filter_map(WorkflowVersion::split);
    split.filter(move |(one, _)| *one == name).map(|(_, version)| version)
}

/// Checks documents against the rows as they will be. Returns the diagnostics of documents
/// that are refused.
pub fn check(documents: &[Document], after: &[Row]) -> Result<Vec<Findings>, Refused> {
    let registry = registry(Registry::default(), after)?;
    let mut refused = Vec::new();
    for document in documents {
        let input = &document.input;
        let checked = doc::check(&input.bytes, Format::of_file(&input.name), &registry);
        if !checked.is_ok() {
            let (input, diagnostics) = (input.clone(), checked.diagnostics);
            refused.push(Findings { input, diagnostics });
        }
    }
    Ok(refused)
}

/// What documents may refer to: a given registry plus the stored rows.
pub fn registry(named: Registry, rows: &[Row]) -> Result<Registry, Refused> {
    named.with_rows(rows).map_err(|why| {
        let remedy = "apply the file that the row came from again";
        Refused::new(ROW_UNREADABLE, why, remedy)
    })
}

/// The document of a version, given as `name` or `name@version`.
pub fn input(stored: &[Row], reference: &str) -> Result<Input, Refused> {
    let row = find(stored, reference)?;
    let text = row.body["text"].as_str().unwrap_or_default();
    let ending = row.body["format"].as_str().map(|format| format!(".{format}.yaml"));
    let name = format!("{}{}", row.name, ending.unwrap_or_default());
    Ok(Input { name, bytes: text.as_bytes().to_vec() })
}

/// The row of a workflow version; without a version, the newest.
pub fn find<'r>(stored: &'r [Row], reference: &str) -> Result<&'r Row, Refused> {
    let newest = || {
        let version = versions(stored, reference).max()?;
        rows::find(stored, Kind::Workflow, &WorkflowVersion::row(reference, version))
    };
    let row = rows::find(stored, Kind::Workflow, reference).or_else(newest);
    row.ok_or_else(|| {
        let message = format!("there is no workflow `{}`", visible::brief(reference));
        let split = rows::names(stored, Kind::Workflow).filter_map(WorkflowVersion::split);
        let remedy = match suggest(reference, split.map(|(name, _)| name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`sluice workflows list` lists them".to_owned(),
        };
        Refused::new(ROW_UNKNOWN, message, remedy)
    })
}
