//! Accounts and counters: where money is reserved, and what is counted.
//!
//! A cap belongs to an account, and an account to one period, so a new period
//! starts at nothing by itself. Of each account three figures are counted:
//! `held` (spent and reserved together: what a cap is compared with), `spent`,
//! and `over` (overruns booked, which close the cap).

/// The counter that grows with every change of the registry. Every dispatching
/// append looks at it: a change that was not seen refuses it.
pub const REGISTRY: &str = "registry";

/// Steps an agent has in flight.
pub fn busy(agent: &str) -> String {
    format!("busy:{agent}")
}

/// Dispatches of an agent in its sliding window.
pub fn rate(agent: &str) -> String {
    format!("rate:{agent}")
}

/// What is spent and reserved in an account.
pub fn held(account: &str) -> String {
    format!("held:{account}")
}

/// What is spent in an account.
pub fn spent(account: &str) -> String {
    format!("spent:{account}")
}

/// Overruns booked in an account.
pub fn over(account: &str) -> String {
    format!("over:{account}")
}

/// Whether a threshold of an account was told of: 0 or 1.
pub fn told(account: &str, percent: u8) -> String {
    format!("told:{percent}:{account}")
}
