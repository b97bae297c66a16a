//! The state of one evaluation: the facts, the policy matches, the reasons for an
//! approval, and the action to send.

use crate::action::Action;
use crate::canonical;
use crate::decision::{Constraints, HoldBy};
use crate::facts::{Facts, Subject, Worst};
use crate::policy::{Category, Matches, Policies, PolicyFacts, Rule};
use crate::registry::{Posture, Tools};
use std::borrow::Cow;
use std::cell::OnceCell;

/// SHA-256 of `[]`, for an action that no policy matched.
const NO_POLICIES: &str = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";

pub(crate) struct Case<'c> {
    pub facts: &'c Facts<'c>,
    pub policies: &'c Policies,
    pub seen: &'c PolicyFacts<'c>,
    matches: OnceCell<Matches<'c>>,
    holds: Vec<HoldBy>,
    held_for_budget: bool,
    own: Constraints,
}

/// How a granted approval compares with the current action.
pub(crate) enum Fit {
    /// There is no grant.
    None,
    /// It is for exactly this action; holds its digest.
    Same(String),
    /// It is for a different action.
    Changed,
    /// It allows more than is allowed now.
    Wider(String),
}

impl<'c> Case<'c> {
    /// `seen` is the policies' view of the facts.
    pub(crate) fn new(
        facts: &'c Facts<'c>,
        seen: &'c PolicyFacts<'c>,
        policies: &'c Policies,
    ) -> Case<'c> {
        Case {
            facts,
            policies,
            seen,
            matches: OnceCell::new(),
            holds: Vec::new(),
            held_for_budget: false,
            own: constraints(facts),
        }
    }

    /// The policy matches, evaluated when a gate first needs them.
    pub(crate) fn matches(&self) -> &Matches<'c> {
        self.matches.get_or_init(|| self.policies.matches(self.seen))
    }

    /// The policy matches, if they were evaluated.
    pub(crate) fn evaluated_matches(&self) -> Option<&Matches<'c>> {
        self.matches.get()
    }

    /// Matching policies that turn a budget block into an approval request.
    pub(crate) fn budget_approval_rules(&self) -> Vec<&'c Rule> {
        if !self.policies.of(Category::Budget).any(Rule::requests_budget_approval) {
            return Vec::new();
        }
        self.matches()
            .rules
            .iter()
            .copied()
            .filter(|rule| rule.requests_budget_approval())
            .collect()
    }

    pub(crate) fn hold(&mut self, by: Vec<HoldBy>) {
        self.holds.extend(by);
    }

    pub(crate) fn hold_for_budget(&mut self, by: Vec<HoldBy>) {
        self.held_for_budget = true;
        self.holds.extend(by);
    }

    pub(crate) fn held_for_budget(&self) -> bool {
        self.held_for_budget
    }

    /// The reasons for requiring an approval.
    pub(crate) fn into_holds(self) -> Vec<HoldBy> {
        self.holds
    }

    /// Whether the grant is for the current action.
    pub(crate) fn fit(&self) -> Fit {
        let Some(grant) = self.facts.grant else { return Fit::None };
        match self.own.tighten(grant.constraints) {
            Err(why) => Fit::Wider(why),
            Ok(constraints) => {
                let digest = self.action(constraints).digest();
                if digest == grant.digest { Fit::Same(digest) } else { Fit::Changed }
            }
        }
    }

    /// The action as it would be sent. Constraints that an approver added stay in force
    /// even if no approval is needed any more, but a new approval request is about the
    /// action without them.
    pub(crate) fn complete(&self) -> Action<'c> {
        let grant = self.facts.grant.filter(|_| self.holds.is_empty());
        let tightened = grant.and_then(|grant| self.own.tighten(grant.constraints).ok());
        self.action(tightened.unwrap_or_else(|| self.own.clone()))
    }

    fn action(&self, constraints: Constraints) -> Action<'c> {
        let worst = match self.facts.worst {
            Worst::Known(worst) => Some(worst),
            Worst::Unknown => None,
        };
        let cost_ceiling = constraints.max_cost.or(worst);
        let policies = self.policies_digest();
        Action { constraints, cost_ceiling, policies, ..self.facts.action }
    }

    /// SHA-256 over the names and texts of the policies that matched, in order.
    fn policies_digest(&self) -> Cow<'static, str> {
        let rules = self.evaluated_matches().map_or(&[][..], |matches| &matches.rules);
        if rules.is_empty() {
            return Cow::Borrowed(NO_POLICIES);
        }
        let digests: Vec<&str> = rules.iter().map(|rule| rule.digest.as_str()).collect();
        Cow::Owned(canonical::sha256_hex(&digests, 70 * digests.len()))
    }
}

/// The constraints on the agent: those of the caller, the role's environments, the
/// agent's tools, the posture, and the cost ceiling. Each can only restrict.
fn constraints(facts: &Facts<'_>) -> Constraints {
    let mut bounds = Constraints::default();
    if let Some((_, role)) = facts.role {
        bounds.environments.clone_from(&role.allowed_environments);
    }
    if let Worst::Known(worst) = facts.worst
        && !worst.is_zero()
    {
        bounds.max_cost = Some(worst);
    }
    let mut all = facts.action.constraints.meet(&bounds);
    let Subject::Agent(_, Some(agent)) = facts.subject else { return all };
    if agent.tools != Tools::default() {
        let allow = Some(agent.tools.allow.clone()).filter(|tools| !tools.is_empty());
        let deny = agent.tools.deny.clone();
        let tools = Constraints { tools_allow: allow, tools_deny: deny, ..Constraints::default() };
        all = all.meet(&tools);
    }
    if facts.posture == Posture::Retrieval {
        let reading = Constraints {
            tools_allow: Some(agent.tools.read_only.clone()),
            data_access: Some("read_only".to_owned()),
            ..Constraints::default()
        };
        all = all.meet(&reading);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_no_policies_is_that_of_an_empty_list() {
        assert_eq!(canonical::sha256_hex(&Vec::<&str>::new(), 2), NO_POLICIES);
    }
}
