//! Webhooks as rows: outbound ones receive events, inbound ones start runs.

use super::row::{Form, row};
use crate::secret::SecretRef;
use std::collections::BTreeMap;

const BODY_PATHS: Form = Form::Table(&Form::BodyPath);

row! {
    /// An outbound webhook: a URL that events are sent to.
    #[derive(Eq)]
    pub struct Webhook, "WebhookDoc" {
        /// The URL that events are sent to, `https` or `http`.
        required url: String as Form::WebhookUrl,
        /// The events to send: names, or `*` for all but `node.stream.delta`.
        required events: Vec<String> as Form::Events,
        /// Sends events of these workflows only; by default of all.
        optional workflows: Vec<String>,
        /// The signing secret: `secret:NAME`; `env:NAME` or `file:PATH` in the
        /// operator's own rows.
        required secret: SecretRef,
        /// Whether the operator wrote the variable or file that `secret` names. Only Sluice
        /// sets it: a secret of the machine works in no other row.
        maintained operator_secret: bool,
        /// Whether events are sent; unchanged if not set.
        kept enabled: bool = true,
    }
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

row! {
    /// An inbound webhook that starts runs of one workflow.
    #[derive(Eq)]
    pub struct Hook, "HookDoc" {
        /// A workflow of the registry: its name, or `name@version`.
        required workflow: String,
        /// The secret that requests are signed with: `secret:NAME`; `env:NAME` or
        /// `file:PATH` in the operator's own rows.
        required secret: SecretRef,
        /// Whether the operator wrote the variable or file that `secret` names. Only Sluice
        /// sets it: a secret of the machine works in no other row.
        maintained operator_secret: bool,
        /// The arguments of the run: by name, the path of a value in the request body
        /// (`order.items[0]`), or `$` for the whole body.
        optional args: BTreeMap<String, String> as BODY_PATHS,
        /// Whether requests are accepted; unchanged if not set.
        kept enabled: bool = true,
        /// Author of the row; with `changed_by`, an initiator of the runs that it starts.
        /// The server sets both.
        maintained created_by: Option<String>,
        /// Last editor of the row.
        maintained changed_by: Option<String>,
    }
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
