//! A document and the documents it refers to, in its directory or in the registry.

use crate::input;
use crate::refused::unreadable;
use sluice_core::code::Code;
use sluice_core::diagnostic::{Diagnostic, Problems};
use sluice_core::doc::{self, Checked, Format, Registry};
use sluice_core::hash::Hash;
use sluice_core::node::Kind;
use sluice_core::plan::Plan;
use sluice_core::plan::step::Work;
use sluice_core::rows;
use sluice_core::yaml;
use sluice_engine::definition::Stored;
use sluice_govern::registry::{Kind as RowKind, Row, WorkflowVersion};
use sluice_server::refused::Refused;
use sluice_server::service::document::Input;
use sluice_server::service::versions;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// Most documents of a directory that are read.
const REFERENCED_MAX: usize = 1000;

pub(crate) struct Documents {
    pub(crate) main: Stored,
    /// By reference, as documents spell it.
    pub(crate) children: BTreeMap<String, Hash>,
    pub(crate) bring: Vec<Stored>,
}

/// The diagnostics of one document.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) input: Input,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

struct ReferencedDocument {
    place: ReferenceSource,
    name: String,
    version: Option<u64>,
}

enum ReferenceSource {
    File(PathBuf),
    Row(String),
}

impl ReferencedDocument {
    fn read(&self, rows: &[Row]) -> Result<Input, Refused> {
        match &self.place {
            ReferenceSource::File(path) => {
                input::read(path.as_os_str()).map_err(|file| unreadable(&file))
            }
            ReferenceSource::Row(name) => versions::input(rows, name),
        }
    }

    fn shown(&self) -> String {
        match &self.place {
            ReferenceSource::File(path) => path.display().to_string(),
            ReferenceSource::Row(name) => name.clone(),
        }
    }
}

/// The workflows of the registry.
fn registered(rows: &[Row]) -> impl Iterator<Item = ReferencedDocument> {
    rows::names(rows, RowKind::Workflow).filter_map(|row| {
        let (name, version) = WorkflowVersion::split(row)?;
        let place = ReferenceSource::Row(row.to_owned());
        Some(ReferencedDocument { place, name: name.to_owned(), version: Some(version) })
    })
}

/// Checks a document and all it refers to. If one of them is refused, no documents are returned
/// and its diagnostics come last.
///
/// A workflow is resolved in the directory of the document, then in the registry; registered
/// workflows only refer to registered ones.
pub(crate) fn gather(
    input: Input,
    mut registry: Registry,
    rows: &[Row],
) -> Result<(Option<Documents>, Vec<Findings>), Refused> {
    let mut checked = check(&input, &registry);
    let mut beside = Vec::new();
    if refers(&checked) {
        beside = list(&input);
        beside.extend(registered(rows));
        for one in &beside {
            registry = registry.with_workflow(one.name.clone(), one.version);
        }
        checked = check(&input, &registry);
    }
    let place = input.name.clone();
    let text = input.lossy().into_owned();
    let mut findings = vec![Findings { input, diagnostics: checked.diagnostics }];
    let Some(plan) = checked.plan else { return Ok((None, findings)) };
    let mut wanted: VecDeque<(String, Option<u64>)> = references(&plan).collect();
    let mut documents =
        Documents { main: Stored::new(plan, &text), children: BTreeMap::new(), bring: Vec::new() };
    while let Some((name, version)) = wanted.pop_front() {
        let reference = reference(&name, version);
        if documents.children.contains_key(&reference) {
            continue;
        }
        let found = choose(&beside, &name, version, &place)?;
        let input = found.read(rows)?;
        let checked = check(&input, &registry);
        let text = input.lossy().into_owned();
        findings.push(Findings { input, diagnostics: checked.diagnostics });
        let Some(plan) = checked.plan else { return Ok((None, findings)) };
        wanted.extend(references(&plan));
        let stored = Stored::new(plan, &text);
        documents.children.insert(reference, stored.hash);
        documents.bring.push(stored);
    }
    Ok((Some(documents), findings))
}

