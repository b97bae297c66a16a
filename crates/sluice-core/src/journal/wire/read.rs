//! Payloads to events.

use super::fields::{Fields, Pairs, Written};
use super::write::RECONCILED;
use super::{WireError, malformed};
use crate::choice;
use crate::contract::envelope::Envelope;
use crate::id::{ApprovalId, RunId};
use crate::journal::event::{
    Account, ApprovalRequested, ApprovalResolved, ApprovalSource, Asked, Assigned, Change,
    Completed, Delta, DeltaPart, Dispatch, DocumentSource, Ending, Event, Line, NodeEvent, Origin,
    Outcome, Path, Prepared, Provenance, Record, Resolution, Retried, Ruling, RunStarted, Skip,
    SkipCause, StepAt, Terms, ToolAsked, Wait, Whom,
};
use crate::layers::Layer;
use crate::money::Money;
use crate::origin::Labels;
use crate::outputs::coerce::Coercion;
use crate::plan::Plan;
use crate::port::adapter::{Process, ToolEnded, Usage};
use crate::port::store::Hash;
use crate::value::known_type_name;
use crate::violation::{Reason, Violation};
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_govern::registry::{Posture, Price};
use std::borrow::Cow;
use std::sync::Arc;

type Read<T> = Result<T, WireError>;

/// Reads one event. What is wrong is said with the event's name.
pub(super) fn event(written: &Written<'_>, plan: Option<&Plan>) -> Read<Event> {
    read(&written.kind, &written.payload, plan).map_err(|error| match error {
        WireError::Malformed(why) => malformed(format_args!("{}: {why}", written.kind)),
        other => other,
    })
}

fn read(kind: &str, fields: &Fields<'_>, plan: Option<&Plan>) -> Read<Event> {
    Ok(match kind {
        "run.started" => Event::RunStarted(Box::new(run_started(fields)?)),
        "run.status.changed" => Event::RunStatusChanged {
            status: fields.word("status")?,
            reason: fields.or_default("reason")?,
            by: fields.option("by")?,
        },
        "run.completed" => Event::RunCompleted { outputs: Arc::new(fields.or_default("outputs")?) },
        "run.failed" => {
            let (code, message) = error(fields)?;
            Event::RunFailed { code, message }
        }
        "run.cancelled" => Event::RunCancelled { reason: fields.or_default("reason")? },
        "run.timed_out" => Event::RunTimedOut { timeout_ms: fields.need("timeoutMs")? },
        "run.recovered" => Event::RunRecovered,
        "budget.alert" if fields.option::<String>("kind")?.as_deref() != Some(RECONCILED) => {
            Event::BudgetAlert(entries(fields, &["runId"])?)
        }
        _ => {
            let event = node(kind, fields)?;
            Event::Node(step_at(fields, plan)?, event)
        }
    })
}

/// `step` or `step[3]`. No id of a step holds a bracket.
fn step_at(fields: &Fields<'_>, plan: Option<&Plan>) -> Read<StepAt> {
    let Some(plan) = plan else {
        return Err(malformed("a step is named, and there is no plan"));
    };
    fields.need_parsed("nodeId", |text| {
        let (id, item) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((id, item)) => (id, Some(item.parse().ok()?)),
            None => (text, None),
        };
        let step = u32::try_from(plan.graph.position(id)?).ok()?;
        Some(StepAt { step, item })
    })
}

