//! Attempts to pass the gates: by racing, by crashing, by lying about money, by
//! coming in another way, by breaking the rules. Each fails if its defence does.

mod crash;
mod epoch;
mod figures;
mod paths;
mod races;
mod rules;

use serde_json::{Value, json};
use sluice_core::run::state::Run;

/// One step that the mock does.
const ONE: &str = "name: flow\nsteps: [{id: a, command: go}]";

/// An envelope over everything, for ever.
fn envelope(cents: u64) -> Value {
    json!({"scope": "global", "period": "total", "amount_cents": cents})
}

/// The account of the envelope `cap`.
const HELD: &str = "held:envelope/cap/total";
const SPENT: &str = "spent:envelope/cap/total";
const OVER: &str = "over:envelope/cap/total";

/// What a run failed with.
fn error(run: &Run) -> &str {
    let end = run.end.as_ref().and_then(|end| end.error.as_ref());
    end.map_or("", |(code, _)| code.as_str())
}
