//! Starts runs of registered workflows and of inline documents.

use super::document::Input;
use super::versions;
use crate::organisation::Organisation;
use crate::refused::{self, BAD_REQUEST, Refused, ServiceResult};
use serde_json::{Map, Value};
use sluice_core::diagnostic::Diagnostic;
use sluice_core::doc::{self, Format, Registry};
use sluice_core::limits::NAME_CHARS_MAX;
use sluice_core::rows;
use sluice_core::trace::TraceParent;
use sluice_engine::error::StartError;
use sluice_engine::limits::RESOLVE_TRIES_MAX;
use sluice_engine::registered;
use sluice_engine::start::{Start, StartedRun};
use sluice_govern::registry::{Kind, Row, WorkflowVersion};
use std::collections::BTreeMap;

/// The code of a document that is refused as a whole.
pub(crate) const DOCUMENT_REFUSED: &str = "document_refused";
/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// What a run is started with, besides its document.
#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    /// Arguments of the workflow.
    pub args: Map<String, Value>,
    /// The agent of steps that name none.
    pub default_agent: Option<String>,
    /// The model of steps that name none, instead of the document's default.
    pub default_model: Option<String>,
    /// How many ancestors a run that this one starts may have.
    pub recursion_depth_max: Option<u32>,
    /// Agents by role.
    pub role_bindings: BTreeMap<String, String>,
    /// Idempotency key: the same key within a day returns the same run.
    pub key: Option<String>,
    /// The principal that starts the run.
    pub initiator: String,
    /// People whose inbound webhook starts the run: they are its initiators as well.
    pub on_behalf_of: Vec<String>,
    /// The trace that the run belongs to, and its parent span.
    pub trace: Option<TraceParent>,
}

/// Checks an idempotency key.
pub fn key(key: Option<String>) -> Result<Option<String>, Refused> {
    let fits = |key: &String| {
        !key.is_empty() && key.len() <= KEY_BYTES_MAX && !key.chars().any(char::is_control)
    };
    if key.as_ref().is_none_or(fits) {
        return Ok(key);
    }
    let message = format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes of plain text");
    Err(Refused::new(BAD_REQUEST, message, "use another key"))
}

/// Checks the name of a model.
pub fn model(model: Option<String>) -> Result<Option<String>, Refused> {
    let fits = |name: &String| {
        !name.trim().is_empty()
            && name.chars().count() <= NAME_CHARS_MAX
            && !name.chars().any(char::is_control)
    };
    if model.as_ref().is_none_or(fits) {
        return Ok(model);
    }
    let message =
        format!("`default_model` has 1 to {NAME_CHARS_MAX} characters, without control characters");
    Err(Refused::new(BAD_REQUEST, message, "name a model, or leave it out"))
}

/// Starts a registered workflow: `name` or `name@version`.
pub(crate) async fn start_workflow(
    organisation: &Organisation,
    reference: &str,
    request: StartRequest,
) -> ServiceResult<StartedRun> {
    for _ in 0..RESOLVE_TRIES_MAX {
        let ready = prepare_workflow(organisation, reference).await?;
        if let Some(started) = start_prepared(organisation, ready, &request).await? {
            return Ok(started);
        }
    }
    Err(refused::start(StartError::Moved))
}

/// A registered workflow, resolved and ready to be started.
pub(crate) async fn prepare_workflow(
    organisation: &Organisation,
    reference: &str,
) -> ServiceResult<Start> {
    let rows = organisation.rows().await?;
    if let Some(ready) = organisation.prepared_start(rows.epoch, reference) {
        return Ok(ready);
    }
    versions::find(&rows.rows, reference)?;
    let ready = registered::start(&rows, reference, Map::new());
    let ready = ready.map_err(refused::start)?;
    organisation.cache_start(rows.epoch, reference, ready.clone());
    Ok(ready)
}

