//! Any text as an expression: parsed or rejected, printed as it was written, evaluated to a
//! value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use sluice_core::expr::Expr;
use sluice_core::scope::names::Names;
use sluice_core::value::Membership;

fuzz_target!(|source: &str| {
    let expr = match Expr::parse(source) {
        Ok(expr) => expr,
        Err(fault) => {
            assert!(fault.span.end as usize <= source.len() && !fault.message.is_empty());
            return;
        }
    };
    assert_eq!(Expr::parse(&expr.to_string()).as_ref(), Ok(&expr));
    for reference in expr.references() {
        assert!(source.get(reference.span.range()).is_some(), "a reference lies in its source");
    }
    let scope = Names::new()
        .with_step(
            "init",
            json!({"vendor_type": "saas", "list": [1, "2", null, {"a": [true]}], "n": 5}),
            Some("text"),
        )
        .with_skipped_step("gone")
        .with_variable("risk", json!("7"))
        .with_variable("a.b", json!({"c": 1.5}))
        .with_args(json!({"x": "COMPLETE -- all good"}));
    let tolerant = expr.eval(&scope, Membership::Tolerant);
    assert_eq!(tolerant, expr.eval(&scope, Membership::Tolerant));
    let _ = expr.holds(&scope, Membership::Exact);
});
