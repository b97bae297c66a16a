//! Fuel bounds the work on values, and depth bounds the stack.

use crate::expr::{EvalError, Expr};
use crate::limits::EXPRESSION_FUEL;
use crate::scope::names::Names;
use crate::value::Membership;
use serde_json::{Value, json};

fn run(source: &str, value: Value) -> Result<Value, EvalError> {
    let scope = Names::new().with_variable("v", value.clone()).with_variable("w", value);
    Expr::parse(source).unwrap().eval(&scope, Membership::Tolerant)
}

/// A text too long to be read with all fuel.
const TOO_LONG: usize = EXPRESSION_FUEL as usize * 64 + 64;

#[test]
fn reading_long_text_takes_fuel() {
    let text = json!("a".repeat(TOO_LONG));
    for source in [
        "v == w",
        "v < w",
        "v == 1",
        "v < 1",
        "contains(v, 'b')",
        "contains('b', v)",
        "starts_with(v, w)",
        "matches(v, 'b')",
        "lower(v)",
        "v.length",
        "[v]",
        "v in [w]",
        "contains([1], v)",
    ] {
        assert_eq!(run(source, text.clone()), Err(EvalError::OutOfFuel), "{source}");
    }
    // A value that is not read costs nothing.
    for source in
        ["v == 'a'", "v > 'b'", "starts_with(v, 'a')", "v and true", "exists(v)", "v in ['b']"]
    {
        assert!(run(source, text.clone()).is_ok(), "{source}");
    }
    let longer = json!("a".repeat(TOO_LONG + 1));
    let scope = Names::new().with_variable("v", text).with_variable("longer", longer);
    let expr = Expr::parse("v == longer").unwrap();
    assert_eq!(expr.holds(&scope, Membership::Exact), Ok(false));
    assert_eq!(EvalError::OutOfFuel.to_string(), "expression took more than 100000 units of work");
}

#[test]
fn a_unit_reads_64_bytes() {
    // One unit each for the operator, the path and the literal is left over.
    let most = (EXPRESSION_FUEL as usize - 10) * 64;
    assert!(run("contains(v, 'b')", json!("a".repeat(most))).is_ok());
    assert!(run("v.length > 5", json!("a".repeat(most))).is_ok());
    let more = (EXPRESSION_FUEL as usize - 1) * 64;
    assert!(run("contains(v, 'b')", json!("a".repeat(more))).is_err());
}

#[test]
fn comparing_and_searching_many_values_takes_fuel() {
    let many = json!(vec![0; EXPRESSION_FUEL as usize + 1]);
    for source in
        ["v == w", "1 in v", "contains(v, 1)", "[v] == [1]", "[v]", "'x' in v", "[1] == [v]"]
    {
        assert_eq!(run(source, many.clone()), Err(EvalError::OutOfFuel), "{source}");
    }
    for source in ["v", "v.length", "v == []", "[1] == v", "v == 1", "0 in v", "contains(v, 0)"] {
        assert!(run(source, many.clone()).is_ok(), "{source}");
    }
    let nested = json!({"k".repeat(64): vec![vec!["x"; 1000]; 120]});
    assert_eq!(run("v == w", nested.clone()), Err(EvalError::OutOfFuel));
    assert_eq!(run("v == w.k", nested), Ok(json!(false)));
    let keys = json!({"k".repeat(TOO_LONG): 1});
    assert_eq!(run("v == w", keys), Err(EvalError::OutOfFuel));
    let texts = json!(["t".repeat(TOO_LONG)]);
    assert_eq!(run("v == w", texts), Err(EvalError::OutOfFuel));
    assert_eq!(run("v == w", json!(vec![0; 1000])), Ok(json!(true)));
}

#[test]
fn tokens_of_a_long_list_take_fuel() {
    let tokens = json!(vec!["t".repeat(6400); 1100]);
    let scope = Names::new().with_variable("v", tokens);
    let expr = Expr::parse("'t' in v").unwrap();
    assert_eq!(expr.holds(&scope, Membership::Tolerant), Err(EvalError::OutOfFuel));
    assert_eq!(expr.holds(&scope, Membership::Exact), Ok(false));
}

#[test]
fn a_list_cannot_copy_a_value_many_times() {
    let large = json!(vec!["x".repeat(6400); 90]);
    assert!(run("[v]", large.clone()).is_ok());
    let source = format!("[{}]", ["v"; 100].join(","));
    assert_eq!(run(&source, large), Err(EvalError::OutOfFuel));
}

#[test]
fn hard_patterns_cost_more_than_easy_ones() {
    let text = json!("ab".repeat(100_000));
    assert_eq!(run("matches(v, 'c$')", text.clone()), Ok(json!(false)));
    assert_eq!(run("matches(v, 'a[ab]{1000}c')", text), Err(EvalError::OutOfFuel));
    assert_eq!(run("matches(v, 'a[ab]{1000}c')", json!("ab".repeat(3000))), Ok(json!(false)));
    // Twice the effort of a plain search is 4 places: half as much text.
    let half = EXPRESSION_FUEL as usize * 64 / 2;
    assert!(run("matches(v, 'bcd')", json!("a".repeat(half - 640))).is_ok());
    assert!(run("matches(v, 'bcd')", json!("a".repeat(half + 640))).is_err());
}

#[test]
fn the_deepest_expression_fits_a_small_stack() {
    let level = "(not a or b and 1 == ";
    let deep = format!("{}1{}", level.repeat(16), ")".repeat(16));
    let lists = format!("{}1{}", "[a, ".repeat(32), "]".repeat(32));
    let lower = format!("{}a{}", "lower(".repeat(32), ")".repeat(32));
    let chain = ["a"; 1365].join("||");
    let open = "(".repeat(4096);
    let brackets = "[".repeat(4096);
    let nots = "!".repeat(4096);
    let run = move || {
        let scope = Names::new();
        for source in [deep, lists, lower, chain] {
            let expr = Expr::parse(&source).unwrap();
            expr.clone().eval(&scope, Membership::Tolerant).unwrap();
        }
        for source in [open, brackets, nots] {
            assert!(Expr::parse(&source).is_err());
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(run).unwrap();
    thread.join().unwrap();
}
