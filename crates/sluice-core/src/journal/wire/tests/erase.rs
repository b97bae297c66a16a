//! Erased payloads: what is left, and that no hash changes.

use super::*;
use crate::journal::chain::{Chain, residue};
use crate::limits::BLOB_BYTES_MIN;

fn erased(events: &[Event]) -> String {
    let encoded = encode(events, AT_MS, &plan());
    let mut kept = framed(&encoded, events);
    let erased = erase(&kept, |_| true, &stored(&encoded)).unwrap();
    (kept.body, kept.beside) = (erased.body.clone(), erased.beside.clone());
    let frame = whole(&kept).unwrap();
    let mut at = link();
    let mut hashes = Chain::new(&mut at);
    for (event, chain) in frame.events.iter().zip(encoded.chain.chunks(32)) {
        let hash = hashes.add(event.kind, frame.at_ms, event.commitment().unwrap());
        assert_eq!(hash.0, chain, "{}", event.kind);
    }
    let left = |place: usize| residue(frame.events[place].payload.as_bytes());
    let gone: Vec<(usize, Hash)> = (0..events.len()).map(|place| (place, left(place))).collect();
    assert_eq!(erased.gone, gone);
    // The rest can be read without any blob.
    let decoded = decode(&erased.body, Some(&plan()), &BTreeMap::new()).unwrap();
    let names = |events: &[Event]| events.iter().map(Event::name).collect::<Vec<_>>();
    assert_eq!(names(&decoded.events), names(events));
    String::from_utf8([erased.body, erased.beside].concat()).unwrap()
}

/// The frame without its commitments, which are random.
fn transcript(frame: &str) -> String {
    let mut text = String::new();
    for part in frame.split("{\"type\":").skip(1) {
        // A stand-in is not erased: its stream delta is.
        let erased = part.split_once(",\"erased\":true,\"commitment\":\"");
        let Some((kind, rest)) = erased else { continue };
        text += &format!(
            "{kind} {}\n",
            &rest[66 + "\"payload\":".len()..].trim_end_matches([',', ']'])
        );
    }
    text
}

#[test]
fn what_is_left_of_every_event() {
    expect![[r#"
        "run.started" {"workflow":"w","version":3,"source":"registered","definitionHash":"ab","definition":"2222222222222222222222222222222222222222222222222222222222222222","children":{"c":"2222222222222222222222222222222222222222222222222222222222222222","c@2":"2222222222222222222222222222222222222222222222222222222222222222"},"roleBindings":{"role":"agent"},"defaultAgent":"a","defaultModel":"m","fallbackModel":"f","recursionDepthMax":2,"gateway":"mock","traceId":"t","rootSpanId":"s","parentSpanId":"p","parentRunId":"run_00000000000000000000000000000010","parentNodeId":"step[1]","rootRunId":"run_00000000000000000000000000000010","depth":1,"originKind":"branch","originRunId":"run_00000000000000000000000000000010","originEventId":7,"deployment":"live","posture":"approval_required","trustCeiling":4,"pins":{"agent":"gw"},"caps":[["run_00000000000000000000000000000010",5]],"labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}}}}
        "run.status.changed" {"status":"paused","reason":"operator"}}
        "run.completed" {}}
        "run.failed" {"errorCode":"step_failed","errorMessage":""}}
        "run.cancelled" {}}
        "run.timed_out" {"timeoutMs":1000}}
        "run.recovered" {}}
        "budget.alert" {"spent":0.5}}
        "node.queued" {"nodeId":"second[3]","items":[null,null]}}
        "node.queued" {"nodeId":"second[3]","assignedMember":"m"}}
        "node.waiting" {"nodeId":"second[3]","waitingReason":"retry_backoff","attempt":2,"cause":"timeout","delayMs":5,"until":10,"code":"budget"}}
        "node.started" {"nodeId":"second[3]","attempt":1,"dispatchNo":2,"wave":0,"agent":"a","gateway":"mock","executionPath":"child","childRunId":"run_00000000000000000000000000000010","deadline":99,"actionDigest":"d1","slot":"a","reserved":7,"accounts":[["run/x",9]],"constraints":{"tools_deny":["mail"]},"termsModel":"m","maxOutputTokens":12,"prompt":"","labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}}}}
        "node.log" {"nodeId":"second[3]","dispatchNo":2,"processGroup":7,"processStarted":"123"}}
        "node.retried" {"nodeId":"second[3]","attempt":1,"cause":"timeout","delayMs":5,"reask":true,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true}}
        "node.completed" {"nodeId":"second[3]","labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}},"attempts":2,"durationMs":12,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true,"carriedFrom":"run_00000000000000000000000000000010"}}
        "node.failed" {"nodeId":"second[3]","errorCode":"provider_error","errorMessage":"","attempts":2,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true}}
        "node.timed_out" {"nodeId":"second[3]","errorCode":"provider_error","errorMessage":"","attempts":2,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true}}
        "node.cancelled" {"nodeId":"second[3]","code":"run_halted"}}
        "node.skipped" {"nodeId":"second[3]","cause":"condition_false","waitingReason":"condition_false","errorCode":"timeout","errorMessage":"","model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true,"carriedFrom":"run_00000000000000000000000000000010","control":true}}
        "node.blocked" {"nodeId":"second[3]","errorCode":"missing_value","errorMessage":"","waits":true}}
        "node.invalidated" {"nodeId":"second[3]"}}
        "node.provenance" {"nodeId":"second[3]","sourceRunId":"run_00000000000000000000000000000010","sourceNodeId":"second","sourceOutputPath":"","targetInputPath":""}}
        "node.endorsed" {"nodeId":"second[3]","output":"","origins":["web"],"approvalId":"apr_00000000000000000000000000000020"}}
        "moderation.flagged" {"nodeId":"second[3]","phase":"input"}}
        "contract.violated" {"nodeId":"second[3]","phase":"output"}}
        "governance.decided" {"nodeId":"second[3]","disposition":"allow"}}
        "approval.requested" {"nodeId":"second[3]","approvalId":"apr_00000000000000000000000000000020","source":"escalation","expiresAt":99,"errorCode":"timeout","errorMessage":"","prompt":"","labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}},"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true,"quorum":2,"notInitiator":true,"reminders":[[5,"normal"]],"actionDigest":"d1"}}
        "approval.reminded" {"nodeId":"second[3]","approvalId":"apr_00000000000000000000000000000020","level":"warning"}}
        "approval.resolved" {"nodeId":"second[3]","approvalId":"apr_00000000000000000000000000000020","resolution":"approved","constraints":{"tools_deny":["mail"]},"actionDigest":"d2"}}]}{"v":2,"at":1790000000123,"events":[
        "node.stream.delta" {"nodeId":"second[3]","deltaIndex":3,"attempt":1,"kind":"media","url":"","mime":""}}]}
    "#]].assert_eq(&transcript(&erased(&every::full())));
}

