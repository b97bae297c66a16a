//! Setups: one file that declares the rows of the registry.
//!
//! A setup declares agents, gateways, roles, deployments, budgets, prices, policies, notes,
//! memory profiles, instructions, library steps, lenses, teams and workflows, so that version
//! control can hold all of them. It may name other files, which the caller reads; the core
//! reads no files.

mod row;
mod schedule;
#[cfg(test)]
mod tests;
mod texts;
mod written;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Problem, Problems};
use crate::doc::lens::written::LensDoc;
use crate::doc::names;
use crate::doc::read::{DocumentReader, PathPart, Read, Spelling};
use crate::doc::registry::read_library;
use crate::doc::schema::Defs;
use crate::node::{Entry, Node};
use crate::span::Span;
use crate::yaml;
use serde_json::{Map, Value, json};
use sluice_govern::registry::{Kind, PolicySet, Row};
use written::SetupDoc;

/// A contradiction or a mistake in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The kind of row.
    pub kind: Kind,
    /// The name of the row.
    pub name: String,
    /// The path of the field, outermost key first.
    pub path: Vec<String>,
    /// The kind of problem.
    pub code: Code,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The contents of a setup.
#[derive(Debug)]
pub struct Setup {
    /// The rows as written. They are completed before they are stored.
    pub rows: Vec<Row>,
    /// Rows whose contents are in other files.
    pub files: Vec<FileRow>,
    /// A directory whose `.cedar` files are the active policies.
    pub policy_dir: Option<String>,
    root: Node<'static>,
    text: String,
}

/// A row whose content is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// The kind of row: a policy, a lens or a workflow.
    pub kind: Kind,
    /// The name of the row; that of a workflow is in its file.
    pub name: Option<String>,
    /// Whether a policy is active or a shadow; other kinds ignore it.
    pub set: PolicySet,
    /// The path as written, relative to the setup.
    pub path: String,
}

/// The plural word for a kind of row, in setups and on the command line.
pub const fn section(kind: Kind) -> &'static str {
    match kind {
        Kind::Agent => "agents",
        Kind::Gateway => "gateways",
        Kind::Role => "roles",
        Kind::Deployment => "deployments",
        Kind::Budget => "budgets",
        Kind::Price => "prices",
        Kind::Policy => "policies",
        Kind::Library => "library",
        Kind::Workflow => "workflows",
        Kind::Lens => "lenses",
        Kind::Team => "teams",
        Kind::Schedule => "schedules",
        Kind::Note => "notes",
        Kind::Memory => "memories",
        Kind::Instruction => "instructions",
        Kind::Webhook => "webhooks",
        Kind::Hook => "hooks",
        Kind::Token => "tokens",
        Kind::Switch => "switches",
    }
}

impl Setup {
    /// Parses a setup. Returns no setup if there is an error.
    pub fn parse(text: &str) -> (Option<Setup>, Vec<Diagnostic>) {
        let mut problems = Problems::default();
        let setup = yaml::parse(text, &mut problems).and_then(|root| {
            let mut cx = DocumentReader::new(text, Spelling::Strict, &mut problems);
            let (rows, files, policy_dir) = read(&root, &mut cx)?;
            let (root, text) = (root.into_owned(), text.to_owned());
            Some(Setup { rows, files, policy_dir, root, text })
        });
        let setup = setup.filter(|_| !problems.has_errors());
        (setup, problems.into_diagnostics(text))
    }

    /// Parses a lens in a file of its own.
    pub fn lens(name: &str, text: &str) -> (Option<Row>, Vec<Diagnostic>) {
        let mut problems = Problems::default();
        let body = yaml::parse(text, &mut problems).map(|root| {
            LensDoc::read(&root, &mut DocumentReader::new(text, Spelling::Either, &mut problems));
            root.to_value()
        });
        let row = body.map(|body| Row { kind: Kind::Lens, name: name.to_owned(), body });
        let row = row.filter(|_| !problems.has_errors());
        (row, problems.into_diagnostics(text))
    }

