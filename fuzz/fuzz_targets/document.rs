//! Any bytes as a document: a deterministic result, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::doc::{self, Format, Registry};

fuzz_target!(|bytes: &[u8]| {
    let registry = Registry::default();
    for format in [None, Some(Format::Lobsterx), Some(Format::Lens)] {
        let checked = doc::check(bytes, format, &registry);
        assert_eq!(
            checked.plan.is_none(),
            checked.diagnostics.iter().any(|found| found.is_error())
        );
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        for found in &checked.diagnostics {
            assert!(found.line >= 1 && found.line as usize <= lines && found.column >= 1);
        }
        if let Some(plan) = checked.plan {
            let again = doc::check(bytes, format, &registry).plan.expect("it was right before");
            assert_eq!(plan.hash(), again.hash());
            let layered: usize = plan.graph.layers().iter().map(Vec::len).sum();
            assert_eq!(layered, plan.steps.len());
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Registry::parse(text);
    }
});
