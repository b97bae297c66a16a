//! What whoever does the work must keep to, and how bounds are put together.
//!
//! INVARIANT: nothing here ever widens. Two lists with nothing in common leave
//! nothing, not everything.

use crate::money::Money;
use crate::registry::{NOTHING, meet};
use serde::{Deserialize, Serialize};

/// What whoever does the work must keep to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Constraints {
    /// Environments it may touch; none named means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<String>,
    /// Only these tools; absent means any, empty means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_allow: Option<Vec<String>>,
    /// Never these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_deny: Vec<String>,
    /// `read_only` or `read_write`; absent means as the agent can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_access: Option<String>,
    /// Most it may cost, in micro-cents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// Longest answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl Constraints {
    /// Whether it bounds nothing.
    pub fn is_empty(&self) -> bool {
        *self == Constraints::default()
    }

    /// Whether it bounds nothing but, perhaps, the cost.
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

    /// What both allow.
    #[must_use]
    pub fn meet(&self, other: &Constraints) -> Constraints {
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

    /// With what a person took away. Refuses, by name, whatever would give more
    /// than there is: nobody should believe to have allowed it.
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

/// What is no word of ours counts as the tightest there is.
fn tighter(own: Option<&String>, other: Option<&String>) -> Option<String> {
    match (own, other) {
        (Some(own), Some(other)) => Some(if own == "read_write" { other } else { own }.clone()),
        (own, other) => own.or(other).cloned(),
    }
}
