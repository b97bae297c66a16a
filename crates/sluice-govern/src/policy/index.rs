//! An index of the policies that can match a request, used before asking Cedar.
//!
//! Loading puts policies into bins by action, principal and resource. A request reads a
//! handful of bins: a tool also those of its server and of each of its labels. A policy without conditions matches if it is in one of these bins;
//! Cedar evaluates only the policies with conditions. Permits and forbids are evaluated
//! separately, because Cedar names only the policies that determined its answer, so a
//! forbid would hide the permits.

use super::facts::{PolicyFacts, Principal, Resource};
use super::needs::{Needs, without_scope};
use super::rule::{Rule, What, Who};
use crate::facts::Verb;
use cedar_policy::{Policy, PolicyId, PolicySet};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Policies about the tools of a server.
    server: BTreeMap<String, PolicyBin>,
    /// Policies about the tools with a label.
    label: BTreeMap<String, PolicyBin>,
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
    /// Policies about tool calls that cannot say any more which calls they mean.
    pub broken: Vec<usize>,
    /// Attributes that the conditions use.
    pub needs: Needs,
    /// Numbers of the policies about history, which are in the lists above too.
    pub with_history: Vec<usize>,
}

impl Index {
    /// Adds a policy to the bins of its scope. Returns the attributes that it uses.
    pub(super) fn add(&mut self, number: usize, rule: &Rule, policy: &Policy) -> Needs {
        let bare = BarePolicy::new(number, rule, policy);
        let every_tool = What::Kind(Resource::kind_for(Verb::UseTool).to_owned());
        for verb in &rule.scope.verbs {
            let kind = Resource::kind_for(*verb);
            let what = match (&rule.scope.what, &rule.broken) {
                // The tools with a label that does not exist may be any.
                (What::Label(_) | What::Server(_), Some(_)) => &every_tool,
                (what, _) => what,
            };
            match what {
                What::Nothing => continue,
                What::Kind(other) | What::One(other, _) if other != kind => continue,
                What::Label(_) | What::Server(_) if *verb != Verb::UseTool => continue,
                _ => {}
            }
            let bins_of_action = self.actions.entry(*verb).or_default();
            let broken = rule.broken.is_some() && *verb == Verb::UseTool;
            let put = |principal: &mut PrincipalBins| match principal.bin(what) {
                bin if broken => bin.broken.push(number),
                bin => bin.put(&bare),
            };
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
        bare.needs
    }

    /// The bins with policies that can match. A policy is in at most one of them.
    pub(super) fn bins(&self, seen: &PolicyFacts<'_>) -> Bins<'_> {
        let mut bins = Bins::default();
        let Some(bins_of_action) = self.actions.get(&seen.verb) else { return bins };
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
        for (pair, principal) in bins.usual.chunks_exact_mut(2).zip(principals) {
            pair[0] = principal.map(|principal| &principal.all);
            pair[1] = principal.and_then(|principal| principal.one.get(name));
        }
        if seen.verb == Verb::UseTool {
            for principal in principals.into_iter().flatten() {
                let server = seen.tool_server().and_then(|server| principal.server.get(server));
                let labels = seen.tool.iter().flat_map(|tool| &tool.labels);
                let labels: BTreeSet<&str> = labels.map(AsRef::as_ref).collect();
                bins.of_tool.extend(server);
                bins.of_tool.extend(labels.iter().filter_map(|label| principal.label.get(*label)));
            }
        }
        bins
    }
}

/// The bins of one request.
#[derive(Default)]
pub(super) struct Bins<'i> {
    usual: [Option<&'i PolicyBin>; 6],
    /// The bins of a tool's server and labels.
    of_tool: Vec<&'i PolicyBin>,
}

impl<'i> Bins<'i> {
    pub(super) fn each(&self) -> impl Iterator<Item = &'i PolicyBin> {
        self.usual.iter().copied().flatten().chain(self.of_tool.iter().copied())
    }
}

impl PrincipalBins {
    fn bin(&mut self, what: &What) -> &mut PolicyBin {
        let (bins, name) = match what {
            What::Anything | What::Kind(_) | What::Nothing => return &mut self.all,
            What::One(_, id) => (&mut self.one, id),
            What::Label(label) => (&mut self.label, label),
            What::Server(server) => (&mut self.server, server),
        };
        bins.entry(name.clone()).or_default()
    }
}

/// A policy as its bins hold it.
struct BarePolicy {
    number: usize,
    permits: bool,
    has_history: bool,
    /// `None` for a policy without conditions.
    conditions: Option<Policy>,
    needs: Needs,
}

impl BarePolicy {
    fn new(number: usize, rule: &Rule, policy: &Policy) -> BarePolicy {
        let (permits, has_history) = (rule.permits, !rule.history.is_empty());
        if rule.unconditional {
            let needs = Needs::default();
            return BarePolicy { number, permits, has_history, conditions: None, needs };
        }
        let id = PolicyId::new(number.to_string());
        let (bare, needs) = match without_scope(policy, id.clone()) {
            Some(bare) => (bare, Needs::from_policy(policy)),
            None => (policy.new_id(id), Needs::ALL),
        };
        BarePolicy { number, permits, has_history, conditions: Some(bare), needs }
    }
}

impl PolicyBin {
    fn put(&mut self, policy: &BarePolicy) {
        if policy.has_history {
            self.with_history.push(policy.number);
        }
        let Some(conditions) = &policy.conditions else {
            self.plain.push(policy.number);
            return;
        };
        self.needs = self.needs.and(policy.needs);
        let set = if policy.permits { &mut self.permits } else { &mut self.forbids };
        set.get_or_insert_default().add(conditions.clone()).expect("a number is given once");
    }
}
