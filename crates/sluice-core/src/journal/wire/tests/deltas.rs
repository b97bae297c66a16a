//! Stream deltas, which are stored next to their frames.

use super::*;
use crate::journal::chain::Chain;
use crate::journal::event::Delta;
use crate::limits::BLOB_BYTES_MIN;

fn part(index: u64, part: DeltaPart) -> Event {
    let delta = Delta { index, attempt: 1, dispatch_no: 0, part };
    Event::Step(StepAt::whole(0), StepEvent::Delta(Box::new(delta)))
}

fn text(index: u64, text: &str) -> Event {
    part(index, DeltaPart::Text(text.to_owned()))
}

/// A frame with two stream deltas and another event between them.
fn streamed() -> Frame {
    let events = [text(0, "Hel"), Event::RunRecovered, text(1, "lo")];
    framed(&encode(&events, AT_MS, &plan()), &events)
}

fn shown(bytes: &[u8]) -> String {
    without_salts(std::str::from_utf8(bytes).unwrap())
}

#[test]
fn a_frame_has_stand_ins_for_its_stream_deltas() {
    let frame = streamed();
    expect![[r#"{"v":3,"at":1790000000123,"events":[{"type":"node.stream.delta","beside":true,"payload":{"nodeId":"first","deltaIndex":0,"attempt":1}},{"type":"run.recovered","payload":{}},{"type":"node.stream.delta","beside":true,"payload":{"nodeId":"first","deltaIndex":1,"attempt":1}}]}"#]]
        .assert_eq(&shown(&frame.body));
    expect![[r#"{"v":2,"at":1790000000123,"events":[{"type":"node.stream.delta","payload":{"nodeId":"first","deltaIndex":0,"attempt":1,"kind":"text","text":"Hel"}},{"type":"node.stream.delta","payload":{"nodeId":"first","deltaIndex":1,"attempt":1,"kind":"text","text":"lo"}}]}"#]]
        .assert_eq(&shown(&frame.beside));
}

/// Written when frames had stream deltas inside. Must never change.
#[test]
fn a_frame_of_version_2_with_stream_deltas_inside_can_be_read() {
    let old = br#"{"v":2,"at":5,"events":[{"type":"node.stream.delta","salt":"00000000000000000000000000000000","payload":{"nodeId":"first","deltaIndex":0,"attempt":1,"kind":"text","text":"one"}}]}"#;
    let decoded = decode(old, Some(&plan()), &BTreeMap::new()).unwrap();
    assert_eq!(decoded.events, [text(0, "one")]);
    let frame =
        Frame { first: 1, count: 1, body: old.to_vec(), beside: Vec::new(), chain: Vec::new() };
    let raw = whole(&frame).unwrap();
    assert!(raw.events[0].payload.contains("\"one\""));
    assert_eq!(elide(&frame), Ok(None), "it has no stored deltas");
}

#[test]
fn stream_deltas_that_do_not_match_their_frame_are_refused() {
    let good = streamed();
    let other = framed(&encode(&[text(0, "Hel")], AT_MS, &plan()), &[text(0, "Hel")]);
    let swapped = framed(
        &encode(&[text(1, "lo"), text(0, "Hel")], AT_MS, &plan()),
        &[text(1, "lo"), text(0, "Hel")],
    );
    let later = [text(0, "Hel"), text(1, "lo")];
    let later = framed(&encode(&later, AT_MS + 1, &plan()), &later);
    let plain = encode(&[Event::RunRecovered], AT_MS, &plan()).body;
    let mut said = String::new();
    for (body, beside) in [
        (good.body.clone(), Vec::new()),
        (good.body.clone(), other.beside.clone()),
        (other.body.clone(), good.beside.clone()),
        (good.body.clone(), swapped.beside),
        (good.body.clone(), later.beside),
        (good.body.clone(), good.body.clone()),
        (good.body.clone(), b"{\"elided\":[]}".to_vec()),
        (good.body.clone(), b"{\"elided\":[\"x\"]}".to_vec()),
        (good.body.clone(), b"{\"elided\": []}".to_vec()),
        (plain, good.beside.clone()),
        (good.beside.clone(), good.beside.clone()),
    ] {
        let frame = Frame { body, beside, ..good.clone() };
        said += &format!("{}\n", whole(&frame).unwrap_err());
    }
    expect![[r#"
        the stream delta of event 1 is missing
        the frame cannot be read: a stream delta is missing
        the frame cannot be read: it has more stream deltas than stand-ins
        the frame cannot be read: a stream delta does not match its stand-in
        the frame cannot be read: its stream deltas belong to another frame
        the frame cannot be read: its stream deltas belong to another frame
        the frame cannot be read: a stream delta is missing
        the frame cannot be read: the commitment of an elided stream delta is not a valid hash
        the frame cannot be read: its elided stream deltas are not in canonical form
        the frame cannot be read: it has more stream deltas than stand-ins
        the frame cannot be read: it has more stream deltas than stand-ins
    "#]]
    .assert_eq(&said);
}

#[test]
fn a_stand_in_is_only_where_a_part_was() {
    let raw_of = |body: &str| raw(body.as_bytes()).unwrap_err().to_string();
    let with = |v: u8, kind: &str, more: &str| {
        format!(
            r#"{{"v":{v},"at":5,"events":[{{"type":"{kind}"{more},"beside":true,"payload":{{}}}}]}}"#
        )
    };
    let none = "the frame cannot be read: a stand-in is not valid";
    assert_eq!(raw_of(&with(2, "node.stream.delta", "")), none);
    assert_eq!(raw_of(&with(3, "run.recovered", "")), none);
    assert_eq!(raw_of(&with(3, "node.stream.delta", r#","erased":true"#)), none);
    assert_eq!(
        raw_of(r#"{"v":3,"at":5,"events":[]}"#),
        "the frame cannot be read: its version does not match its content"
    );
}

#[test]
fn elided_parts_leave_their_commitments_and_all_hashes_hold() {
    let mut frame = streamed();
    let elided = elide(&frame).unwrap().unwrap();
    assert_eq!(elided.blobs, []);
    assert_eq!(
        elided.gone,
        [
            (1, r#"{"nodeId":"first","deltaIndex":0,"attempt":1}"#.to_owned()),
            (3, r#"{"nodeId":"first","deltaIndex":1,"attempt":1}"#.to_owned()),
        ]
    );
    frame.beside = elided.beside;
    assert!(!shown(&frame.beside).contains("Hel"));
    let raw = whole(&frame).unwrap();
    let mut at = link();
    let mut hashes = Chain::new(&mut at);
    for (event, kept) in raw.events.iter().zip(frame.chain.chunks(32)) {
        assert_eq!(hashes.add(event.kind, raw.at_ms, event.commitment().unwrap()).0, kept);
    }
    assert_eq!(elide(&frame), Ok(None), "once is enough");
    // Elided deltas have no payload to erase.
    let erased = erase(&frame, |place| place != 1, &BTreeMap::new()).unwrap();
    assert_eq!((erased.body, erased.beside, erased.gone), (frame.body, frame.beside, Vec::new()));
}

#[test]
fn one_part_is_erased_where_it_is() {
    let frame = streamed();
    let erased = erase(&frame, |place| place == 2, &BTreeMap::new()).unwrap();
    assert_eq!(erased.body, frame.body);
    assert_eq!(erased.gone.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [2]);
    let beside = shown(&erased.beside);
    assert!(beside.contains("Hel") && !beside.contains("\"lo\""), "{beside}");
}

#[test]
fn a_long_address_is_moved_out_and_goes_with_its_part() {
    let url = format!("data:{}", "x".repeat(BLOB_BYTES_MIN));
    let media = part(0, DeltaPart::Media { url, mime: "image/png".to_owned() });
    let encoded = encode(std::slice::from_ref(&media), AT_MS, &plan());
    let frame = framed(&encoded, &[media]);
    assert_eq!(blobs(&frame.body).unwrap(), []);
    assert_eq!(blobs_of(&frame).unwrap(), [encoded.blobs[0].hash]);
    assert_eq!(elide(&frame).unwrap().unwrap().blobs, [encoded.blobs[0].hash]);
}
