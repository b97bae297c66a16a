//! Makes spans from events.
//!
//! A span is made when its run or dispatch ends. The start of a dispatch is remembered in
//! memory; if another process started it, the start is read from the state of the run.

use crate::limits::SPANS_OPEN_MAX;
use sluice_core::id::RunId;
use sluice_core::journal::event::{Event, Path, StepAt, StepEvent};
use sluice_core::port::adapter::Usage;
use sluice_core::run::state::Run;
use sluice_core::trace;
use sluice_engine::observe::Turned;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
    /// The error code, if it failed.
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal,
    Client,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attribute {
    Text(String),
    Number(u64),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Attribute {
        Attribute::Text(text.to_owned())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Attribute {
        Attribute::Number(number)
    }
}

#[derive(Debug, Default)]
pub(super) struct Spans {
    open: Mutex<BTreeMap<(RunId, StepAt), OpenDispatch>>,
}

/// A dispatch in progress.
#[derive(Debug, Clone)]
struct OpenDispatch {
    at_ms: u64,
    attempt: u32,
    dispatch_no: u32,
    agent: Option<String>,
    gateway: String,
    model: Option<String>,
    path: Path,
}

struct DispatchEnd<'e> {
    status: &'static str,
    error: Option<&'e str>,
    usage: Option<&'e Usage>,
}

impl Spans {
    /// The spans that end with a turn.
    pub(super) fn ended(&self, turned: &Turned<'_>) -> Vec<Span> {
        let run = turned.run;
        if !trace::is_trace_id(&run.started.trace_id) {
            return Vec::new();
        }
        let mut spans = Vec::new();
        for event in turned.events {
            match event {
                Event::Step(at, event) => self.step(turned, *at, event, &mut spans),
                Event::RunCompleted { .. } => spans.push(root(turned, "completed", None)),
                Event::RunFailed { code, .. } => spans.push(root(turned, "failed", Some(code))),
                Event::RunCancelled { .. } => spans.push(root(turned, "cancelled", None)),
                Event::RunTimedOut { .. } => {
                    spans.push(root(turned, "timed_out", Some("run_timed_out")));
                }
                Event::RunStarted(_)
                | Event::RunStatusChanged { .. }
                | Event::RunRecovered
                | Event::BudgetAlert(_) => {}
            }
        }
        spans
    }

    fn step(&self, turned: &Turned<'_>, at: StepAt, event: &StepEvent, spans: &mut Vec<Span>) {
        if let StepEvent::Started(dispatch) = event {
            let open_dispatch = OpenDispatch {
                at_ms: turned.at_ms,
                attempt: dispatch.attempt,
                dispatch_no: dispatch.dispatch_no,
                agent: dispatch.agent.clone(),
                gateway: dispatch.gateway.clone(),
                model: dispatch.terms.model.clone(),
                path: dispatch.path,
            };
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            if open.len() < SPANS_OPEN_MAX {
                open.insert((turned.run.id, at), open_dispatch);
            }
            return;
        }
        let Some(ended) = ended(event) else { return };
        let known = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.remove(&(turned.run.id, at))
        };
        // An approval request or an invalidation may concern a step that was never dispatched.
        let sure = !matches!(event, StepEvent::ApprovalRequested(_) | StepEvent::Invalidated);
        let Some(open_dispatch) = known.or_else(|| recalled(turned.run, at).filter(|_| sure))
        else {
            return;
        };
        let step = step(turned, at, &open_dispatch, &ended);
        if matches!(open_dispatch.path, Path::Edge | Path::Bridge) {
            spans.push(call(turned, at, &open_dispatch, &ended, &step));
        }
        spans.push(step);
    }
}

/// A dispatch that another process started, from the state of the run.
fn recalled(run: &Run, at: StepAt) -> Option<OpenDispatch> {
    let state = run.get(at)?;
    Some(OpenDispatch {
        at_ms: state.attempt_at_ms()?,
        attempt: state.attempt,
        dispatch_no: state.dispatch_no,
        agent: state.agent().map(str::to_owned),
        gateway: state.gateway().unwrap_or_default().to_owned(),
        model: None,
        path: state.path()?,
    })
}

fn ended(event: &StepEvent) -> Option<DispatchEnd<'_>> {
    let (status, error, usage) = match event {
        StepEvent::Completed(done) if done.carried.is_none() => {
            ("completed", None, Some(&done.usage))
        }
        StepEvent::Failed(ending) => ("failed", Some(&*ending.code), Some(&ending.usage)),
        StepEvent::TimedOut(ending) => ("timed_out", Some(&*ending.code), Some(&ending.usage)),
        StepEvent::Retried(retried) => ("retried", Some(&*retried.cause), Some(&retried.usage)),
        StepEvent::Cancelled { usage, .. } => ("cancelled", None, Some(usage)),
        StepEvent::Skipped(skip) if skip.carried.is_none() => {
            let error = skip.error.as_ref().map(|(code, _)| code.as_str());
            ("skipped", error, Some(&skip.usage))
        }
        StepEvent::ApprovalRequested(asked) => ("awaiting_approval", None, Some(&asked.usage)),
        StepEvent::Invalidated => ("invalidated", None, None),
        _ => return None,
    };
    Some(DispatchEnd { status, error, usage })
}

