//! Responses whose schema is written by hand, because the core serialises them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident($inner:ty) = $schema:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

shapes! {
    /// The full state of a run.
    RunState(Box<RawValue>) = run_state();
    /// An event of a journal.
    Event(Box<RawValue>) = event();
    /// A run, and what it was started with.
    RunDetail(Value) = run_detail();
    /// A step, with everything in the journal about it.
    StepDetail(Value) = step_detail();
    /// Why the decisions about a step were made.
    StepExplanation(Value) = step_explanation();
    /// The provenance of values.
    Provenance(Value) = provenance();
    /// An approval.
    Approval(Value) = approval();
    /// A row of the registry.
    RowShown(Value) = json_schema!({
        "type": "object",
        "properties": {"kind": {"type": "string"}, "id": {"type": "string"}},
        "required": ["kind", "id"],
    });
    /// The rows that changed, with their previous values.
    Changes(Value) = json_schema!({
        "type": "object",
        "properties": {
            "changes": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "change": {"type": "string", "enum": ["added", "changed", "removed"]},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                    "fields": {},
                },
                "required": ["change", "kind", "name", "fields"],
            }},
            "epoch": {"type": "integer"},
            "dry_run": {"type": "boolean"},
            "warnings": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "hint": {"type": ["string", "null"]},
                },
                "required": ["code", "message", "hint"],
            }},
        },
        "required": ["changes", "epoch", "dry_run"],
    });
    /// A fact of the audit.
    AuditFact(Value) = json_schema!({
        "type": "object",
        "properties": {
            "at": {"type": "string"},
            "category": {"type": "string"},
            "type": {"type": "string"},
            "actor": {"type": ["string", "null"]},
            "resource_type": {"type": "string"},
            "resource_id": {"type": "string"},
            "event_id": {"type": ["integer", "null"]},
            "hash": {"type": ["string", "null"]},
            "step": {"type": ["string", "null"]},
            "detail": {},
        },
        "required": ["at", "category", "type", "actor", "resource_type", "resource_id",
            "event_id", "hash", "step", "detail"],
    });
    /// The result of a verification.
    AuditReport(Value) = json_schema!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "seals": {"type": "integer"},
            "entries": {"type": "integer"},
            "runs": {"type": "integer"},
            "runs_whole": {"type": "integer"},
            "events": {"type": "integer"},
            "unhashed": {"type": "integer"},
            "erased": {"type": "integer"},
            "elided": {"type": "integer"},
            "counters_compared": {"type": "boolean"},
            "findings": {"type": "array", "items": {"type": "object"}},
            "more": {"type": "integer"},
        },
        "required": ["ok", "seals", "entries", "runs", "events", "findings", "more"],
    });
    /// Past decisions that another policy set would change.
    BackTest(Value) = json_schema!({
        "type": "object",
        "properties": {
            "decisions": {"type": "integer"},
            "differ": {"type": "integer"},
            "unknown": {"type": "integer"},
            "data": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["decisions", "differ", "unknown", "data"],
    });
    /// Everything about a run.
    Exported(Box<RawValue>) = json_schema!({
        "type": "object",
        "properties": {
            "definition": {"type": "object"},
            "events": {"type": "array", "items": {"type": "object"}},
            "elided": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "decisions": {"type": "array", "items": {"type": "object"}},
            "projection": {"type": "object"},
        },
        "required": ["definition", "events", "decisions", "projection"],
    });
    /// Any JSON.
    Anything(Value) = json_schema!({});
}

