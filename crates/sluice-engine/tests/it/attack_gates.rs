//! Attempts to pass the gates: by races, by crashes, by false costs, by other paths, by
//! breaking the rules. Each test fails if its defence does.

mod crash;
mod epoch;
mod figures;
mod paths;
mod races;
mod rules;

use serde_json::{Value, json};
use sluice_core::run::state::Run;

/// One step, executed by the mock.
const ONE: &str = "name: flow\nsteps: [{id: a, command: go}]";

/// A budget over everything, without a period.
fn budget(cents: u64) -> Value {
    json!({"scope": "global", "period": "total", "amount_cents": cents})
}

/// The account of the budget `cap`.
const HELD: &str = "held:envelope/cap/total";
const SPENT: &str = "spent:envelope/cap/total";
const OVER: &str = "over:envelope/cap/total";

/// The error code of a failed run.
fn error(run: &Run) -> &str {
    let end = run.end.as_ref().and_then(|end| end.error.as_ref());
    end.map_or("", |(code, _)| code.as_str())
}
