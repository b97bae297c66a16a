//! The flow of data through a document, with the rows and the tools of an organisation.

use crate::refused::Refused;
use crate::service::versions;
use sluice_core::doc::{self, Format, Registry};
use sluice_core::flow::{Flow, FlowDocument, Setting};
use sluice_core::plan::Plan;
use sluice_core::plan::step::Work;
use sluice_core::run::definition::Definition;
use sluice_govern::catalog::Catalog;
use sluice_govern::registry::{Fabric, Row};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most documents of one analysis.
const DOCUMENTS_MAX: usize = 1000;

/// A document with its sub-workflows.
#[derive(Debug)]
pub struct FlowDocuments {
    /// The document.
    pub main: FlowDocument,
    /// Its sub-workflows, by reference.
    pub children: BTreeMap<String, FlowDocument>,
}

impl FlowDocuments {
    /// A document whose sub-workflows are registered. One that is missing or does not fit
    /// the registry any more is left out: the analysis assumes the worst of it.
    pub(crate) fn registered(
        name: &str,
        plan: Plan,
        text: &str,
        (rows, registry): (&[Row], &Registry),
    ) -> FlowDocuments {
        let mut wanted = references(&plan);
        let main = document(name, plan, text);
        let mut children = BTreeMap::new();
        while let Some(reference) = wanted.pop() {
            if children.contains_key(&reference) || children.len() == DOCUMENTS_MAX {
                continue;
            }
            let Ok(input) = versions::input(rows, &reference) else { continue };
            let checked = doc::check(&input.bytes, Format::of_file(&input.name), registry);
            let Some(plan) = checked.plan else { continue };
            wanted.extend(references(&plan));
            let child = document(&input.name, plan, &String::from_utf8_lossy(&input.bytes));
            children.insert(reference, child);
        }
        FlowDocuments { main, children }
    }

    /// The text of each document, by name.
    pub fn texts(&self) -> BTreeMap<&str, &str> {
        let all = std::iter::once(&self.main).chain(self.children.values());
        all.map(|one| (one.name.as_str(), one.definition.document.as_str())).collect()
    }

    /// The worst labels of the document.
    pub fn analyse<'p>(
        &'p self,
        fabric: &'p Fabric,
        catalog: &'p Catalog,
    ) -> Result<Flow<'p>, Refused> {
        let setting = Setting { fabric, catalog, children: &self.children, default_agent: None };
        Flow::analyse(&self.main, setting).map_err(|error| {
            Refused::new("bad_value", error.to_string(), "use the same names for the same things")
        })
    }
}

fn document(name: &str, plan: Plan, text: &str) -> FlowDocument {
    let definition = Arc::new(Definition::new(plan, text.to_owned()));
    FlowDocument { name: name.to_owned(), definition }
}

/// The workflows that a plan refers to: `name` or `name@version`.
fn references(plan: &Plan) -> Vec<String> {
    let works = plan.steps.iter().filter_map(|step| match &step.work {
        Work::Workflow(work) => Some(work),
        _ => None,
    });
    let reference = works.map(|work| match work.version {
        Some(version) => format!("{}@{version}", work.name),
        None => work.name.clone(),
    });
    reference.collect()
}
