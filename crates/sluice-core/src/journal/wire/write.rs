//! Events to payloads.

use super::beside::DELTA;
use super::object::{FrameWriter, Pairs, Payload, Text, json};
use crate::journal::chain::Salt;
use crate::journal::event::{
    Account, ApprovalRequested, ApprovalResolved, ChildPace, Completed, Delta, DeltaPart, Dispatch,
    DocumentSource, Ending, Event, Line, NodeEvent, Path, Prepared, Provenance, Retried, Ruling,
    RunStarted, Skip, SkipCause, StepAt, Terms, ToolAsked, Wait, Whom,
};
use crate::layers::Layer;
use crate::money::Money;
use crate::origin::Labels;
use crate::plan::Plan;
use crate::port::adapter::Usage;
use crate::status::Waiting;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use sluice_govern::registry::Posture;

/// The kind of budget event that says what a dispatch that was given up has cost.
pub(super) const RECONCILED: &str = "reconciled";

pub(super) fn event(frame: &mut FrameWriter, event: &Event, salt: &Salt, plan: &Plan) {
    frame.event(event.name(), salt, |payload| match event {
        Event::RunStarted(started) => run_started(payload, started),
        Event::RunStatusChanged { status, reason, by } => {
            payload.field("status", status);
            payload.unless_default("reason", reason);
            payload.option("by", by.as_ref());
        }
        Event::RunCompleted { outputs } => payload.unless_default("outputs", &**outputs),
        Event::RunFailed { code, message } => error(payload, code, message),
        Event::RunCancelled { reason } => payload.unless_default("reason", reason),
        Event::RunTimedOut { timeout_ms } => payload.field("timeoutMs", timeout_ms),
        Event::RunRecovered => {}
        Event::Node(at, event) => {
            node_id(payload, *at, plan);
            node(payload, event);
        }
        Event::BudgetAlert(figures) => entries(payload, figures, &["runId"]),
    });
}

fn node_id(payload: &mut Payload<'_>, at: StepAt, plan: &Plan) {
    let id = &plan.steps[at.step as usize].id;
    payload.raw("nodeId", |out| {
        json(out, id);
        if let Some(item) = at.item {
            // The instance goes before the closing quote.
            out.pop();
            out.push(b'[');
            json(out, &item);
            out.extend_from_slice(b"]\"");
        }
    });
}

fn node(payload: &mut Payload<'_>, event: &NodeEvent) {
    match event {
        NodeEvent::Queued { items } => payload.option("items", items.as_deref()),
        NodeEvent::Assigned(assigned) => {
            let (field, name) = match &assigned.whom {
                Whom::Member(member) => ("assignedMember", member),
                Whom::Agent(agent) => ("assignedAgent", agent),
            };
            payload.field(field, name);
            payload.option("by", assigned.by.as_ref());
        }
        NodeEvent::Waiting(wait) => waiting(payload, wait),
        NodeEvent::Started(dispatch) => started(payload, dispatch),
        NodeEvent::Delta(part) => delta(payload, part),
        NodeEvent::Log { dispatch_no, line } => {
            payload.field("dispatchNo", dispatch_no);
            log(payload, line);
        }
        NodeEvent::Retried(retry) => retried(payload, retry),
        NodeEvent::Completed(done) => completed(payload, done),
        NodeEvent::Failed(end) | NodeEvent::TimedOut(end) => ending(payload, end),
        NodeEvent::Cancelled { code, reason, usage: cost } => {
            payload.field("code", code);
            payload.unless_default("reason", reason);
            usage(payload, cost);
        }
        NodeEvent::Skipped(skip) => skipped(payload, skip),
        NodeEvent::Blocked { code, message, placeholder, waits } => {
            error(payload, code, message);
            payload.option("placeholder", placeholder.as_ref());
            payload.unless_default("waits", waits);
        }
        NodeEvent::Invalidated => {}
        NodeEvent::Provenance(from) => provenance(payload, from),
        NodeEvent::ModerationFlagged { phase, decision } => {
            payload.field("phase", phase);
            payload.unless_default("decision", decision);
        }
        NodeEvent::ContractViolated { phase, errors } => {
            payload.field("phase", phase);
            payload.unless_default("errors", &**errors);
        }
        NodeEvent::GovernanceDecided(record) => payload.fields_of(record.text()),
        NodeEvent::ApprovalRequested(request) => approval_requested(payload, request),
        NodeEvent::ApprovalReminded { approval, level } => {
            payload.field("approvalId", &Text(approval));
            payload.unless_default("level", level);
        }
        NodeEvent::ApprovalResolved(resolved) => approval_resolved(payload, resolved),
        NodeEvent::Reconciled { dispatch_no, usage: cost } => {
            payload.field("kind", RECONCILED);
            payload.field("dispatchNo", dispatch_no);
            usage(payload, cost);
        }
    }
}

