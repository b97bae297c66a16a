//! Webhooks as rows: whom events are sent to, and who may start runs by sending.

use crate::secret::SecretRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Somebody elsewhere whom events are sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where they are sent.
    pub url: String,
    /// Which: names of events, or `*` for all but parts of answers.
    pub events: Vec<String>,
    /// Only of runs of these workflows; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<String>,
    /// What they are signed with.
    pub secret: SecretRef,
    /// Whether the operator wrote the variable or file that `secret` names. Set by
    /// Sluice alone: a secret of the machine works in no other row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator_secret: bool,
    /// Whether anything is sent.
    #[serde(default = "yes")]
    pub enabled: bool,
}

impl Webhook {
    /// The word for every event but parts of answers.
    pub const ALL: &'static str = "*";
    /// Parts of answers. There are very many, so they are sent only to who names them.
    pub const PARTS: &'static str = "node.stream.delta";

    /// Whether an event of a run of a workflow is for it.
    pub fn wants(&self, kind: &str, workflow: &str) -> bool {
        let all = kind != Webhook::PARTS && self.events.iter().any(|one| one == Webhook::ALL);
        (all || self.events.iter().any(|one| one == kind))
            && (self.workflows.is_empty() || self.workflows.iter().any(|one| one == workflow))
    }
}

/// A door through which somebody elsewhere starts runs of one workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// The workflow: `name`, or `name@version`.
    pub workflow: String,
    /// What requests are signed with. Without one there is no hook.
    pub secret: SecretRef,
    /// Whether the operator wrote the variable or file that `secret` names. Set by
    /// Sluice alone: a secret of the machine works in no other row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator_secret: bool,
    /// What the run is given: arguments by name, each the path of a value in the
    /// body, or `$` for all of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Whether it is open.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Who made it, and who changed it last. The server notes them; both count as
    /// initiators of the runs that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// See `created_by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

impl Hook {
    /// People who count as initiators of its runs.
    pub fn authors(&self) -> Vec<String> {
        authors(self.created_by.as_ref(), self.changed_by.as_ref())
    }
}

/// Two people, once each.
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
