use super::*;
use crate::doc;
use crate::id::Entropy;
use crate::journal::chain::{Link, START};
use crate::journal::event::{
    Delta, DeltaPart, Dispatch, Event, Path, Provenance, Record, StepAt, StepEvent,
};
use crate::journal::wire;
use crate::limits::BLOB_BYTES_MIN;
use expect_test::expect;
use serde_json::{Value, json};
use std::sync::Arc;

const RUN: RunId = RunId(0x10);

fn plan() -> crate::plan::Plan {
    let text = "name: shown\nsteps: [{id: first, agent: a, command: x}]\n";
    doc::check(text.as_bytes(), None, &doc::Registry::default()).plan.unwrap()
}

struct Counter(u64);

impl Entropy for Counter {
    fn bits(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// A frame that begins at event 41.
fn encode(events: &[Event], at_ms: u64) -> wire::Encoded {
    let mut link = Link { run: RUN, next: 41, tip: START };
    wire::encode(events, at_ms, &plan(), &mut link, &mut Counter(0))
}

fn show(events: &[Event]) -> Vec<Shown> {
    let encoded = encode(events, 1_790_000_000_123);
    let count = u32::try_from(events.len()).unwrap();
    let blobs = encoded.blobs.iter().map(|blob| (blob.hash, blob.body.clone())).collect();
    events_of(envelopes(subject("my-flow", "7f"), &frame(41, count, encoded), &blobs).unwrap())
}

fn subject<'a>(workflow: &'a str, trace_id: &'a str) -> Subject<'a> {
    let (registered, definition_hash) = (true, "5e");
    Subject { run: RUN, workflow, registered, definition_hash, trace_id, graph: None }
}

fn frame(first: u64, count: u32, encoded: wire::Encoded) -> Frame {
    let wire::Encoded { body, beside, chain, .. } = encoded;
    Frame { first, count, body, beside, chain }
}

fn events_of(seen: Vec<Seen>) -> Vec<Shown> {
    seen.into_iter().map(|one| one.event().unwrap()).collect()
}

fn some_events() -> Vec<Event> {
    let dispatch = Dispatch {
        attempt: 1,
        dispatch_no: 1,
        wave: 2,
        agent: None,
        gateway: "mock".to_owned(),
        path: Path::Bridge,
        deadline_ms: None,
        prepared: None,
        digest: None,
        terms: Arc::default(),
        session: None,
    };
    let provenance = Provenance {
        source_run: None,
        source_node: "first".to_owned(),
        source_output_path: "a".to_owned(),
        target_input_path: "b".to_owned(),
        transform: None,
    };
    let decided = json!({"disposition": "al\"low", "gates": [{"ok": true}], "é\n": 1});
    let node = |event| Event::Step(StepAt::whole(0), event);
    vec![
        node(StepEvent::Started(Box::new(dispatch))),
        node(StepEvent::Provenance(Box::new(provenance))),
        node(StepEvent::GovernanceDecided(Record::new(decided.to_string()))),
        Event::RunRecovered,
    ]
}

#[test]
fn an_envelope_says_whose_event_it_is_and_when_it_was() {
    let lines: Vec<String> = show(&some_events())
        .into_iter()
        .map(|shown| format!("{} {} {}\n{}\n", shown.id, shown.kind, shown.at_ms, shown.json))
        .collect();
    expect![[r#"
        41 node.started 1790000000123
        {"eventId":41,"sequence":41,"type":"node.started","runId":"run_00000000000000000000000000000010","workflowId":"my-flow","timestamp":"2026-09-21T14:13:20.123Z","correlation":{"traceId":"7f","wave":2,"phase":"engine"},"payload":{"runId":"run_00000000000000000000000000000010","nodeId":"first","attempt":1,"dispatchNo":1,"wave":2,"gateway":"mock","executionPath":"bridge"}}
        42 node.provenance 1790000000123
        {"eventId":42,"sequence":42,"type":"node.provenance","runId":"run_00000000000000000000000000000010","workflowId":"my-flow","timestamp":"2026-09-21T14:13:20.123Z","correlation":{"traceId":"7f","parentEventId":41,"phase":"engine"},"payload":{"runId":"run_00000000000000000000000000000010","nodeId":"first","sourceNodeId":"first","sourceOutputPath":"a","targetInputPath":"b","sourceRunId":"run_00000000000000000000000000000010","transform":null}}
        43 governance.decided 1790000000123
        {"eventId":43,"sequence":43,"type":"governance.decided","runId":"run_00000000000000000000000000000010","workflowId":"my-flow","timestamp":"2026-09-21T14:13:20.123Z","correlation":{"traceId":"7f","parentEventId":41,"phase":"engine"},"payload":{"runId":"run_00000000000000000000000000000010","nodeId":"first","disposition":"al\"low","gates":[{"ok":true}],"é\n":1,"blockedBy":null}}
        44 run.recovered 1790000000123
        {"eventId":44,"sequence":44,"type":"run.recovered","runId":"run_00000000000000000000000000000010","workflowId":"my-flow","timestamp":"2026-09-21T14:13:20.123Z","correlation":{"traceId":"7f","parentEventId":43,"phase":"engine"},"payload":{"runId":"run_00000000000000000000000000000010"}}
    "#]].assert_eq(&lines.concat());
    for shown in show(&some_events()) {
        let envelope: Value = serde_json::from_str(&shown.json).unwrap();
        assert_eq!(envelope["payload"]["runId"], RUN.to_string());
    }
}

#[test]
fn what_is_stored_by_its_hash_is_shown_in_full() {
    let outputs = json!({"long": "x".repeat(BLOB_BYTES_MIN)});
    let shown = show(&[Event::RunCompleted { outputs: Arc::new(outputs.clone()) }]);
    let envelope: Value = serde_json::from_str(&shown[0].json).unwrap();
    assert_eq!(envelope["payload"], json!({"runId": RUN.to_string(), "outputs": outputs}));
    assert_eq!(envelope.get("blobs"), None);
}

#[test]
fn names_are_quoted() {
    let frame = frame(1, 1, encode(&[Event::RunRecovered], 0));
    let shown = envelopes(subject("a\"b", "c\\d"), &frame, &BTreeMap::new()).unwrap();
    let shown = events_of(shown);
    let envelope: Value = serde_json::from_str(&shown[0].json).unwrap();
    assert_eq!(envelope["workflowId"], "a\"b");
    assert_eq!(envelope["correlation"], json!({"traceId": "c\\d", "phase": "engine"}));
}

#[test]
fn a_frame_that_is_not_what_the_store_says_is_refused() {
    let body = encode(&[Event::RunRecovered], 0).body;
    let frame =
        |count, body| Frame { first: 1, count, body, beside: Vec::new(), chain: Vec::new() };
    let refused = |frame| envelopes(subject("w", "t"), &frame, &BTreeMap::new()).unwrap_err();
    expect!["the frame cannot be read: it has 1 events instead of 2"]
        .assert_eq(&refused(frame(2, body)).to_string());
    assert_eq!(refused(frame(1, br#"{"v":4}"#.to_vec())), WireError::Newer(4));
}

#[test]
fn an_erased_event_says_so_and_salts_are_not_shown() {
    assert!(show(&some_events()).iter().all(|shown| !shown.json.contains("salt")));
    let encoded = encode(&some_events(), 5);
    let mut frame = frame(41, 4, encoded);
    frame.body = wire::erase(&frame, |place| place == 2, &BTreeMap::new()).unwrap().body;
    let shown = events_of(envelopes(subject("w", "t"), &frame, &BTreeMap::new()).unwrap());
    expect![[r#"{"eventId":43,"sequence":43,"type":"governance.decided","runId":"run_00000000000000000000000000000010","workflowId":"w","timestamp":"1970-01-01T00:00:00.005Z","correlation":{"traceId":"t","parentEventId":41,"phase":"engine"},"payload":{"runId":"run_00000000000000000000000000000010","nodeId":"first","disposition":""},"erased":true}"#]]
        .assert_eq(&shown[2].json);
    assert!(!shown[1].json.contains("erased"));
}

fn part(index: u64, text: &str) -> Event {
    let part = DeltaPart::Text(text.to_owned());
    let delta = Delta { index, attempt: 1, dispatch_no: 0, part };
    Event::Step(StepAt::whole(0), StepEvent::Delta(Box::new(delta)))
}

#[test]
fn parts_of_answers_are_shown_at_their_places() {
    let shown = show(&[part(0, "a"), Event::RunRecovered, part(1, "\"b\"")]);
    let seen: Vec<_> = shown.iter().map(|one| (one.id, one.kind.as_str())).collect();
    assert_eq!(seen, [(41, "node.stream.delta"), (42, "run.recovered"), (43, "node.stream.delta")]);
    let envelope: Value = serde_json::from_str(&shown[2].json).unwrap();
    assert_eq!(
        envelope["payload"],
        json!({
            "runId": RUN.to_string(),
            "nodeId": "first",
            "deltaIndex": 1,
            "attempt": 1,
            "kind": "text",
            "text": "\"b\"",
        })
    );
    assert!(!shown[2].json.contains("beside"));
}

#[test]
fn elided_parts_are_passed_over_and_their_ids_are_told() {
    let events =
        [part(0, "a"), part(1, "b"), Event::RunRecovered, part(2, "c"), Event::RunRecovered];
    let mut frame = frame(41, 5, encode(&events, 5));
    let none = BTreeMap::new();
    let missing = Frame { beside: Vec::new(), ..frame.clone() };
    assert_eq!(envelopes(subject("w", "t"), &missing, &none), Err(WireError::MissingDelta(41)));
    frame.beside = wire::elide(&frame).unwrap().unwrap().beside;
    let seen = envelopes(subject("w", "t"), &frame, &none).unwrap();
    assert_eq!(seen.iter().map(Seen::id).collect::<Vec<_>>(), [42, 43, 44, 45]);
    assert_eq!(seen[0], Seen::Elided { first: 41, last: 42 });
    assert_eq!(seen[2], Seen::Elided { first: 44, last: 44 });
    assert_eq!(seen.into_iter().filter_map(Seen::event).count(), 2);
}

#[test]
fn times_are_written_as_a_calendar_has_them() {
    // date -u -d @SECONDS +%FT%T
    for (ms, written) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (86_399_999, "1970-01-01T23:59:59.999Z"),
        (68_169_600_000, "1972-02-29T00:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (978_307_199_000, "2000-12-31T23:59:59.000Z"),
        (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
        (1_709_208_000_000, "2024-02-29T12:00:00.000Z"),
        (1_790_000_000_123, "2026-09-21T14:13:20.123Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(timestamp(ms), written);
    }
    assert!(timestamp(u64::MAX).ends_with("Z"));
}

#[test]
fn every_day_of_an_era_follows_the_one_before() {
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for days in 0..146_097 * 2 {
        assert_eq!(civil(days), (year, month, day));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 => 28 + u64::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (day, month) = if day == length { (1, month + 1) } else { (day + 1, month) };
        (month, year) = if month == 13 { (1, year + 1) } else { (month, year) };
    }
}

#[test]
fn a_decision_in_brief_is_shown_whole() {
    let record = r#"{"disposition":"allow","passed":{"concurrency":{"running":1,"max":2}},"policyHash":"p","factsDigest":"f","actionDigest":"a","facts":{"who":{"agent":{"name":"mock","trust":5,"phase":"production","status":"idle"}},"what":{"gateway":{"name":"local","environment":"local","min_trust":1}},"by":"ada","attempt":1,"cost":10000},"layer":"default","registry":3}"#;
    let decided = StepEvent::GovernanceDecided(Record::new(record));
    let shown = show(&[Event::Step(StepAt::instance(0, 2), decided)]).remove(0);
    let envelope: Value = serde_json::from_str(&shown.json).unwrap();
    let payload = &envelope["payload"];
    let names: Vec<&String> = payload.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "runId",
            "nodeId",
            "disposition",
            "gates",
            "constraints",
            "policyHash",
            "factsDigest",
            "actionDigest",
            "facts",
            "route",
            "worst",
            "registry",
            "blockedBy",
        ]
    );
    assert_eq!(payload["gates"].as_array().unwrap().len(), 10);
    assert_eq!(payload["gates"][2]["figures"], json!({"running": 1, "max": 2}));
    assert_eq!(payload["nodeId"], "first[2]");
    assert_eq!(payload["facts"]["step"]["id"], "first[2]");
    assert_eq!(payload["facts"]["run"]["id"], RUN.to_string());
    assert_eq!(payload["facts"]["at"], 1_790_000_000_123_u64);
    assert_eq!(payload["route"], json!({"gateway": "local", "layer": "default"}));
}

/// Steps a and b come first, c after both; `each` runs once for every item.
fn graph() -> crate::plan::Plan {
    let text = "name: w\nsteps:\n  - {id: a, agent: m, command: x}\n  - {id: b, agent: m, command: x}\n  \
                - {id: c, agent: m, command: x, depends_on: [a, b]}\n  \
                - {id: each, agent: m, for_each: {items: [1, 2]}, command: x, depends_on: [c]}\n";
    doc::check(text.as_bytes(), None, &doc::Registry::default()).plan.unwrap()
}

/// The waves and the parents of the events of one append, given by type and step.
fn correlated(first: u64, events: &[(&str, &str)]) -> Vec<String> {
    let written = events.iter().map(|(kind, node)| {
        let payload = if node.is_empty() { json!({}) } else { json!({"nodeId": node}) };
        json!({"type": kind, "payload": payload})
    });
    let body = json!({"v": 1, "at": 0, "events": written.collect::<Vec<_>>()}).to_string();
    let count = u32::try_from(events.len()).unwrap();
    let frame =
        Frame { first, count, body: body.into_bytes(), beside: Vec::new(), chain: Vec::new() };
    let plan = graph();
    let of = Subject { graph: Some(&plan.graph), ..subject("w", "t") };
    let shown = events_of(envelopes(of, &frame, &BTreeMap::new()).unwrap());
    let told = shown.iter().zip(events).map(|(shown, (_, node))| {
        let envelope: Value = serde_json::from_str(&shown.json).unwrap();
        let of = |name: &str| envelope["correlation"].get(name).map(ToString::to_string);
        let wave = of("wave").map(|wave| format!(" in wave {wave}")).unwrap_or_default();
        let parent = of("parentEventId").map(|id| format!(" because of {id}")).unwrap_or_default();
        let node = if node.is_empty() { String::new() } else { format!(" {node}") };
        format!("{} {}{node}{wave}{parent}\n", shown.id, shown.kind)
    });
    told.collect()
}

#[test]
fn every_event_of_a_step_says_its_wave_and_its_cause_in_the_same_append() {
    let begins = [
        ("run.started", ""),
        ("run.status.changed", ""),
        ("node.queued", "a"),
        ("governance.decided", "a"),
        ("node.started", "a"),
        ("node.queued", "b"),
        ("governance.decided", "b"),
        ("approval.requested", "b"),
    ];
    expect![[r#"
        1 run.started
        2 run.status.changed because of 1
        3 node.queued a in wave 0 because of 2
        4 governance.decided a in wave 0 because of 3
        5 node.started a in wave 0 because of 4
        6 node.queued b in wave 0 because of 2
        7 governance.decided b in wave 0 because of 6
        8 approval.requested b in wave 0 because of 7
    "#]]
    .assert_eq(&correlated(1, &begins).concat());
    // The answer was caused by an earlier append, so it has no parent; later events do.
    let goes_on = [
        ("node.completed", "b"),
        ("node.queued", "c"),
        ("node.provenance", "c"),
        ("node.log", "c"),
        ("governance.decided", "c"),
        ("node.started", "c"),
    ];
    expect![[r#"
        20 node.completed b in wave 0
        21 node.queued c in wave 1 because of 20
        22 node.provenance c in wave 1 because of 21
        23 node.log c in wave 1 because of 21
        24 governance.decided c in wave 1 because of 21
        25 node.started c in wave 1 because of 24
    "#]]
    .assert_eq(&correlated(20, &goes_on).concat());
    let ends = [("node.completed", "each[1]"), ("node.completed", "each"), ("run.completed", "")];
    expect![[r#"
        40 node.completed each[1] in wave 2
        41 node.completed each in wave 2 because of 40
        42 run.completed because of 41
    "#]]
    .assert_eq(&correlated(40, &ends).concat());
    let fails = [
        ("contract.violated", "a"),
        ("node.failed", "a"),
        ("node.cancelled", "b"),
        ("node.skipped", "c"),
        ("run.failed", ""),
    ];
    expect![[r#"
        7 contract.violated a in wave 0
        8 node.failed a in wave 0 because of 7
        9 node.cancelled b in wave 0 because of 8
        10 node.skipped c in wave 1 because of 9
        11 run.failed because of 10
    "#]]
    .assert_eq(&correlated(7, &fails).concat());
}

#[test]
fn a_run_without_a_definition_is_shown_without_waves() {
    let shown = show(&[part(0, "a")]);
    let envelope: Value = serde_json::from_str(&shown[0].json).unwrap();
    assert_eq!(envelope["correlation"], json!({"traceId": "7f", "phase": "engine"}));
}