fn run_started(payload: &mut Payload<'_>, started: &RunStarted) {
    payload.field("workflow", &started.workflow);
    payload.option("version", started.version.as_ref());
    if started.source != DocumentSource::default() {
        payload.field("source", started.source.as_str());
    }
    payload.field("definitionHash", &started.definition_hash);
    payload.option("definition", started.definition.map(Text).as_ref());
    if !started.children.is_empty() {
        let shown = |(reference, hash): (&String, &_)| (reference.clone(), Text(*hash));
        let children: Vec<_> = started.children.iter().map(shown).collect();
        payload.field("children", &Pairs(&children));
    }
    payload.unless_default("args", &*started.args);
    payload.unless_default("roleBindings", &started.role_bindings);
    payload.option("defaultAgent", started.default_agent.as_ref());
    payload.option("defaultModel", started.default_model.as_ref());
    payload.option("fallbackModel", started.fallback_model.as_ref());
    payload.option("recursionDepthMax", started.recursion_depth_max.as_ref());
    payload.unless_default("gateway", &started.gateway);
    payload.unless_default("initiator", &started.initiator);
    payload.unless_default("onBehalfOf", &started.on_behalf_of);
    payload.unless_default("traceId", &started.trace_id);
    payload.unless_default("rootSpanId", &started.root_span_id);
    payload.option("parentSpanId", started.parent_span_id.as_ref());
    if let Some((run, node)) = &started.parent {
        payload.field("parentRunId", &Text(run));
        payload.field("parentNodeId", node);
    }
    payload.option("rootRunId", started.root.map(Text).as_ref());
    payload.unless_default("depth", &started.depth);
    if let Some(origin) = &started.origin {
        payload.field("originKind", &origin.kind);
        payload.field("originRunId", &Text(origin.run));
        payload.field("originEventId", &origin.event);
    }
    payload.option("deployment", started.deployment.as_ref());
    if started.posture != Posture::default() {
        payload.field("posture", started.posture.as_str());
    }
    payload.option("trustCeiling", started.trust_ceiling.as_ref());
    payload.unless_default("pins", &started.pins);
    if !started.caps.is_empty() {
        let caps: Vec<(String, u64)> =
            started.caps.iter().map(|(run, cap)| (run.to_string(), cap.micro_cents())).collect();
        payload.field("caps", &caps);
    }
    payload.unless_default("agreed", &started.agreed);
}

fn waiting(payload: &mut Payload<'_>, wait: &Wait) {
    payload.field("waitingReason", &wait.reason);
    payload.unless_default("attempt", &wait.attempt);
    payload.option("cause", wait.cause.as_ref());
    payload.unless_default("delayMs", &wait.delay_ms);
    payload.unless_default("until", &wait.until_ms);
    payload.option("code", wait.code.as_ref());
    payload.option("hint", wait.hint.as_ref());
}