    /// Turns faults of rows in this setup into diagnostics with a place; returns the faults
    /// of other rows unchanged.
    pub fn place(&self, faults: Vec<RowFault>) -> (Vec<Diagnostic>, Vec<RowFault>) {
        let mut problems = Problems::default();
        let mut others = Vec::new();
        for fault in faults {
            let Some((span, path)) = self.locate(&fault) else {
                others.push(fault);
                continue;
            };
            let problem = Problem::new(fault.code, span, fault.message).at_path(path);
            problems.add(match fault.hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        }
        (problems.into_diagnostics(&self.text), others)
    }

    /// The innermost part of the file that a fault is about.
    fn locate(&self, fault: &RowFault) -> Option<(Span, String)> {
        let mut path = format!("{}.{}", section(fault.kind), fault.name);
        let mut at = self.root.get(section(fault.kind))?.get(&fault.name)?;
        for part in &fault.path {
            let item = part.parse().ok().and_then(|index| at.item(index));
            if let Some(below) = at.get(part) {
                path = format!("{path}.{part}");
                at = below;
            } else if let Some(below) = item {
                path = format!("{path}[{part}]");
                at = below;
            }
        }
        Some((at.span, path))
    }

    /// The JSON Schema of setups, for editors.
    pub fn json_schema() -> Value {
        let mut defs = Defs::new(Spelling::Strict);
        SetupDoc::schema(&mut defs);
        defs.into_schema("Sluice setup", "SetupDoc")
    }
}

type Parts = (Vec<Row>, Vec<FileRow>, Option<String>);

fn read<'n>(root: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Parts> {
    let document = SetupDoc::read(root, cx)?;
    if let Some(library) = root.get("library").filter(|node| !node.is_null()) {
        cx.within(PathPart::Key("library"), |cx| read_library(library, cx));
    }
    let mut rows = Vec::new();
    let mut files = Vec::new();
    for kind in Kind::ALL {
        let Some(entries) = root.get(section(kind)).and_then(Node::entries) else { continue };
        for entry in entries {
            cx.within(PathPart::Key(section(kind)), |cx| name(kind, entry, cx));
            match file_row(kind, entry) {
                Some(file) => files.push(file),
                None => rows.push(row(kind, entry)),
            }
        }
    }
    for path in document.workflows.into_iter().flatten() {
        let set = PolicySet::Active;
        files.push(FileRow { kind: Kind::Workflow, name: None, set, path: path.value });
    }
    Some((rows, files, document.policy_dir))
}

fn name<'n>(kind: Kind, entry: &'n Entry<'n>, cx: &mut DocumentReader<'n, '_>) {
    match kind {
        Kind::Price => names::model(&entry.key, entry.key_span, cx),
        _ => names::lens_id(&entry.key, entry.key_span, cx),
    }
}

fn file_row(kind: Kind, entry: &Entry<'_>) -> Option<FileRow> {
    if !matches!(kind, Kind::Policy | Kind::Lens) {
        return None;
    }
    let Value::String(path) = entry.value.get("file")?.to_value() else { return None };
    let shadow = entry.value.get("set").is_some_and(|set| set.to_value() == "shadow");
    let set = if shadow { PolicySet::Shadow } else { PolicySet::Active };
    Some(FileRow { kind, name: Some(entry.key.clone().into_owned()), set, path })
}

fn row(kind: Kind, entry: &Entry<'_>) -> Row {
    let body = entry.value.to_value();
    // A null value sets nothing. The readers of library steps and lenses check empty values
    // themselves.
    let body = if matches!(kind, Kind::Library | Kind::Lens) { body } else { set_only(body) };
    Row { kind, name: entry.key.clone().into_owned(), body }
}

fn set_only(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(name, value)| (name, set_only(value))).collect())
        }
        other => other,
    }
}

/// A setup with one row, as text, so that a command that sets a row applies the same rules as a
/// file.
pub fn of_one(kind: Kind, name: &str, body: &Map<String, Value>) -> String {
    let mut fields = body.clone();
    fields.retain(|_, value| !value.is_null());
    let setup = json!({ section(kind): { name: fields } });
    format!("{setup:#}")
}