fn node(kind: &str, fields: &Fields<'_>) -> Read<NodeEvent> {
    Ok(match kind {
        "node.queued" => queued(fields)?,
        "node.waiting" => NodeEvent::Waiting(Box::new(waiting(fields)?)),
        "node.started" => NodeEvent::Started(Box::new(started(fields)?)),
        "node.stream.delta" => NodeEvent::Delta(Box::new(delta(fields)?)),
        "node.log" => {
            NodeEvent::Log { dispatch_no: fields.need("dispatchNo")?, line: line(fields)? }
        }
        "node.retried" => NodeEvent::Retried(Box::new(retried(fields)?)),
        "node.completed" => NodeEvent::Completed(Box::new(completed(fields)?)),
        "node.failed" => NodeEvent::Failed(Box::new(ending(fields)?)),
        "node.timed_out" => NodeEvent::TimedOut(Box::new(ending(fields)?)),
        "node.cancelled" => NodeEvent::Cancelled {
            code: fields.need("code")?,
            reason: fields.or_default("reason")?,
            usage: usage(fields)?,
        },
        "node.skipped" => NodeEvent::Skipped(skipped(fields)?),
        "node.blocked" => {
            let (code, message) = error(fields)?;
            let placeholder = fields.option("placeholder")?;
            NodeEvent::Blocked { code, message, placeholder, waits: fields.or_default("waits")? }
        }
        "node.invalidated" => NodeEvent::Invalidated,
        "node.provenance" => NodeEvent::Provenance(Box::new(provenance(fields)?)),
        "moderation.flagged" => NodeEvent::ModerationFlagged {
            phase: fields.need("phase")?,
            decision: fields.or_default("decision")?,
        },
        "contract.violated" => NodeEvent::ContractViolated {
            phase: fields.need("phase")?,
            errors: violations(fields)?,
        },
        "governance.decided" => NodeEvent::GovernanceDecided(record(fields)),
        "approval.requested" => NodeEvent::ApprovalRequested(Box::new(approval_requested(fields)?)),
        "approval.reminded" => NodeEvent::ApprovalReminded {
            approval: fields.need_parsed("approvalId", ApprovalId::parse)?,
            level: fields.or_default("level")?,
        },
        "approval.resolved" => NodeEvent::ApprovalResolved(Box::new(approval_resolved(fields)?)),
        "budget.alert" => {
            NodeEvent::Reconciled { dispatch_no: fields.need("dispatchNo")?, usage: usage(fields)? }
        }
        // Cut short: nobody knows who wrote it.
        _ => return Err(WireError::UnknownEvent(kind.chars().take(64).collect())),
    })
}

fn queued(fields: &Fields<'_>) -> Read<NodeEvent> {
    let member = fields.option("assignedMember")?.map(Whom::Member);
    let agent = fields.option("assignedAgent")?.map(Whom::Agent);
    if let Some(whom) = member.or(agent) {
        return Ok(NodeEvent::Assigned(Box::new(Assigned { whom, by: fields.option("by")? })));
    }
    Ok(NodeEvent::Queued { items: fields.option("items")?.map(Arc::new) })
}

fn run_started(fields: &Fields<'_>) -> Read<RunStarted> {
    let children = match fields.option::<Pairs<'_, String>>("children")? {
        None => Vec::new(),
        Some(children) => children.0,
    };
    let child = |(reference, text): (_, String)| match Hash::parse(&text) {
        Some(hash) => Ok((String::from(reference), hash)),
        None => Err(malformed("children: a hash is none")),
    };
    let parent = match fields.parsed("parentRunId", RunId::parse)? {
        None => None,
        Some(run) => Some((run, fields.need("parentNodeId")?)),
    };
    let origin = match fields.parsed("originRunId", RunId::parse)? {
        None => None,
        Some(run) => Some(Origin {
            kind: fields.need("originKind")?,
            run,
            event: fields.need("originEventId")?,
        }),
    };
    Ok(RunStarted {
        workflow: fields.need("workflow")?,
        version: fields.option("version")?,
        source: fields.parsed("source", DocumentSource::parse)?.unwrap_or_default(),
        definition_hash: fields.need("definitionHash")?,
        definition: fields.parsed("definition", Hash::parse)?,
        children: children.into_iter().map(child).collect::<Read<_>>()?,
        args: Arc::new(fields.or_default("args")?),
        role_bindings: fields.or_default("roleBindings")?,
        default_agent: fields.option("defaultAgent")?,
        default_model: fields.option("defaultModel")?,
        fallback_model: fields.option("fallbackModel")?,
        recursion_depth_max: fields.option("recursionDepthMax")?,
        gateway: fields.or_default("gateway")?,
        initiator: fields.or_default("initiator")?,
        on_behalf_of: fields.or_default("onBehalfOf")?,
        trace_id: fields.or_default("traceId")?,
        root_span_id: fields.or_default("rootSpanId")?,
        parent_span_id: fields.option("parentSpanId")?,
        parent,
        root: fields.parsed("rootRunId", RunId::parse)?,
        depth: fields.or_default("depth")?,
        origin,
        deployment: fields.option("deployment")?,
        posture: fields.parsed("posture", Posture::parse)?.unwrap_or_default(),
        trust_ceiling: fields.option("trustCeiling")?,
        pins: fields.or_default("pins")?,
        caps: caps(fields)?,
        agreed: fields.or_default("agreed")?,
    })
}