fn started(payload: &mut Payload<'_>, dispatch: &Dispatch) {
    payload.field("attempt", &dispatch.attempt);
    payload.field("dispatchNo", &dispatch.dispatch_no);
    payload.field("wave", &dispatch.wave);
    payload.option("agent", dispatch.agent.as_ref());
    payload.unless_default("gateway", &dispatch.gateway);
    let path = match dispatch.path {
        Path::Edge => "edge",
        Path::Bridge => "bridge",
        Path::Sync => "bridge_sync",
        Path::Child(_) => "child",
        Path::FanOut => "fan_out",
    };
    payload.field("executionPath", path);
    if let Path::Child(run) = dispatch.path {
        payload.field("childRunId", &Text(run));
    }
    payload.option("deadline", dispatch.deadline_ms.as_ref());
    payload.option("actionDigest", dispatch.digest.as_ref());
    terms(payload, &dispatch.terms);
    payload.option("session", dispatch.session.as_ref());
    if let Some(prepared) = &dispatch.prepared {
        self::prepared(payload, prepared);
    }
}

/// Amounts are whole micro-cents: they are counted with, not shown.
fn terms(payload: &mut Payload<'_>, terms: &Terms) {
    payload.option("slot", terms.slot.as_ref());
    payload.unless_default("reserved", &terms.reserved);
    if !terms.accounts.is_empty() {
        payload.field("accounts", &Accounts(&terms.accounts));
    }
    payload.unless_default("constraints", &terms.constraints);
    payload.option("termsModel", terms.model.as_ref());
    payload.option("maxOutputTokens", terms.max_output_tokens.as_ref());
    let price = terms.price.as_ref().map(|price| {
        let kept = price.cached_input_cents_per_mtok.map(Money::micro_cents);
        let read = price.input_cents_per_mtok.micro_cents();
        (read, price.output_cents_per_mtok.micro_cents(), kept)
    });
    payload.option("price", price.as_ref());
}

/// Accounts, each with its cap.
struct Accounts<'a>(&'a [Account]);

impl Serialize for Accounts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|one| (&*one.name, one.cap.micro_cents())))
    }
}

/// The prompt is written even if empty: where it is, something was prepared.
fn prepared(payload: &mut Payload<'_>, prepared: &Prepared) {
    payload.unless_default("inputs", &prepared.inputs);
    payload.field("prompt", &prepared.prompt);
    payload.option("stdin", prepared.stdin.as_ref());
    if !prepared.env.is_empty() {
        payload.field("env", &Pairs(&prepared.env));
    }
    labels(payload, prepared.labels);
    if !prepared.layers.is_empty() {
        let layer = |one: &Layer| {
            let Layer { number, source, text } = one;
            serde_json::json!({"layer": number, "name": one.name(), "source": source, "text": text})
        };
        payload.field("layers", &prepared.layers.iter().map(layer).collect::<Vec<Value>>());
    }
}

/// Writes what stands in a frame for a part of an answer that is kept beside it:
/// as much as the fold needs, and the beginning of what is beside.
pub(super) fn stand_in(frame: &mut FrameWriter, at: StepAt, delta: &Delta, plan: &Plan) {
    frame.stand_in(DELTA, |payload| {
        node_id(payload, at, plan);
        place(payload, delta);
    });
}

fn place(payload: &mut Payload<'_>, delta: &Delta) {
    payload.field("deltaIndex", &delta.index);
    payload.field("attempt", &delta.attempt);
    payload.unless_default("dispatchNo", &delta.dispatch_no);
}

fn delta(payload: &mut Payload<'_>, delta: &Delta) {
    place(payload, delta);
    match &delta.part {
        DeltaPart::Text(text) => {
            payload.field("kind", "text");
            payload.field("text", text);
        }
        DeltaPart::Media { url, mime } => {
            payload.field("kind", "media");
            payload.field("url", url);
            payload.field("mime", mime);
        }
        DeltaPart::Beside => {}
    }
}

