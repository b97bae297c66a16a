//! What the tools take, and which request of the API each becomes.

use super::ask::Asked;
use crate::api::ask::bad;
use crate::limits::{MCP_EVENTS, MCP_EVENTS_MAX, MCP_PAGE, MCP_WATCH_SECONDS};
use crate::refused::Refused;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The arguments of a tool that is a request of the API.
pub(super) trait Arguments: DeserializeOwned + JsonSchema {
    /// The request.
    fn asked(self) -> Result<Asked, Refused>;
}

/// Reads arguments.
pub(super) fn read<T: DeserializeOwned>(sent: JsonObject) -> Result<T, Refused> {
    serde_json::from_value(Value::Object(sent)).map_err(|why| {
        let remedy = "the tool's input schema says what it takes";
        Refused::new(crate::api::ask::BAD_REQUEST, format!("the arguments: {why}"), remedy)
    })
}

/// Reads arguments and makes the request.
pub(super) fn asked<T: Arguments>(sent: JsonObject) -> Result<Asked, Refused> {
    read::<T>(sent)?.asked()
}

/// The schema of arguments.
pub(super) fn schema<T: JsonSchema>() -> JsonObject {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let Value::Object(mut schema) = schema else { return JsonObject::new() };
    schema.remove("title");
    schema.remove("description");
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListWorkflows {}

impl Arguments for ListWorkflows {
    fn asked(self) -> Result<Asked, Refused> {
        Ok(Asked::new("GET", "/api/v1/workflows"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowWorkflow {
    /// The workflow's name, as `list_workflows` has it.
    name: String,
    /// Its version; the newest if none is said.
    version: Option<u64>,
}

impl Arguments for ShowWorkflow {
    fn asked(self) -> Result<Asked, Refused> {
        let Some(version) = self.version else {
            return Asked::new("GET", "/api/v1/workflows/{name}").at("name", self.name);
        };
        Asked::new("GET", "/api/v1/workflows/{name}/versions/{version}")
            .at("name", self.name)?
            .at("version", version.to_string())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ValidateWorkflow {
    /// The document's whole text, YAML or JSON.
    document: String,
    /// `lobsterx` or `lens`; as the text looks if it is not said.
    format: Option<String>,
}

impl Arguments for ValidateWorkflow {
    fn asked(self) -> Result<Asked, Refused> {
        let body = json!({"document": self.document, "format": self.format});
        Ok(Asked::new("POST", "/api/v1/workflows/validate").with(body))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartRun {
    /// The name of a registered workflow; either this or `document`.
    workflow: Option<String>,
    /// The workflow's version; the newest if none is said.
    version: Option<u64>,
    /// The text of a document that is not registered; either this or `workflow`.
    document: Option<String>,
    /// `lobsterx` or `lens`, of `document`; as the text looks if it is not said.
    format: Option<String>,
    /// The workflow's arguments, by name; its document says which it takes.
    #[serde(default)]
    args: Map<String, Value>,
    /// The same key within a day means the same run: say one to be able to try again safely.
    idempotency_key: Option<String>,
    /// Who does steps that name nobody.
    default_agent: Option<String>,
    /// The model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// How many runs may be above a run that this one starts; never more than is configured.
    max_recursion_depth: Option<u32>,
}

impl Arguments for StartRun {
    fn asked(self) -> Result<Asked, Refused> {
        let mut body = json!({
            "args": self.args,
            "idempotency_key": self.idempotency_key,
            "default_agent": self.default_agent,
            "default_model": self.default_model,
            "max_recursion_depth": self.max_recursion_depth,
        });
        match (self.workflow, self.document) {
            (Some(name), None) if self.format.is_none() => {
                body["version"] = json!(self.version);
                let asked = Asked::new("POST", "/api/v1/workflows/{name}/runs").with(body);
                asked.at("name", name)
            }
            (None, Some(document)) if self.version.is_none() => {
                body["document"] = document.into();
                body["format"] = json!(self.format);
                Ok(Asked::new("POST", "/api/v1/runs").with(body))
            }
            _ => Err(bad("say either `workflow`, or `document`, and what belongs to it")),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListRuns {
    /// Only in these statuses: queued, running, paused, cancelling, recovered, completed,
    /// failed, cancelled, timed_out.
    #[serde(default)]
    status: Vec<String>,
    /// Only of this workflow.
    workflow: Option<String>,
    /// Most to list.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

const fn page() -> u16 {
    MCP_PAGE
}

impl Arguments for ListRuns {
    fn asked(self) -> Result<Asked, Refused> {
        let mut asked = Asked::new("GET", "/api/v1/runs").query("limit", self.limit.to_string());
        if !self.status.is_empty() {
            asked = asked.query("status", self.status.join(","));
        }
        for (name, value) in [("workflow", self.workflow), ("cursor", self.cursor)] {
            if let Some(value) = value {
                asked = asked.query(name, value);
            }
        }
        Ok(asked)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetRun {
    /// The run's id.
    run_id: String,
}

impl Arguments for GetRun {
    fn asked(self) -> Result<Asked, Refused> {
        Asked::new("GET", "/api/v1/runs/{run}/state").at("run", self.run_id)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetStep {
    /// The run's id.
    run_id: String,
    /// The step's id, as the document writes it; `id[3]` is an instance.
    step: String,
}

impl Arguments for GetStep {
    fn asked(self) -> Result<Asked, Refused> {
        let asked = Asked::new("GET", "/api/v1/runs/{run}/steps/{step}");
        asked.at("run", self.run_id)?.at("step", self.step)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelRun {
    /// The run's id.
    run_id: String,
    /// Why, for the journal.
    reason: Option<String>,
}

impl Arguments for CancelRun {
    fn asked(self) -> Result<Asked, Refused> {
        let reason = self.reason.unwrap_or_else(|| "cancelled over MCP".to_owned());
        let asked = Asked::new("POST", "/api/v1/runs/{run}/cancel");
        asked.with(json!({"reason": reason})).at("run", self.run_id)
    }
}

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListApprovals {}

impl Arguments for ListApprovals {
    fn asked(self) -> Result<Asked, Refused> {
        Ok(Asked::new("GET", "/api/v1/approvals"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowApproval {
    /// The question's id.
    approval_id: String,
}

impl Arguments for ShowApproval {
    fn asked(self) -> Result<Asked, Refused> {
        Asked::new("GET", "/api/v1/approvals/{approval}").at("approval", self.approval_id)
    }
}

/// An answer.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Choice {
    Approve,
    Reject,
    Retry,
    Skip,
    Abort,
}

impl Choice {
    const fn as_str(self) -> &'static str {
        match self {
            Choice::Approve => "approve",
            Choice::Reject => "reject",
            Choice::Retry => "retry",
            Choice::Skip => "skip",
            Choice::Abort => "abort",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveApproval {
    /// The question's id.
    approval_id: String,
    /// `approve` or `reject`; for a step that failed `retry`, `skip` or `abort`.
    decision: Choice,
    /// Why; a rejection needs one.
    comment: Option<String>,
    /// Values that the question asks for, by name.
    #[serde(default)]
    values: Map<String, Value>,
    /// What is tightened; nothing can be widened.
    constraints: Option<Map<String, Value>>,
}

impl Arguments for ResolveApproval {
    fn asked(self) -> Result<Asked, Refused> {
        let body = json!({
            "decision": self.decision.as_str(),
            "comment": self.comment,
            "values": self.values,
            "constraints": self.constraints,
        });
        let asked = Asked::new("POST", "/api/v1/approvals/{approval}/resolve").with(body);
        asked.at("approval", self.approval_id)
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    /// Anything that happens.
    #[default]
    Event,
    /// The run's end, or that somebody is asked.
    End,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchRun {
    /// The run's id.
    pub(super) run_id: String,
    /// The `cursor` of the answer before; 0 or nothing begins with the run's first event.
    #[serde(default)]
    pub(super) after: u64,
    /// `event`: answers as soon as something happens. `end`: waits for the end of the run, or
    /// until a person is asked.
    #[serde(default)]
    pub(super) until: Until,
    /// How long to wait at most, in seconds.
    #[serde(default = "wait_seconds")]
    #[schemars(range(min = 0, max = 50))]
    pub(super) wait_seconds: u64,
    /// Most events to answer.
    #[serde(default = "events")]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: u16,
    /// Whether pieces of streaming output are listed too.
    #[serde(default)]
    pub(super) deltas: bool,
}

const fn wait_seconds() -> u64 {
    MCP_WATCH_SECONDS
}

const fn events() -> u16 {
    MCP_EVENTS
}

impl WatchRun {
    /// The arguments, if they are within their bounds.
    pub(super) fn read(sent: JsonObject) -> Result<WatchRun, Refused> {
        let read: WatchRun = read(sent)?;
        let seconds_max = crate::limits::MCP_WATCH_SECONDS_MAX;
        if read.wait_seconds > seconds_max {
            return Err(bad(format!("`wait_seconds` is at most {seconds_max}")));
        }
        if !(1..=MCP_EVENTS_MAX).contains(&read.limit) {
            return Err(bad(format!("`limit` is from 1 to {MCP_EVENTS_MAX}")));
        }
        Ok(read)
    }
}
