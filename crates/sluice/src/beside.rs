//! A document and the documents that it refers to, which lie beside it.

use crate::input;
use crate::refused::unreadable;
use sluice_core::code::Code;
use sluice_core::diagnostic::{Diagnostic, Problems};
use sluice_core::doc::{self, Checked, Format, Registry};
use sluice_core::node::Kind;
use sluice_core::plan::Plan;
use sluice_core::plan::step::Work;
use sluice_core::port::store::Hash;
use sluice_core::rows;
use sluice_core::yaml;
use sluice_engine::definition::Stored;
use sluice_govern::registry::{Kind as RowKind, Row, WorkflowVersion};
use sluice_server::refused::Refused;
use sluice_server::service::document::Input;
use sluice_server::service::versions;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// Most documents beside one that are looked at.
const BESIDE_MAX: usize = 1000;

/// A document ready to run.
pub(crate) struct Documents {
    pub(crate) main: Stored,
    /// By reference, as documents write it.
    pub(crate) children: BTreeMap<String, Hash>,
    pub(crate) bring: Vec<Stored>,
}

/// What was found in one document, for people.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) input: Input,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A document that lies beside another.
struct Beside {
    place: Place,
    name: String,
    version: Option<u64>,
}

/// Where a document is.
enum Place {
    File(PathBuf),
    /// The name of a row.
    Row(String),
}

impl Beside {
    fn read(&self, rows: &[Row]) -> Result<Input, Refused> {
        match &self.place {
            Place::File(path) => input::read(path.as_os_str()).map_err(|file| unreadable(&file)),
            Place::Row(name) => versions::input(rows, name),
        }
    }

    fn shown(&self) -> String {
        match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Row(name) => name.clone(),
        }
    }
}

/// The workflows of the registry.
fn registered(rows: &[Row]) -> impl Iterator<Item = Beside> {
    rows::names(rows, RowKind::Workflow).filter_map(|row| {
        let (name, version) = WorkflowVersion::split(row)?;
        let place = Place::Row(row.to_owned());
        Some(Beside { place, name: name.to_owned(), version: Some(version) })
    })
}

/// Checks a document and all it refers to. What was found comes with it; if
/// one of them is refused, there are no documents and its findings come last.
///
/// Workflows are looked for beside the document, then among the rows of the
/// registry; those of the rows know only the rows.
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

/// Checks a document by itself, with the workflows beside it at hand: a reference
/// to one of them is right, and what else it refers to is judged by the registry.
pub(crate) fn look(input: &Input, registry: Registry) -> (Checked, Registry) {
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

/// Whether a document is about others.
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

/// As documents write it.
fn reference(name: &str, version: Option<u64>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name}@{version}"))
}

/// The documents in the directory of one, by their names inside.
fn list(input: &Input) -> Vec<Beside> {
    if input.name == "-" || !Path::new(&input.name).exists() {
        return Vec::new();
    }
    let dir = Path::new(&input.name).parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new("."));
    // A directory that cannot be listed has no documents; what is missed is named later.
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.path())
        .map(|path| path.strip_prefix("./").map(Path::to_owned).unwrap_or(path))
        .filter(|path| path.to_str().and_then(Format::of_file).is_some())
        .take(BESIDE_MAX)
        .collect();
    paths.sort();
    paths.into_iter().filter_map(named).collect()
}

/// A document's own name and version. Whether it is right is looked at when it
/// is needed.
fn named(path: PathBuf) -> Option<Beside> {
    let input = input::read(path.as_os_str()).ok()?;
    let text = input.text().ok()?;
    let root = yaml::parse(text, &mut Problems::default())?;
    let Kind::Text(name) = &root.get("name")?.kind else { return None };
    let version = match root.get("version").map(|node| &node.kind) {
        Some(Kind::Number(number)) => number.as_u64(),
        _ => None,
    };
    Some(Beside { place: Place::File(path), name: name.clone().into_owned(), version })
}

/// The document of this name and version; without a version, the newest.
fn choose<'b>(
    beside: &'b [Beside],
    name: &str,
    version: Option<u64>,
    place: &str,
) -> Result<&'b Beside, Refused> {
    let fits = |one: &&Beside| one.name == name && (version.is_none() || one.version == version);
    let file = |one: &&Beside| matches!(one.place, Place::File(_));
    // What lies beside the document is nearer than what was registered.
    let near = beside.iter().filter(fits).any(|one| file(&one));
    let fits = |one: &&Beside| fits(one) && file(one) == near;
    let newest = beside.iter().filter(fits).map(|one| one.version).max();
    let found: Vec<&Beside> =
        beside.iter().filter(fits).filter(|one| Some(one.version) == newest).collect();
    let reference = reference(name, version);
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let message = format!("the workflow `{reference}` is not at hand");
            let remedy = format!(
                "put its document beside `{place}`, named {name} inside, or register it with \
                `sluice workflows put FILE`"
            );
            Err(Refused::new("unknown_workflow", message, remedy))
        }
        several => {
            let message = format!("several documents are the workflow `{reference}`");
            let notes = several.iter().map(|one| one.shown()).collect();
            let remedy = "leave one of them beside the document that is run";
            Err(Refused::new("unknown_workflow", message, remedy).with_notes(notes))
        }
    }
}
