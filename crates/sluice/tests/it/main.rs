//! The real binary, run as a user would run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod apply;
mod approvals;
mod audit;
mod bridge;
mod budgets;
mod client;
mod cost;
mod elide;
mod error_pages;
mod eval;
mod gateways;
mod guide;
mod kill;
mod lenses;
mod markdown;
mod mcp;
mod moderation;
mod plan;
mod policies;
mod processes;
mod provenance;
mod readme;
mod replay;
mod rubbish;
mod run;
mod runs;
mod schedules;
mod schema;
mod serve;
mod server;
mod session;
mod settings;
mod teams;
mod terminal;
mod tidy;
mod tools;
mod usage;
mod validate;
mod vectors;
mod webhooks;
mod workflows;
mod world;
