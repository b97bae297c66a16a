//! Runs are started: of registered workflows, and of documents.

use super::document::Input;
use super::versions;
use crate::house::House;
use crate::refused::{self, Done, Refused};
use axum::http::HeaderMap;
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

/// A document that is refused, as a whole.
pub const DOCUMENT_REFUSED: &str = "document_refused";
/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// What a run is started with, beside its document.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The arguments.
    pub args: Map<String, Value>,
    /// Who does steps that name nobody.
    pub default_agent: Option<String>,
    /// The model of steps that name none, instead of the document's.
    pub default_model: Option<String>,
    /// How many runs may be above a run that this one starts.
    pub recursion_depth_max: Option<u32>,
    /// Which agent stands for which role.
    pub role_bindings: BTreeMap<String, String>,
    /// The same key within a day means the same run.
    pub key: Option<String>,
    /// Who starts it.
    pub initiator: String,
    /// People whose hook starts it: they count as initiators.
    pub on_behalf_of: Vec<String>,
    /// The trace it belongs to, and what in it is its cause.
    pub trace: Option<TraceParent>,
}

/// A key as it may be.
pub fn key(key: Option<String>) -> Result<Option<String>, Refused> {
    let fits = |key: &String| {
        !key.is_empty() && key.len() <= KEY_BYTES_MAX && !key.chars().any(char::is_control)
    };
    if key.as_ref().is_none_or(fits) {
        return Ok(key);
    }
    let message = format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes of plain text");
    Err(Refused::new(crate::api::ask::BAD_REQUEST, message, "use another key"))
}

/// The name of a model as it may be.
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
    Err(Refused::new(crate::api::ask::BAD_REQUEST, message, "name a model, or leave it out"))
}

/// What a W3C `traceparent` says of the cause, if there is one that makes sense.
pub fn trace(headers: &HeaderMap) -> Option<TraceParent> {
    TraceParent::parse(headers.get("traceparent")?.to_str().ok()?)
}

/// Starts a registered workflow, `name` or `name@version`.
pub async fn named(house: &House, reference: &str, wish: Wish) -> Done<StartedRun> {
    for _ in 0..RESOLVE_TRIES_MAX {
        let ready = ready(house, reference).await?;
        if let Some(started) = begin(house, ready, &wish).await? {
            return Ok(started);
        }
    }
    Err(refused::start(StartError::Moved))
}

/// A registered workflow, ready to be started.
pub async fn ready(house: &House, reference: &str) -> Done<Start> {
    let rows = house.rows().await?;
    if let Some(ready) = house.ready(rows.epoch, reference) {
        return Ok(ready);
    }
    versions::find(&rows.rows, reference)?;
    let ready = registered::start(&rows, reference, Map::new());
    let ready = ready.map_err(refused::start)?;
    house.keep(rows.epoch, reference, ready.clone());
    Ok(ready)
}

/// Starts a document that is not registered.
pub async fn inline(
    house: &House,
    document: &str,
    format: Option<&str>,
    wish: Wish,
) -> Done<StartedRun> {
    let (format, input) = input("document", document, format)?;
    for _ in 0..RESOLVE_TRIES_MAX {
        let rows = house.rows().await?;
        let registry = versions::registry(Registry::default(), &rows.rows)?;
        let checked = doc::check(&input.bytes, format, &with_workflows(registry, &rows.rows));
        let Some(plan) = checked.plan else {
            return Err(refused_document(&checked.diagnostics).into());
        };
        let ready = registered::start_plan(&rows, plan, document).map_err(refused::start)?;
        if let Some(started) = begin(house, ready, &wish).await? {
            return Ok(started);
        }
    }
    Err(refused::start(StartError::Moved))
}

/// Starts what was resolved; nothing if the registry has changed since.
async fn begin(house: &House, start: Start, wish: &Wish) -> Done<Option<StartedRun>> {
    match house.service().engine.start(filled(house, start, wish)).await {
        Err(StartError::Moved) => Ok(None),
        started => started.map(Some).map_err(refused::start),
    }
}

/// What is ready, with what was wished for.
pub fn filled(house: &House, mut start: Start, wish: &Wish) -> Start {
    let default_agent = wish.default_agent.as_deref().or_else(|| house.default_agent());
    start.args.clone_from(&wish.args);
    start.initiator.clone_from(&wish.initiator);
    start.on_behalf_of.clone_from(&wish.on_behalf_of);
    start.default_agent = default_agent.map(str::to_owned);
    start.default_model.clone_from(&wish.default_model);
    start.recursion_depth_max = wish.recursion_depth_max;
    start.role_bindings.clone_from(&wish.role_bindings);
    start.trace.clone_from(&wish.trace);
    // An engine that does no work notes the run down for one that does.
    start.dispatching = house.service().engine.dispatching();
    start.key = match wish.key.as_deref() {
        Some("auto") => Some(start.auto_key()),
        key => key.map(str::to_owned),
    };
    start
}

/// What a document may refer to: the registered workflows too.
pub fn with_workflows(registry: Registry, there: &[Row]) -> Registry {
    let split = rows::names(there, Kind::Workflow).filter_map(WorkflowVersion::split);
    split.fold(registry, |registry, (name, version)| {
        registry.with_workflow(name.to_owned(), Some(version))
    })
}

/// A document out of a request: its format, and its text under a name that says so.
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
            return Err(Refused::new(crate::api::ask::BAD_REQUEST, message, "leave it out"));
        }
    };
    let input = Input { name: format!("{name}{ending}"), bytes: text.as_bytes().to_vec() };
    Ok((format, input))
}

/// A document that is refused, with a note for each error.
pub fn refused_document(diagnostics: &[Diagnostic]) -> Refused {
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
    fn a_trace_goes_on_only_where_it_makes_sense() {
        let mut headers = HeaderMap::new();
        assert_eq!(trace(&headers), None);
        let sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        headers.insert("traceparent", sent.parse().unwrap());
        assert_eq!(trace(&headers).map(|cause| cause.to_string()).as_deref(), Some(sent));
        headers.insert("traceparent", "nonsense".parse().unwrap());
        assert_eq!(trace(&headers), None);
    }

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
