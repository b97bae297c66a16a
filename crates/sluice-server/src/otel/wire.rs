//! The OTLP JSON format of spans.

use super::span::{Attribute, Span, SpanKind};
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
        "kind": match span.kind { SpanKind::Internal => 1, SpanKind::Client => 3 },
        "startTimeUnixNano": nanos(span.start_ms),
        "endTimeUnixNano": nanos(span.end_ms),
        "attributes": attributes(&span.attributes),
        "status": {},
    });
    if let Some(parent) = &span.parent {
        written["parentSpanId"] = json!(parent);
    }
    if let Some(code) = &span.error {
        // Only the code: messages may quote inputs of a step.
        written["status"] = json!({"code": 2, "message": code});
    }
    written
}

fn attributes(all: &[(&str, Attribute)]) -> Vec<Value> {
    let value = |attribute: &Attribute| match attribute {
        Attribute::Text(text) => json!({"stringValue": text}),
        // OTLP JSON encodes 64-bit integers as strings.
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
    };
    all.iter().map(|(key, one)| json!({"key": key, "value": value(one)})).collect()
}
