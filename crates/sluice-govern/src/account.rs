//! Accounts and counters for budgets, concurrency and rates.
//!
//! A cap belongs to an account, and an account to one period, so a new period starts at
//! zero. Each account has three counters: `held` (spent and reserved, which is compared
//! with the cap), `spent`, and `over` (booked overruns, which close the cap).

mod caps;
mod name;
mod period;
mod settle;
mod worst;

pub use caps::{RunCap, Spender, THRESHOLDS, caps_for, crossed};
pub use name::{CounterName, Figure, Name};
pub use period::Civil;
pub use settle::{BadFigure, Settlement, settle};
pub use worst::{Costing, Estimate, Tokens, bill, input_tokens, worst};

/// The counter that grows with every registry change. Every dispatching append guards
/// on it, so a concurrent change refuses the append.
pub const REGISTRY: &str = "registry";

/// Steps of an agent in flight.
pub fn busy(agent: &str) -> String {
    Name::busy(agent).whole()
}

/// Dispatches of an agent in its sliding window.
pub fn rate(agent: &str) -> String {
    Name::rate(agent).whole()
}

/// Amount spent and reserved in an account.
pub fn held(account: &str) -> String {
    Name::held(account).whole()
}

/// Amount spent in an account.
pub fn spent(account: &str) -> String {
    Name::spent(account).whole()
}

/// Overruns booked in an account.
pub fn over(account: &str) -> String {
    Name::over(account).whole()
}

/// Whether a threshold of an account was reported: 0 or 1.
pub fn alerted(account: &str, percent: u8) -> String {
    format!("told:{percent}:{account}")
}

/// The account of a run and its descendants.
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

/// The account of a budget in the period of a time.
pub fn of_budget(name: &str, period: crate::registry::Period, now_ms: u64) -> String {
    let mut account = String::with_capacity("envelope//2026-11-15".len() + name.len());
    push_budget(&mut account, name, period, now_ms);
    account
}

/// Appends that account name to a text.
fn push_budget(text: &mut String, name: &str, period: crate::registry::Period, now_ms: u64) {
    text.push_str("envelope/");
    text.push_str(name);
    text.push('/');
    period.push_key(text, now_ms);
}