/// Checks one document. References resolve to workflows in its directory, and to the registry.
pub(crate) fn check_one(input: &Input, registry: Registry) -> (Checked, Registry) {
    let registry = registry.beside([]);
    let checked = check(input, &registry);
    if !refers(&checked) {
        return (checked, registry);
    }
    let beside = list(input).into_iter().map(|one| (one.name, one.version));
    let registry = registry.beside(beside);
    (check(input, &registry), registry)
}

fn check(input: &Input, registry: &Registry) -> Checked {
    doc::check(&input.bytes, Format::of_file(&input.name), registry)
}

/// Whether a document refers to other workflows.
fn refers(checked: &Checked) -> bool {
    let unknown =
        |one: &Diagnostic| matches!(one.code, Code::UnknownWorkflow | Code::UnresolvedReference);
    checked.diagnostics.iter().any(unknown)
        || checked.plan.as_ref().is_some_and(|plan| references(plan).next().is_some())
}

fn references(plan: &Plan) -> impl Iterator<Item = (String, Option<u64>)> {
    plan.steps.iter().filter_map(|step| match &step.work {
        Work::Workflow(work) => Some((work.name.clone(), work.version)),
        _ => None,
    })
}

fn reference(name: &str, version: Option<u64>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name}@{version}"))
}

/// The documents in the directory of a document, by their declared names.
fn list(input: &Input) -> Vec<ReferencedDocument> {
    if input.name == "-" || !Path::new(&input.name).exists() {
        return Vec::new();
    }
    let dir = Path::new(&input.name).parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new("."));
    // An unreadable directory has no documents; a missing reference is reported later.
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.path())
        .map(|path| path.strip_prefix("./").map(Path::to_owned).unwrap_or(path))
        .filter(|path| path.to_str().and_then(Format::of_file).is_some())
        .take(REFERENCED_MAX)
        .collect();
    paths.sort();
    paths.into_iter().filter_map(read_name).collect()
}

/// The declared name and version of a document, which is checked when it is used.
fn read_name(path: PathBuf) -> Option<ReferencedDocument> {
    let input = input::read(path.as_os_str()).ok()?;
    let text = input.text().ok()?;
    let root = yaml::parse(text, &mut Problems::default())?;
    let Kind::Text(name) = &root.get("name")?.kind else { return None };
    let version = match root.get("version").map(|node| &node.kind) {
        Some(Kind::Number(number)) => number.as_u64(),
        _ => None,
    };
    Some(ReferencedDocument {
        place: ReferenceSource::File(path),
        name: name.clone().into_owned(),
        version,
    })
}

/// The document of this name and version; without a version, the newest.
fn choose<'b>(
    beside: &'b [ReferencedDocument],
    name: &str,
    version: Option<u64>,
    place: &str,
) -> Result<&'b ReferencedDocument, Refused> {
    let fits = |one: &&ReferencedDocument| {
        one.name == name && (version.is_none() || one.version == version)
    };
    let file = |one: &&ReferencedDocument| matches!(one.place, ReferenceSource::File(_));
    // A document in the same directory takes precedence over a registered one.
    let near = beside.iter().filter(fits).any(|one| file(&one));
    let fits = |one: &&ReferencedDocument| fits(one) && file(one) == near;
    let newest = beside.iter().filter(fits).map(|one| one.version).max();
    let found: Vec<&ReferencedDocument> =
        beside.iter().filter(fits).filter(|one| Some(one.version) == newest).collect();
    let reference = reference(name, version);
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let message = format!("the workflow `{reference}` was not found");
            let remedy = format!(
                "put its document, named `{name}`, next to `{place}`, or register it with \
                `sluice workflows put FILE`"
            );
            Err(Refused::new("unknown_workflow", message, remedy))
        }
        several => {
            let message = format!("several documents are the workflow `{reference}`");
            let notes = several.iter().map(|one| one.shown()).collect();
            let remedy = "keep one of them in the directory of the document";
            Err(Refused::new("unknown_workflow", message, remedy).with_notes(notes))
        }
    }
}
