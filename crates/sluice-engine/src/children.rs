//! Child runs.

use crate::claim::RETRY_DELAY_MS;
use crate::engine::Inner;
use crate::error::{LoadError, StartError};
use crate::load::stored;
use crate::loaded_run::fold;
use crate::mailbox::Mail;
use crate::start::Start;
use serde_json::{Map, Value};
use sluice_core::code::Code;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::event::{DocumentSource, ParentStep, StepAt};
use sluice_core::money::Money;
use sluice_core::origin::PassedLabels;
use sluice_core::port::store::{Filter, MailboxMessage, StoreError};
use sluice_core::run::command::Command;
use sluice_core::run::due::Effect;
use sluice_core::run::message;
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_core::trace::{self, TraceParent};
use sluice_govern::facts::SeenIn;
use sluice_govern::registry::Posture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a child run is started with.
#[derive(Debug, Clone)]
pub(crate) struct ChildRequest {
    reference: String,
    definition: Option<Hash>,
    children: BTreeMap<String, Hash>,
    args: Map<String, Value>,
    step: String,
    root: RunId,
    depth: u32,
    trace: Option<TraceParent>,
    source: DocumentSource,
    initiator: String,
    on_behalf_of: Vec<String>,
    default_agent: Option<String>,
    default_model: Option<String>,
    recursion_depth_max: Option<u32>,
    role_bindings: BTreeMap<String, String>,
    posture: Posture,
    trust_ceiling: Option<u8>,
    caps: Vec<(RunId, Money)>,
    labels: PassedLabels,
    args_seen: BTreeMap<String, Vec<SeenIn>>,
}

pub(crate) fn request(run: &mut Run, at: StepAt, _child: RunId) -> ChildRequest {
    let args_seen = run.child_args_seen(at);
    let run = &*run;
    let reference = run.child_reference(at).unwrap_or_default();
    let started = &run.started;
    ChildRequest {
        definition: started.children.get(&reference).copied(),
        reference,
        children: started.children.clone(),
        args: run.state(at).prepared.as_ref().map(|one| one.inputs.clone()).unwrap_or_default(),
        step: run.name(at),
        root: started.root.unwrap_or(run.id),
        depth: started.depth + 1,
        trace: cause(run, at),
        source: started.source.of_child(),
        initiator: started.initiator.clone(),
        on_behalf_of: started.on_behalf_of.clone(),
        default_agent: started.default_agent.clone(),
        default_model: started.default_model.clone(),
        recursion_depth_max: started.recursion_depth_max,
        role_bindings: started.role_bindings.clone(),
        posture: started.posture,
        trust_ceiling: started.trust_ceiling,
        caps: run.family_caps(),
        labels: run.passed_labels(at),
        args_seen,
    }
}

/// The span of the parent step is the parent span of its child.
fn cause(run: &Run, at: StepAt) -> Option<TraceParent> {
    let trace_id = Some(&run.started.trace_id).filter(|id| trace::is_trace_id(id))?;
    let span_id = trace::step_span(run.id, &run.name(at), run.state(at).dispatch_no);
    Some(TraceParent { trace_id: trace_id.clone(), span_id })
}

impl Inner {
    /// Starts a child run, retrying until it exists. Repeated starts are idempotent.
    pub(crate) fn start_child(self: Arc<Self>, parent: RunId, child: RunId, request: ChildRequest) {
        let engine = Arc::clone(&self);
        self.spawn(async move {
            let failure = loop {
                match engine.start_child_once(parent, child, &request).await {
                    Ok(()) => break None,
                    Err(StartError::Stopping) => return,
                    Err(StartError::Store(error) | StartError::Load(LoadError::Store(error))) => {
                        tracing::warn!(%child, %error, "the child cannot be started yet");
                        tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
                    }
                    // Another node may have started it before it became impossible.
                    Err(error) => match engine.exists(child).await {
                        Ok(true) => break None,
                        Ok(false) => break Some(error),
                        Err(error) => {
                            tracing::warn!(%child, %error, "the child cannot be looked up yet");
                            tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
                        }
                    },
                }
            };
            match failure {
                None => engine.cancel_unwanted_child(parent, child).await,
                Some(failure) => {
                    let command = Command::ChildEnded {
                        child,
                        status: RunStatus::Failed,
                        outputs: None,
                        error: Some((code(&failure).to_string(), failure.to_string())),
                        origins: Vec::new(),
                        labels: None,
                    };
                    engine.post_command(parent, command, &format!("child:{child}:0")).await;
                }
            }
            if let Some(sender) = engine.mailbox(parent) {
                // If the parent has left memory, its next owner starts the child again.
                let _ = sender.send(Mail::Child(child)).await;
            }
        });
    }

