//! Any bytes as a frame, a letter or a plan: read or refused. What is read is
//! written as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::doc::{self, Format, Registry};
use sluice_core::evidence::event::{Link, START};
use sluice_core::journal::wire;
use sluice_core::plan::Plan;
use sluice_core::port::Entropy;
use sluice_core::run::id::RunId;
use sluice_core::run::letter;
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
    if let Ok(erased) = wire::erase(bytes, |_| true, &none) {
        assert!(wire::raw(&erased.body).is_ok());
    }
    if let Ok(decoded) = wire::decode(bytes, Some(plan()), &none) {
        let mut link = Link { run: RunId(1), next: 1, tip: START };
        let written = wire::encode(&decoded.events, decoded.at_ms, plan(), &mut link, &mut Zeros);
        let blobs = written.blobs.into_iter().map(|blob| (blob.hash, blob.body)).collect();
        let again = wire::decode(&written.body, Some(plan()), &blobs).expect("it was written by us");
        assert_eq!(again.events, decoded.events);
    }
    if let Ok(command) = letter::decode(bytes) {
        let written = letter::encode(&command).expect("what was read travels");
        assert_eq!(letter::decode(&written), Ok(command));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Plan::from_json(text);
    }
});
