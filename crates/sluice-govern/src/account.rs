//! Accounts and counters: where money is reserved, and what is counted.
//!
//! A cap belongs to an account, and an account to one period, so a new period
//! starts at nothing by itself. Of each account three figures are counted:
//! `held` (spent and reserved together: what a cap is compared with), `spent`,
//! and `over` (overruns booked, which close the cap).

mod caps;
mod name;
mod period;
mod settle;
mod worst;

pub use caps::{CapOn, RunCap, Spender, THRESHOLDS, caps_for, crossed};
pub use name::{CounterName, Figure, Name};
pub use period::Civil;
pub use settle::{BadFigure, Settlement, settle};
pub use worst::{Costing, Estimate, Tokens, bill, input_tokens, worst};

/// The counter that grows with every change of the registry. Every dispatching
/// append looks at it: a change that was not seen refuses it.
pub const REGISTRY: &str = "registry";

/// Steps an agent has in flight.
pub fn busy(agent: &str) -> String {
    Name::busy(agent).whole()
}

/// Dispatches of an agent in its sliding window.
pub fn rate(agent: &str) -> String {
    Name::rate(agent).whole()
}

/// What is spent and reserved in an account.
pub fn held(account: &str) -> String {
    Name::held(account).whole()
}

/// What is spent in an account.
pub fn spent(account: &str) -> String {
    Name::spent(account).whole()
}

/// Overruns booked in an account.
pub fn over(account: &str) -> String {
    Name::over(account).whole()
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
    let mut account = String::with_capacity("envelope//2026-11-15".len() + name.len());
    push_envelope(&mut account, name, period, now_ms);
    account
}

/// Writes that account behind a text.
fn push_envelope(text: &mut String, name: &str, period: crate::registry::Period, now_ms: u64) {
    text.push_str("envelope/");
    text.push_str(name);
    text.push('/');
    period.push_key(text, now_ms);
}
