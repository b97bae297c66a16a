//! Payload of a line of the log of a step: text, and records of what happened inside an attempt.

use super::labels::FlowLabelsForm;
use super::{CallRecord, Prepared};
use crate::choice::tagged;
use crate::choices::choices;
use crate::id::{ApprovalId, RunId};
use crate::journal::declare::form::{Form, Maybe, Text, Word};
use crate::journal::declare::{Keep, ObjectSchema, PayloadPart, Read, VisitKept};
use crate::journal::wire::fields::Fields;
use crate::journal::wire::malformed;
use crate::journal::wire::object::{self, PayloadWriter};
use crate::origin::FlowLabels;
use crate::plan::policy::ModerationPhase;
use crate::port::adapter::{Process, ToolEnded};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_govern::catalog::AnswerFields;
use std::sync::Arc;

/// A line of the log of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum LogLine {
    /// A line that an adapter reported.
    Text(String),
    /// A process was started.
    Process(Process),
    /// The model requested a tool call, and the gates decided.
    Tool(Box<ToolRequest>),
    /// A tool that was allowed has answered.
    ToolEnded(Arc<EndedCall>),
    /// The engine asks the moderator about the inputs.
    ModerationAsked {
        /// SHA-256 of the text that is moderated.
        digest: String,
        /// What was prepared; none if the journal has it already.
        prepared: Option<Arc<Prepared>>,
    },
    /// The moderator did not flag the text.
    ModerationCleared {
        /// Side of the step.
        phase: ModerationPhase,
        /// SHA-256 of the text that was moderated.
        digest: String,
    },
    /// The child run of the step has begun to wait only for people, or continues.
    Child {
        /// The child run that reports.
        child: RunId,
        /// Whether it waits or continues.
        pace: ChildPace,
        /// When, by the journal of the child run.
        at_ms: u64,
    },
}

choices! {
    /// Whether a child run waits only for people.
    pub enum ChildPace, "a pace of a child run" {
        /// The child run waits only for people.
        Paused = "paused",
        /// The child run continues.
        Resumed = "resumed",
    }
}

/// A tool call that a model requested, and what the gates decided.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// Id of the call, unique within its dispatch.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments.
    pub input: Value,
    /// SHA-256 of tool and arguments.
    pub digest: String,
    /// What the gates decided.
    pub ruling: Ruling,
    /// Labels that the answer has, if the tool may be called.
    pub labels: FlowLabels,
    /// Facts of the call that erasure leaves.
    pub record: CallRecord,
}

/// A tool call that has ended, and what the operator declared about the answers of the tool
/// at that time.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedCall {
    /// How it ended.
    pub ended: ToolEnded,
    /// What the fields of the answer are.
    pub fields: AnswerFields,
}

tagged! {
    /// Whether a tool may be called.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Ruling {
        /// The tool may be called this once, by this approval if one was needed.
        Allowed(Option<ApprovalId>) = "allowed",
        /// The tool may not be called, for this reason.
        Denied(String) = "denied",
        /// The call waits for this approval.
        Held(ApprovalId) = "held",
    }
}

impl PayloadPart for LogLine {
    /// `text` is for people; the other fields are read back.
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        match self {
            LogLine::Text(text) => payload.field("text", text),
            LogLine::Process(process) => {
                payload.field("processGroup", &process.group);
                payload.unless_default("processStarted", &process.started);
            }
            LogLine::Tool(request) => write_tool(payload, request),
            LogLine::ToolEnded(call) => write_ended(payload, call),
            LogLine::ModerationAsked { digest, prepared } => {
                payload.field("moderation", "asked");
                payload.field("digest", digest);
                prepared.write(payload);
            }
            LogLine::ModerationCleared { phase, digest } => {
                payload.field("moderation", "cleared");
                payload.field("phase", phase);
                payload.field("digest", digest);
            }
            LogLine::Child { child, pace, at_ms } => {
                let does = match pace {
                    ChildPace::Paused => "waits for people",
                    ChildPace::Resumed => "goes on",
                };
                payload.field("text", &format!("{child} {does}"));
                payload.field("childRunId", &object::Text(child));
                payload.field("child", pace);
                payload.field("childAt", at_ms);
            }
        }
    }

    fn read(fields: &Fields<'_>) -> Read<LogLine> {
        match fields.option::<String>("moderation")?.as_deref() {
            None => {}
            Some("asked") => {
                let (digest, prepared) = (fields.need("digest")?, PayloadPart::read(fields)?);
                return Ok(LogLine::ModerationAsked { digest, prepared });
            }
            Some(_) => {
                let (phase, digest) = (Word::read(fields, "phase")?, fields.need("digest")?);
                return Ok(LogLine::ModerationCleared { phase, digest });
            }
        }
        if fields.raw("tool").is_some() {
            return read_tool(fields);
        }
        if fields.raw("child").is_some() {
            let child = Text::read(fields, "childRunId")?;
            let (pace, at_ms) = (Word::read(fields, "child")?, fields.need("childAt")?);
            return Ok(LogLine::Child { child, pace, at_ms });
        }
        Ok(match fields.option("processGroup")? {
            None => LogLine::Text(fields.need("text")?),
            Some(group) => {
                LogLine::Process(Process { group, started: fields.or_default("processStarted")? })
            }
        })
    }

    fn kept(visit: VisitKept<'_>) {
        for (name, keep, _) in FIELDS {
            visit(name, *keep);
        }
        visit(ANSWER_LABELS, Keep::Whole);
        Prepared::kept(visit);
    }

    fn schema(object: &mut ObjectSchema) {
        for (name, _, kind) in FIELDS {
            object.add(name, json!({"type": kind}), false);
        }
        object.add("input", json!({}), false);
        object.add(ANSWER_LABELS, FlowLabelsForm::schema(), false);
        object.add("content", content_schema(), false);
        object.optional(Prepared::schema);
    }
}