fn caps(fields: &Fields<'_>) -> Read<Vec<(RunId, Money)>> {
    let written: Vec<(String, u64)> = fields.or_default("caps")?;
    let cap = |(run, cap): (String, u64)| {
        let run = RunId::parse(&run).ok_or_else(|| malformed("caps: a run is none"))?;
        Ok((run, Money::from_micro_cents(cap)))
    };
    written.into_iter().map(cap).collect()
}

fn terms(fields: &Fields<'_>) -> Read<Terms> {
    let accounts: Vec<(String, u64)> = fields.or_default("accounts")?;
    let account = |(name, cap): (String, u64)| Account {
        name: name.into(),
        cap: Money::from_micro_cents(cap),
    };
    Ok(Terms {
        slot: fields.option("slot")?,
        reserved: fields.or_default("reserved")?,
        accounts: accounts.into_iter().map(account).collect(),
        constraints: fields.or_default("constraints")?,
        model: fields.option("termsModel")?,
        max_output_tokens: fields.option("maxOutputTokens")?,
        price: price(fields)?,
    })
}

fn price(fields: &Fields<'_>) -> Read<Option<Price>> {
    let written: Option<(u64, u64, Option<u64>)> = fields.option("price")?;
    Ok(written.map(|(read, written, kept)| Price {
        input_cents_per_mtok: Money::from_micro_cents(read),
        output_cents_per_mtok: Money::from_micro_cents(written),
        cached_input_cents_per_mtok: kept.map(Money::from_micro_cents),
        max_output_tokens: None,
    }))
}

fn waiting(fields: &Fields<'_>) -> Read<Wait> {
    Ok(Wait {
        reason: fields.word("waitingReason")?,
        attempt: fields.or_default("attempt")?,
        cause: fields.option("cause")?,
        delay_ms: fields.or_default("delayMs")?,
        until_ms: fields.or_default("until")?,
        code: fields.option("code")?,
        hint: fields.option("hint")?,
    })
}

fn started(fields: &Fields<'_>) -> Read<Dispatch> {
    let child = fields.parsed("childRunId", RunId::parse)?;
    let path = |word: &str| match (word, child) {
        ("edge", _) => Some(Path::Edge),
        ("bridge", _) => Some(Path::Bridge),
        ("bridge_sync", _) => Some(Path::Sync),
        ("child", Some(run)) => Some(Path::Child(run)),
        ("fan_out", _) => Some(Path::FanOut),
        _ => None,
    };
    Ok(Dispatch {
        attempt: fields.need("attempt")?,
        dispatch_no: fields.need("dispatchNo")?,
        wave: fields.need("wave")?,
        agent: fields.option("agent")?,
        gateway: fields.or_default("gateway")?,
        path: fields.need_parsed("executionPath", path)?,
        deadline_ms: fields.option("deadline")?,
        prepared: prepared(fields)?,
        digest: fields.option("actionDigest")?,
        terms: Arc::new(terms(fields)?),
        session: fields.option("session")?,
    })
}

fn prepared(fields: &Fields<'_>) -> Read<Option<Arc<Prepared>>> {
    let Some(prompt) = fields.option("prompt")? else { return Ok(None) };
    let env = match fields.option::<Pairs<'_, String>>("env")? {
        None => Vec::new(),
        Some(env) => env.0.into_iter().map(|(name, value)| (name.into(), value)).collect(),
    };
    Ok(Some(Arc::new(Prepared {
        inputs: fields.or_default("inputs")?,
        prompt,
        stdin: fields.option("stdin")?,
        env,
        labels: labels(fields)?,
        layers: layers(fields)?,
    })))
}

