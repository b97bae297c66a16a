use super::*;
use std::collections::BTreeSet;

const CHAIN: [u8; 64] = [7; 64];

fn key() -> MacKey {
    MacKey::derive(&[1; 32])
}

fn place() -> FramePlace<'static> {
    FramePlace { run: RunId(1), first: 3, count: 2, chain: &CHAIN }
}

fn message() -> MailboxMessage {
    MailboxMessage { run: RunId(1), key: "a".to_owned(), body: b"go".to_vec() }
}

fn slot() -> Slot {
    Slot {
        schedule: "s".to_owned(),
        slot_ms: 1,
        count: 2,
        outcome: "started".to_owned(),
        why: None,
        run: Some(RunId(5)),
        at_ms: 3,
    }
}

fn remembered_output() -> RememberedOutput {
    RememberedOutput { agent: "a".to_owned(), run: RunId(1), at_ms: 2, body: b"yes".to_vec() }
}

/// HMAC-SHA256 by its definition, over the input of the key derivation and of a mark.
#[test]
fn the_key_and_a_mac_are_what_the_definition_says() {
    use sha2::Digest as _;
    let hmac = |key: &[u8; 32], text: &[u8]| -> [u8; 32] {
        let block = |pad: u8| {
            let mut block = [pad; 64];
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(block(0x36)).chain_update(text).finalize();
        Sha256::new().chain_update(block(0x5c)).chain_update(inner).finalize().into()
    };
    let derived = hmac(&[1; 32], b"sluice/mac/1");
    assert_eq!(key().mark().0, hmac(&derived, b"S")[..16]);
    let mut text = b"e".to_vec();
    text.extend(9u128.to_be_bytes());
    text.extend(4u64.to_be_bytes());
    text.extend([2; 32]);
    assert_eq!(key().entry(NodeId(9), 4, Hash([2; 32])).0, hmac(&derived, &text)[..16]);
}

#[test]
fn every_field_of_a_frame_is_bound_to_it() {
    let mac = key().frame(place(), b"body").0;
    assert!(key().is_frame(place(), b"body", &mac));
    assert!(key().is_placed(place(), &mac));
    let other_chain = [8; 64];
    for moved in [
        FramePlace { run: RunId(2), ..place() },
        FramePlace { first: 4, ..place() },
        FramePlace { count: 3, ..place() },
        FramePlace { chain: &CHAIN[..32], ..place() },
        FramePlace { chain: &other_chain, ..place() },
        FramePlace { chain: &[], ..place() },
    ] {
        assert!(!key().is_placed(moved, &mac), "{moved:?}");
        assert!(!key().is_frame(moved, b"body", &mac), "{moved:?}");
    }
    assert!(!key().is_frame(place(), b"bodY", &mac));
    assert!(key().is_placed(place(), &mac));
    assert!(!MacKey::derive(&[2; 32]).is_placed(place(), &mac));
    for stripped in [&mac[..16], &mac[..31], &[]] {
        assert!(!key().is_placed(place(), stripped));
        assert!(!key().is_frame(place(), b"body", stripped));
    }
}

/// The body of one history does not match the hashes of another.
#[test]
fn halves_of_two_frames_at_one_place_do_not_make_a_third() {
    let other_chain = [8; 64];
    let other = FramePlace { chain: &other_chain, ..place() };
    let (one, two) = (key().frame(place(), b"one").0, key().frame(other, b"two").0);
    let mixed = [&one[..16], &two[16..]].concat();
    assert!(key().is_placed(place(), &mixed));
    assert!(!key().is_frame(place(), b"two", &mixed));
}

#[test]
fn nothing_has_the_mac_of_something_else() {
    let key = key();
    let hash = Hash([3; 32]);
    let slots = [
        slot(),
        Slot { schedule: "t".to_owned(), ..slot() },
        Slot { slot_ms: 9, ..slot() },
        Slot { count: 9, ..slot() },
        Slot { outcome: "skipped".to_owned(), ..slot() },
        Slot { why: Some(String::new()), ..slot() },
        Slot { run: None, ..slot() },
        Slot { at_ms: 9, ..slot() },
    ];
    let remembered_outputs = [
        remembered_output(),
        RememberedOutput { agent: "b".to_owned(), ..remembered_output() },
        RememberedOutput { run: RunId(2), ..remembered_output() },
        RememberedOutput { at_ms: 9, ..remembered_output() },
        RememberedOutput { body: b"no".to_vec(), ..remembered_output() },
    ];
    let messages = [
        message(),
        MailboxMessage { run: RunId(2), ..message() },
        MailboxMessage { key: "b".to_owned(), ..message() },
        MailboxMessage { body: b"stop".to_vec(), ..message() },
        // The boundary between two fields is authenticated too.
        MailboxMessage { key: "ag".to_owned(), body: b"o".to_vec(), ..message() },
    ];
    let mut macs = vec![
        key.mark(),
        key.snapshot(RunId(1), 2, hash, b"s"),
        key.snapshot(RunId(2), 2, hash, b"s"),
        key.snapshot(RunId(1), 3, hash, b"s"),
        key.snapshot(RunId(1), 2, Hash([4; 32]), b"s"),
        key.snapshot(RunId(1), 2, hash, b"t"),
        key.entry(NodeId(1), 2, hash),
        key.entry(NodeId(2), 2, hash),
        key.entry(NodeId(1), 3, hash),
        key.entry(NodeId(1), 2, Hash([4; 32])),
        key.row("agent", "a", 1, Some("{}")),
        key.row("token", "a", 1, Some("{}")),
        key.row("agent", "b", 1, Some("{}")),
        key.row("agent", "a", 2, Some("{}")),
        key.row("agent", "a", 1, Some("[]")),
        key.row("agent", "a", 1, Some("")),
        key.row("agent", "a", 1, None),
        key.row("agenta", "", 1, None),
        key.key("k", RunId(1), hash, 5),
        key.key("l", RunId(1), hash, 5),
        key.key("k", RunId(2), hash, 5),
        key.key("k", RunId(1), Hash([4; 32]), 5),
        key.key("k", RunId(1), hash, 6),
    ];
    macs.extend(slots.iter().map(|slot| key.slot(slot)));
    macs.extend(
        remembered_outputs.iter().map(|remembered_output| key.remembered_output(remembered_output)),
    );
    macs.extend(messages.iter().map(|message| key.message(message)));
    let read = [(1, 1, "a"), (1, 2, "a"), (2, 1, "a"), (1, 1, "b")];
    macs.extend(read.map(|(run, id, name)| {
        key.read_message(RunId(run), &ReadMessage { id, key: name.to_owned() })
    }));
    let before = [(1, 1), (1, 2), (2, 1)];
    macs.extend(before.map(|(run, id)| key.read_message_without_key(RunId(run), id)));
    let all: BTreeSet<[u8; 16]> = macs.iter().map(|mac| mac.0).collect();
    assert_eq!(all.len(), macs.len());
}

#[test]
fn a_key_is_not_shown() {
    assert_eq!(format!("{:?}", key()), "MacKey");
}

#[test]
fn a_head_is_read_only_as_it_was_written() {
    let mut head = RegistryHead { epoch: 7, ..RegistryHead::default() };
    head.versions.add(key().version_term("token", "a", 3));
    head.versions.add(key().version_term("policy", "b", 7));
    let stored = key().seal_head(head);
    assert_eq!(key().open_head(&stored), Some(head));
    assert_eq!(MacKey::derive(&[2; 32]).open_head(&stored), None);
    assert_eq!(key().open_head(&stored[1..]), None);
    for at in 0..registry_head::HEAD_BYTES {
        let mut other = stored;
        other[at] ^= 1;
        assert_eq!(key().open_head(&other), None, "byte {at}");
    }
}

#[test]
fn a_head_depends_on_the_version_of_every_row_and_not_on_their_order() {
    let sum = |versions: &[(&str, &str, u64)]| {
        let mut sum = VersionSum::default();
        versions.iter().for_each(|(kind, name, epoch)| {
            sum.add(key().version_term(kind, name, *epoch));
        });
        sum
    };
    let whole = sum(&[("token", "a", 3), ("token", "b", 4)]);
    assert_eq!(whole, sum(&[("token", "b", 4), ("token", "a", 3)]));
    for other in [
        &[("token", "a", 2), ("token", "b", 4)][..],
        &[("token", "a", 3)],
        &[("token", "a", 4), ("token", "b", 3)],
        &[("policy", "a", 3), ("token", "b", 4)],
    ] {
        assert_ne!(whole, sum(other), "{other:?}");
    }
    let mut replaced = sum(&[("token", "a", 1), ("token", "b", 4)]);
    replaced.remove(key().version_term("token", "a", 1));
    replaced.add(key().version_term("token", "a", 3));
    assert_eq!(whole, replaced);
}
