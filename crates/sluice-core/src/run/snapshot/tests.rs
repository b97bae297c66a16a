use super::{VERSION, decode, encode, started};
use crate::hash::Hash;
use crate::id::ApprovalId;
use crate::journal::event::StepAt;
use crate::port::adapter::{CallErrorCode, Process};
use crate::run::command::{Command, Decision};
use crate::run::definition::Definition;
use crate::run::phase::StepPhase;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::{ASKS, CHAIN, EACH, GRAPH};
use crate::run::state::{Approval, FanOut, Run};
use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// Encodes and decodes a run, and compares all fields with the original.
#[track_caller]
fn check(run: &Run) {
    let bytes = encode(run);
    let back = decode(&bytes, Arc::clone(&run.definition)).expect("it reads back");
    assert_same(&back, run);
    assert_eq!(started(&bytes), Some((run.id, Arc::clone(&run.started))));
    assert_eq!(encode(&back), bytes);
}

#[track_caller]
fn assert_same(back: &Run, run: &Run) {
    // All fields are named, so that the compiler reports a new one.
    let Run {
        id,
        definition,
        started,
        version,
        tip,
        status,
        pause,
        started_at_ms,
        ended_at_ms,
        end,
        cancel_reason,
        halted_by,
        reopened,
        recoveries,
        checkpoints,
        writers,
        steps,
        approvals,
        provenance,
        taken,
        open,
        history,
        clock,
        seen,
        answers,
        args,
        index,
    } = run;
    assert_eq!(&back.seen, seen);
    assert!(Arc::ptr_eq(&back.definition, definition));
    assert_eq!(&back.index, index);
    assert_eq!(&back.steps, steps);
    assert_eq!((&back.started, &back.args), (started, args));
    assert_eq!(&back.approvals, approvals);
    assert_eq!(&back.open, open);
    assert_eq!(&back.history, history);
    assert_eq!((&back.end, &back.cancel_reason, &back.writers), (end, cancel_reason, writers));
    assert_eq!((back.id, back.version, back.status), (*id, *version, *status));
    assert_eq!(back.tip, *tip);
    assert_eq!((back.pause, back.started_at_ms), (*pause, *started_at_ms));
    assert_eq!((back.ended_at_ms, back.halted_by), (*ended_at_ms, *halted_by));
    assert_eq!((back.reopened, back.checkpoints), (*reopened, *checkpoints));
    assert_eq!(back.recoveries, *recoveries);
    assert_eq!((back.provenance, back.clock), (*provenance, *clock));
    assert_eq!((&back.taken, &back.answers), (taken, answers));
}

/// The run of a script after each event.
fn each_point(script: &Script, mut look: impl FnMut(&Run)) {
    let run = &script.run;
    let mut again = Run::new(run.id, Arc::clone(&run.definition), Arc::new((*run.started).clone()));
    look(&again);
    for (event, at_ms) in &script.journal {
        again.evolve(event, *at_ms);
        look(&again);
    }
    assert_same(&again, run);
}

fn by() -> String {
    "ada".to_owned()
}

fn scripts() -> Vec<Script> {
    let chain = || Script::lobsterx(CHAIN).streams("a", "one").gives("a", json!({"n": 7}));
    let process = |script: Script| {
        let at = script.run.find("b").unwrap();
        let process = Process { group: 7, started: "12".to_owned() };
        script.tell(Command::Process { at, dispatch_no: 1, process })
    };
    let accepted = |script: Script| {
        let at = script.run.find("b").unwrap();
        script.tell(Command::Accepted { at, dispatch_no: 1 })
    };
    let each = || Script::lobsterx(EACH).gives("one[0]", json!({"done": true}));
    let asks = || Script::lobsterx(ASKS).wait(3_600_000).resolve(Decision::Approve, None);
    let escalated = || {
        let script = asks().says("pay", "paid").fails("note", CallErrorCode::Timeout);
        script.fails("note", CallErrorCode::Timeout)
    };
    let graph = |topic: &str| Script::lens(GRAPH, json!({"topic": topic, "x": [1.5, -0.0, null]}));
    vec![
        process(chain())
            .fails("b", CallErrorCode::RateLimit)
            .wait(9000)
            .says("b", "x")
            .says("c", "y"),
        accepted(chain()).wait(600_000_000),
        chain().tell(Command::Pause { by: by() }).tell(Command::Unpause { by: by() }),
        chain()
            .tell(Command::Cancel { by: by(), reason: "enough".to_owned() })
            .fails("b", CallErrorCode::Cancelled),
        chain()
            .says("b", "x")
            .tell(Command::TakeOver)
            .tell(Command::Rewind { by: by(), keep: [1].into() })
            .fails("b", CallErrorCode::Auth)
            .tell(Command::Retry { by: by() })
            .says("b", "x")
            .says("c", "y"),
        asks().fails("pay", CallErrorCode::Auth),
        Script::lobsterx(ASKS).resolve(Decision::Reject, Some("no")),
        Script::lobsterx(ASKS).wait(8 * 86_400_000),
        escalated().resolve(Decision::Skip, None),
        escalated().resolve(Decision::Retry, None).says("note", "noted"),
        each()
            .fails("one[1]", CallErrorCode::Auth)
            .gives("one[2]", json!({"done": false}))
            .says("all", "z"),
        each()
            .gives("one[1]", json!({"done": true}))
            .gives("one[2]", json!({"done": true}))
            .tell(Command::Rewind { by: by(), keep: [].into() }),
        graph("tea")
            .gives("left", json!({"score": 9}))
            .gives("right", json!({"score": 11}))
            .says("both", "joined"),
        graph("go"),
    ]
}

