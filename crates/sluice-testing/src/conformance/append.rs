//! Only the owner appends, only at the end, and all of it or nothing.

use super::{
    Bench, cases, entry, first, guard, hashed, message, node, plain, refused, released, run,
};
use sluice_core::hash::Hash;
use sluice_core::port::store::{
    Append, Appended, Blob, Frame, Head, Mailboxes, Ownership, Posted, Taken,
};
use sluice_core::status::RunStatus;

cases![
    frames_follow_each_other,
    frames_keep_the_hashes_of_their_events,
    an_append_without_a_frame_changes_what_stands_beside_it,
    a_stale_version_is_a_conflict,
    a_version_ahead_is_a_conflict,
    another_node_does_not_append,
    an_old_epoch_does_not_append,
    a_released_run_has_no_owner,
    a_head_changes_what_lists_show,
    an_append_without_head_leaves_the_lists,
    a_refused_append_leaves_nothing,
];

fn frames_follow_each_other(bench: &Bench) {
    bench.done(Append { count: 3, ..first(run(1)) });
    bench.done(Append { count: 2, ..plain(run(1), 3) });
    bench.done(plain(run(1), 5));
    assert_eq!(bench.journal(run(1)), [(1, 3), (4, 2), (6, 1)]);
    let loaded = bench.load(run(1)).expect("it exists");
    let bodies: Vec<Vec<u8>> = loaded.frames.into_iter().map(|frame| frame.body).collect();
    let sent = [0, 3, 5].map(|after| plain(run(1), after).body);
    assert_eq!(bodies, sent);
}

fn frames_keep_the_hashes_of_their_events(bench: &Bench) {
    let appends = [
        hashed(Append { count: 3, ..first(run(1)) }),
        plain(run(1), 3),
        hashed(Append { count: 2, ..plain(run(1), 4) }),
    ];
    appends.iter().for_each(|append| bench.done(append.clone()));
    let sent = appends.map(|append| append.chain);
    let chains = |frames: Vec<Frame>| frames.into_iter().map(|frame| frame.chain);
    let loaded = bench.load(run(1)).expect("it exists");
    assert!(chains(loaded.frames).eq(sent.clone()));
    assert!(chains(bench.wait_ok(bench.store.frames(run(1), 0, usize::MAX))).eq(sent));
}

fn an_append_without_a_frame_changes_what_stands_beside_it(bench: &Bench) {
    bench.create(run(1));
    let beside = Append {
        count: 0,
        body: Vec::new(),
        guards: vec![guard("c", 2, None)],
        entries: vec![entry("beside")],
        ..plain(run(1), 1)
    };
    assert_eq!(bench.append(beside), Appended::Done { counts: vec![2] });
    assert_eq!(bench.journal(run(1)), [(1, 1)]);
    assert_eq!((bench.count("c"), bench.entries().len()), (2, 1));
    assert_eq!(bench.unsealed().upto.frames, 1);
}

fn a_stale_version_is_a_conflict(bench: &Bench) {
    bench.done(Append { count: 3, ..first(run(1)) });
    for after in [0, 1, 2] {
        assert_eq!(bench.append(plain(run(1), after)), Appended::Conflict, "{after}");
    }
    bench.done(plain(run(1), 3));
    assert_eq!(bench.append(plain(run(1), 3)), Appended::Conflict);
    assert_eq!(bench.journal(run(1)), [(1, 3), (4, 1)]);
}

fn a_version_ahead_is_a_conflict(bench: &Bench) {
    bench.create(run(1));
    assert_eq!(bench.append(plain(run(1), 2)), Appended::Conflict);
    assert_eq!(bench.journal(run(1)), [(1, 1)]);
}

fn another_node_does_not_append(bench: &Bench) {
    bench.create(run(1));
    let other = Append { node: node(2), ..plain(run(1), 1) };
    assert_eq!(bench.append(other), Appended::NotOwner);
    // A node that is not the owner gets `NotOwner`, even at a wrong version.
    let other = Append { node: node(2), ..plain(run(1), 0) };
    assert_eq!(bench.append(other), Appended::NotOwner);
    assert_eq!(bench.journal(run(1)), [(1, 1)]);
}

