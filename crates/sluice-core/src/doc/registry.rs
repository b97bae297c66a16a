//! What a document may refer to: library steps, workflows, lenses, teams.
//!
//! The core reads no store; the caller passes the registry in. Each part is optional, because
//! "not loaded" differs from "does not exist".

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Problem, Problems};
use crate::doc::leaf::{Later, Table, WholeNumber};
use crate::doc::lens::written::LensDoc;
use crate::doc::lobsterx::written::StepDoc;
use crate::doc::names;
use crate::doc::read::{DocumentReader, PathPart, Read, Spelling, document};
use crate::doc::setup::section;
use crate::doc::team::{TeamDoc, TeamRow};
use crate::node::{Entry, Node};
use crate::span::Spanned;
use crate::visible::shorten;
use crate::yaml;
use serde_json::json;
use sluice_govern::registry::{Kind as RowKind, Row, WorkflowVersion};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that documents may refer to.
#[derive(Debug, Default)]
pub struct Registry {
    /// Library steps by name.
    pub(crate) library: Option<BTreeMap<String, LibraryStep>>,
    /// Versions of workflows by name.
    pub(crate) workflows: Option<BTreeMap<String, BTreeSet<u64>>>,
    /// Lenses by id.
    pub(crate) lenses: Option<BTreeMap<String, LensDoc>>,
    /// Teams by name.
    pub(crate) teams: Option<BTreeMap<String, TeamDoc>>,
    /// Versions of the workflows in the same directory as the checked document.
    beside: BTreeMap<String, BTreeSet<u64>>,
}

/// Fields that steps copy, and those among them that steps cannot loosen.
#[derive(Debug)]
pub(crate) struct LibraryStep {
    pub(crate) fields: Vec<Entry<'static>>,
    pub(crate) locked: Vec<String>,
}

document! {
    /// Library steps, workflows, lenses and teams that documents may refer to.
    pub(crate) struct RegistryDoc {
        /// Library steps by name: step fields, and `locked`, the list of fields that steps cannot loosen.
        optional "library" library: Later<Table<StepDoc>>,
        /// Versions of workflows by name.
        optional "workflows" workflows: Table<Vec<WholeNumber<0, 9_007_199_254_740_991>>>,
        /// Lenses by id.
        optional "lenses" lenses: Table<LensDoc>,
        /// Teams by name.
        optional "teams" teams: Table<TeamRow>,
    }
}

impl Registry {
    /// Parses a registry file. Returns no registry if there is an error.
    pub fn parse(text: &str) -> (Option<Registry>, Vec<Diagnostic>) {
        let mut problems = Problems::default();
        let registry = yaml::parse(text, &mut problems).and_then(|root| {
            let mut cx = DocumentReader::new(text, Spelling::Either, &mut problems);
            Registry::read(&root, &mut cx)
        });
        let registry = registry.filter(|_| !problems.has_errors());
        (registry, problems.into_diagnostics(text))
    }

    /// Adds a workflow that is known from another source, such as a document in the same
    /// directory.
    ///
    /// A reference `name` then finds it, `name@3` only if `version` is 3. From then on,
    /// every other name is reported as unknown instead of as not checked.
    #[must_use]
    pub fn with_workflow(mut self, name: impl Into<String>, version: Option<u64>) -> Registry {
        let versions = self.workflows.get_or_insert_default().entry(name.into()).or_default();
        versions.extend(version);
        self
    }

    /// Replaces the workflows in the same directory as the checked document.
    ///
    /// Unlike [`Registry::with_workflow`], this does not change how other names are
    /// reported.
    #[must_use]
    pub fn beside(
        mut self,
        workflows: impl IntoIterator<Item = (String, Option<u64>)>,
    ) -> Registry {
        self.beside.clear();
        for (name, version) in workflows {
            self.beside.entry(name).or_default().extend(version);
        }
        self
    }

    /// Whether the directory of the checked document has a workflow of that name and
    /// version.
    pub(crate) fn has_beside(&self, name: &str, version: Option<u64>) -> bool {
        let versions = self.beside.get(name);
        versions.is_some_and(|known| version.is_none_or(|version| known.contains(&version)))
    }

