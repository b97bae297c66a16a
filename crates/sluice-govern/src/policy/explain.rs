//! Explains a recorded decision: which policies matched, on which values, and what would
//! have changed their answer.
//!
//! Cedar's own syntax tree of a policy says which values it reads, and Cedar itself
//! evaluates them, so an explanation shows what the decision was made from.

mod condition;
mod hint;
mod value;

pub use condition::ExplainedCondition;
pub use value::{ExplainedArgument, ReadValue};

use super::request::CedarRequest;
use super::{Consequence, Enforcement, Matches, Needs, Policies, PolicyFacts, Replayed, replay};
use super::{Rule, history, scan};
use crate::limits::POLICY_STACK_BYTES;
use cedar_policy::Policy;
use condition::conditions;
use serde::Serialize;
use std::collections::BTreeSet;
use std::thread;
use value::{arguments, values};

/// Maximum number of permits that are listed when none of them matched.
const PERMITS_MAX: usize = 20;

/// Why a policy set decides as it does.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// What the policies decide, without the other gates.
    #[serde(flatten)]
    pub replayed: Replayed,
    /// Policies that matched or failed; if none permits the action, also the permits
    /// that could have.
    pub policies: Vec<ExplainedRule>,
}

/// A policy and the values that it reads.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedRule {
    /// `file/id`.
    pub policy: String,
    /// File of the policy.
    pub file: String,
    /// The line it begins on.
    pub line: usize,
    /// Whether it is a permit.
    pub permits: bool,
    /// Effect of a forbid.
    pub action: Consequence,
    /// How strictly a forbid is enforced.
    pub enforcement: Enforcement,
    /// Whether it blocks the action or requires an approval.
    pub decides: bool,
    /// Whether it matched.
    pub matched: bool,
    /// Reason for the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Why it could not be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its text.
    pub text: String,
    /// Its conditions, part by part.
    pub conditions: Vec<ExplainedCondition>,
    /// The values that it reads.
    pub values: Vec<ReadValue>,
    /// The arguments of the action that it reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ExplainedArgument>,
    /// Whether it reads the labels that flow into the action.
    pub reads_flow: bool,
    /// With which values the policy would not have matched; of a permit, with which it
    /// would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Policies {
    /// Explains what this set decides on recorded facts.
    pub fn explain(&self, facts: &PolicyFacts<'_>) -> Explanation {
        // The syntax trees of the policies are built again, for which loading uses a
        // thread with a large stack too.
        let explained = thread::scope(|scope| {
            let builder = thread::Builder::new().stack_size(POLICY_STACK_BYTES);
            let thread = builder.spawn_scoped(scope, || self.explained(facts)).ok()?;
            thread.join().ok()
        });
        Explanation { replayed: replay(self, facts), policies: explained.unwrap_or_default() }
    }

    fn explained(&self, facts: &PolicyFacts<'_>) -> Vec<ExplainedRule> {
        let matches = self.matches(facts);
        let failed: BTreeSet<&str> = matches.errors.iter().map(|(name, _)| *name).collect();
        let matched: BTreeSet<&str> = matches.rules.iter().map(|rule| rule.name.as_str()).collect();
        let request = self.names.request(facts, Needs::ALL, &self.inputs);
        let request = request.as_ref().ok();
        let mut permits = 0;
        let mut explained = Vec::new();
        for rule in &self.rules {
            let name = rule.name.as_str();
            let could_permit = !matches.permitted
                && rule.permits
                && rule.scope.verbs.contains(&facts.verb)
                && permits < PERMITS_MAX;
            if could_permit {
                permits += 1;
            }
            if could_permit || matched.contains(name) || failed.contains(name) {
                explained.extend(self.explain_rule(rule, &matches, request, facts));
            }
        }
        explained
    }

    fn explain_rule(
        &self,
        rule: &Rule,
        matches: &Matches<'_>,
        request: Option<&CedarRequest>,
        facts: &PolicyFacts<'_>,
    ) -> Option<ExplainedRule> {
        let text = self.text(rule)?;
        // Cedar does not read the clauses about history.
        let split = history::split(text).ok();
        let cedar = split.as_ref().and_then(|split| split.rest.as_deref()).unwrap_or(text);
        let tree = Policy::parse(None, cedar).ok().and_then(|policy| policy.to_json().ok());
        let tree = tree.unwrap_or_default();
        let conditions = conditions(&tree, request);
        let error = matches.errors.iter().find(|(name, _)| *name == rule.name);
        let matched = !rule.permits && matches.rules.iter().any(|one| one.name == rule.name);
        let mut values = values(&tree, request);
        let history = rule.history.iter().flat_map(history::Clause::facts);
        values.extend(history.map(|name| ReadValue {
            path: name.to_string(),
            value: facts.history.get(name).and_then(|value| serde_json::to_value(value).ok()),
        }));
        let decides = error.is_some() || (matched && (rule.blocks() || rule.holds()));
        let is_about_scope = rule.permits && conditions.is_empty();
        Some(ExplainedRule {
            policy: rule.name.clone(),
            file: rule.file.clone(),
            line: rule.line,
            permits: rule.permits,
            action: rule.consequence,
            enforcement: rule.enforcement,
            decides,
            matched,
            description: rule.description.clone(),
            error: error.map(|(_, why)| why.clone()),
            text: text.to_owned(),
            arguments: arguments(&values, request, facts),
            reads_flow: values.iter().any(ReadValue::is_flow),
            hint: match (decides, is_about_scope) {
                (true, _) if rule.permits => None,
                (true, _) => hint::without_match(&conditions, &rule.history),
                (false, true) => Some("another principal or resource".to_owned()),
                (false, false) if rule.permits => hint::with_match(&conditions),
                (false, false) => None,
            },
            conditions,
            values,
        })
    }

    /// The text of a policy, as in its file.
    fn text(&self, rule: &Rule) -> Option<&str> {
        let (_, text) = self.files.iter().find(|(name, _)| *name == rule.file)?;
        let pieces = scan::pieces(text).ok()?;
        pieces.into_iter().find(|piece| piece.line == rule.line).map(|piece| piece.text)
    }
}

#[cfg(test)]
mod tests;