    async fn exists(&self, run: RunId) -> Result<bool, StoreError> {
        let filter = Filter { run: Some(run), limit: 1, ..Filter::default() };
        Ok(!self.store.list(filter).await?.is_empty())
    }

    /// Cancels a child that its parent stopped waiting for before it existed.
    async fn cancel_unwanted_child(self: &Arc<Self>, parent: RunId, child: RunId) {
        let run = loop {
            match fold(self, parent).await {
                Ok(folded) => break folded.run,
                Err(LoadError::Store(error)) => {
                    tracing::warn!(%parent, %error, "the parent cannot be loaded yet");
                    tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
                }
                Err(LoadError::NoRun(_) | LoadError::Poison { .. }) => return,
            }
        };
        let its = |effect| matches!(effect, Effect::Child { child: one, .. } if one == child);
        if run.is_stopping() || !run.due().any(its) {
            let reason = "the parent run no longer waits for it".to_owned();
            let command = Command::Cancel { by: parent.to_string(), reason };
            self.post_command(child, command, "cancel:parent").await;
        }
    }

    /// Posts a command to a run's durable mailbox, retrying until it is stored. Not sent
    /// directly: the parent holds a permit that the run may need in order to load.
    async fn post_command(self: &Arc<Self>, run: RunId, command: Command, key: &str) {
        let body = message::encode(&command).expect("the command can be encoded");
        let message = MailboxMessage { run, key: key.to_owned(), body };
        while let Err(error) = self.store.post(message.clone()).await {
            tracing::warn!(%run, %error, "the message cannot be stored yet");
            tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
        }
        self.notify_messages(run);
    }

    async fn start_child_once(
        self: &Arc<Self>,
        parent: RunId,
        child: RunId,
        request: &ChildRequest,
    ) -> Result<(), StartError> {
        let depth_max = self.recursion_depth_max(request.recursion_depth_max);
        if request.depth > depth_max {
            return Err(StartError::TooDeep(depth_max));
        }
        let missing = || {
            let message = format!("the workflow `{}` was not resolved", request.reference);
            StartError::Unresolved(message)
        };
        let hash = request.definition.ok_or_else(missing)?;
        let stored = stored(&*self.store, &self.definitions, hash).await?;
        let stored = stored.map_err(StartError::Unresolved)?;
        let mut start = Start::new(stored, request.args.clone());
        start.id = Some(child);
        start.children = request.children.clone();
        start.parent = Some(ParentStep { run: parent, step: request.step.clone() });
        start.root = Some(request.root);
        start.depth = request.depth;
        start.trace.clone_from(&request.trace);
        start.source = request.source;
        start.initiator.clone_from(&request.initiator);
        start.on_behalf_of.clone_from(&request.on_behalf_of);
        start.default_agent.clone_from(&request.default_agent);
        start.default_model.clone_from(&request.default_model);
        start.recursion_depth_max = request.recursion_depth_max;
        start.role_bindings = request.role_bindings.clone();
        start.posture = Some(request.posture);
        start.trust_ceiling = request.trust_ceiling;
        start.caps.clone_from(&request.caps);
        start.labels.clone_from(&request.labels);
        start.args_seen.clone_from(&request.args_seen);
        self.start(start).await.map(drop)
    }
}

fn code(error: &StartError) -> Code {
    match error {
        StartError::Args(_) => Code::InvalidArgs,
        StartError::Agent(_) => Code::UnknownAgent,
        StartError::TooDeep(_) => Code::RecursionTooDeep,
        _ => Code::ChildFailed,
    }
}
