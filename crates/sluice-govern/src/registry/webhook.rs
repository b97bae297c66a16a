//! Webhooks as rows: outbound ones receive events, inbound ones start runs.

use crate::secret::SecretRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An outbound webhook, which receives events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Receiver of the events.
    pub url: String,
    /// Names of events, or `*` for all except stream deltas.
    pub events: Vec<String>,
    /// Workflows whose runs it applies to; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<String>,
    /// Key that signs the events.
    pub secret: SecretRef,
    /// Whether the operator wrote the variable or file that `secret` names. Only Sluice
    /// sets it: a secret of the machine works in no other row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator_secret: bool,
    /// Whether events are sent.
    #[serde(default = "yes")]
    pub enabled: bool,
}

impl Webhook {
    /// Stands for every event except stream deltas.
    pub const ALL: &'static str = "*";
    /// Stream deltas. There are very many, so a receiver must name them explicitly.
    pub const PARTS: &'static str = "node.stream.delta";

    /// Whether it receives an event of a run of a workflow.
    pub fn wants(&self, kind: &str, workflow: &str) -> bool {
        let all = kind != Webhook::PARTS && self.events.iter().any(|one| one == Webhook::ALL);
        (all || self.events.iter().any(|one| one == kind))
            && (self.workflows.is_empty() || self.workflows.iter().any(|one| one == workflow))
    }
}

/// An inbound webhook, which starts runs of one workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// The workflow: `name`, or `name@version`.
    pub workflow: String,
    /// Key that signs the requests. It is required.
    pub secret: SecretRef,
    /// Whether the operator wrote the variable or file that `secret` names. Only Sluice
    /// sets it: a secret of the machine works in no other row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator_secret: bool,
    /// Arguments of the run by name, each the path of a value in the body, or `$` for
    /// the whole body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Whether it accepts requests.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Author of the row; with `changed_by`, an initiator of the runs that it starts.
    /// The server sets both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Last editor of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

impl Hook {
    /// People who are initiators of its runs.
    pub fn authors(&self) -> Vec<String> {
        authors(self.created_by.as_ref(), self.changed_by.as_ref())
    }
}

/// Both authors, without duplicates.
pub(super) fn authors(created_by: Option<&String>, changed_by: Option<&String>) -> Vec<String> {
    let changed_by = changed_by.filter(|one| Some(*one) != created_by);
    created_by.into_iter().chain(changed_by).cloned().collect()
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(events: &[&str], workflows: &[&str]) -> Webhook {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Webhook {
            url: "https://example.com/".to_owned(),
            events: owned(events),
            workflows: owned(workflows),
            secret: SecretRef::Named("hook".to_owned()),
            operator_secret: false,
            enabled: true,
        }
    }

    #[test]
    fn a_webhook_wants_what_it_names() {
        let some = webhook(&["run.completed", "node.stream.delta"], &["pay"]);
        assert!(some.wants("run.completed", "pay"));
        assert!(some.wants("node.stream.delta", "pay"));
        assert!(!some.wants("run.failed", "pay"));
        assert!(!some.wants("run.completed", "play"));
        let all = webhook(&["*"], &[]);
        assert!(all.wants("budget.alert", "pay"));
        assert!(!all.wants("node.stream.delta", "pay"));
        assert!(webhook(&["*", "node.stream.delta"], &[]).wants("node.stream.delta", "pay"));
        assert!(!webhook(&[], &[]).wants("run.completed", "pay"));
    }
}
