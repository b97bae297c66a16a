//! Accounts and counters: where money is reserved, and what is counted.
//!
//! A cap belongs to an account, and an account to one period, so a new period
//! starts at nothing by itself. Of each account three figures are counted:
//! `held` (spent and reserved together: what a cap is compared with), `spent`,
//! and `over` (overruns booked, which close the cap).

mod caps;
mod period;
mod settle;
mod worst;

pub use caps::{CapOn, RunCap, Spender, THRESHOLDS, caps_for, crossed};
pub use period::Civil;
pub use settle::{BadFigure, Settlement, settle};
pub use worst::{Costing, Estimate, input_tokens, worst};

/// The counter that grows with every change of the registry. Every dispatching
/// append looks at it: a change that was not seen refuses it.
pub const REGISTRY: &str = "registry";

/// Steps an agent has in flight.
pub fn busy(agent: &str) -> String {
    ["busy:", agent].concat()
}

/// Dispatches of an agent in its sliding window.
pub fn rate(agent: &str) -> String {
    ["rate:", agent].concat()
}

/// What is spent and reserved in an account.
pub fn held(account: &str) -> String {
    ["held:", account].concat()
}

/// What is spent in an account.
pub fn spent(account: &str) -> String {
    ["spent:", account].concat()
}

/// Overruns booked in an account.
pub fn over(account: &str) -> String {
    ["over:", account].concat()
}

/// Whether a threshold of an account was told of: 0 or 1.
pub fn told(account: &str, percent: u8) -> String {
    format!("told:{percent}:{account}")
}

/// The account of a run, with all below it.
pub fn of_run(run: &str) -> String {
    ["run/", run].concat()
}

/// The account of a role in a run.
pub fn of_role(run: &str, role: &str) -> String {
    ["role/", run, "/", role].concat()
}

/// The account of an agent in the month of a time.
pub fn of_agent(agent: &str, now_ms: u64) -> String {
    ["agent/", agent, "/", &crate::registry::Period::Monthly.key(now_ms)].concat()
}

/// The account of an envelope in the period of a time.
pub fn of_envelope(name: &str, period: crate::registry::Period, now_ms: u64) -> String {
    ["envelope/", name, "/", &period.key(now_ms)].concat()
}