fn an_old_epoch_does_not_append(bench: &Bench) {
    bench.park(run(1), Some(5));
    assert_eq!(bench.claimed(node(2), 5, 1), [run(1)]);
    let away = Append { node: node(2), epoch: 2, ..plain(run(1), 1) };
    bench.done(Append { head: Some(released(None)), ..away });
    assert!(matches!(bench.take(run(1), node(1)), Taken::Done(claim) if claim.epoch == 3));
    for epoch in [1, 2, 4] {
        let append = Append { epoch, ..plain(run(1), 2) };
        assert_eq!(bench.append(append), Appended::NotOwner, "{epoch}");
    }
    bench.done(Append { epoch: 3, ..plain(run(1), 2) });
}

fn a_released_run_has_no_owner(bench: &Bench) {
    bench.park(run(1), None);
    assert_eq!(bench.append(plain(run(1), 1)), Appended::NotOwner);
    assert_eq!(bench.row(run(1)).owner, None);
}

fn a_head_changes_what_lists_show(bench: &Bench) {
    bench.renew(node(1), 50);
    bench.create(run(1));
    let running = Head {
        status: RunStatus::Running,
        ended_at_ms: None,
        due_at_ms: Some(4000),
        asks: false,
        ownership: Ownership::Keep,
    };
    bench.done(Append { head: Some(running), ..plain(run(1), 1) });
    let row = bench.row(run(1));
    assert_eq!((row.status, row.due_at_ms), (RunStatus::Running, Some(4000)));
    assert_eq!(row.owner, Some(node(1)));
    let over = Head {
        status: RunStatus::Failed,
        ended_at_ms: Some(1234),
        due_at_ms: None,
        asks: false,
        ownership: Ownership::Release,
    };
    bench.done(Append { head: Some(over), ..plain(run(1), 2) });
    let row = bench.row(run(1));
    assert_eq!((row.status, row.ended_at_ms), (RunStatus::Failed, Some(1234)));
    assert_eq!((row.due_at_ms, row.owner), (None, None));
}

fn an_append_without_head_leaves_the_lists(bench: &Bench) {
    bench.create(run(1));
    let before = bench.row(run(1));
    bench.done(plain(run(1), 1));
    assert_eq!(bench.row(run(1)), before);
}

fn a_refused_append_leaves_nothing(bench: &Bench) {
    bench.create(run(1));
    bench.create(run(2));
    assert_eq!(bench.post(message(run(1), "mine")), Posted::Done);
    let read = bench.messages(Mailboxes::Run(run(1)))[0].as_read();
    let body = b"a blob".to_vec();
    let full = Append {
        head: Some(released(Some(5))),
        snapshot: Some(b"state".to_vec()),
        blobs: vec![Blob { hash: Hash::of(&body), body: body.clone() }],
        read: vec![read],
        messages: vec![message(run(2), "theirs")],
        guards: vec![guard("c", 1, Some(1))],
        entries: vec![entry("said")],
        ..plain(run(1), 0)
    };
    assert_eq!(bench.append(full.clone()), Appended::Conflict);
    let foreign = Append { after: 1, node: node(2), ..full.clone() };
    assert_eq!(bench.append(foreign), Appended::NotOwner);
    let guards = [full.guards.clone(), vec![guard("never", 1, Some(0))]].concat();
    let guarded = Append { after: 1, guards, ..full.clone() };
    assert_eq!(bench.append(guarded), refused("never", 0));

    assert_eq!(bench.row(run(1)).status, RunStatus::Queued);
    assert_eq!(bench.load(run(1)).expect("it exists").snapshot, None);
    assert_eq!(bench.wait_ok(bench.store.blob(Hash::of(&body))), None);
    assert_eq!(bench.keys(Mailboxes::Run(run(1))), ["mine"]);
    assert_eq!(bench.keys(Mailboxes::Run(run(2))), Vec::<String>::new());
    assert_eq!(bench.entries(), []);
    assert_eq!(bench.unsealed().upto.frames, 2);
    // The refused append left the counter at zero, so this one passes.
    bench.done(Append { after: 1, ..full });
    assert_eq!(bench.keys(Mailboxes::Run(run(2))), ["theirs"]);
    assert_eq!(bench.entries().len(), 1);
}
