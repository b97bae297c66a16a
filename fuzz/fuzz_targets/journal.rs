//! Any bytes as a frame, a message or a plan: parsed or rejected. What is parsed is encoded as
//! it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::doc::{self, Format, Registry};
use sluice_core::id::{Entropy, RunId};
use sluice_core::journal::chain::{Link, START};
use sluice_core::journal::wire;
use sluice_core::plan::Plan;
use sluice_core::port::store::Frame;
use sluice_core::run::message;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const DOCUMENT: &str = "
name: any
steps:
  - {id: first, command: x}
  - {id: second, command: y, for_each: [1, 2], depends_on: [first]}
";

fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let checked = doc::check(DOCUMENT.as_bytes(), Some(Format::Lobsterx), &Registry::default());
        checked.plan.expect("the document is good")
    })
}

/// Salts that are all zeros.
struct Zeros;

impl Entropy for Zeros {
    fn bits(&mut self) -> u64 {
        0
    }
}

fuzz_target!(|bytes: &[u8]| {
    let none = BTreeMap::new();
    let _ = wire::blobs(bytes);
    let _ = wire::started(bytes, &none);
    let _ = wire::raw(bytes);
    // A frame, followed by a zero byte and the data stored next to it.
    let mut parts = bytes.splitn(2, |byte| *byte == 0).map(<[u8]>::to_vec);
    let (body, beside) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut frame = Frame { first: 1, count: 1, body, beside, chain: Vec::new() };
    let _ = wire::blobs_of(&frame);
    let whole = wire::whole(&frame).is_ok();
    if let Ok(Some(elided)) = wire::elide(&frame) {
        let left = Frame { beside: elided.beside, ..frame.clone() };
        assert!(wire::whole(&left).is_ok());
    }
    if let Ok(erased) = wire::erase(&frame, |_| true, &none) {
        assert!(wire::raw(&erased.body).is_ok());
        (frame.body, frame.beside) = (erased.body, erased.beside);
        assert!(!whole || wire::whole(&frame).is_ok());
    }
    if let Ok(decoded) = wire::decode(bytes, Some(plan()), &none) {
        let mut link = Link { run: RunId(1), next: 1, tip: START };
        let written = wire::encode(&decoded.events, decoded.at_ms, plan(), &mut link, &mut Zeros);
        let blobs = written.blobs.into_iter().map(|blob| (blob.hash, blob.body)).collect();
        let again =
            wire::decode(&written.body, Some(plan()), &blobs).expect("it was written by us");
        assert_eq!(again.events.len(), decoded.events.len());
        for (one, other) in again.events.iter().zip(&decoded.events) {
            // Parts of answers are stored next to the frame.
            assert!(one == other || one.name() == "node.stream.delta");
        }
    }
    if let Ok(command) = message::decode(bytes, |_| None) {
        let written = message::encode(&command).expect("what was read travels");
        assert_eq!(message::decode(&written, |_| None), Ok(command));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Plan::from_json(text);
    }
});
