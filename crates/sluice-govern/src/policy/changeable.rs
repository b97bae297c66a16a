//! Whether a set leaves a principal who may change policies.
//!
//! A set that lets no principal change policies could only be replaced by the owner
//! of the data directory. It is refused before it is put in force.
//!
//! Cedar cannot list the principals that a set admits, so the check asks about those
//! that can make a difference: users that the set names, users that the caller knows,
//! and one user that no policy names. A set that looks at the time is asked about
//! every hour of a week.

use super::facts::PolicyFacts;
use super::needs::{Needs, Part};
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

/// What policies about changes name.
#[derive(Debug, Clone, Default)]
pub(super) struct Named {
    users: BTreeSet<String>,
    rows: BTreeSet<String>,
    looks_at_time: bool,
}

impl Named {
    /// Notes what a policy names, if it is about changes.
    pub(super) fn note(&mut self, rule: &Rule, policy: &Policy) {
        if !rule.scope.verbs.contains(&Verb::ChangeConfig) {
            return;
        }
        let needs = Needs::of(policy);
        let time = [Part::TimeMs, Part::TimeHour, Part::TimeWeekday];
        self.looks_at_time |= time.into_iter().any(|part| needs.has(part));
        if let Ok(tree) = policy.to_json() {
            self.look(&tree);
        }
    }

    /// Looks for entities and texts in a tree. The depth is bounded: the policy was measured.
    fn look(&mut self, tree: &Value) {
        match tree {
            Value::Array(parts) => parts.iter().for_each(|part| self.look(part)),
            Value::Object(node) => {
                let word = |name: &str| node.get(name).and_then(Value::as_str);
                match (word("type"), word("id")) {
                    (Some("User"), Some(id)) => keep(&mut self.users, id),
                    (Some("Row"), Some(id)) => keep(&mut self.rows, id),
                    _ => {}
                }
                // A text may be compared with the initiator, which is a user's name.
                if let Some(text) = word("Value") {
                    keep(&mut self.users, text);
                }
                node.values().for_each(|part| self.look(part));
            }
            _ => {}
        }
    }
}

fn keep(names: &mut BTreeSet<String>, name: &str) {
    if names.len() < POLICY_NAMES_MAX {
        names.insert(name.to_owned());
    }
}

impl Policies {
    /// Whether some principal may change a policy of this set within a week of
    /// `at_ms`. `people` are principals that exist.
    pub fn can_be_changed<'n>(
        &self,
        people: impl IntoIterator<Item = &'n str>,
        at_ms: u64,
    ) -> Result<(), PolicyError> {
        let mut users = vec![UNNAMED];
        users.extend(self.named.users.iter().map(String::as_str));
        let people: Vec<&str> = people.into_iter().take(POLICY_NAMES_MAX).collect();
        users.extend(people.iter().copied());
        let files = self.files.iter().map(|(name, _)| format!("policy/{name}"));
        let named = self.named.rows.iter().filter(|row| row.starts_with("policy/")).cloned();
        let rows: Vec<String> = files.take(POLICY_NAMES_MAX).chain(named).collect();
        let hours = if self.named.looks_at_time { HOURS_OF_A_WEEK } else { 1 };
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
        Err(PolicyError::whole(
            "no policy lets a principal change policies: permit change_config on them to one"
                .to_owned(),
        ))
    }
}
