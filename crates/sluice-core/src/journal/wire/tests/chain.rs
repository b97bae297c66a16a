//! Hashes of events, and that every change of a frame changes them.

use super::*;
use crate::journal::chain::{Chain, HASH_BYTES};
use proptest::prelude::*;

/// The hashes computed from the body of a frame without stream deltas.
fn again(body: &[u8], link: Link) -> Result<Vec<u8>, WireError> {
    again_with(body, &[], link)
}

/// The hashes computed from the bytes of a frame.
fn again_with(body: &[u8], beside: &[u8], mut link: Link) -> Result<Vec<u8>, WireError> {
    let (body, beside, chain) = (body.to_vec(), beside.to_vec(), Vec::new());
    let stored = Frame { first: 1, count: 0, body, beside, chain };
    let frame = whole(&stored)?;
    let mut hashes = Chain::new(&mut link);
    let mut chain = Vec::new();
    for event in &frame.events {
        let committed = event.commitment().ok_or_else(|| malformed("no commitment"))?;
        chain.extend_from_slice(&hashes.add(event.kind, frame.at_ms, committed).0);
    }
    Ok(chain)
}

#[test]
fn a_chain_has_a_hash_for_each_event_and_goes_on_in_the_next_frame() {
    let (plan, mut at) = (plan(), link());
    let all = every::full();
    let (one, other) = all.split_at(5);
    let first = super::super::encode(one, AT_MS, &plan, &mut at, &mut Zeros);
    assert_eq!(first.chain.len(), 5 * HASH_BYTES);
    assert_eq!(at.next, 6);
    assert_eq!(again(&first.body, link()).unwrap(), first.chain);
    let between = at;
    let second = super::super::encode(other, AT_MS, &plan, &mut at, &mut Zeros);
    assert_eq!(again_with(&second.body, &second.beside, between).unwrap(), second.chain);
    // At another position of the chain, the same events have other hashes.
    assert_ne!(again_with(&second.body, &second.beside, link()).unwrap(), second.chain);
    let whole = encode(&all, AT_MS, &plan);
    assert_eq!(whole.chain, [first.chain, second.chain].concat());
}

#[test]
fn what_was_moved_out_is_committed_to_by_its_hash() {
    let long = "x".repeat(crate::limits::BLOB_BYTES_MIN);
    let event = Event::RunCancelled { reason: long };
    let encoded = encode(&[event], AT_MS, &plan());
    assert_eq!(again(&encoded.body, link()).unwrap(), encoded.chain);
    let other = String::from_utf8(encoded.body).unwrap();
    let hash = encoded.blobs[0].hash.to_string();
    let other = other.replacen(&hash, &"0".repeat(64), 1);
    assert_ne!(again(other.as_bytes(), link()).unwrap(), encoded.chain);
}

#[test]
fn every_event_has_its_own_salt() {
    struct Counter(u64);
    impl Entropy for Counter {
        fn bits(&mut self) -> u64 {
            self.0 += 1;
            self.0
        }
    }
    let events = [Event::RunRecovered, Event::RunRecovered];
    let encoded = super::super::encode(&events, 5, &plan(), &mut link(), &mut Counter(0));
    let frame = raw(&encoded.body).unwrap();
    assert_eq!(
        frame.events[0].commitment_kind,
        CommitmentKind::Salt((1u128 << 64 | 2).to_be_bytes())
    );
    assert_eq!(
        frame.events[1].commitment_kind,
        CommitmentKind::Salt((3u128 << 64 | 4).to_be_bytes())
    );
}

/// If these hashes change, no existing journal can be verified.
#[test]
fn this_is_the_hash_of_version_2() {
    let encoded = encode(&every::full(), AT_MS, &plan());
    let tip = crate::journal::chain::tip(&encoded.chain).unwrap();
    expect!["ff1a4f17609514bb48358b533a7621bb293e140f27a80d1827abcec12193e4b9"]
        .assert_eq(&tip.to_string());
}

#[test]
fn every_byte_of_a_frame_is_under_its_hashes() {
    let encoded = encode(&every::full()[6..12], AT_MS, &plan());
    for at in 0..encoded.body.len() {
        for change in [1, 0x20, 0x80] {
            let mut body = encoded.body.clone();
            body[at] ^= change;
            let found = again_with(&body, &encoded.beside, link());
            let found = found.is_ok_and(|chain| chain == encoded.chain);
            assert!(!found, "byte {at}: {}", String::from_utf8_lossy(&body));
        }
    }
    for at in 0..encoded.beside.len() {
        for change in [1, 0x20, 0x80] {
            let mut beside = encoded.beside.clone();
            beside[at] ^= change;
            let found = again_with(&encoded.body, &beside, link());
            let found = found.is_ok_and(|chain| chain == encoded.chain);
            assert!(!found, "byte {at}: {}", String::from_utf8_lossy(&beside));
        }
    }
}

proptest! {
    #[test]
    fn a_change_anywhere_is_found(
        events in prop::collection::vec(any::event(), 1..4),
        at: prop::sample::Index,
        byte: u8,
        kind in 0..3u8,
    ) {
        let encoded = encode(&events, AT_MS, &plan());
        let beside = &encoded.beside;
        prop_assert_eq!(&again_with(&encoded.body, beside, link()).unwrap(), &encoded.chain);
        let mut body = encoded.body.clone();
        let at = at.index(body.len());
        match kind {
            0 => body[at] = byte,
            1 => body.insert(at, byte),
            _ => drop(body.remove(at)),
        }
        if body != encoded.body {
            let found = again_with(&body, beside, link()).is_ok_and(|chain| chain == encoded.chain);
            prop_assert!(!found);
        }
    }
}
