//! Checks that some principal may still change policies under a new set.
//!
//! If no principal could, only the owner of the data directory could replace the set,
//! so such a set is refused before it is put in force.
//!
//! Cedar cannot list the principals that a set admits. So the check tries those that
//! can make a difference: users that the set names, users that the caller knows, and
//! one user that no policy names. A set that uses the time is tried at every hour of a
//! week.

use super::facts::PolicyFacts;
use super::needs::{Needs, RequestAttribute};
use super::rule::Rule;
use super::{Policies, PolicyError, replay};
use crate::decision::Disposition;
use crate::facts::Verb;
use crate::limits::POLICY_NAMES_MAX;
use cedar_policy::Policy;
use serde_json::Value;
use std::collections::BTreeSet;

/// A user that no policy names.
const UNNAMED: &str = "a principal that no policy names";
const HOUR_MS: u64 = 3_600_000;
const HOURS_OF_A_WEEK: u64 = 7 * 24;

/// Names in policies about configuration changes.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyNames {
    users: BTreeSet<String>,
    rows: BTreeSet<String>,
    uses_time: bool,
}

impl PolicyNames {
    /// Records the names in a policy, if it is about configuration changes.
    pub(super) fn record(&mut self, rule: &Rule, policy: &Policy) {
        if !rule.scope.verbs.contains(&Verb::ChangeConfig) {
            return;
        }
        let needs = Needs::from_policy(policy);
        let time =
            [RequestAttribute::TimeMs, RequestAttribute::TimeHour, RequestAttribute::TimeWeekday];
        self.uses_time |= time.into_iter().any(|part| needs.has(part));
        if let Ok(tree) = policy.to_json() {
            self.collect(&tree);
        }
    }

    /// Collects entities and texts from a syntax tree. The depth is bounded, because
    /// the policy was measured.
    fn collect(&mut self, tree: &Value) {
        match tree {
            Value::Array(parts) => parts.iter().for_each(|part| self.collect(part)),
            Value::Object(node) => {
                let word = |name: &str| node.get(name).and_then(Value::as_str);
                match (word("type"), word("id")) {
                    (Some("User"), Some(id)) => insert_bounded(&mut self.users, id),
                    (Some("Row"), Some(id)) => insert_bounded(&mut self.rows, id),
                    _ => {}
                }
                // A text may be compared with the initiator, which is a user name.
                if let Some(text) = word("Value") {
                    insert_bounded(&mut self.users, text);
                }
                node.values().for_each(|part| self.collect(part));
            }
            _ => {}
        }
    }
}

fn insert_bounded(names: &mut BTreeSet<String>, name: &str) {
    if names.len() < POLICY_NAMES_MAX {
        names.insert(name.to_owned());
    }
}

impl Policies {
    /// Checks that some principal may change a policy of this set within a week of
    /// `at_ms`. `people` are existing principals.
    pub fn can_be_changed<'n>(
        &self,
        people: impl IntoIterator<Item = &'n str>,
        at_ms: u64,
    ) -> Result<(), PolicyError> {
        let mut users = vec![UNNAMED];
        users.extend(self.names_in_changes.users.iter().map(String::as_str));
        let people: Vec<&str> = people.into_iter().take(POLICY_NAMES_MAX).collect();
        users.extend(people.iter().copied());
        let files = self.files.iter().map(|(name, _)| format!("policy/{name}"));
        let named =
            self.names_in_changes.rows.iter().filter(|row| row.starts_with("policy/")).cloned();
        let rows: Vec<String> = files.take(POLICY_NAMES_MAX).chain(named).collect();
        let hours = if self.names_in_changes.uses_time { HOURS_OF_A_WEEK } else { 1 };
        let may = |at: u64, user: &str, row: &str| {
            let facts = PolicyFacts::of_change(at, user, row);
            replay(self, &facts).disposition == Disposition::Allow
        };
        let changeable = (0..hours)
            .map(|hour| at_ms.saturating_add(hour * HOUR_MS))
            .any(|at| users.iter().any(|user| rows.iter().any(|row| may(at, user, row))));
        if changeable {
            return Ok(());
        }
        Err(PolicyError::for_set(
            "no policy lets a principal change policies: permit change_config on them to one"
                .to_owned(),
        ))
    }
}
