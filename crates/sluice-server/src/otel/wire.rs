//! Spans as OTLP writes them in JSON.

use super::span::{Attribute, Kind, Span};
use serde_json::{Value, json};

/// An export request.
pub(super) fn request(service: &str, spans: &[Span]) -> Vec<u8> {
    let resource = [
        ("service.name", Attribute::from(service)),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("telemetry.sdk.language", "rust".into()),
        ("telemetry.sdk.name", "sluice".into()),
    ];
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let scope = json!({"name": "sluice", "version": env!("CARGO_PKG_VERSION")});
    let request = json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    request.to_string().into_bytes()
}

fn span(span: &Span) -> Value {
    let nanos = |ms: u64| (u128::from(ms) * 1_000_000).to_string();
    let mut written = json!({
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": match span.kind { Kind::Internal => 1, Kind::Client => 3 },
        "startTimeUnixNano": nanos(span.start_ms),
        "endTimeUnixNano": nanos(span.end_ms),
        "attributes": attributes(&span.attributes),
        "status": {},
    });
    if let Some(parent) = &span.parent {
        written["parentSpanId"] = json!(parent);
    }
    if let Some(code) = &span.error {
        // The code alone: messages may quote what a step was given.
        written["status"] = json!({"code": 2, "message": code});
    }
    written
}

fn attributes(all: &[(&str, Attribute)]) -> Vec<Value> {
    let value = |attribute: &Attribute| match attribute {
        Attribute::Text(text) => json!({"stringValue": text}),
        // Numbers of 64 bits are texts in this JSON.
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
    };
    all.iter().map(|(key, one)| json!({"key": key, "value": value(one)})).collect()
}
