//! The arguments of tools, and the route call that each becomes.

use super::route_call::RouteCall;
use crate::api::request::bad;
use crate::limits::{MCP_EVENTS, MCP_EVENTS_MAX, MCP_PAGE, MCP_WATCH_SECONDS};
use crate::refused::{BAD_REQUEST, Refused};
use rmcp::model::JsonObject;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sluice_core::choice::Choice;
use sluice_core::run::command::Decision;

/// The arguments of a tool that calls a route.
pub(super) trait Arguments: DeserializeOwned + JsonSchema {
    /// The route call.
    fn route_call(self) -> Result<RouteCall, Refused>;
}

/// Parses arguments.
pub(super) fn read<T: DeserializeOwned>(sent: JsonObject) -> Result<T, Refused> {
    serde_json::from_value(Value::Object(sent)).map_err(|why| {
        let remedy = "see the input schema of the tool";
        Refused::new(BAD_REQUEST, format!("the arguments: {why}"), remedy)
    })
}

/// Parses arguments and makes the route call.
pub(super) fn route_call<T: Arguments>(sent: JsonObject) -> Result<RouteCall, Refused> {
    read::<T>(sent)?.route_call()
}

/// The JSON Schema of arguments.
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListWorkflows {}

impl Arguments for ListWorkflows {
    fn route_call(self) -> Result<RouteCall, Refused> {
        Ok(RouteCall::new("GET", "/api/v1/workflows"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowWorkflow {
    /// Name of the workflow, as in `list_workflows`.
    name: String,
    /// Version of the workflow (default: the newest).
    version: Option<u64>,
}

impl Arguments for ShowWorkflow {
    fn route_call(self) -> Result<RouteCall, Refused> {
        let Some(version) = self.version else {
            return RouteCall::new("GET", "/api/v1/workflows/{name}").path_value("name", self.name);
        };
        RouteCall::new("GET", "/api/v1/workflows/{name}/versions/{version}")
            .path_value("name", self.name)?
            .path_value("version", version.to_string())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ValidateWorkflow {
    /// Source text of the document, YAML or JSON.
    document: String,
    /// `lobsterx` or `lens` (default: detected from the text).
    format: Option<String>,
}

impl Arguments for ValidateWorkflow {
    fn route_call(self) -> Result<RouteCall, Refused> {
        let body = json!({"document": self.document, "format": self.format});
        Ok(RouteCall::new("POST", "/api/v1/workflows/validate").with(body))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartRun {
    /// Name of a registered workflow; either this or `document`.
    workflow: Option<String>,
    /// Version of the workflow (default: the newest).
    version: Option<u64>,
    /// Source text of a document that is not registered; either this or `workflow`.
    document: Option<String>,
    /// Format of `document`: `lobsterx` or `lens` (default: detected from the text).
    format: Option<String>,
    /// Arguments of the workflow, by name; its document lists them.
    #[serde(default)]
    args: Map<String, Value>,
    /// The same key within a day returns the same run: a call with a key can be repeated safely.
    idempotency_key: Option<String>,
    /// Agent of steps that name none.
    default_agent: Option<String>,
    /// Model of steps that name none, instead of the document's default.
    default_model: Option<String>,
    /// How many ancestors a run that this one starts may have; at most the configured limit.
    max_recursion_depth: Option<u32>,
}

impl Arguments for StartRun {
    fn route_call(self) -> Result<RouteCall, Refused> {
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
                let call = RouteCall::new("POST", "/api/v1/workflows/{name}/runs").with(body);
                call.path_value("name", name)
            }
            (None, Some(document)) if self.version.is_none() => {
                body["document"] = document.into();
                body["format"] = json!(self.format);
                Ok(RouteCall::new("POST", "/api/v1/runs").with(body))
            }
            _ => Err(bad("set either `workflow` (with `version`), or `document` (with `format`)")),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListRuns {
    /// Only these statuses: queued, running, paused, cancelling, recovered, completed,
    /// failed, cancelled, timed_out.
    #[serde(default)]
    status: Vec<String>,
    /// Only this workflow.
    workflow: Option<String>,
    /// Maximum number of runs.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

const fn page() -> u16 {
    MCP_PAGE
}

impl Arguments for ListRuns {
    fn route_call(self) -> Result<RouteCall, Refused> {
        let mut call = RouteCall::new("GET", "/api/v1/runs").query("limit", self.limit.to_string());
        if !self.status.is_empty() {
            call = call.query("status", self.status.join(","));
        }
        for (name, value) in [("workflow", self.workflow), ("cursor", self.cursor)] {
            if let Some(value) = value {
                call = call.query(name, value);
            }
        }
        Ok(call)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetRun {
    /// Id of the run.
    run_id: String,
}

impl Arguments for GetRun {
    fn route_call(self) -> Result<RouteCall, Refused> {
        RouteCall::new("GET", "/api/v1/runs/{run}/state").path_value("run", self.run_id)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetStep {
    /// Id of the run.
    run_id: String,
    /// Id of the step, as in the document; `id[3]` is an instance.
    step: String,
}

impl Arguments for GetStep {
    fn route_call(self) -> Result<RouteCall, Refused> {
        let call = RouteCall::new("GET", "/api/v1/runs/{run}/steps/{step}");
        call.path_value("run", self.run_id)?.path_value("step", self.step)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelRun {
    /// Id of the run.
    run_id: String,
    /// Reason, for the journal.
    reason: Option<String>,
}

impl Arguments for CancelRun {
    fn route_call(self) -> Result<RouteCall, Refused> {
        let reason = self.reason.unwrap_or_else(|| "cancelled over MCP".to_owned());
        let call = RouteCall::new("POST", "/api/v1/runs/{run}/cancel");
        call.with(json!({"reason": reason})).path_value("run", self.run_id)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListApprovals {}

impl Arguments for ListApprovals {
    fn route_call(self) -> Result<RouteCall, Refused> {
        Ok(RouteCall::new("GET", "/api/v1/approvals"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowApproval {
    /// Id of the approval.
    approval_id: String,
}

impl Arguments for ShowApproval {
    fn route_call(self) -> Result<RouteCall, Refused> {
        RouteCall::new("GET", "/api/v1/approvals/{approval}")
            .path_value("approval", self.approval_id)
    }
}

fn words<T: Choice>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": T::NAMES})
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveApproval {
    /// Id of the approval.
    approval_id: String,
    /// `approve` or `reject`; for a step that failed `retry`, `skip` or `abort`.
    #[schemars(schema_with = "words::<Decision>")]
    decision: Decision,
    /// Reason; required for a rejection.
    comment: Option<String>,
    /// Values that the approval step needs, by name.
    #[serde(default)]
    values: Map<String, Value>,
    /// Constraints to tighten; they cannot be widened.
    constraints: Option<Map<String, Value>>,
}

impl Arguments for ResolveApproval {
    fn route_call(self) -> Result<RouteCall, Refused> {
        let body = json!({
            "decision": self.decision,
            "comment": self.comment,
            "values": self.values,
            "constraints": self.constraints,
        });
        let call = RouteCall::new("POST", "/api/v1/approvals/{approval}/resolve").with(body);
        call.path_value("approval", self.approval_id)
    }
}

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    /// Any event.
    #[default]
    Event,
    /// The end of the run, or a requested approval.
    End,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchRun {
    /// Id of the run.
    pub(super) run_id: String,
    /// The `cursor` of the previous result (default: 0, before the first event).
    #[serde(default)]
    pub(super) after: u64,
    /// `event`: returns as soon as there is an event. `end`: waits for the end of the run, or
    /// until an approval is requested.
    #[serde(default)]
    pub(super) until: Until,
    /// Maximum time to wait, in seconds.
    #[serde(default = "wait_seconds")]
    #[schemars(range(min = 0, max = 50))]
    pub(super) wait_seconds: u64,
    /// Maximum number of events.
    #[serde(default = "events")]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: u16,
    /// Whether to include parts of streamed output.
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
    /// Parses the arguments and checks their limits.
    pub(super) fn read(sent: JsonObject) -> Result<WatchRun, Refused> {
        let read: WatchRun = read(sent)?;
        let seconds_max = crate::limits::MCP_WATCH_SECONDS_MAX;
        if read.wait_seconds > seconds_max {
            return Err(bad(format!("`wait_seconds` is at most {seconds_max}")));
        }
        if !(1..=MCP_EVENTS_MAX).contains(&read.limit) {
            return Err(bad(format!("`limit` must be between 1 and {MCP_EVENTS_MAX}")));
        }
        Ok(read)
    }
}