    /// Adds the rows of a store. Existing definitions take precedence. A kind without rows
    /// stays as it is: not loaded.
    pub fn with_rows(mut self, rows: &[Row]) -> Result<Registry, String> {
        for row in rows {
            match row.kind {
                RowKind::Workflow => {
                    if let Some((name, version)) = WorkflowVersion::split(&row.name) {
                        self = self.with_workflow(name, Some(version));
                    }
                }
                RowKind::Library | RowKind::Lens | RowKind::Team => self.add_row(row)?,
                _ => {}
            }
        }
        Ok(self)
    }

    fn add_row(&mut self, row: &Row) -> Result<(), String> {
        let text = json!({ section(row.kind): { &row.name: &row.body } }).to_string();
        let (read, diagnostics) = Registry::parse(&text);
        let Some(read) = read else {
            let why = diagnostics.first().map(|one| one.message.as_str()).unwrap_or_default();
            return Err(format!("the {} `{}` cannot be read: {why}", row.kind.noun(), row.name));
        };
        for (name, step) in read.library.into_iter().flatten() {
            self.library.get_or_insert_default().entry(name).or_insert(step);
        }
        for (id, lens) in read.lenses.into_iter().flatten() {
            self.lenses.get_or_insert_default().entry(id).or_insert(lens);
        }
        for (name, team) in read.teams.into_iter().flatten() {
            self.teams.get_or_insert_default().entry(name).or_insert(team);
        }
        Ok(())
    }

    fn read<'n>(root: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Registry> {
        let document = RegistryDoc::read(root, cx)?;
        let versions =
            |versions: Vec<WholeNumber<0, _>>| versions.iter().map(|version| version.0).collect();
        for (id, _) in document.lenses.iter().flat_map(|table| &table.0) {
            cx.within(PathPart::Key("lenses"), |cx| names::lens_id(&id.value, id.span, cx));
        }
        for (name, _) in document.teams.iter().flat_map(|table| &table.0) {
            cx.within(PathPart::Key("teams"), |cx| names::lens_id(&name.value, name.span, cx));
        }
        let library = root.get("library").filter(|node| !node.is_null());
        Some(Registry {
            library: library
                .and_then(|node| cx.within(PathPart::Key("library"), |cx| read_library(node, cx))),
            workflows: document
                .workflows
                .map(|table| table.into_map(versions).into_iter().collect()),
            lenses: document.lenses.map(|table| table.into_map(|lens| lens).into_iter().collect()),
            teams: document.teams.map(|table| table.into_map(|row| row.0).into_iter().collect()),
            beside: BTreeMap::new(),
        })
    }
}

pub(super) fn read_library<'n>(
    node: &'n Node<'n>,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<BTreeMap<String, LibraryStep>> {
    let entries = cx.map(node)?;
    let outer = std::mem::replace(&mut cx.spelling, Spelling::Strict);
    let mut library = BTreeMap::new();
    for entry in entries {
        let step = cx.within(PathPart::Key(&entry.key), |cx| read_library_step(&entry.value, cx));
        library.extend(step.map(|step| (entry.key.clone().into_owned(), step)));
    }
    cx.spelling = outer;
    Some(library)
}

fn read_library_step<'n>(
    node: &'n Node<'n>,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<LibraryStep> {
    let mut fields = Vec::new();
    let mut locked: Option<Vec<Spanned<String>>> = None;
    let mut unused = StepDoc::default();
    for entry in cx.map(node)? {
        match &*entry.key {
            "locked" => cx.field(entry, &mut locked),
            "id" | "depends_on" | "library_step" | "phase" => {
                let message = format!("a library step cannot set `{}`", entry.key);
                let problem = Problem::new(Code::BadValue, entry.key_span, message);
                cx.within(PathPart::Key(&entry.key), |cx| cx.add(problem));
            }
            // A null value sets nothing.
            _ if entry.value.is_null() && StepDoc::FIELDS.contains(&&*entry.key) => {}
            _ => {
                unused.read_entry(entry, cx);
                fields.push(entry.clone().into_owned());
            }
        }
    }
    let is_set = |name: &str| fields.iter().any(|field| field.key == name);
    for name in locked.iter().flatten().filter(|name| !is_set(&name.value)) {
        let message = format!("`{}` is locked but not set", shorten(&name.value));
        let likely = cx.suggest(&name.value, fields.iter().map(|field| &*field.key));
        let problem = Problem::new(Code::BadValue, name.span, message).with_suggestion(likely);
        cx.within(PathPart::Key("locked"), |cx| cx.add(problem));
    }
    let locked = locked.into_iter().flatten().map(|name| name.value).collect();
    Some(LibraryStep { fields, locked })
}