fn layers(fields: &Fields<'_>) -> Read<Vec<Layer>> {
    #[derive(Deserialize)]
    struct Written {
        layer: u8,
        source: String,
        text: String,
    }
    let written: Vec<Written> = fields.or_default("layers")?;
    let layer = |Written { layer, source, text }| Layer { number: layer, source, text };
    Ok(written.into_iter().map(layer).collect())
}

fn delta(fields: &Fields<'_>) -> Read<Delta> {
    let part = match fields.option::<String>("kind")?.as_deref() {
        None => DeltaPart::Beside,
        Some("text") => DeltaPart::Text(fields.need("text")?),
        Some("media") => DeltaPart::Media { url: fields.need("url")?, mime: fields.need("mime")? },
        Some(_) => return Err(malformed("kind means nothing")),
    };
    Ok(Delta {
        index: fields.need("deltaIndex")?,
        attempt: fields.need("attempt")?,
        dispatch_no: fields.or_default("dispatchNo")?,
        part,
    })
}

fn tool(fields: &Fields<'_>) -> Read<Line> {
    let (tool, id) = (fields.need("tool")?, fields.need("callId")?);
    if let Some(how) = fields.option::<String>("ended")? {
        return Ok(Line::ToolEnded(ToolEnded {
            id,
            tool,
            failed: how == "failed",
            bytes: fields.or_default("bytes")?,
            duration_ms: fields.or_default("durationMs")?,
        }));
    }
    let approval = fields.parsed("approvalId", ApprovalId::parse)?;
    let ruling = match (fields.need::<String>("ruling")?.as_str(), approval) {
        ("allowed", approval) => Ruling::Allowed(approval),
        ("denied", _) => Ruling::Denied(fields.need("reason")?),
        ("held", Some(approval)) => Ruling::Held(approval),
        _ => return Err(malformed("ruling means nothing")),
    };
    let (input, digest) = (fields.or_default("input")?, fields.need("digest")?);
    Ok(Line::Tool(Box::new(ToolAsked { id, tool, input, digest, ruling })))
}

fn line(fields: &Fields<'_>) -> Read<Line> {
    match fields.option::<String>("moderation")?.as_deref() {
        None => {}
        Some("asked") => {
            let (digest, prepared) = (fields.need("digest")?, prepared(fields)?);
            return Ok(Line::Asked { digest, prepared });
        }
        Some(_) => {
            let (phase, digest) = (fields.word("phase")?, fields.need("digest")?);
            return Ok(Line::Cleared { phase, digest });
        }
    }
    if fields.raw("tool").is_some() {
        return tool(fields);
    }
    if fields.raw("child").is_some() {
        let child = fields.need_parsed("childRunId", RunId::parse)?;
        let (pace, at_ms) = (fields.word("child")?, fields.need("childAt")?);
        return Ok(Line::Child { child, pace, at_ms });
    }
    Ok(match fields.option("processGroup")? {
        None => Line::Text(fields.need("text")?),
        Some(group) => {
            Line::Process(Process { group, started: fields.or_default("processStarted")? })
        }
    })
}

fn retried(fields: &Fields<'_>) -> Read<Retried> {
    Ok(Retried {
        attempt: fields.need("attempt")?,
        cause: fields.need("cause")?,
        message: fields.or_default("errorMessage")?,
        delay_ms: fields.need("delayMs")?,
        reask: fields.or_default("reask")?,
        usage: usage(fields)?,
        answer: fields.option("answer")?.map(Arc::new),
        session: fields.option("session")?,
    })
}

fn completed(fields: &Fields<'_>) -> Read<Completed> {
    let labels = labels(fields)?;
    let outcome = match fields.option::<Fields<'_>>("envelope")? {
        Some(parts) => Outcome::of(envelope(&parts)?, labels),
        None => Outcome {
            outputs: fields.or_default("outputs")?,
            stdout: fields.option("stdout")?,
            envelope: None,
            labels,
        },
    };
    Ok(Completed {
        outcome: Arc::new(outcome),
        attempts: fields.need("attempts")?,
        duration_ms: fields.need("durationMs")?,
        usage: usage(fields)?,
        coercions: coercions(fields)?,
        session: fields.option("session")?,
        conversation: fields.or_default("conversation")?,
        artefacts: fields.or_default("artefacts")?,
        carried: fields.parsed("carriedFrom", RunId::parse)?,
    })
}