fn run_state() -> Schema {
    let number = |name: &str| (name.to_owned(), serde_json::json!({"type": "integer"}));
    let mut fields: serde_json::Map<String, Value> = [
        "input_tokens",
        "output_tokens",
        "pending_count",
        "waiting_count",
        "in_flight_count",
        "executed_count",
        "failed_count",
        "recursion_depth",
    ]
    .into_iter()
    .map(number)
    .collect();
    let rest = serde_json::json!({
        "run_id": {"type": "string"},
        "workflow": {"type": "string"},
        "version": {"type": ["integer", "null"]},
        "status": {"type": "string"},
        "pause_reason": {"type": ["string", "null"]},
        "degraded": {"type": "boolean"},
        "outputs": {},
        "error_code": {"type": ["string", "null"]},
        "error_message": {"type": ["string", "null"]},
        "started_at": {"type": "string"},
        "completed_at": {"type": ["string", "null"]},
        "duration_ms": {"type": ["integer", "null"]},
        "cost": {"type": "number"},
        "active_node_id": {"type": ["string", "null"]},
        "is_running": {"type": "boolean"},
        "parent_run_id": {"type": ["string", "null"]},
        "provenance": {
            "type": "object",
            "properties": {"upstream": {"type": "integer"}, "downstream": {"type": "integer"}},
            "required": ["upstream", "downstream"],
        },
        "phases": {"type": "array", "items": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
            "required": ["id", "name"],
        }},
        "failure_snapshot": failure_snapshot(),
        "node_results": {"type": "array", "items": node()},
        "approvals": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "approval_id": {"type": "string"},
                "node_id": {"type": "string"},
                "source": {"type": "string"},
                "summary": {"type": "string"},
                "digest": {"type": ["string", "null"]},
                "status": {"type": "string"},
                "requested_at": {"type": "string"},
                "expires_at": {"type": "string"},
            },
            "required": ["approval_id", "node_id", "source", "summary", "digest", "status",
                "requested_at", "expires_at"],
        }},
    });
    fields.extend(rest.as_object().cloned().unwrap_or_default());
    // Omitted when empty.
    let always = |name: &&String| !["phases", "failure_snapshot"].contains(&name.as_str());
    let required: Vec<&String> = fields.keys().filter(always).collect();
    json_schema!({"type": "object", "properties": fields, "required": required})
}

fn failure_snapshot() -> Value {
    let ids = serde_json::json!({"type": "array", "items": {"type": "string"}});
    serde_json::json!({
        "type": "object",
        "properties": {
            "failed_node_id": {"type": ["string", "null"]},
            "failed": ids,
            "completed": ids,
            "skipped": ids,
            "cancelled": ids,
            "writer_order": ids,
            "variables": {"type": "object"},
        },
        "required": ["failed_node_id", "failed", "completed", "skipped", "cancelled",
            "writer_order", "variables"],
    })
}

fn node() -> Value {
    let text = serde_json::json!({"type": ["string", "null"]});
    let count = serde_json::json!({"type": "integer"});
    let maybe = serde_json::json!({"type": ["integer", "null"]});
    let fields = serde_json::json!({
        "node_id": {"type": "string"},
        "label": text,
        "status": {"type": "string"},
        "generation": count,
        "waiting_reason": text,
        "unblock_hint": text,
        "attempts": count,
        "dispatches": count,
        "wave": count,
        "agent": text,
        "gateway": text,
        "provider_route": {
            "type": "object",
            "properties": {"provider": text, "model": text},
            "required": ["provider", "model"],
        },
        "inputs": {},
        "prompt": text,
        "stdout": text,
        "output": {},
        "outputs": {},
        "error_code": text,
        "error_message": text,
        "contract_errors": {"type": "array", "items": {
            "type": "object",
            "properties": {"field": {"type": "string"}, "reason": {"type": "string"}},
            "required": ["field", "reason"],
        }},
        "placeholder": text,
        "skip_reason": text,
        "started_at": text,
        "completed_at": text,
        "duration_ms": maybe,
        "first_byte_ms": maybe,
        "input_tokens": count,
        "output_tokens": count,
        "thinking_tokens": count,
        "cost": {"type": "number"},
    });
    let required: Vec<String> =
        fields.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
    let mut fields = fields;
    fields["member"] = serde_json::json!({"type": "string"});
    fields["phase"] = serde_json::json!({"type": "string"});
    fields["media"] = serde_json::json!({});
    fields["metadata"] = serde_json::json!({});
    fields["prompt_layers"] = serde_json::json!({"type": "array", "items": {"type": "object"}});
    serde_json::json!({"type": "object", "properties": fields, "required": required})
}