/// Starts a document that is not registered.
pub(crate) async fn start_document(
    organisation: &Organisation,
    document: &str,
    format: Option<&str>,
    request: StartRequest,
) -> ServiceResult<StartedRun> {
    let (format, input) = input("document", document, format)?;
    for _ in 0..RESOLVE_TRIES_MAX {
        let rows = organisation.rows().await?;
        let registry = versions::registry(Registry::default(), &rows.rows)?;
        let checked = doc::check(&input.bytes, format, &with_workflows(registry, &rows.rows));
        let Some(plan) = checked.plan else {
            return Err(refused_document(&checked.diagnostics).into());
        };
        let ready = registered::start_plan(&rows, plan, document).map_err(refused::start)?;
        if let Some(started) = start_prepared(organisation, ready, &request).await? {
            return Ok(started);
        }
    }
    Err(refused::start(StartError::Moved))
}

/// Starts a resolved workflow; `None` if the registry has changed since.
async fn start_prepared(
    organisation: &Organisation,
    start: Start,
    request: &StartRequest,
) -> ServiceResult<Option<StartedRun>> {
    match organisation.service().engine.start(with_request(organisation, start, request)).await {
        Err(StartError::Moved) => Ok(None),
        started => started.map(Some).map_err(refused::start),
    }
}

/// A prepared start with the values of a request.
pub(crate) fn with_request(
    organisation: &Organisation,
    mut start: Start,
    request: &StartRequest,
) -> Start {
    let default_agent = request.default_agent.as_deref().or_else(|| organisation.default_agent());
    start.args.clone_from(&request.args);
    start.initiator.clone_from(&request.initiator);
    start.on_behalf_of.clone_from(&request.on_behalf_of);
    start.default_agent = default_agent.map(str::to_owned);
    start.default_model.clone_from(&request.default_model);
    start.recursion_depth_max = request.recursion_depth_max;
    start.role_bindings.clone_from(&request.role_bindings);
    start.trace.clone_from(&request.trace);
    // An engine that dispatches nothing only records the run for one that does.
    start.dispatching = organisation.service().engine.dispatching();
    start.key = match request.key.as_deref() {
        Some("auto") => Some(start.auto_key()),
        key => key.map(str::to_owned),
    };
    start
}

/// Adds the registered workflows to what a document may refer to.
pub(crate) fn with_workflows(registry: Registry, stored: &[Row]) -> Registry {
    let split = rows::names(stored, Kind::Workflow).filter_map(WorkflowVersion::split);
    split.fold(registry, |registry, (name, version)| {
        registry.with_workflow(name.to_owned(), Some(version))
    })
}

/// A document of a request: its format, and its text under a file name of that format.
pub fn input(
    name: &str,
    text: &str,
    format: Option<&str>,
) -> Result<(Option<Format>, Input), Refused> {
    let (format, ending) = match format {
        None => (None, ""),
        Some("lobsterx") => (Some(Format::Lobsterx), ".lobsterx.yaml"),
        Some("lens") => (Some(Format::Lens), ".lens.yaml"),
        Some(_) => {
            let message = "`format` is `lobsterx` or `lens`";
            return Err(Refused::new(BAD_REQUEST, message, "leave it out"));
        }
    };
    let input = Input { name: format!("{name}{ending}"), bytes: text.as_bytes().to_vec() };
    Ok((format, input))
}

/// The refusal of a document, with a note for each error.
pub(crate) fn refused_document(diagnostics: &[Diagnostic]) -> Refused {
    let errors = diagnostics.iter().filter(|one| one.is_error());
    let notes = errors.map(|one| {
        let hint = one.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let (line, column, code) = (one.line, one.column, one.code.as_str());
        format!("{line}:{column} {code}: {}{hint}", one.message)
    });
    let remedy = "`POST /api/v1/workflows/validate` lists every problem";
    Refused::new(DOCUMENT_REFUSED, "the document is refused", remedy).with_notes(notes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_a_short_name() {
        assert!(model(None).is_ok() && model(Some("vendor/large-2".to_owned())).is_ok());
        for odd in [" ".to_owned(), "a\nb".to_owned(), "m".repeat(129)] {
            assert!(model(Some(odd)).is_err());
        }
    }

    #[test]
    fn a_key_is_short_plain_text() {
        assert!(key(None).is_ok() && key(Some("order-7".to_owned())).is_ok());
        for odd in [String::new(), "a\nb".to_owned(), "k".repeat(257)] {
            assert!(key(Some(odd)).is_err());
        }
    }
}