/// As it was, not as an agent may write it: a part that is null stays there.
fn envelope(parts: &Fields<'_>) -> Read<Envelope> {
    Ok(Envelope {
        kind: parts.option("kind")?,
        artifact_kind: parts.option("artifactKind")?,
        output: parts.or_default("output")?,
        data: parts.option("data")?,
        media: parts.option("media")?,
        metadata: parts.option("metadata")?,
    })
}

fn ending(fields: &Fields<'_>) -> Read<Ending> {
    let (code, message) = error(fields)?;
    Ok(Ending {
        code,
        message,
        violations: violations(fields)?,
        attempts: fields.need("attempts")?,
        usage: usage(fields)?,
        answer: fields.option("answer")?.map(Arc::new),
    })
}

fn skipped(fields: &Fields<'_>) -> Read<Skip> {
    Ok(Skip {
        cause: fields.need_parsed("cause", SkipCause::parse)?,
        reason: fields.or_default("reason")?,
        error: error_behind(fields)?,
        violations: violations(fields)?,
        usage: usage(fields)?,
        answer: fields.option("answer")?.map(Arc::new),
        carried: fields.parsed("carriedFrom", RunId::parse)?,
    })
}

fn provenance(fields: &Fields<'_>) -> Read<Provenance> {
    Ok(Provenance {
        source_run: fields.parsed("sourceRunId", RunId::parse)?,
        source_node: fields.need("sourceNodeId")?,
        source_output_path: fields.need("sourceOutputPath")?,
        target_input_path: fields.need("targetInputPath")?,
        transform: fields.option("transform")?,
    })
}

fn approval_requested(fields: &Fields<'_>) -> Read<ApprovalRequested> {
    Ok(ApprovalRequested {
        approval: fields.need_parsed("approvalId", ApprovalId::parse)?,
        source: fields.need_parsed("source", ApprovalSource::parse)?,
        summary: fields.or_default("summary")?,
        approvers: fields.or_default("approvers")?,
        expires_at_ms: fields.need("expiresAt")?,
        error: error_behind(fields)?,
        prepared: prepared(fields)?,
        usage: usage(fields)?,
        answer: fields.option("answer")?.map(Arc::new),
        groups: fields.or_default("groups")?,
        quorum: fields.option("quorum")?.unwrap_or(1),
        not_initiator: fields.or_default("notInitiator")?,
        reminders: fields.or_default("reminders")?,
        action: asked(fields)?.map(Arc::new),
    })
}

fn asked(fields: &Fields<'_>) -> Read<Option<Asked>> {
    #[derive(Deserialize)]
    struct Written {
        path: String,
        before: Value,
        after: Value,
    }
    let Some(digest) = fields.option("actionDigest")? else { return Ok(None) };
    let changes: Vec<Written> = fields.or_default("changes")?;
    let change = |Written { path, before, after }| Change { path, before, after };
    Ok(Some(Asked {
        action: fields.or_default("action")?,
        digest,
        reasons: fields.or_default("reasons")?,
        changes: changes.into_iter().map(change).collect(),
    }))
}

fn approval_resolved(fields: &Fields<'_>) -> Read<ApprovalResolved> {
    Ok(ApprovalResolved {
        approval: fields.need_parsed("approvalId", ApprovalId::parse)?,
        resolution: fields.need_parsed("resolution", Resolution::parse)?,
        by: fields.option("by")?,
        comment: fields.option("comment")?,
        roles: fields.or_default("roles")?,
        tightened: match fields.option("constraints")? {
            None => None,
            Some(constraints) => Some((constraints, fields.need("actionDigest")?)),
        },
    })
}

fn error(fields: &Fields<'_>) -> Read<(String, String)> {
    Ok((fields.need("errorCode")?, fields.need("errorMessage")?))
}

