//! Packets: their contents, and that every change is found.

use super::*;
use crate::evidence::fake_store::{FakeStore, RUN, WRITER, signer, stranger};
use proptest::prelude::*;

fn packet(store: &FakeStore) -> Packet {
    let row = store.seals.last().unwrap();
    let value = |hash: Hash| String::from_utf8(store.blobs.get(&hash)?.clone()).ok();
    Packet::gather(RUN, &store.runs[&RUN], row, value).unwrap()
}

fn check(text: &str) -> Result<Vec<Hash>, PacketError> {
    Packet::parse(text)?.verify(&[signer().public()])
}

/// The policy set of the decision: the store does not keep it, and the packet reports that.
fn policies() -> Vec<Hash> {
    vec![Hash::parse(sluice_govern::policy::Policies::permit_all().hash()).unwrap()]
}

#[test]
fn a_packet_holds_a_run_and_verifies() {
    let packet = packet(&FakeStore::new());
    assert_eq!(packet.events[0].kind, "run.started");
    assert_eq!(packet.values.len(), 2);
    let text = packet.text();
    assert_eq!(Packet::parse(&text), Ok(packet.clone()));
    assert_eq!(Packet::parse(&format!("{text}\n")), Ok(packet.clone()));
    assert_eq!(check(&text), Ok(policies()));
    assert_eq!(packet.verify(&[]), Ok(policies()));
    assert_eq!(packet.verify(&[stranger()]), Err(PacketError::Unsigned));
    // It contains nothing of the other run.
    assert!(!text.contains("run_00000000000000000000000000000011"));
    assert!(!text.contains("Pay"));
}

#[test]
fn an_erased_payload_is_not_in_a_packet_and_the_packet_still_verifies() {
    let mut store = FakeStore::new();
    store.erase(RUN, |event| event % 2 == 1, Some(WRITER));
    store.seal();
    let packet = packet(&store);
    assert!(matches!(packet.events[0].content, Content::Erased { .. }));
    assert!(matches!(packet.events[1].content, Content::Kept { .. }));
    assert_eq!(check(&packet.text()), Ok(Vec::new()));
}

#[test]
fn parts_of_answers_are_in_a_packet_until_they_are_elided() {
    let mut store = FakeStore::new();
    let whole = packet(&store).text();
    assert!(whole.contains("\\\"text\\\":\\\"one\\\""), "{whole}");
    assert_eq!(check(&whole), Ok(policies()));
    store.elide(RUN, Some(WRITER));
    let packet = packet(&store);
    let part = packet.events.iter().find(|event| event.kind == "node.stream.delta").unwrap();
    assert!(matches!(part.content, Content::Erased { .. }));
    assert_eq!(check(&packet.text()), Ok(policies()));
}

#[test]
fn events_after_the_seal_are_left_out() {
    let mut store = FakeStore::new();
    store.seals.pop();
    let packet = packet(&store);
    let last = store.runs[&RUN].last().unwrap();
    assert!(packet.events.last().unwrap().id < last.first);
    assert_eq!(check(&packet.text()), Ok(policies()));
}

#[test]
fn a_seal_that_does_not_cover_the_run_makes_no_packet() {
    let store = FakeStore::new();
    let row = &store.seals[0];
    let other = RunId(0x11);
    let made = Packet::gather(other, &store.runs[&other], row, |_| None);
    assert_eq!(made, Err(PacketError::NotCovered));
}

#[test]
fn what_a_packet_lacks_is_named() {
    let whole = packet(&FakeStore::new());
    let hash = *whole.values.keys().next().unwrap();
    let mut without = whole.clone();
    without.values.clear();
    assert_eq!(without.verify(&[]), Err(PacketError::Missing(hash)));
    let mut more = whole.clone();
    more.values.insert(Hash::of(b"x"), "x".to_owned());
    assert_eq!(more.verify(&[]), Err(PacketError::Value(Hash::of(b"x"))));
    let mut shorter = whole.clone();
    shorter.events.pop();
    assert_eq!(shorter.verify(&[]), Err(PacketError::NotUnderSeal));
    let mut holed = whole.clone();
    holed.events.remove(3);
    assert_eq!(holed.verify(&[]), Err(PacketError::Event(4)));
    let mut swapped = whole.clone();
    swapped.events.swap(3, 4);
    assert_eq!(swapped.verify(&[]), Err(PacketError::Event(4)));
    let mut none = whole;
    none.events.clear();
    assert_eq!(none.verify(&[]), Err(PacketError::NotUnderSeal));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_byte_anywhere_is_found(at: prop::sample::Index, bits in 1..=255u8, short: bool) {
        let mut store = FakeStore::new();
        if short {
            // Without the long output, so that changes hit other bytes more often.
            store.erase(RUN, |event| event > 12, Some(WRITER));
            store.seal();
        }
        let mut bytes = packet(&store).text().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        if let Ok(text) = String::from_utf8(bytes) {
            prop_assert!(check(&text).is_err(), "byte {}", at);
        }
    }
}
