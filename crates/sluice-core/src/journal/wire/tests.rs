//! Frames: their encoded form, and that they decode to the same events.

mod any;
mod bounds;
mod chain;
mod deltas;
mod erase;
mod every;

use super::*;
use crate::doc;
use crate::id::RunId;
use crate::journal::chain::START;
use crate::journal::event::{DeltaPart, StepAt, StepEvent};
use crate::port::store::Frame;
use expect_test::{Expect, expect};
use proptest::prelude::*;

pub(super) const AT_MS: u64 = 1_790_000_000_123;

pub(super) fn plan() -> Plan {
    let text = "name: wire\nsteps:\n  - {id: first, agent: a, command: x}\n  \
                - {id: second, agent: a, command: x}\n  - {id: third, agent: a, command: x}\n";
    let checked = doc::check(text.as_bytes(), None, &doc::Registry::default());
    checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// Salts that are all zeros.
pub(super) struct Zeros;

impl Entropy for Zeros {
    fn bits(&mut self) -> u64 {
        0
    }
}

pub(super) fn link() -> Link {
    Link { run: RunId(0x10), next: 1, tip: START }
}

/// The first event of a run.
pub(super) fn encode(events: &[Event], at_ms: u64, plan: &Plan) -> Encoded {
    super::encode(events, at_ms, plan, &mut link(), &mut Zeros)
}

pub(super) fn stored(encoded: &Encoded) -> BTreeMap<Hash, Vec<u8>> {
    encoded.blobs.iter().map(|blob| (blob.hash, blob.body.clone())).collect()
}

/// Encodes events, decodes them again, and returns the text of the frame.
fn check(events: &[Event]) -> String {
    let plan = plan();
    let encoded = encode(events, AT_MS, &plan);
    let stored = stored(&encoded);
    let frame = framed(&encoded, events);
    assert_eq!(blobs_of(&frame).unwrap(), stored.keys().copied().collect::<Vec<_>>());
    let decoded = decode(&encoded.body, Some(&plan), &stored).unwrap();
    assert_eq!(decoded, Decoded { at_ms: AT_MS, events: folded(events) });
    let parts = folded(events).iter().zip(events).filter(|(one, other)| one != other).count();
    if parts == 0 {
        assert_eq!(encoded.beside, b"");
    } else {
        // The stream deltas are a frame of their own.
        let beside = decode(&encoded.beside, Some(&plan), &stored).unwrap();
        let wanted = events.iter().filter(|event| event.name() == super::deltas::DELTA);
        assert_eq!(beside.events.iter().collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    }
    if let Some(Event::RunStarted(run)) = events.first() {
        assert_eq!(started(&encoded.body, &stored).unwrap(), **run);
    }
    String::from_utf8([encoded.body, encoded.beside].concat()).unwrap()
}

/// The frame as a store returns it.
pub(super) fn framed(encoded: &Encoded, events: &[Event]) -> Frame {
    let Encoded { body, beside, chain, .. } = encoded.clone();
    Frame { first: 1, count: u32::try_from(events.len()).unwrap(), body, beside, chain }
}

/// The events as the fold reads them, without the content of stream deltas.
fn folded(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    for event in &mut events {
        if let Event::Step(_, StepEvent::Delta(delta)) = event {
            delta.part = DeltaPart::Beside;
        }
    }
    events
}

/// One line for each event.
fn transcript(frame: &str) -> String {
    let frame = without_salts(frame);
    frame.replace("{\"type\":", "\n{\"type\":").trim_start().to_owned() + "\n"
}

/// Removes the salts, which would only clutter the output.
pub(super) fn without_salts(frame: &str) -> String {
    frame.replace("\"salt\":\"00000000000000000000000000000000\",", "")
}

fn shows(events: &[Event], expected: &Expect) {
    expected.assert_eq(&transcript(&check(events)));
}

#[test]
fn every_event_in_full() {
    shows(
        &every::full(),
        &expect![[r#"
            {"v":3,"at":1790000000123,"events":[
            {"type":"run.started","payload":{"workflow":"w","version":3,"source":"registered","definitionHash":"ab","definition":"2222222222222222222222222222222222222222222222222222222222222222","children":{"c":"2222222222222222222222222222222222222222222222222222222222222222","c@2":"2222222222222222222222222222222222222222222222222222222222222222"},"args":{"n":1.5},"roleBindings":{"role":"agent"},"defaultAgent":"a","defaultModel":"m","fallbackModel":"f","recursionDepthMax":2,"gateway":"mock","initiator":"ada","onBehalfOf":["ben"],"traceId":"t","rootSpanId":"s","parentSpanId":"p","parentRunId":"run_00000000000000000000000000000010","parentNodeId":"step[1]","rootRunId":"run_00000000000000000000000000000010","depth":1,"originKind":"branch","originRunId":"run_00000000000000000000000000000010","originEventId":7,"deployment":"live","posture":"approval_required","trustCeiling":4,"pins":{"agent":"gw"},"caps":[["run_00000000000000000000000000000010",5]],"agreed":{"step":{"command":"x"}},"labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}}}},
            {"type":"run.status.changed","payload":{"status":"paused","reason":"operator","by":"ada"}},
            {"type":"run.completed","payload":{"outputs":{"x":1}}},
            {"type":"run.failed","payload":{"errorCode":"step_failed","errorMessage":"a step failed"}},
            {"type":"run.cancelled","payload":{"reason":"enough"}},
            {"type":"run.timed_out","payload":{"timeoutMs":1000}},
            {"type":"run.recovered","payload":{}},
            {"type":"budget.alert","payload":{"budget":"b","spent":0.5}},
            {"type":"node.queued","payload":{"nodeId":"second[3]","items":[1,null]}},
            {"type":"node.queued","payload":{"nodeId":"second[3]","assignedMember":"m","by":"me"}},
            {"type":"node.waiting","payload":{"nodeId":"second[3]","waitingReason":"retry_backoff","attempt":2,"cause":"timeout","delayMs":5,"until":10,"code":"budget","hint":"wait"}},
            {"type":"node.started","payload":{"nodeId":"second[3]","attempt":1,"dispatchNo":2,"wave":0,"agent":"a","gateway":"mock","executionPath":"child","childRunId":"run_00000000000000000000000000000010","deadline":99,"actionDigest":"d1","slot":"a","reserved":7,"accounts":[["run/x",9]],"constraints":{"tools_deny":["mail"]},"termsModel":"m","maxOutputTokens":12,"inputs":{"z":1,"a":null},"prompt":"do \"it\"\n","stdin":"","env":{"B":"1","A":"2"},"labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}},"layers":[{"layer":2,"name":"platform","source":"house","text":"Be \"kind\""}]}},
            {"type":"node.stream.delta","beside":true,"payload":{"nodeId":"second[3]","deltaIndex":3,"attempt":1}},
            {"type":"node.log","payload":{"nodeId":"second[3]","dispatchNo":2,"processGroup":7,"processStarted":"123"}},
            {"type":"node.retried","payload":{"nodeId":"second[3]","attempt":1,"cause":"timeout","errorMessage":"too long","delayMs":5,"reask":true,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true}},
            {"type":"node.completed","payload":{"nodeId":"second[3]","envelope":{"kind":"text","artifactKind":"page","output":"x","data":null,"media":[],"metadata":{"a":1}},"labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}},"attempts":2,"durationMs":12,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true,"coercions":[{"field":"b","from":"string","to":"integer"}],"session":"talk","carriedFrom":"run_00000000000000000000000000000010"}},
            {"type":"node.failed","payload":{"nodeId":"second[3]","errorCode":"provider_error","errorMessage":"no answer","errors":[{"field":"a.b[0]","reason":"too_long","message":"is long"}],"attempts":2,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true}},
            {"type":"node.timed_out","payload":{"nodeId":"second[3]","errorCode":"provider_error","errorMessage":"no answer","errors":[{"field":"a.b[0]","reason":"too_long","message":"is long"}],"attempts":2,"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true}},
            {"type":"node.cancelled","payload":{"nodeId":"second[3]","code":"run_halted","reason":"the run stopped"}},
            {"type":"node.skipped","payload":{"nodeId":"second[3]","cause":"condition_false","waitingReason":"condition_false","reason":"is false","errorCode":"timeout","errorMessage":"too long","model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true,"carriedFrom":"run_00000000000000000000000000000010","control":true}},
            {"type":"node.blocked","payload":{"nodeId":"second[3]","errorCode":"missing_value","errorMessage":"has no value","placeholder":"label","waits":true}},
            {"type":"node.invalidated","payload":{"nodeId":"second[3]"}},
            {"type":"node.provenance","payload":{"nodeId":"second[3]","sourceRunId":"run_00000000000000000000000000000010","sourceNodeId":"second","sourceOutputPath":"a.b","targetInputPath":"c","transform":"concat"}},
            {"type":"node.endorsed","payload":{"nodeId":"second[3]","output":"n","origins":["web"],"approvalId":"apr_00000000000000000000000000000020"}},
            {"type":"moderation.flagged","payload":{"nodeId":"second[3]","phase":"input","decision":{"flagged":true}}},
            {"type":"contract.violated","payload":{"nodeId":"second[3]","phase":"output","errors":[{"field":"a.b[0]","reason":"too_long","message":"is long"}]}},
            {"type":"governance.decided","payload":{"nodeId":"second[3]","disposition":"allow","gates":[]}},
            {"type":"approval.requested","payload":{"nodeId":"second[3]","approvalId":"apr_00000000000000000000000000000020","source":"escalation","summary":"may I?","approvers":["ada"],"expiresAt":99,"errorCode":"timeout","errorMessage":"too long","inputs":{"z":1,"a":null},"prompt":"do \"it\"\n","stdin":"","env":{"B":"1","A":"2"},"labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}},"layers":[{"layer":2,"name":"platform","source":"house","text":"Be \"kind\""}],"model":"m","inputTokens":1,"outputTokens":2,"thinkingTokens":3,"cost":0.0021,"costUnknown":true,"groups":[["ada","legal"]],"quorum":2,"notInitiator":true,"reminders":[[5,"normal"]],"actionDigest":"d1","action":{"command":"go"},"reasons":["policy p"],"changes":[{"path":"/command","before":"stay","after":"go"}]}},
            {"type":"approval.reminded","payload":{"nodeId":"second[3]","approvalId":"apr_00000000000000000000000000000020","level":"warning"}},
            {"type":"approval.resolved","payload":{"nodeId":"second[3]","approvalId":"apr_00000000000000000000000000000020","resolution":"approved","by":"ada","comment":"fine","roles":["legal"],"constraints":{"tools_deny":["mail"]},"actionDigest":"d2"}}]}{"v":2,"at":1790000000123,"events":[
            {"type":"node.stream.delta","payload":{"nodeId":"second[3]","deltaIndex":3,"attempt":1,"kind":"media","url":"u","mime":"image/png"}}]}
        "#]],
    );
}

#[test]
fn every_event_with_as_little_as_can_be() {
    shows(
        &every::bare(),
        &expect![[r#"
            {"v":3,"at":1790000000123,"events":[
            {"type":"run.started","payload":{"workflow":"","definitionHash":""}},
            {"type":"run.status.changed","payload":{"status":"running"}},
            {"type":"run.completed","payload":{}},
            {"type":"run.failed","payload":{"errorCode":"","errorMessage":""}},
            {"type":"run.cancelled","payload":{}},
            {"type":"run.timed_out","payload":{"timeoutMs":0}},
            {"type":"run.recovered","payload":{}},
            {"type":"budget.alert","payload":{}},
            {"type":"node.queued","payload":{"nodeId":"first"}},
            {"type":"node.queued","payload":{"nodeId":"first","assignedAgent":"a"}},
            {"type":"node.queued","payload":{"nodeId":"first","items":[]}},
            {"type":"node.waiting","payload":{"nodeId":"first","waitingReason":"gate"}},
            {"type":"node.started","payload":{"nodeId":"first","attempt":1,"dispatchNo":1,"wave":0,"executionPath":"edge"}},
            {"type":"node.started","payload":{"nodeId":"first","attempt":1,"dispatchNo":1,"wave":0,"executionPath":"fan_out","prompt":""}},
            {"type":"node.stream.delta","beside":true,"payload":{"nodeId":"first","deltaIndex":0,"attempt":1}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":1,"text":""}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":1,"processGroup":0}},
            {"type":"node.retried","payload":{"nodeId":"first","attempt":1,"cause":"","delayMs":0}},
            {"type":"node.completed","payload":{"nodeId":"first","attempts":1,"durationMs":0}},
            {"type":"node.failed","payload":{"nodeId":"first","errorCode":"","errorMessage":"","attempts":1}},
            {"type":"node.timed_out","payload":{"nodeId":"first","errorCode":"","errorMessage":"","attempts":1}},
            {"type":"node.cancelled","payload":{"nodeId":"first","code":""}},
            {"type":"node.skipped","payload":{"nodeId":"first","cause":"decision"}},
            {"type":"node.blocked","payload":{"nodeId":"first","errorCode":"","errorMessage":""}},
            {"type":"node.invalidated","payload":{"nodeId":"first"}},
            {"type":"node.provenance","payload":{"nodeId":"first","sourceNodeId":"","sourceOutputPath":"","targetInputPath":""}},
            {"type":"node.endorsed","payload":{"nodeId":"first","output":"n"}},
            {"type":"moderation.flagged","payload":{"nodeId":"first","phase":"output"}},
            {"type":"contract.violated","payload":{"nodeId":"first","phase":"instructions"}},
            {"type":"governance.decided","payload":{"nodeId":"first"}},
            {"type":"approval.requested","payload":{"nodeId":"first","approvalId":"apr_00000000000000000000000000000020","source":"step","expiresAt":0}},
            {"type":"approval.reminded","payload":{"nodeId":"first","approvalId":"apr_00000000000000000000000000000020"}},
            {"type":"approval.resolved","payload":{"nodeId":"first","approvalId":"apr_00000000000000000000000000000020","resolution":"expired"}}]}{"v":2,"at":1790000000123,"events":[
            {"type":"node.stream.delta","payload":{"nodeId":"first","deltaIndex":0,"attempt":1,"kind":"text","text":""}}]}
        "#]],
    );
}

#[test]
fn what_the_log_says_of_the_moderator() {
    shows(
        &every::moderated(),
        &expect![[r#"
            {"v":2,"at":1790000000123,"events":[
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":0,"moderation":"asked","digest":"5e1f","inputs":{"z":1,"a":null},"prompt":"do \"it\"\n","stdin":"","env":{"B":"1","A":"2"},"labels":{"classes":["caller","human"],"untrusted":true,"private":true,"since":9,"origins":["unknown","web"],"without":["caller"],"secrecy":["customer"],"control":true},"fieldLabels":{"z":{"origins":["caller"],"secrecy":["payroll"]}},"layers":[{"layer":2,"name":"platform","source":"house","text":"Be \"kind\""}]}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":0,"moderation":"asked","digest":"5e1f"}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":0,"moderation":"cleared","phase":"input","digest":"5e1f"}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":0,"moderation":"cleared","phase":"output","digest":"5e1f"}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":0,"text":"tool crm.find answered","tool":"crm.find","callId":"1","ended":"answered","bytes":4,"durationMs":2,"content":{"text":"said","structured":{"id":7}},"records":["id"]}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":0,"text":"run_00000000000000000000000000000010 waits for people","childRunId":"run_00000000000000000000000000000010","child":"paused","childAt":7}},
            {"type":"node.log","payload":{"nodeId":"first","dispatchNo":0,"text":"run_00000000000000000000000000000010 goes on","childRunId":"run_00000000000000000000000000000010","child":"resumed","childAt":8}}]}
        "#]],
    );
}

#[test]
fn what_a_failed_attempt_answered_is_written_read_back_and_erased() {
    let events = every::refused();
    let encoded = encode(&events, AT_MS, &plan());
    let written = String::from_utf8(encoded.body.clone()).unwrap();
    assert_eq!(
        written.matches(r#""answer":{"text":"a \"b\"\n","outputs":{"z":1,"a":null}}"#).count(),
        5
    );
    let decoded = decode(&encoded.body, Some(&plan()), &BTreeMap::new()).unwrap();
    assert_eq!(decoded.events, events);
    let erased = erase(&framed(&encoded, &events), |_| true, &BTreeMap::new()).unwrap();
    let left = String::from_utf8(erased.body).unwrap();
    assert!(!left.contains("answer"), "{left}");
}

#[test]
fn the_samples_are_of_every_event_there_is() {
    let names = |events: Vec<Event>| events.iter().map(Event::name).collect::<BTreeSet<_>>();
    assert_eq!(names(every::full()), names(every::bare()));
    // The declarations name all events, so a new one without a sample fails here.
    assert_eq!(names(every::full()).len(), 29);
    assert_eq!(names(every::full()), crate::journal::event::names().into_iter().collect());
}

/// Written by the first version of Sluice that had a journal. Must never change.
const VERSION_1: &str = r#"{"v":1,"at":1790000000123,"events":[{"type":"run.started","payload":{"workflow":"w","version":3,"source":"registered","definitionHash":"ab","definition":"2222222222222222222222222222222222222222222222222222222222222222","args":{"n":1},"gateway":"mock","initiator":"ada","onBehalfOf":["ben"],"traceId":"t","rootSpanId":"s"}},{"type":"node.queued","payload":{"nodeId":"first"}},{"type":"node.started","payload":{"nodeId":"first","attempt":1,"dispatchNo":1,"wave":0,"agent":"a","gateway":"mock","executionPath":"edge","deadline":1790000060123,"prompt":"do it","env":{"A":"b"},"labels":{"classes":["caller"],"since":1790000000000}}},{"type":"node.completed","payload":{"nodeId":"first","outputs":{"x":1},"stdout":"{\"x\":1}","labels":{"classes":["agent"],"untrusted":true,"since":1790000000000},"attempts":1,"durationMs":12,"model":"m","inputTokens":10,"outputTokens":20,"cost":0.0021,"coercions":[{"field":"x","from":"string","to":"integer"}]}},{"type":"node.skipped","payload":{"nodeId":"second[3]","cause":"condition_false","waitingReason":"condition_false"}},{"type":"run.completed","payload":{"outputs":{"x":1}}}]}"#;

#[test]
fn a_frame_of_version_1_is_read_for_ever() {
    let plan = plan();
    let decoded = decode(VERSION_1.as_bytes(), Some(&plan), &BTreeMap::new()).unwrap();
    assert_eq!(decoded.at_ms, AT_MS);
    // Encoded again, it differs only by the salts, so every field was read.
    let again = encode(&decoded.events, decoded.at_ms, &plan);
    let again = String::from_utf8(again.body).unwrap();
    assert_eq!(without_salts(&again).replacen("{\"v\":2,", "{\"v\":1,", 1), VERSION_1);
    // Version 1 has no commitments.
    let raw = raw(VERSION_1.as_bytes()).unwrap();
    assert!(raw.events.iter().all(|event| event.commitment().is_none()));
}

#[test]
fn what_a_later_version_added_is_passed_over() {
    let body = r#"{"new":{},"at":5,"v":1,"events":[{"payload":{"new":[1],"nodeId":"first"},"new":null,"type":"node.invalidated"}]}"#;
    let decoded = decode(body.as_bytes(), Some(&plan()), &BTreeMap::new()).unwrap();
    let event = Event::Step(StepAt::whole(0), StepEvent::Invalidated);
    assert_eq!(decoded, Decoded { at_ms: 5, events: vec![event] });
}

#[test]
fn what_is_no_frame_is_refused() {
    let one = |event: &str| format!(r#"{{"v":1,"at":5,"events":[{event}]}}"#);
    let typed =
        |kind: &str, payload: &str| one(&format!(r#"{{"type":"{kind}","payload":{payload}}}"#));
    let frames = [
        String::new(),
        "[]".to_owned(),
        r#"{"v":0,"at":5,"events":[]}"#.to_owned(),
        r#"{"v":4,"frames":"of a later age"}"#.to_owned(),
        r#"{"v":1,"at":5}"#.to_owned(),
        one("7"),
        typed("node.levitated", r#"{"nodeId":"first"}"#),
        typed("node.invalidated", "{}"),
        typed("node.invalidated", r#"{"nodeId":"unknown"}"#),
        typed("node.invalidated", r#"{"nodeId":"first[-1]"}"#),
        typed("node.invalidated", r#"{"nodeId":"first[1][2]"}"#),
        typed("run.timed_out", r#"{"timeoutMs":-1}"#),
        typed("run.timed_out", r#"{"timeoutMs":1.5}"#),
        typed("run.status.changed", r#"{"status":"levitating"}"#),
        typed(
            "node.started",
            r#"{"nodeId":"first","attempt":1,"dispatchNo":1,"wave":0,"executionPath":"child"}"#,
        ),
        typed(
            "node.retried",
            r#"{"nodeId":"first","attempt":1,"cause":"timeout","delayMs":0,"cost":-1}"#,
        ),
        typed(
            "contract.violated",
            r#"{"nodeId":"first","phase":"input","errors":[{"field":"","reason":"","message":""}]}"#,
        ),
        typed(
            "node.completed",
            r#"{"nodeId":"first","attempts":1,"durationMs":0,"coercions":[{"field":"","from":"","to":"string"}]}"#,
        ),
        typed(
            "node.completed",
            r#"{"nodeId":"first","attempts":1,"durationMs":0,"labels":{"classes":["ghost"]}}"#,
        ),
    ];
    let mut transcript = String::new();
    for frame in &frames {
        let error = decode(frame.as_bytes(), Some(&plan()), &BTreeMap::new()).unwrap_err();
        transcript += &format!("{error}\n");
    }
    expect![[r#"
        the frame cannot be read: EOF while parsing a value at line 1 column 0
        the frame cannot be read: invalid length 0, expected struct Frame with 3 elements at line 1 column 2
        the frame cannot be read: there is no version 0
        the frame has format version 4; this version of Sluice reads up to 3
        the frame cannot be read: missing field `events` at line 1 column 14
        the frame cannot be read: invalid type: integer `7`, expected struct ParsedEvent at line 1 column 25
        unknown event type `node.levitated`
        the frame cannot be read: node.invalidated: nodeId is missing
        the frame cannot be read: node.invalidated: nodeId: not a step of the plan
        the frame cannot be read: node.invalidated: nodeId: not a step of the plan
        the frame cannot be read: node.invalidated: nodeId: not a step of the plan
        the frame cannot be read: run.timed_out: timeoutMs: invalid value: integer `-1`, expected u64 at line 1 column 2
        the frame cannot be read: run.timed_out: timeoutMs: invalid type: floating point `1.5`, expected u64 at line 1 column 3
        the frame cannot be read: run.status.changed: status: unknown word
        the frame cannot be read: node.started: executionPath: unknown word
        the frame cannot be read: node.retried: cost: an amount of money cannot be negative
        the frame cannot be read: contract.violated: errors: `` is not a reason of a violation at line 1 column 24
        the frame cannot be read: node.completed: coercions: unknown type
        the frame cannot be read: node.completed: labels: unknown source class
    "#]].assert_eq(&transcript);
}

#[test]
fn without_a_plan_only_the_beginning_can_be_read() {
    let none = BTreeMap::new();
    let run = started(VERSION_1.as_bytes(), &none).unwrap();
    assert_eq!((run.workflow.as_str(), run.version), ("w", Some(3)));
    expect!["the frame cannot be read: node.queued: the event names a step, but no plan is given"]
        .assert_eq(&decode(VERSION_1.as_bytes(), None, &none).unwrap_err().to_string());

    let encoded = encode(&[Event::RunRecovered], 5, &plan());
    assert_eq!(decode(&encoded.body, None, &none).unwrap().events, [Event::RunRecovered]);
    expect!["the frame cannot be read: the first event is run.recovered, not run.started"]
        .assert_eq(&started(&encoded.body, &none).unwrap_err().to_string());
    expect!["the frame cannot be read: it has no events"]
        .assert_eq(&started(&encode(&[], 5, &plan()).body, &none).unwrap_err().to_string());
}

proptest! {
    #[test]
    fn what_is_written_reads_back(events in prop::collection::vec(any::event(), 0..4)) {
        check(&events);
    }

    #[test]
    fn rubbish_is_refused_and_nothing_more(body in any::spoilt(), planned: bool) {
        let plan = plan();
        let none = BTreeMap::new();
        let _ = decode(&body, planned.then_some(&plan), &none);
        let _ = started(&body, &none);
        let _ = blobs(&body);
        let _ = raw(&body);
        let (count, chain) = (1, Vec::new());
        for (body, beside) in [(body.clone(), Vec::new()), (body.clone(), body)] {
            let frame = Frame { first: 1, count, body, beside, chain: chain.clone() };
            let _ = erase(&frame, |_| true, &none);
            let _ = whole(&frame);
            let _ = elide(&frame);
        }
    }
}