/// The schema of the answer of a tool.
fn content_schema() -> Value {
    json!({"type": "object", "properties": {
        "text": {"type": "string"}, "structured": {}, "cut": {"type": "boolean"},
    }})
}

/// The fields of every kind of line: name, what erasure leaves, type. `input` and `content`
/// are not listed: erasure removes them.
const FIELDS: &[(&str, Keep, &str)] = &[
    ("text", Keep::Blank, "string"),
    ("processGroup", Keep::Whole, "integer"),
    ("processStarted", Keep::Word, "string"),
    ("moderation", Keep::Word, "string"),
    ("phase", Keep::Word, "string"),
    ("digest", Keep::Word, "string"),
    ("tool", Keep::Whole, "string"),
    ("callId", Keep::Whole, "string"),
    ("ruling", Keep::Word, "string"),
    ("reason", Keep::Blank, "string"),
    ("approvalId", Keep::Whole, "string"),
    ("ended", Keep::Word, "string"),
    ("childRunId", Keep::Whole, "string"),
    ("child", Keep::Word, "string"),
    ("childAt", Keep::Whole, "integer"),
    ("bytes", Keep::Whole, "integer"),
    ("durationMs", Keep::Whole, "integer"),
    ("records", Keep::Whole, "array"),
    ("private", Keep::Whole, "array"),
    ("lists", Keep::Whole, "array"),
    ("history", Keep::Whole, "object"),
];

/// The field with the labels of a tool's answer; left out if nothing declares an origin.
const ANSWER_LABELS: &str = "answerLabels";
fn write_ended(payload: &mut PayloadWriter<'_>, call: &EndedCall) {
    let EndedCall { ended, fields } = call;
    let how = if ended.failed { "failed" } else { "answered" };
    payload.field("text", &format!("tool {} {how}", ended.tool));
    payload.field("tool", &ended.tool);
    payload.field("callId", &ended.id);
    payload.field("ended", how);
    payload.unless_default("bytes", &ended.bytes);
    payload.unless_default("durationMs", &ended.duration_ms);
    payload.option("content", ended.content.as_ref());
    payload.unless_default("records", &fields.records);
    payload.unless_default("private", &fields.private);
    payload.unless_default("lists", &fields.lists);
}

fn write_tool(payload: &mut PayloadWriter<'_>, request: &ToolRequest) {
    let word = request.ruling.as_str();
    payload.field("text", &format!("tool {} {word}", request.tool));
    payload.field("tool", &request.tool);
    payload.field("callId", &request.id);
    payload.field("input", &request.input);
    payload.field("digest", &request.digest);
    payload.field("ruling", word);
    payload.unless_default("history", &request.record);
    match &request.ruling {
        Ruling::Allowed(approval) => {
            Maybe::<Text>::write(payload, "approvalId", approval);
            if request.labels != FlowLabels::unknown() {
                FlowLabelsForm::write(payload, ANSWER_LABELS, &request.labels);
            }
        }
        Ruling::Denied(reason) => payload.field("reason", reason),
        Ruling::Held(approval) => Text::write(payload, "approvalId", approval),
    }
}

fn read_tool(fields: &Fields<'_>) -> Read<LogLine> {
    let (tool, id) = (fields.need("tool")?, fields.need("callId")?);
    if let Some(how) = fields.option::<String>("ended")? {
        return read_ended(fields, id, tool, how == "failed");
    }
    let approval = Maybe::<Text>::read(fields, "approvalId")?;
    let ruling = match (fields.need::<String>("ruling")?.as_str(), approval) {
        ("allowed", approval) => Ruling::Allowed(approval),
        ("denied", _) => Ruling::Denied(fields.need("reason")?),
        ("held", Some(approval)) => Ruling::Held(approval),
        _ => return Err(malformed("ruling: unknown word")),
    };
    let (input, digest) = (fields.or_default("input")?, fields.need("digest")?);
    let labels = match (&ruling, fields.raw(ANSWER_LABELS)) {
        (Ruling::Denied(_) | Ruling::Held(_), _) => FlowLabels::default(),
        (Ruling::Allowed(_), None) => FlowLabels::unknown(),
        (Ruling::Allowed(_), Some(_)) => FlowLabelsForm::read(fields, ANSWER_LABELS)?,
    };
    let record = fields.or_default("history")?;
    Ok(LogLine::Tool(Box::new(ToolRequest { id, tool, input, digest, ruling, labels, record })))
}

fn read_ended(fields: &Fields<'_>, id: String, tool: String, failed: bool) -> Read<LogLine> {
    let ended = ToolEnded {
        id,
        tool,
        failed,
        bytes: fields.or_default("bytes")?,
        duration_ms: fields.or_default("durationMs")?,
        content: fields.option("content")?,
    };
    let declared = AnswerFields {
        records: fields.or_default("records")?,
        private: fields.or_default("private")?,
        lists: fields.or_default("lists")?,
    };
    Ok(LogLine::ToolEnded(Arc::new(EndedCall { ended, fields: declared })))
}
