//! The fields of a projection and their text forms.

use super::STOPS;
use crate::port::adapter::Answer;
use crate::run::projection::script::documents::{CHAIN, GRAPH};
use crate::run::projection::script::{BEGIN_MS, Script};
use crate::run::projection::{project, timestamp};
use expect_test::expect;
use serde_json::json;

#[test]
fn every_field_is_there_in_the_order_of_the_interface() {
    let script = Script::lobsterx(CHAIN);
    let shown = serde_json::to_string_pretty(&project(&script.run)).unwrap();
    expect![[r#"
        {
          "run_id": "run_00000000000000000000000000000001",
          "workflow": "chain",
          "version": 3,
          "status": "running",
          "pause_reason": null,
          "degraded": false,
          "outputs": null,
          "error_code": null,
          "error_message": null,
          "started_at": "2026-01-31T23:59:59.000Z",
          "completed_at": null,
          "duration_ms": null,
          "cost": 0.00,
          "input_tokens": 0,
          "output_tokens": 0,
          "active_node_id": "a",
          "pending_count": 0,
          "waiting_count": 2,
          "in_flight_count": 1,
          "executed_count": 0,
          "failed_count": 0,
          "is_running": true,
          "parent_run_id": null,
          "recursion_depth": 0,
          "provenance": {
            "upstream": 0,
            "downstream": 0
          },
          "node_results": [
            {
              "node_id": "b",
              "label": null,
              "status": "awaiting_dependency",
              "generation": 0,
              "waiting_reason": "dependency",
              "unblock_hint": "waits for `a`",
              "attempts": 0,
              "dispatches": 0,
              "wave": 1,
              "agent": "mock",
              "gateway": null,
              "provider_route": {
                "provider": null,
                "model": null
              },
              "inputs": null,
              "prompt": null,
              "stdout": null,
              "output": null,
              "outputs": null,
              "error_code": null,
              "error_message": null,
              "contract_errors": [],
              "placeholder": null,
              "skip_reason": null,
              "started_at": null,
              "completed_at": null,
              "duration_ms": null,
              "first_byte_ms": null,
              "input_tokens": 0,
              "output_tokens": 0,
              "thinking_tokens": 0,
              "cost": 0.00
            },
            {
              "node_id": "a",
              "label": null,
              "status": "running",
              "generation": 0,
              "waiting_reason": null,
              "unblock_hint": null,
              "attempts": 1,
              "dispatches": 1,
              "wave": 0,
              "agent": "mock",
              "gateway": "local",
              "provider_route": {
                "provider": "mock",
                "model": null
              },
              "inputs": {},
              "prompt": "Count",
              "stdout": null,
              "output": null,
              "outputs": null,
              "error_code": null,
              "error_message": null,
              "contract_errors": [],
              "placeholder": null,
              "skip_reason": null,
              "started_at": "2026-01-31T23:59:59.000Z",
              "completed_at": null,
              "duration_ms": null,
              "first_byte_ms": null,
              "input_tokens": 0,
              "output_tokens": 0,
              "thinking_tokens": 0,
              "cost": 0.00
            },
            {
              "node_id": "c",
              "label": null,
              "status": "awaiting_dependency",
              "generation": 0,
              "waiting_reason": "dependency",
              "unblock_hint": "waits for `b, a`",
              "attempts": 0,
              "dispatches": 0,
              "wave": 2,
              "agent": "mock",
              "gateway": null,
              "provider_route": {
                "provider": null,
                "model": null
              },
              "inputs": null,
              "prompt": null,
              "stdout": null,
              "output": null,
              "outputs": null,
              "error_code": null,
              "error_message": null,
              "contract_errors": [],
              "placeholder": null,
              "skip_reason": null,
              "started_at": null,
              "completed_at": null,
              "duration_ms": null,
              "first_byte_ms": null,
              "input_tokens": 0,
              "output_tokens": 0,
              "thinking_tokens": 0,
              "cost": 0.00
            }
          ],
          "approvals": []
        }"#]]
    .assert_eq(&shown);
}

#[test]
fn times_are_iso_8601() {
    for (ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (BEGIN_MS, "2026-01-31T23:59:59.000Z"),
        (BEGIN_MS + 1000, "2026-02-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(timestamp(ms), text);
    }
}

#[test]
fn phases_are_told_in_the_documents_order_and_by_step() {
    let shown = serde_json::to_value(project(&Script::lobsterx(STOPS).run)).unwrap();
    let phases = json!([
        {"id": "gather", "name": "Gather facts"},
        {"id": "write", "name": "write"},
    ]);
    assert_eq!(shown["phases"], phases);
    let nodes = shown["node_results"].as_array().unwrap().iter();
    let told: Vec<_> =
        nodes.map(|node| (node["node_id"].as_str(), node["phase"].as_str())).collect();
    let (gather, write) = (Some("gather"), Some("write"));
    let ids = ["a", "again", "never", "b", "after"].map(Some);
    let expected: Vec<_> = ids.into_iter().zip([gather, gather, None, write, write]).collect();
    assert_eq!(told, expected);
    let bare = serde_json::to_value(project(&Script::lobsterx(CHAIN).run)).unwrap();
    assert_eq!(bare.get("phases"), None, "a document without phases shows none");
}

#[test]
fn a_nodes_media_and_metadata_are_shown() {
    let script = Script::lens(GRAPH, json!({"topic": "lamps"}));
    let media = json!({"url": "data:image/png;base64,AAAA", "mime": "image/png"});
    let metadata = json!({"seed": 7});
    let answer = Answer {
        text: Some("a picture".to_owned()),
        outputs: json!({"score": 3}).as_object().cloned(),
        media: Some(media.clone()),
        metadata: metadata.as_object().cloned(),
        ..Answer::default()
    };
    let script = script.answer("left", answer);
    let shown = serde_json::to_value(project(&script.run)).unwrap();
    let nodes = shown["node_results"].as_array().unwrap();
    let left = nodes.iter().find(|node| node["node_id"] == "left").unwrap();
    assert_eq!((&left["media"], &left["metadata"]), (&media, &metadata));
    let right = nodes.iter().find(|node| node["node_id"] == "right").unwrap();
    assert_eq!((right.get("media"), right.get("metadata")), (None, None));
}
