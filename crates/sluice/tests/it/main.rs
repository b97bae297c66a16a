//! The real binary, run as a user would run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod apply;
mod approvals;
mod audit;
mod budgets;
mod error_pages;
mod eval;
mod gateways;
mod guide;
mod kill;
mod markdown;
mod moderation;
mod plan;
mod policies;
mod processes;
mod readme;
mod rubbish;
mod run;
mod runs;
mod schema;
mod session;
mod terminal;
mod tidy;
mod usage;
mod validate;
mod workflows;
mod world;