fn log(payload: &mut Payload<'_>, line: &Line) {
    match line {
        Line::Text(text) => payload.field("text", text),
        Line::Process(process) => {
            payload.field("processGroup", &process.group);
            payload.unless_default("processStarted", &process.started);
        }
        Line::Tool(asked) => tool(payload, asked),
        Line::ToolEnded(ended) => {
            let how = if ended.failed { "failed" } else { "answered" };
            payload.field("text", &format!("tool {} {how}", ended.tool));
            payload.field("tool", &ended.tool);
            payload.field("callId", &ended.id);
            payload.field("ended", how);
            payload.unless_default("bytes", &ended.bytes);
            payload.unless_default("durationMs", &ended.duration_ms);
        }
        Line::Asked { digest, prepared: given } => {
            payload.field("moderation", "asked");
            payload.field("digest", digest);
            if let Some(given) = given {
                prepared(payload, given);
            }
        }
        Line::Cleared { phase, digest } => {
            payload.field("moderation", "cleared");
            payload.field("phase", phase);
            payload.field("digest", digest);
        }
        Line::Child { child, pace, at_ms } => {
            let does = match pace {
                ChildPace::Paused => "waits for people",
                ChildPace::Resumed => "goes on",
            };
            payload.field("text", &format!("{child} {does}"));
            payload.field("childRunId", &Text(child));
            payload.field("child", pace);
            payload.field("childAt", at_ms);
        }
    }
}

/// The text is for people; the rest is what is read.
fn tool(payload: &mut Payload<'_>, asked: &ToolAsked) {
    let word = asked.ruling.as_str();
    payload.field("text", &format!("tool {} {word}", asked.tool));
    payload.field("tool", &asked.tool);
    payload.field("callId", &asked.id);
    payload.field("input", &asked.input);
    payload.field("digest", &asked.digest);
    payload.field("ruling", word);
    match &asked.ruling {
        Ruling::Allowed(approval) => {
            payload.option("approvalId", approval.map(Text).as_ref());
        }
        Ruling::Denied(reason) => payload.field("reason", reason),
        Ruling::Held(approval) => payload.field("approvalId", &Text(*approval)),
    }
}

fn retried(payload: &mut Payload<'_>, retried: &Retried) {
    payload.field("attempt", &retried.attempt);
    payload.field("cause", &retried.cause);
    payload.unless_default("errorMessage", &retried.message);
    payload.field("delayMs", &retried.delay_ms);
    payload.unless_default("reask", &retried.reask);
    usage(payload, &retried.usage);
    payload.option("answer", retried.answer.as_deref());
    payload.option("session", retried.session.as_ref());
}

fn completed(payload: &mut Payload<'_>, done: &Completed) {
    if let Some(envelope) = &done.outcome.envelope {
        payload.field("envelope", envelope);
    } else {
        payload.unless_default("outputs", &done.outcome.outputs);
        payload.option("stdout", done.outcome.stdout.as_ref());
    }
    labels(payload, done.outcome.labels);
    payload.field("attempts", &done.attempts);
    payload.field("durationMs", &done.duration_ms);
    usage(payload, &done.usage);
    payload.unless_default("coercions", &done.coercions);
    payload.option("session", done.session.as_ref());
    payload.unless_default("conversation", &done.conversation);
    payload.unless_default("artefacts", &done.artefacts);
    payload.option("carriedFrom", done.carried.map(Text).as_ref());
}

fn ending(payload: &mut Payload<'_>, ending: &Ending) {
    error(payload, &ending.code, &ending.message);
    payload.unless_default("errors", &*ending.violations);
    payload.field("attempts", &ending.attempts);
    usage(payload, &ending.usage);
    payload.option("answer", ending.answer.as_deref());
}

fn skipped(payload: &mut Payload<'_>, skip: &Skip) {
    payload.field("cause", skip.cause.as_str());
    payload.unless_default("reason", &skip.reason);
    if skip.cause == SkipCause::Condition {
        payload.field("waitingReason", &Waiting::ConditionFalse);
    }
    if let Some((code, message)) = &skip.error {
        error(payload, code, message);
    }
    payload.unless_default("errors", &*skip.violations);
    usage(payload, &skip.usage);
    payload.option("answer", skip.answer.as_deref());
    payload.option("carriedFrom", skip.carried.map(Text).as_ref());
}