fn root(turned: &Turned<'_>, status: &str, error: Option<&str>) -> Span {
    let (run, started) = (turned.run, &turned.run.started);
    let mut attributes = vec![
        ("sluice.run.id", run.id.to_string().as_str().into()),
        ("sluice.workflow", started.workflow.as_str().into()),
        ("sluice.run.status", status.into()),
    ];
    attributes.extend(started.version.map(|version| ("sluice.workflow.version", version.into())));
    if let Some(parent) = &started.parent {
        attributes.push(("sluice.parent.run.id", parent.run.to_string().as_str().into()));
        attributes.push(("sluice.parent.step.id", parent.step.as_str().into()));
    }
    let parent = started.parent_span_id.clone().filter(|id| trace::is_span_id(id));
    Span {
        trace_id: started.trace_id.clone(),
        span_id: root_id(run),
        parent,
        name: "sluice.run".to_owned(),
        kind: SpanKind::Internal,
        start_ms: run.started_at_ms.min(turned.at_ms),
        end_ms: turned.at_ms,
        attributes,
        error: error.map(str::to_owned),
    }
}

/// The random id of the root span. If it is not valid, an id is derived from the run.
fn root_id(run: &Run) -> String {
    let drawn = &run.started.root_span_id;
    if trace::is_span_id(drawn) { drawn.clone() } else { trace::step_span(run.id, "", 0) }
}

fn step(
    turned: &Turned<'_>,
    at: StepAt,
    open_dispatch: &OpenDispatch,
    ended: &DispatchEnd<'_>,
) -> Span {
    let run = turned.run;
    let name = run.name(at);
    let mut attributes = vec![
        ("sluice.step.id", name.as_str().into()),
        ("sluice.step.status", ended.status.into()),
        ("sluice.step.attempt", u64::from(open_dispatch.attempt).into()),
        ("sluice.step.dispatch", u64::from(open_dispatch.dispatch_no).into()),
        ("sluice.gateway", open_dispatch.gateway.as_str().into()),
    ];
    attributes.extend(open_dispatch.agent.as_deref().map(|agent| ("sluice.agent", agent.into())));
    if let Path::Child(child) = open_dispatch.path {
        attributes.push(("sluice.child.run.id", child.to_string().as_str().into()));
    }
    Span {
        trace_id: run.started.trace_id.clone(),
        span_id: trace::step_span(run.id, &name, open_dispatch.dispatch_no),
        parent: Some(root_id(run)),
        name: "sluice.step".to_owned(),
        kind: SpanKind::Internal,
        start_ms: open_dispatch.at_ms.min(turned.at_ms),
        end_ms: turned.at_ms,
        attributes,
        error: ended.error.map(str::to_owned),
    }
}

/// The call that a dispatch makes: a chat if a model takes part in it.
fn call(
    turned: &Turned<'_>,
    at: StepAt,
    open_dispatch: &OpenDispatch,
    ended: &DispatchEnd<'_>,
    step: &Span,
) -> Span {
    let (usage, agent) = (ended.usage, open_dispatch.agent.as_deref().unwrap_or("nobody"));
    let answered = usage.and_then(|usage| usage.model.as_deref());
    let requested =
        open_dispatch.model.as_deref().or(turned.run.step(at).model.as_deref()).or(answered);
    let tokens = usage.is_some_and(|usage| usage.input_tokens > 0 || usage.output_tokens > 0);
    let mut attributes = Vec::new();
    let name = match requested {
        None if !tokens => format!("call {agent}"),
        requested => {
            attributes.push(("gen_ai.operation.name", "chat".into()));
            attributes.push(("gen_ai.provider.name", agent.into()));
            attributes.push(("gen_ai.system", agent.into()));
            attributes.extend(requested.map(|model| ("gen_ai.request.model", model.into())));
            attributes.extend(answered.map(|model| ("gen_ai.response.model", model.into())));
            if let Some(usage) = usage.filter(|usage| !usage.unknown) {
                attributes.push(("gen_ai.usage.input_tokens", usage.input_tokens.into()));
                attributes.push(("gen_ai.usage.output_tokens", usage.output_tokens.into()));
            }
            format!("chat {}", requested.unwrap_or(agent))
        }
    };
    attributes.push(("sluice.agent", agent.into()));
    attributes.extend(ended.error.map(|code| ("error.type", code.into())));
    let run = turned.run;
    Span {
        trace_id: step.trace_id.clone(),
        span_id: trace::call_span(run.id, &run.name(at), open_dispatch.dispatch_no),
        parent: Some(step.span_id.clone()),
        name,
        kind: SpanKind::Client,
        attributes,
        ..step.clone()
    }
}