#[test]
fn at_every_point_of_a_run_its_state_reads_back() {
    for script in scripts() {
        each_point(&script, check);
    }
}

#[test]
fn a_snapshot_is_of_one_definition() {
    let script = Script::lobsterx(CHAIN);
    let bytes = encode(&script.run);
    let other = &Script::lobsterx(ASKS).run.definition;
    assert!(decode(&bytes, Arc::clone(other)).is_none());
}

#[test]
fn a_snapshot_of_another_version_reads_as_none() {
    let script = Script::lobsterx(CHAIN);
    let mut newer = encode(&script.run);
    // The first piece is a list of three, and the version its first item.
    assert_eq!(newer[..2], [0x93, u8::try_from(VERSION).unwrap()]);
    newer[1] += 1;
    assert!(decode(&newer, Arc::clone(&script.run.definition)).is_none());
    assert!(started(&newer).is_none());
}

/// If this hash changes, the version of the format must change.
#[test]
fn this_is_version_9() {
    let mut script = Script::lobsterx(EACH).gives("one[0]", json!({"done": true}));
    script.run.tip = Hash([0xab; 32]);
    let bytes = encode(&script.run);
    expect!["1313 bytes, a3ed6074495a376c2994e5c481fe99c73431d56c0d7bdcde81d90687e7f06e2d"]
        .assert_eq(&format!("{} bytes, {}", bytes.len(), Hash::of(&bytes)));
}

#[test]
fn what_refers_to_nothing_reads_as_none() {
    let script = Script::lobsterx(ASKS);
    let spoil: [fn(&mut Run); 9] = [
        |run| approval(run).at = StepAt::whole(2),
        |run| approval(run).at = StepAt::instance(0, 0),
        |run| approval(run).requested_at_ms = u64::MAX,
        |run| run.clock.since_ms = Some(u64::MAX),
        |run| run.steps[0].phase = StepPhase::AwaitingApproval { approval: ApprovalId(7) },
        |run| run.halted_by = Some(StepAt::whole(2)),
        |run| run.writers = vec![2],
        |run| drop(run.steps.pop()),
        |run| {
            let (items, instances) = (Arc::new(vec![json!(1)]), Vec::new());
            let fan_out = FanOut { items, instances, unsettled: 0, in_flight: 0 };
            run.steps[1].fan_out = Some(Box::new(fan_out));
        },
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        let mut run = script.run.clone();
        spoil(&mut run);
        let read = decode(&encode(&run), Arc::clone(&script.run.definition));
        assert!(read.is_none(), "number {number}");
    }
    let mut longer = encode(&script.run);
    longer.push(0x90);
    assert!(decode(&longer, Arc::clone(&script.run.definition)).is_none());
}

fn approval(run: &mut Run) -> &mut Approval {
    run.approvals.values_mut().next().expect("a step asks")
}

/// A snapshot of a run with many kinds of state, to be damaged.
fn victim() -> (Vec<u8>, Arc<Definition>) {
    let script = Script::lobsterx(EACH)
        .gives("one[0]", json!({"done": true}))
        .fails("one[1]", CallErrorCode::Auth);
    (encode(&script.run), Arc::clone(&script.run.definition))
}

#[test]
fn every_piece_of_a_snapshot_alone_reads_as_none() {
    let (bytes, definition) = victim();
    for end in 0..bytes.len() - 2 {
        assert!(decode(&bytes[..end], Arc::clone(&definition)).is_none(), "{end}");
    }
}

proptest! {
    #[test]
    fn rubbish_never_panics(bytes: Vec<u8>) {
        let (_, definition) = victim();
        prop_assert!(decode(&bytes, definition).is_none());
        prop_assert!(started(&bytes).is_none());
    }

    #[test]
    fn a_spoilt_snapshot_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let (mut bytes, definition) = victim();
        for (at, byte) in changes {
            // Mostly characters of JSON, so that some results can be parsed.
            let byte = *b"0123456789[]{},:\"nulltrue-e.".get(byte as usize % 40).unwrap_or(&byte);
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = started(&bytes);
        if let Some(run) = decode(&bytes, definition) {
            let _ = serde_json::to_vec(&crate::run::projection::project(&run));
        }
    }
}