fn provenance(payload: &mut Payload<'_>, from: &Provenance) {
    payload.option("sourceRunId", from.source_run.map(Text).as_ref());
    payload.field("sourceNodeId", &from.source_node);
    payload.field("sourceOutputPath", &from.source_output_path);
    payload.field("targetInputPath", &from.target_input_path);
    payload.option("transform", from.transform.as_ref());
}

fn approval_requested(payload: &mut Payload<'_>, request: &ApprovalRequested) {
    payload.field("approvalId", &Text(request.approval));
    payload.field("source", request.source.as_str());
    payload.unless_default("summary", &request.summary);
    payload.unless_default("approvers", &request.approvers);
    payload.field("expiresAt", &request.expires_at_ms);
    if let Some((code, message)) = &request.error {
        error(payload, code, message);
    }
    if let Some(prepared) = &request.prepared {
        self::prepared(payload, prepared);
    }
    usage(payload, &request.usage);
    payload.option("answer", request.answer.as_deref());
    payload.unless_default("groups", &request.groups);
    if request.quorum > 1 {
        payload.field("quorum", &request.quorum);
    }
    payload.unless_default("notInitiator", &request.not_initiator);
    payload.unless_default("reminders", &request.reminders);
    if let Some(asked) = &request.action {
        payload.field("actionDigest", &asked.digest);
        payload.field("action", &asked.action);
        payload.unless_default("reasons", &asked.reasons);
        if !asked.changes.is_empty() {
            let changes = asked.changes.iter().map(|one| {
                serde_json::json!({"path": one.path, "before": one.before, "after": one.after})
            });
            payload.field("changes", &changes.collect::<Vec<Value>>());
        }
    }
}

fn approval_resolved(payload: &mut Payload<'_>, resolved: &ApprovalResolved) {
    payload.field("approvalId", &Text(resolved.approval));
    payload.field("resolution", resolved.resolution.as_str());
    payload.option("by", resolved.by.as_ref());
    payload.option("comment", resolved.comment.as_ref());
    payload.unless_default("roles", &resolved.roles);
    if let Some((constraints, digest)) = &resolved.tightened {
        payload.field("constraints", constraints);
        payload.field("actionDigest", digest);
    }
}

fn error(payload: &mut Payload<'_>, code: &str, message: &str) {
    payload.field("errorCode", code);
    payload.field("errorMessage", message);
}

fn usage(payload: &mut Payload<'_>, usage: &Usage) {
    payload.option("model", usage.model.as_ref());
    payload.unless_default("inputTokens", &usage.input_tokens);
    payload.unless_default("outputTokens", &usage.output_tokens);
    payload.unless_default("thinkingTokens", &usage.thinking_tokens);
    payload.unless_default("cachedTokens", &usage.cached_tokens);
    if usage.cost != Money::ZERO {
        // Exact digits: what `Display` shows is a JSON number.
        payload.raw("cost", |out| out.extend_from_slice(usage.cost.to_string().as_bytes()));
    }
    payload.unless_default("costUnknown", &usage.unknown);
}

fn labels(payload: &mut Payload<'_>, labels: Labels) {
    if labels == Labels::default() {
        return;
    }
    let Labels { untrusted, private, since_ms, .. } = labels;
    payload.field(
        "labels",
        &LabelsWritten { classes: Classes(labels), untrusted, private, since: since_ms },
    );
}

#[derive(Serialize)]
struct LabelsWritten {
    #[serde(skip_serializing_if = "Classes::are_none")]
    classes: Classes,
    #[serde(skip_serializing_if = "is_false")]
    untrusted: bool,
    #[serde(skip_serializing_if = "is_false")]
    private: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
}

struct Classes(Labels);

impl Classes {
    fn are_none(&self) -> bool {
        self.0.classes().next().is_none()
    }
}

impl Serialize for Classes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.classes())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Fields that come as a map, without those that mean something to the envelope.
fn entries(payload: &mut Payload<'_>, map: &Map<String, Value>, without: &[&str]) {
    for (name, value) in map.iter().filter(|(name, _)| !without.contains(&name.as_str())) {
        payload.entry(name, value);
    }
}
