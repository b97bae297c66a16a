//! Constraints on the agent, and their combination.
//!
//! INVARIANT: combining constraints never widens them. Two disjoint lists leave
//! nothing, not everything.

use crate::money::Money;
use crate::registry::{NOTHING, meet};
use serde::{Deserialize, Serialize};

/// Constraints on the agent that does the work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Constraints {
    /// Environments it may use; empty means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<String>,
    /// The only tools it may use; absent means any, empty means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_allow: Option<Vec<String>>,
    /// Forbidden tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_deny: Vec<String>,
    /// `read_only` or `read_write`; absent means unrestricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_access: Option<String>,
    /// Cost ceiling, in micro-cents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// Output limit, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl Constraints {
    /// Whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        *self == Constraints::default()
    }

    /// Whether nothing is constrained except, possibly, the cost.
    pub(crate) fn bounds_only_cost(&self) -> bool {
        let Constraints {
            environments,
            tools_allow,
            tools_deny,
            data_access,
            max_cost: _,
            max_output_tokens,
        } = self;
        environments.is_empty()
            && tools_allow.is_none()
            && tools_deny.is_empty()
            && data_access.is_none()
            && max_output_tokens.is_none()
    }

    /// The intersection of both.
    #[must_use]
    pub(crate) fn meet(&self, other: &Constraints) -> Constraints {
        Constraints {
            environments: meet(&self.environments, &other.environments),
            tools_allow: match (&self.tools_allow, &other.tools_allow) {
                (Some(own), Some(by)) => {
                    Some(own.iter().filter(|tool| by.contains(tool)).cloned().collect())
                }
                (own, by) => own.clone().or_else(|| by.clone()),
            },
            tools_deny: union(&self.tools_deny, &other.tools_deny),
            data_access: tighter(self.data_access.as_ref(), other.data_access.as_ref()),
            max_cost: least(self.max_cost, other.max_cost),
            max_output_tokens: least(self.max_output_tokens, other.max_output_tokens),
        }
    }

    /// Adds an approver's constraints. Refuses any that would widen, so that the
    /// approver does not believe to have allowed it.
    pub fn tighten(&self, by: &Constraints) -> Result<Constraints, String> {
        subset("environments", Some(&self.environments).filter(|own| !own.is_empty()), || {
            &by.environments
        })?;
        subset("tools_allow", self.tools_allow.as_ref(), || {
            by.tools_allow.as_deref().unwrap_or_default()
        })?;
        if let Some(word) = &by.data_access
            && !matches!(word.as_str(), "read_only" | "read_write")
        {
            return Err(format!("data_access is read_only or read_write, not {word}"));
        }
        if self.data_access.as_deref() == Some("read_only")
            && by.data_access.as_deref() == Some("read_write")
        {
            return Err("data_access read_write is more than read_only".to_owned());
        }
        not_more(
            "max_cost",
            self.max_cost.map(Money::micro_cents),
            by.max_cost.map(Money::micro_cents),
        )?;
        not_more("max_output_tokens", self.max_output_tokens, by.max_output_tokens)?;
        Ok(self.meet(by))
    }
}

fn subset<'b>(
    name: &str,
    own: Option<&Vec<String>>,
    by: impl FnOnce() -> &'b [String],
) -> Result<(), String> {
    let Some(own) = own else { return Ok(()) };
    match by().iter().find(|one| !own.contains(one) || *one == NOTHING) {
        Some(more) => Err(format!("{name}: {more} is not among {}", own.join(", "))),
        None => Ok(()),
    }
}

fn not_more(name: &str, own: Option<u64>, by: Option<u64>) -> Result<(), String> {
    match (own, by) {
        (Some(own), Some(by)) if by > own => Err(format!("{name}: {by} is more than {own}")),
        _ => Ok(()),
    }
}

fn union(own: &[String], other: &[String]) -> Vec<String> {
    let mut all = own.to_vec();
    all.extend(other.iter().filter(|one| !own.contains(one)).cloned());
    all
}

fn least<T: Ord + Copy>(own: Option<T>, other: Option<T>) -> Option<T> {
    match (own, other) {
        (Some(own), Some(other)) => Some(own.min(other)),
        (own, other) => own.or(other),
    }
}

/// An unknown word is treated as the tightest.
fn tighter(own: Option<&String>, other: Option<&String>) -> Option<String> {
    match (own, other) {
        (Some(own), Some(other)) => Some(if own == "read_write" { other } else { own }.clone()),
        (own, other) => own.or(other).cloned(),
    }
}