fn error_behind(fields: &Fields<'_>) -> Read<Option<(String, String)>> {
    if fields.raw("errorCode").is_none() {
        return Ok(None);
    }
    error(fields).map(Some)
}

fn usage(fields: &Fields<'_>) -> Read<Usage> {
    let cost = match fields.raw("cost") {
        None => Money::ZERO,
        // From the digits: a float would lose the last of them.
        Some(raw) => {
            Money::from_usd_text(raw.get()).map_err(|bad| malformed(format_args!("cost: {bad}")))?
        }
    };
    Ok(Usage {
        model: fields.option("model")?,
        input_tokens: fields.or_default("inputTokens")?,
        output_tokens: fields.or_default("outputTokens")?,
        thinking_tokens: fields.or_default("thinkingTokens")?,
        cached_tokens: fields.or_default("cachedTokens")?,
        unpriced: false,
        cost,
        unknown: fields.or_default("costUnknown")?,
    })
}

fn labels(fields: &Fields<'_>) -> Read<Labels> {
    let Some(parts) = fields.option::<Fields<'_>>("labels")? else {
        return Ok(Labels::default());
    };
    let words: Vec<String> = parts.or_default("classes")?;
    let classes: Option<Labels> = words.iter().map(|word| choice::find(word)).collect();
    let mut labels = classes.ok_or_else(|| malformed("labels: a source class means nothing"))?;
    labels.untrusted = parts.or_default("untrusted")?;
    labels.private = parts.or_default("private")?;
    labels.since_ms = parts.option("since")?;
    Ok(labels)
}

fn violations(fields: &Fields<'_>) -> Read<Arc<Vec<Violation>>> {
    #[derive(Deserialize)]
    struct Written {
        field: String,
        reason: String,
        message: String,
    }
    let violation = |written: Written| {
        let reason = Reason::parse(&written.reason);
        let reason = reason.ok_or_else(|| malformed("errors: a reason means nothing"))?;
        Ok(Violation::new(written.field, reason, written.message))
    };
    let written: Vec<Written> = fields.or_default("errors")?;
    written.into_iter().map(violation).collect::<Read<_>>().map(Arc::new)
}

fn coercions(fields: &Fields<'_>) -> Read<Vec<Coercion>> {
    #[derive(Deserialize)]
    struct Written {
        field: String,
        from: String,
        to: String,
    }
    let coercion =
        |Written { field, from, to }: Written| match (known_type_name(&from), choice::find(&to)) {
            (Some(from), Some(to)) => Ok(Coercion { field, from, to }),
            _ => Err(malformed("coercions: a type means nothing")),
        };
    let written: Vec<Written> = fields.or_default("coercions")?;
    written.into_iter().map(coercion).collect()
}

/// Fields that stay as they are written, without those that mean something to
/// the envelope.
fn record(fields: &Fields<'_>) -> Record {
    let kept = fields.0.iter().filter(|(name, _)| !matches!(&**name, "runId" | "nodeId"));
    let bytes: usize = fields.0.iter().map(|(name, raw)| name.len() + raw.get().len() + 4).sum();
    let mut text = String::with_capacity(2 + bytes);
    text.push('{');
    for (name, raw) in kept {
        if text.len() > 1 {
            text.push(',');
        }
        match name {
            // As it stands in the frame, so there is nothing to escape.
            Cow::Borrowed(name) => text.extend(["\"", name, "\""]),
            Cow::Owned(name) => text.push_str(&Value::from(&**name).to_string()),
        }
        text.push(':');
        text.push_str(raw.get());
    }
    text.push('}');
    Record::new(text)
}

/// Fields that become a map, without those that mean something to the envelope.
fn entries(fields: &Fields<'_>, without: &[&str]) -> Read<Map<String, Value>> {
    let kept = fields.0.iter().filter(|(name, _)| !without.contains(&&**name));
    let entry = |(name, raw): &(Cow<'_, str>, &serde_json::value::RawValue)| {
        let value = serde_json::from_str(raw.get())
            .map_err(|error| malformed(format_args!("{name}: {error}")))?;
        Ok((name.to_string(), value))
    };
    kept.map(entry).collect()
}
