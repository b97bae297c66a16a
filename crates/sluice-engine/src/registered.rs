//! Start requests for registered workflows.

use crate::definition::Stored;
use crate::error::StartError;
use crate::start::Start;
use serde_json::{Map, Value};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::journal::event::DocumentSource;
use sluice_core::plan::Plan;
use sluice_core::plan::step::Work;
use sluice_core::port::ledger::Rows;
use sluice_core::rows;
use sluice_govern::registry::{Kind, Row, WorkflowVersion};
use std::collections::VecDeque;

/// Builds a start of the workflow registered as `name` or `name@version`, with all
/// references resolved now.
pub fn start(rows: &Rows, workflow: &str, args: Map<String, Value>) -> Result<Start, StartError> {
    let registry = Registry::default().with_rows(&rows.rows).map_err(StartError::Unresolved)?;
    let (plan, text) = plan(&rows.rows, &registry, workflow)?;
    let mut start = start_plan(rows, plan, &text)?;
    let row = find(&rows.rows, workflow).and_then(|row| WorkflowVersion::split(&row.name));
    start.version = row.map(|(_, version)| version);
    start.source = DocumentSource::Registered;
    start.args = args;
    Ok(start)
}

/// Builds a start without arguments from an unregistered plan, with all references
/// resolved now.
pub fn start_plan(rows: &Rows, plan: Plan, document: &str) -> Result<Start, StartError> {
    let registry = Registry::default().with_rows(&rows.rows).map_err(StartError::Unresolved)?;
    let mut wanted: VecDeque<String> = references(&plan).collect();
    let mut start = Start::new(Stored::new(plan, document), Map::new());
    start.source = DocumentSource::Inline;
    start.resolved_under = Some(rows.epoch);
    while let Some(reference) = wanted.pop_front() {
        if start.children.contains_key(&reference) {
            continue;
        }
        let (plan, text) = self::plan(&rows.rows, &registry, &reference)?;
        wanted.extend(references(&plan));
        let stored = Stored::new(plan, &text);
        start.children.insert(reference, stored.hash);
        start.bring.push(stored);
    }
    Ok(start)
}

/// The plan and text of a registered workflow.
fn plan(rows: &[Row], registry: &Registry, reference: &str) -> Result<(Plan, String), StartError> {
    let row = find(rows, reference).ok_or_else(|| {
        StartError::Unresolved(format!("there is no workflow `{reference}` in the registry"))
    })?;
    let text = row.body["text"].as_str().unwrap_or_default();
    let format = match row.body["format"].as_str() {
        Some("lobsterx") => Some(Format::Lobsterx),
        Some("lens") => Some(Format::Lens),
        _ => None,
    };
    let checked = doc::check(text.as_bytes(), format, registry);
    let plan = checked.plan.ok_or_else(|| {
        let errors = checked.diagnostics.iter().find(|one| one.is_error());
        let why = errors.map(|one| one.message.as_str()).unwrap_or_default();
        StartError::Unresolved(format!("workflow `{}` is not valid: {why}", row.name))
    })?;
    Ok((plan, text.to_owned()))
}

/// Finds the row of a workflow; without a version, the newest.
fn find<'r>(rows: &'r [Row], reference: &str) -> Option<&'r Row> {
    let newest = || {
        let all = rows::names(rows, Kind::Workflow).filter_map(WorkflowVersion::split);
        let version = all.filter(|(name, _)| *name == reference).map(|(_, version)| version).max();
        rows::find(rows, Kind::Workflow, &WorkflowVersion::row(reference, version?))
    };
    rows::find(rows, Kind::Workflow, reference).or_else(newest)
}

/// References to workflows in a plan, as its document writes them.
fn references(plan: &Plan) -> impl Iterator<Item = String> {
    plan.steps.iter().filter_map(|step| match &step.work {
        Work::Workflow(work) => {
            let version = work.version.map(|version| format!("@{version}"));
            Some(format!("{}{}", work.name, version.unwrap_or_default()))
        }
        _ => None,
    })
}
