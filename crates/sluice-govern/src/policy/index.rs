//! Which policies can match a request at all, found without asking Cedar.
//!
//! Policies are put into bins by action, principal and resource when they are
//! loaded. A request looks at a handful of bins. A policy whose scope is all it
//! says has matched when its bin is looked at; only those with conditions are
//! given to Cedar, permits and forbids apart: Cedar names only the policies that
//! settled its answer, so a forbid would hide the permits.

use super::facts::{PolicyFacts, Principal, Resource};
use super::needs::{Needs, without_scope};
use super::rule::{Rule, What, Who};
use crate::facts::Verb;
use cedar_policy::{Policy, PolicyId, PolicySet};
use std::collections::BTreeMap;

/// All bins.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    desks: BTreeMap<Verb, Desk>,
}

/// The bins of one action, by principal.
#[derive(Debug, Clone, Default)]
struct Desk {
    agents: Shelf,
    users: Shelf,
    agent: BTreeMap<String, Shelf>,
    role: BTreeMap<String, Shelf>,
    user: BTreeMap<String, Shelf>,
}

/// The bins of one action and principal, by resource.
#[derive(Debug, Clone, Default)]
struct Shelf {
    all: Bin,
    one: BTreeMap<String, Bin>,
}

/// Policies of one scope.
#[derive(Debug, Clone, Default)]
pub(super) struct Bin {
    /// Those without conditions, by number.
    pub plain: Vec<usize>,
    /// Permits with conditions; their ids are their numbers.
    pub permits: Option<PolicySet>,
    /// Forbids with conditions.
    pub forbids: Option<PolicySet>,
    /// What those with conditions look at.
    pub needs: Needs,
}

impl Index {
    /// Puts a policy into the bins of its scope.
    pub(super) fn add(&mut self, number: usize, rule: &Rule, policy: &Policy) {
        for verb in &rule.scope.verbs {
            let kind = Resource::kind_for(*verb);
            let one = match &rule.scope.what {
                What::Anything => None,
                What::Kind(other) | What::One(other, _) if other != kind => continue,
                What::Kind(_) => None,
                What::One(_, id) => Some(id.as_str()),
            };
            let desk = self.desks.entry(*verb).or_default();
            let put = |shelf: &mut Shelf| shelf.bin(one).put(number, rule, policy);
            match &rule.scope.who {
                Who::Anyone => {
                    put(&mut desk.agents);
                    put(&mut desk.users);
                }
                Who::Agents => put(&mut desk.agents),
                Who::Users => put(&mut desk.users),
                Who::Agent(id) => put(desk.agent.entry(id.clone()).or_default()),
                Who::Role(id) => put(desk.role.entry(id.clone()).or_default()),
                Who::User(id) => put(desk.user.entry(id.clone()).or_default()),
                Who::Nobody => {}
            }
        }
    }

    /// The bins whose policies can match. A policy is in at most one of them.
    pub(super) fn bins(&self, seen: &PolicyFacts<'_>) -> [Option<&Bin>; 6] {
        let Some(desk) = self.desks.get(&seen.verb) else { return [None; 6] };
        let shelves = match &seen.who {
            Principal::Agent { name, role, .. } => [
                Some(&desk.agents),
                desk.agent.get(&**name),
                role.as_ref().and_then(|role| desk.role.get(&**role)),
            ],
            Principal::User { name } => [Some(&desk.users), desk.user.get(&**name), None],
        };
        let name = seen.what.name();
        let mut bins = [None; 6];
        for (pair, shelf) in bins.chunks_exact_mut(2).zip(shelves) {
            pair[0] = shelf.map(|shelf| &shelf.all);
            pair[1] = shelf.and_then(|shelf| shelf.one.get(name));
        }
        bins
    }
}

impl Shelf {
    fn bin(&mut self, one: Option<&str>) -> &mut Bin {
        match one {
            None => &mut self.all,
            Some(id) => self.one.entry(id.to_owned()).or_default(),
        }
    }
}

impl Bin {
    fn put(&mut self, number: usize, rule: &Rule, policy: &Policy) {
        if rule.unconditional {
            self.plain.push(number);
            return;
        }
        let id = PolicyId::new(number.to_string());
        let (policy, needs) = match without_scope(policy, id.clone()) {
            Some(bare) => (bare, Needs::of(policy)),
            None => (policy.new_id(id), Needs::ALL),
        };
        self.needs = self.needs.and(needs);
        let set = if rule.permits { &mut self.permits } else { &mut self.forbids };
        set.get_or_insert_default().add(policy).expect("a number is given once");
    }
}