fn event() -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "eventId": {"type": "integer"},
            "sequence": {"type": "integer"},
            "type": {"type": "string"},
            "runId": {"type": "string"},
            "workflowId": {"type": "string"},
            "timestamp": {"type": "string"},
            "correlation": {
                "type": "object",
                "properties": {
                    "traceId": {"type": "string"},
                    "parentEventId": {"type": "integer"},
                    "wave": {"type": "integer"},
                    "phase": {"type": "string"},
                },
                "required": ["traceId", "phase"],
            },
            "payload": {"type": "object"},
        },
        "required": ["eventId", "sequence", "type", "runId", "workflowId", "timestamp",
            "correlation", "payload"],
    })
}

fn run_detail() -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "run_id": {"type": "string"},
            "workflow": {"type": "string"},
            "version": {"type": ["integer", "null"]},
            "status": {"type": "string"},
            "started_at": {"type": "string"},
            "completed_at": {"type": ["string", "null"]},
            "parent_run_id": {"type": ["string", "null"]},
            "root_run_id": {"type": ["string", "null"]},
            "owner": {"type": ["string", "null"]},
            "initiator": {"type": "string"},
            "args": {"type": "object"},
            "definition_hash": {"type": "string"},
            "default_agent": {"type": ["string", "null"]},
            "default_model": {"type": ["string", "null"]},
            "max_recursion_depth": {"type": ["integer", "null"]},
            "role_bindings": {"type": "object"},
            "trace_id": {"type": "string"},
            "origin": {"type": ["object", "null"]},
            "last_event_id": {"type": "integer"},
            "last_steps": {"type": "array", "items": {"type": "string"}},
            "steps": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "node_id": {"type": "string"},
                    "kind": {"type": "string"},
                    "wave": {"type": "integer"},
                    "depends_on": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["node_id", "kind", "wave", "depends_on"],
            }},
            "approvals": {"type": "array", "items": approval()},
        },
        "required": ["run_id", "workflow", "status", "started_at", "initiator", "args",
            "definition_hash", "trace_id", "last_event_id", "last_steps", "steps", "approvals"],
    })
}

fn step_detail() -> Schema {
    let events = serde_json::json!({"type": "array", "items": {"type": "object"}});
    json_schema!({
        "type": "object",
        "properties": {
            "run_id": {"type": "string"},
            "node": node(),
            "labels": step_labels(),
            "attempts": events,
            "decisions": events,
            "logs": events,
            "conversation": events,
            "others": events,
        },
        "required": ["run_id", "node", "labels", "attempts", "decisions", "logs", "conversation",
            "others"],
    })
}

/// The labels of a step, and of its fields.
fn step_labels() -> Value {
    let (names, flag) = (
        serde_json::json!({"type": "array", "items": {"type": "string"}}),
        serde_json::json!({"type": "boolean"}),
    );
    let named = serde_json::json!({
        "type": "object",
        "properties": {"origins": names, "secrecy": names, "control": flag},
        "required": ["origins", "secrecy", "control"],
    });
    serde_json::json!({
        "type": "object",
        "properties": {
            "untrusted": flag, "private": flag, "origins": names, "secrecy": names,
            "control": flag, "fields": {"type": "object", "additionalProperties": named},
        },
        "required": ["untrusted", "private", "origins", "secrecy", "control", "fields"],
    })
}

fn step_explanation() -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "run_id": {"type": "string"},
            "node_id": {"type": "string"},
            "decisions": {"type": "array", "items": explained_decision()},
        },
        "required": ["run_id", "node_id", "decisions"],
    })
}