#[test]
fn events_with_nothing_in_them_can_be_erased() {
    erased(&every::bare());
}

#[test]
fn only_the_named_events_are_erased_and_only_once() {
    let encoded = encode(&every::full()[..4], AT_MS, &plan());
    let none = BTreeMap::new();
    let mut kept = framed(&encoded, &every::full()[..4]);
    let one = erase(&kept, |place| place == 2, &none).unwrap();
    let (before, after) = (raw(&encoded.body).unwrap(), raw(&one.body).unwrap());
    for place in [0, 1, 3] {
        assert_eq!(before.events[place], after.events[place]);
    }
    assert!(after.events[2].commitment_kind.is_erased());
    assert_eq!(one.gone.len(), 1);
    kept.body.clone_from(&one.body);
    let again = erase(&kept, |place| place == 2, &none).unwrap();
    assert_eq!((again.body, again.gone), (one.body, Vec::new()));
}

#[test]
fn what_was_moved_out_goes_unless_another_event_needs_it() {
    let cancelled = |letter: &str| Event::RunCancelled { reason: letter.repeat(BLOB_BYTES_MIN) };
    let events = [cancelled("a"), cancelled("b"), cancelled("a")];
    let encoded = encode(&events, AT_MS, &plan());
    let stored = stored(&encoded);
    let kept = framed(&encoded, &events);
    let first = |upto: usize| erase(&kept, |place| place < upto, &stored).unwrap();
    let hash = |letter: &str| Hash::of(format!("\"{}\"", letter.repeat(BLOB_BYTES_MIN)).as_bytes());
    assert_eq!(first(1).blobs, []);
    assert_eq!(first(2).blobs, [hash("b")]);
    assert_eq!(first(3).blobs.len(), 2);
    assert_eq!(blobs(&first(3).body).unwrap(), []);
    let missing = erase(&kept, |_| true, &BTreeMap::new());
    assert!(matches!(missing, Err(WireError::MissingBlob(_))));
}

#[test]
fn the_items_of_a_fan_out_are_still_counted() {
    let items: Vec<_> = (0..30_000).map(serde_json::Value::from).collect();
    let queued = StepEvent::Queued { items: Some(std::sync::Arc::new(items)) };
    let frame = erased(&[Event::Step(StepAt::whole(0), queued)]);
    assert_eq!(frame.matches("null").count(), 30_000);
}

#[test]
fn frames_of_version_1_can_be_erased_too() {
    let (body, beside, chain) = (VERSION_1.as_bytes().to_vec(), Vec::new(), Vec::new());
    let old = Frame { first: 1, count: 6, body, beside, chain };
    let erased = erase(&old, |place| place == 0, &BTreeMap::new());
    let body = erased.unwrap().body;
    assert!(!String::from_utf8(body.clone()).unwrap().contains("ada"));
    let frame = raw(&body).unwrap();
    assert_eq!((frame.version, frame.events[0].commitment_kind), (1, CommitmentKind::ErasedNone));
    assert_eq!(started(&body, &BTreeMap::new()).unwrap().definition_hash, "ab");
}

#[test]
fn a_sentence_is_no_code() {
    let failed = Event::RunFailed { code: "Bob did it".to_owned(), message: "m".to_owned() };
    assert!(!erased(&[failed]).contains("Bob"));
    let cancelled = Event::RunStatusChanged {
        status: crate::status::RunStatus::Cancelling,
        reason: "fraud".to_owned(),
        by: Some("ada".to_owned()),
    };
    let frame = erased(&[cancelled]);
    assert!(!frame.contains("fraud") && !frame.contains("ada"), "{frame}");
}

proptest! {
    #[test]
    fn whatever_was_written_can_be_erased(events in prop::collection::vec(any::event(), 0..4)) {
        erased(&events);
    }
}
