//! The names of all journalled events, for the `events` filter of an outbound webhook.
//!
//! The list is apart from the journal so that documents can be checked without it. A test
//! of the journal holds it against the names that the events themselves have.

/// The names of all events that are journalled.
pub(crate) const NAMES: [&str; 29] = [
    "run.started",
    "run.status.changed",
    "run.completed",
    "run.failed",
    "run.cancelled",
    "run.timed_out",
    "run.recovered",
    "node.queued",
    "node.waiting",
    "node.started",
    "node.stream.delta",
    "node.log",
    "node.retried",
    "node.completed",
    "node.failed",
    "node.timed_out",
    "node.cancelled",
    "node.skipped",
    "node.blocked",
    "node.invalidated",
    "node.provenance",
    "node.endorsed",
    "moderation.flagged",
    "contract.violated",
    "governance.decided",
    "approval.requested",
    "approval.reminded",
    "approval.resolved",
    "budget.alert",
];
