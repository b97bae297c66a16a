//! Elided stream deltas and the audit entries about them.

use super::*;
use crate::evidence::elision::{self, Left};

/// The stream delta in the store.
const PART: u64 = 5;

#[test]
fn elided_parts_are_counted_and_nothing_is_wrong() {
    let mut store = FakeStore::new();
    store.elide(RUN, Some(WRITER));
    let report = store.verify();
    assert_eq!(lines(&report), "");
    assert_eq!((report.elided, report.erased), (1, 0));
}

#[test]
fn parts_that_went_in_silence_are_missed() {
    after(
        |store| store.elide(RUN, None),
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is erased: no audit entry says so
        "#]],
    );
    // Even without the commitments.
    after(
        |store| store.runs.get_mut(&RUN).unwrap()[1].beside.clear(),
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is missing: the stream delta of event 5 is missing
        "#]],
    );
}

#[test]
fn what_is_left_of_elided_parts_cannot_be_changed() {
    // The stand-in contains the step, and the fold trusts it.
    let rename = |store: &mut FakeStore| {
        let frame = &mut store.runs.get_mut(&RUN).unwrap()[1];
        let text = String::from_utf8(frame.body.clone()).unwrap();
        let (from, to) = ("\"deltaIndex\":0", "\"deltaIndex\":7");
        assert!(text.contains(from));
        frame.body = text.replace(from, to).into_bytes();
    };
    after(
        |store| {
            store.elide(RUN, Some(WRITER));
            rename(store);
        },
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is changed: the remainder of its range does not match the audit entry
        "#]],
    );
    after(
        rename,
        &expect![[r#"
        event 5 of run_00000000000000000000000000000010 is changed: the frame cannot be read: a stream delta does not match its stand-in
    "#]],
    );
}

#[test]
fn a_commitment_cannot_be_changed() {
    after(
        |store| {
            store.elide(RUN, Some(WRITER));
            let beside = &mut store.runs.get_mut(&RUN).unwrap()[1].beside;
            let at = beside.len() - 4;
            beside[at] = if beside[at] == b'0' { b'1' } else { b'0' };
        },
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is changed: it does not match its hash
        "#]],
    );
}

#[test]
fn a_range_that_is_not_all_there_is_noticed() {
    after(
        |store| {
            let mut left = Left::default();
            left.add(PART, "{}");
            left.add(PART + 1, "{}");
            let elision = left.end().unwrap();
            store.elide(RUN, None);
            store.write(WRITER, &elision::entry(RUN, 9, "ada", "old", &elision));
        },
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is changed: the remainder of its range does not match the audit entry
        "#]],
    );
}

#[test]
fn an_elided_part_may_have_been_erased_before() {
    let mut store = FakeStore::new();
    store.erase(RUN, |event| event == PART, Some(WRITER));
    store.elide(RUN, Some(WRITER));
    assert_eq!(store.findings(), "");
}
