//! An index of the policies that can match a request, used before asking Cedar.
//!
//! Loading puts policies into bins by action, principal and resource. A request reads a
//! handful of bins. A policy without conditions matches if it is in one of these bins;
//! Cedar evaluates only the policies with conditions. Permits and forbids are evaluated
//! separately, because Cedar names only the policies that determined its answer, so a
//! forbid would hide the permits.

use super::facts::{PolicyFacts, Principal, Resource};
use super::needs::{Needs, without_scope};
use super::rule::{Rule, What, Who};
use crate::facts::Verb;
use cedar_policy::{Policy, PolicyId, PolicySet};
use std::collections::BTreeMap;

/// All bins.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    actions: BTreeMap<Verb, ActionBins>,
}

/// The bins of one action, by principal.
#[derive(Debug, Clone, Default)]
struct ActionBins {
    agents: PrincipalBins,
    users: PrincipalBins,
    agent: BTreeMap<String, PrincipalBins>,
    role: BTreeMap<String, PrincipalBins>,
    user: BTreeMap<String, PrincipalBins>,
}

/// The bins of one action and principal, by resource.
#[derive(Debug, Clone, Default)]
struct PrincipalBins {
    all: PolicyBin,
    one: BTreeMap<String, PolicyBin>,
}

/// The policies of one scope.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyBin {
    /// Numbers of the policies without conditions.
    pub plain: Vec<usize>,
    /// Permits with conditions; their ids are their numbers.
    pub permits: Option<PolicySet>,
    /// Forbids with conditions.
    pub forbids: Option<PolicySet>,
    /// Attributes that the conditions use.
    pub needs: Needs,
}

impl Index {
    /// Adds a policy to the bins of its scope.
    pub(super) fn add(&mut self, number: usize, rule: &Rule, policy: &Policy) {
        for verb in &rule.scope.verbs {
            let kind = Resource::kind_for(*verb);
            let one = match &rule.scope.what {
                What::Anything => None,
                What::Kind(other) | What::One(other, _) if other != kind => continue,
                What::Kind(_) => None,
                What::One(_, id) => Some(id.as_str()),
            };
            let bins_of_action = self.actions.entry(*verb).or_default();
            let put = |principal: &mut PrincipalBins| principal.bin(one).put(number, rule, policy);
            match &rule.scope.who {
                Who::AnyPrincipal => {
                    put(&mut bins_of_action.agents);
                    put(&mut bins_of_action.users);
                }
                Who::Agents => put(&mut bins_of_action.agents),
                Who::Users => put(&mut bins_of_action.users),
                Who::Agent(id) => put(bins_of_action.agent.entry(id.clone()).or_default()),
                Who::Role(id) => put(bins_of_action.role.entry(id.clone()).or_default()),
                Who::User(id) => put(bins_of_action.user.entry(id.clone()).or_default()),
                Who::Nothing => {}
            }
        }
    }

    /// The bins with policies that can match. A policy is in at most one of them.
    pub(super) fn bins(&self, seen: &PolicyFacts<'_>) -> [Option<&PolicyBin>; 6] {
        let Some(bins_of_action) = self.actions.get(&seen.verb) else { return [None; 6] };
        let principals = match &seen.who {
            Principal::Agent { name, role, .. } => [
                Some(&bins_of_action.agents),
                bins_of_action.agent.get(&**name),
                role.as_ref().and_then(|role| bins_of_action.role.get(&**role)),
            ],
            Principal::User { name } => {
                [Some(&bins_of_action.users), bins_of_action.user.get(&**name), None]
            }
        };
        let name = seen.what.name();
        let mut bins = [None; 6];
        for (pair, principal) in bins.chunks_exact_mut(2).zip(principals) {
            pair[0] = principal.map(|principal| &principal.all);
            pair[1] = principal.and_then(|principal| principal.one.get(name));
        }
        bins
    }
}

impl PrincipalBins {
    fn bin(&mut self, one: Option<&str>) -> &mut PolicyBin {
        match one {
            None => &mut self.all,
            Some(id) => self.one.entry(id.to_owned()).or_default(),
        }
    }
}

impl PolicyBin {
    fn put(&mut self, number: usize, rule: &Rule, policy: &Policy) {
        if rule.unconditional {
            self.plain.push(number);
            return;
        }
        let id = PolicyId::new(number.to_string());
        let (policy, needs) = match without_scope(policy, id.clone()) {
            Some(bare) => (bare, Needs::from_policy(policy)),
            None => (policy.new_id(id), Needs::ALL),
        };
        self.needs = self.needs.and(needs);
        let set = if rule.permits { &mut self.permits } else { &mut self.forbids };
        set.get_or_insert_default().add(policy).expect("a number is given once");
    }
}
