//! Fields that are stored as blobs because they are long.

use super::*;
use crate::journal::event::{BudgetFigures, Completed, StepOutcome};
use crate::limits::BLOB_BYTES_MIN;
use crate::port::adapter::Usage;
use serde_json::{Value, json};
use std::sync::Arc;

fn done(outputs: Value, stdout: &str) -> Event {
    let outcome =
        StepOutcome { outputs, stdout: Some(stdout.to_owned()), ..StepOutcome::default() };
    let completed = Completed {
        outcome: Arc::new(outcome),
        attempts: 1,
        duration_ms: 0,
        usage: Usage::default(),
        coercions: Vec::new(),
        session: None,
        conversation: Vec::new(),
        artefacts: Vec::new(),
        carried: None,
    };
    Event::Step(StepAt::whole(0), StepEvent::Completed(Box::new(completed)))
}

#[test]
fn a_field_is_moved_out_when_it_passes_the_bound() {
    // The quotes count towards the length.
    let fits = "x".repeat(BLOB_BYTES_MIN - 2);
    assert!(!check(&[done(json!({}), &fits)]).contains("blobs"));
    let long = format!("{fits}x");
    let hash = Hash::of(format!("\"{long}\"").as_bytes());
    assert_eq!(
        without_salts(&check(&[done(json!({"a": 1}), &long)])),
        format!(
            r#"{{"v":2,"at":1790000000123,"events":[{{"type":"node.completed","payload":{{"nodeId":"first","outputs":{{"a":1}},"attempts":1,"durationMs":0}},"blobs":{{"stdout":"{hash}"}}}}]}}"#
        )
    );
}

#[test]
fn several_fields_of_several_events_are_moved_out() {
    let long = "x".repeat(BLOB_BYTES_MIN);
    let events = [
        Event::RunRecovered,
        done(json!({"a": long}), &long),
        Event::RunCompleted { outputs: Arc::new(json!({"a": long})) },
        Event::BudgetAlert(BudgetFigures(
            json!({"a\"b": long, "small": 1}).as_object().unwrap().clone(),
        )),
    ];
    let frame = check(&events);
    assert!(frame.len() < 1024);
    // Each blob is listed once, however many fields refer to it.
    assert_eq!(blobs(frame.as_bytes()).unwrap().len(), 2);
}

#[test]
fn what_an_author_writes_is_never_taken_for_a_reference() {
    let hash = "2".repeat(64);
    let outputs = json!({"blobs": {"outputs": hash}});
    let frame = check(&[done(outputs, "\"blobs\":{\"outputs\"")]);
    assert!(frame.contains("\"blobs\":"));
    assert_eq!(blobs(frame.as_bytes()).unwrap(), []);
}

#[test]
fn a_blob_that_is_missing_is_named() {
    let encoded = encode(&[done(json!({}), &"x".repeat(BLOB_BYTES_MIN))], 5, &plan());
    let hash = encoded.blobs[0].hash;
    let read = |stored: &BTreeMap<Hash, Vec<u8>>| {
        decode(&encoded.body, Some(&plan()), stored).unwrap_err()
    };
    assert_eq!(read(&BTreeMap::new()), WireError::MissingBlob(hash));
    assert_eq!(read(&BTreeMap::new()).to_string(), format!("blob {hash} is missing"));
    let spoilt = read(&BTreeMap::from([(hash, b"{".to_vec())])).to_string();
    assert!(spoilt.starts_with(&format!("the frame cannot be read: blob {hash}: ")), "{spoilt}");

    let body = br#"{"v":1,"at":5,"events":[{"type":"run.completed","payload":{},"blobs":{"outputs":"x"}}]}"#;
    expect!["the frame cannot be read: a hash is not valid"]
        .assert_eq(&blobs(body).unwrap_err().to_string());
}
