use super::{decode, encode, started};
use crate::port::adapter::{CallErrorCode, Process};
use crate::port::store::Hash;
use crate::run::command::{Command, Decision};
use crate::run::definition::Definition;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::{ASKS, CHAIN, EACH, GRAPH};
use crate::run::state::Run;
use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// Reads back what was written, and holds it against the original in everything.
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
    // Named one by one, so that a new field is not forgotten.
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
        clock,
        args,
        index,
    } = run;
    assert!(Arc::ptr_eq(&back.definition, definition));
    assert_eq!(&back.index, index);
    assert_eq!(&back.steps, steps);
    assert_eq!((&back.started, &back.args), (started, args));
    assert_eq!(&back.approvals, approvals);
    assert_eq!(&back.open, open);
    assert_eq!((&back.end, &back.cancel_reason, &back.writers), (end, cancel_reason, writers));
    assert_eq!((back.id, back.version, back.status), (*id, *version, *status));
    assert_eq!(back.tip, *tip);
    assert_eq!((back.pause, back.started_at_ms), (*pause, *started_at_ms));
    assert_eq!((back.ended_at_ms, back.halted_by), (*ended_at_ms, *halted_by));
    assert_eq!((back.reopened, back.checkpoints), (*reopened, *checkpoints));
    assert_eq!(back.recoveries, *recoveries);
    assert_eq!((back.provenance, back.clock), (*provenance, *clock));
    assert_eq!(&back.taken, taken);
}

/// A script's run as it was after each event.
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
    let text = String::from_utf8(encode(&script.run)).unwrap();
    let newer = text.replacen(r#"{"v":4,"#, r#"{"v":5,"#, 1);
    assert_ne!(newer, text);
    assert!(decode(newer.as_bytes(), Arc::clone(&script.run.definition)).is_none());
    assert!(started(newer.as_bytes()).is_none());
}

/// If this changes, the version must.
#[test]
fn this_is_version_4() {
    let mut script = Script::lobsterx(EACH).gives("one[0]", json!({"done": true}));
    script.run.tip = Hash([0xab; 32]);
    let text = String::from_utf8(encode(&script.run)).unwrap();
    expect![[r#"
        {"v":4,"id":"run_00000000000000000000000000000001","started":{"workflow":"each","definition_hash":"5ae1797595e953fb5bef8593569db38319122fc82e64e58cdd79b71c08fd61c2","default_agent":"mock","gateway":"local","initiator":"ada","trace_id":"00000000000000000000000000000000","root_span_id":"0000000000000000"}}
        {"version":13,"tip":"abababababababababababababababababababababababababababababababab","status":"running","started_at":1769903999000,"provenance":[0,0],"clock":{"since":1769903999000}}
        [{"s":"running","n":1,"d":1,"at":"fan_out","gw":"local","ts":1769903999000,"ta":1769903999000,"tm":{},"f":[["x","y","z"],[{"s":"completed","n":1,"d":1,"at":"edge","a":"mock","gw":"local","p":{"p":"Do x"},"o":{"o":{"done":true},"s":"{\"done\":true}","l":[2,false,false,1769903999250]},"ts":1769903999000,"ta":1769903999000,"te":1769903999250,"u":{"m":"mock-1","i":10,"o":20,"t":5,"c":210000},"dg":"76b5770cebea32bf02e1ab20131e5b116547cd921d91e9e05056d59ac857ec2c","dc":true},{"s":"running","n":1,"d":1,"at":"edge","a":"mock","gw":"local","p":{"p":"Do y"},"td":1769904599000,"ts":1769903999000,"ta":1769903999000,"tm":{},"dg":"5e4872a1303049ec76253108f550a49056a2ae050f35ce732b2be3187f0add5a","dc":true},{"s":"running","n":1,"d":1,"at":"edge","a":"mock","gw":"local","p":{"p":"Do z"},"td":1769904599250,"ts":1769903999250,"ta":1769903999250,"tm":{},"dg":"a1e6ab09a7ad33aef0ce981e118438b3646d713e2ca921db6a72a1c7262da698","dc":true}]]},{}]
    "#]].assert_eq(&text);
}

#[test]
fn what_refers_to_nothing_reads_as_none() {
    let script = Script::lobsterx(ASKS);
    let text = String::from_utf8(encode(&script.run)).unwrap();
    for (part, other) in [
        (r#""at":[0]"#, r#""at":[2]"#),
        (r#""at":[0]"#, r#""at":[0,0]"#),
        (r#""at":[0]"#, r#""at":[]"#),
        (r#""requested_at":1"#, r#""requested_at":9999999"#),
        (r#""clock":{}"#, r#""clock":{"since":9999999000000000000}"#),
        (r#""ap":"apr_0"#, r#""ap":"apr_1"#),
        (r#""status":"#, r#""halted_by":[2],"status":"#),
        (r#""status":"#, r#""writers":[2],"status":"#),
        (r#""status":"#, r#""unheard_of":1,"status":"#),
        (",{}]", "]"),
        (",{}]", r#",{"f":[[1],[]]}]"#),
        (",{}]", r#",{"f":[[1],[{"f":[[],[]]}]]}]"#),
        ("]\n", "]\n{}"),
    ] {
        let rubbish = text.replacen(part, other, 1);
        assert_ne!(rubbish, text, "{part} is in {text}");
        let read = decode(rubbish.as_bytes(), Arc::clone(&script.run.definition));
        assert!(read.is_none(), "{other}");
    }
}

/// A run with something of everything, to be spoilt.
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
            // Mostly JSON's own characters, so that some of it stays readable.
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