fn explained_decision() -> Value {
    let set = serde_json::json!({
        "policy_hash": {"type": "string"},
        "policies_stored": {"type": "boolean"},
        "because": {"type": "string"},
        "policies": {"type": "array", "items": {"type": "object"}},
        "disposition": {"type": "string", "enum": ["allow", "block", "hold"]},
    });
    let call = serde_json::json!({
        "call": {"type": "integer"},
        "call_id": {"type": "string"},
        "ruling": {"type": "string"},
        "approval_id": {"type": "string"},
        "reason": {"type": "string"},
        "input": {},
    });
    let action = serde_json::json!({
        "event_id": {"type": "integer"},
        "at": {"type": "string"},
        "attempt": {"type": "integer"},
        "verb": {"type": "string"},
        "resource": {"type": "string"},
        "gate": {"type": "object"},
        "history": {"type": "object"},
        "flow": explained_flow(),
        "shadow": {"type": "object", "properties": set},
    });
    let properties = [set, call, action].into_iter().filter_map(|one| match one {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    let properties: serde_json::Map<_, _> = properties.flatten().collect();
    serde_json::json!({
        "type": "object",
        "properties": properties,
        "required": ["event_id", "at", "verb", "disposition"],
    })
}

fn explained_flow() -> Value {
    let texts = serde_json::json!({"type": "array", "items": {"type": "string"}});
    let objects = serde_json::json!({"type": "array", "items": {"type": "object"}});
    serde_json::json!({"type": "object", "properties": {
        "origins": texts,
        "secrecy": texts,
        "control": {"type": "boolean"},
        "inputs": {},
        "path": objects,
        "answers": objects,
    }})
}

fn provenance() -> Schema {
    let place = serde_json::json!({
        "type": "object",
        "properties": {
            "run_id": {"type": "string"},
            "workflow": {"type": ["string", "null"]},
            "node_id": {"type": "string"},
        },
        "required": ["run_id", "workflow", "node_id"],
    });
    json_schema!({
        "type": "object",
        "properties": {
            "run_id": {"type": "string"},
            "rows": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "source": place,
                    "source_output_path": {"type": "string"},
                    "target": place,
                    "target_input_path": {"type": "string"},
                    "transform": {"type": ["string", "null"]},
                    "origins": {"type": "array", "items": {"type": "string"}},
                    "secrecy": {"type": "array", "items": {"type": "string"}},
                    "control": {"type": "boolean"},
                },
                "required": ["source", "source_output_path", "target", "target_input_path",
                    "transform", "origins", "secrecy", "control"],
            }},
            "cut": {"type": "boolean"},
        },
        "required": ["run_id", "rows", "cut"],
    })
}

fn approval() -> Schema {
    let text = serde_json::json!({"type": ["string", "null"]});
    json_schema!({
        "type": "object",
        "properties": {
            "approval_id": {"type": "string"},
            "run_id": {"type": "string"},
            "workflow": {"type": "string"},
            "node_id": {"type": "string"},
            "source": {"type": "string"},
            "summary": {"type": "string"},
            "approvers": {"type": "array", "items": {"type": "string"}},
            "status": {"type": "string"},
            "requested_at": {"type": "string"},
            "expires_at": {"type": "string"},
            "by": text,
            "comment": text,
            "digest": text,
            "action": {},
            "reasons": {"type": ["array", "null"], "items": {"type": "string"}},
            "changes": {"type": "array", "items": {"type": "object"}},
            "call": {
                "type": ["object", "null"],
                "properties": {
                    "tool": {"type": "string"},
                    "asked_for": text,
                    "arguments": {"type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string"},
                            "value": {},
                            "seen": {"type": "array", "items": {"type": "string"}},
                            "mentions": {"type": "array", "items": {"type": "string"}},
                            "carries": {"type": "array", "items": {"type": "string"}},
                            "places": {"type": "string"},
                        },
                        "required": ["path", "seen", "mentions", "carries", "places"],
                    }},
                },
                "required": ["tool", "arguments"],
            },
            "quorum": {"type": "integer"},
            "votes": {"type": "array", "items": {"type": "string"}},
            "not_initiator": {"type": "boolean"},
            "initiator": {"type": "string"},
            "on_behalf_of": {"type": "array", "items": {"type": "string"}},
            "asks_for": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "type": text,
                    "required": {"type": "boolean"},
                    "enum": {"type": "array", "items": {}},
                    "description": text,
                },
                "required": ["name", "type", "required", "enum", "description"],
            }},
        },
        "required": ["approval_id", "run_id", "workflow", "node_id", "source", "summary",
            "approvers", "status", "requested_at", "expires_at", "digest", "changes", "quorum",
            "votes", "not_initiator"],
    })
}
