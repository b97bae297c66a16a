//! Which policies can match an action in the worst case, before anything runs.
//!
//! The labels of an action are some subset of its worst labels, and most other facts are not
//! known at all. A condition is therefore true, false or possible. Cedar's own partial
//! evaluation knows values that are known or not, but no bounds of sets: see
//! `docs/decisions/024-static-flow.md`.

mod term;

use super::{Policies, Rule};
use crate::facts::{FlowFacts, SendsTo, ToolFacts, Verb};
use cedar_policy::Policy;
use std::collections::BTreeSet;
use std::sync::Arc;
use term::Term;

/// An action of a plan with its worst labels.
#[derive(Debug, Clone, Copy)]
pub struct WorstCase<'a> {
    /// The action.
    pub verb: Verb,
    /// The agent, if the plan decides it.
    pub agent: Option<&'a str>,
    /// Its role.
    pub role: Option<&'a str>,
    /// What the action is on.
    pub resource: WorstResource<'a>,
    /// Where the resource sends data.
    pub sends_to: SendsTo,
    /// The workflow.
    pub workflow: &'a str,
    /// Id of the step.
    pub step: &'a str,
    /// The labels that it can have.
    pub flow: &'a FlowFacts,
}

/// What an action of a plan is on.
#[derive(Debug, Clone, Copy)]
pub enum WorstResource<'a> {
    /// A tool, as far as it is declared.
    Tool(&'a str, Option<&'a ToolFacts>),
    /// A gateway.
    Gateway(&'a str),
    /// A workflow.
    Workflow(&'a str),
}

/// The policies of a set that read labels or destinations.
#[derive(Debug, Clone, Default)]
pub(super) struct WorstCaseRules(Vec<WorstCaseRule>);

#[derive(Debug, Clone)]
struct WorstCaseRule {
    /// Its position in the set.
    number: usize,
    condition: Term,
    /// Whether it reads labels. A rule that reads only the destination is found if it is
    /// certain to match: all its other conditions are about values.
    reads_flow: bool,
}

impl WorstCaseRules {
    pub(super) fn add(&mut self, number: usize, rule: &Rule, policy: &Policy) {
        let flows = [Verb::UseTool, Verb::DispatchStep, Verb::StartRun];
        if rule.permits || !flows.iter().any(|verb| rule.scope.verbs.contains(verb)) {
            return;
        }
        let Ok(json) = policy.to_json() else { return };
        let condition = Term::of_policy(&json);
        let reads_flow =
            condition.has(&|term| matches!(term, Term::Origins | Term::Secrecy | Term::Control));
        let is_label = |term: &Term| matches!(term, Term::Entity(kind, _) if kind == "Label");
        let reads_destination =
            condition.has(&|term| matches!(term, Term::SendsTo) || is_label(term));
        if reads_flow || reads_destination {
            self.0.push(WorstCaseRule { number, condition, reads_flow });
        }
    }
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    No,
    Possible,
    Yes,
}

impl From<bool> for Truth {
    fn from(flag: bool) -> Truth {
        if flag { Truth::Yes } else { Truth::No }
    }
}

/// What is known of a value.
enum Known<'a> {
    Truth(Truth),
    Text(&'a str),
    Entity(&'a str, &'a str),
    /// Some subset of these labels.
    Labels(&'a BTreeSet<Arc<str>>),
    Set(Vec<Known<'a>>),
    Nothing,
}

impl Policies {
    /// The forbids that can match an action in the worst case, in the order of the set.
    pub fn worst_matches(&self, case: &WorstCase<'_>) -> Vec<&Rule> {
        let all = self.worst_case.0.iter();
        let matching = all.filter(|one| self.matches_worst(one, case));
        matching.map(|one| &self.rules[one.number]).collect()
    }

    /// A smallest set of the labels with which a rule can match.
    pub fn sufficient_labels(&self, rule: &Rule, case: &WorstCase<'_>) -> FlowFacts {
        let mut least = case.flow.clone();
        let all = self.worst_case.0.iter();
        let Some(found) = all.into_iter().find(|one| self.rules[one.number].name == rule.name)
        else {
            return least;
        };
        let matches = |flow: &FlowFacts| self.matches_worst(found, &WorstCase { flow, ..*case });
        for name in &case.flow.origins {
            let mut less = least.clone();
            less.origins.remove(name);
            if matches(&less) {
                least = less;
            }
        }
        for name in &case.flow.secrecy {
            let mut less = least.clone();
            less.secrecy.remove(name);
            if matches(&less) {
                least = less;
            }
        }
        let less = FlowFacts { control: false, ..least.clone() };
        if matches(&less) { less } else { least }
    }

    /// Whether some rule reads which step acts.
    pub fn worst_matches_read_steps(&self) -> bool {
        let reads_step = |one: &WorstCaseRule| one.condition.has(&|term| *term == Term::Step);
        self.worst_case.0.iter().any(reads_step)
    }

    fn matches_worst(&self, one: &WorstCaseRule, case: &WorstCase<'_>) -> bool {
        if !self.rules[one.number].scope.verbs.contains(&case.verb) {
            return false;
        }
        match truth(&one.condition, case) {
            Truth::No => false,
            Truth::Possible => one.reads_flow,
            Truth::Yes => true,
        }
    }
}

fn truth(term: &Term, case: &WorstCase<'_>) -> Truth {
    match known(term, case) {
        Known::Truth(truth) => truth,
        _ => Truth::Possible,
    }
}

fn known<'a>(term: &'a Term, case: &WorstCase<'a>) -> Known<'a> {
    Known::Truth(match term {
        Term::Text(text) => return Known::Text(text),
        Term::Entity(kind, id) => return Known::Entity(kind, id),
        Term::Set(items) => return Known::Set(items.iter().map(|one| known(one, case)).collect()),
        Term::Origins => return Known::Labels(&case.flow.origins),
        Term::Secrecy => return Known::Labels(&case.flow.secrecy),
        Term::Principal => {
            return case.agent.map_or(Known::Nothing, |agent| Known::Entity("Agent", agent));
        }
        Term::Resource => return resource(case),
        Term::SendsTo => return Known::Text(case.sends_to.as_str()),
        Term::Workflow => return Known::Text(case.workflow),
        Term::Step => return Known::Text(case.step),
        Term::Unknown => return Known::Nothing,
        Term::If(parts) => {
            let [condition, yes, no] = &**parts;
            return match truth(condition, case) {
                Truth::Yes => known(yes, case),
                Truth::No => known(no, case),
                Truth::Possible => Known::Truth(either(truth(yes, case), truth(no, case))),
            };
        }
        Term::Flag(flag) => Truth::from(*flag),
        Term::Control if case.flow.control => Truth::Possible,
        Term::Control => Truth::No,
        Term::ReadOnly => match case.resource {
            WorstResource::Tool(_, tool) => tool.is_some_and(|tool| tool.read_only).into(),
            _ => Truth::Possible,
        },
        Term::Not(one) => match truth(one, case) {
            Truth::No => Truth::Yes,
            Truth::Possible => Truth::Possible,
            Truth::Yes => Truth::No,
        },
        Term::All(parts) => parts.iter().map(|part| truth(part, case)).min().unwrap_or(Truth::Yes),
        Term::Any(parts) => parts.iter().map(|part| truth(part, case)).max().unwrap_or(Truth::No),
        Term::Equal(pair) => equal(&known(&pair[0], case), &known(&pair[1], case)),
        Term::In(pair) => is_in(&pair[0], &known(&pair[1], case), case),
        Term::Is(one, kind) => match known(one, case) {
            Known::Entity(found, _) => (found == kind).into(),
            _ => Truth::Possible,
        },
        Term::Contains(pair) => contains(&known(&pair[0], case), &known(&pair[1], case)),
        Term::ContainsAll(pair) => contains_all(&known(&pair[0], case), &known(&pair[1], case)),
        Term::ContainsAny(pair) => contains_any(&known(&pair[0], case), &known(&pair[1], case)),
        Term::IsEmpty(one) => match known(one, case) {
            Known::Labels(labels) if labels.is_empty() => Truth::Yes,
            Known::Set(items) => items.is_empty().into(),
            _ => Truth::Possible,
        },
    })
}

fn either(one: Truth, other: Truth) -> Truth {
    if one == other { one } else { Truth::Possible }
}

fn resource<'a>(case: &WorstCase<'a>) -> Known<'a> {
    match case.resource {
        WorstResource::Tool(name, _) => Known::Entity("Tool", name),
        WorstResource::Gateway(name) => Known::Entity("Gateway", name),
        WorstResource::Workflow(name) => Known::Entity("Workflow", name),
    }
}

fn equal(one: &Known<'_>, other: &Known<'_>) -> Truth {
    match (one, other) {
        (Known::Text(a), Known::Text(b)) => (a == b).into(),
        (Known::Entity(kind, id), Known::Entity(other, name)) => {
            ((kind, id) == (other, name)).into()
        }
        (Known::Truth(Truth::Possible), _) | (_, Known::Truth(Truth::Possible)) => Truth::Possible,
        (Known::Truth(a), Known::Truth(b)) => (a == b).into(),
        (Known::Labels(labels), Known::Set(items)) | (Known::Set(items), Known::Labels(labels)) => {
            // The labels are equal to the list only if they can be all of its items.
            let can_be = |item: &Known<'_>| has_label(labels, item) != Truth::No;
            match (labels.is_empty(), items.is_empty()) {
                (true, true) => Truth::Yes,
                _ if items.iter().all(can_be) => Truth::Possible,
                _ => Truth::No,
            }
        }
        _ => Truth::Possible,
    }
}

/// Whether an entity is another one or one of its children.
fn is_in(one: &Term, other: &Known<'_>, case: &WorstCase<'_>) -> Truth {
    let (kind, id) = match other {
        Known::Entity(kind, id) => (*kind, *id),
        Known::Set(items) => {
            let each = items.iter().map(|item| is_in(one, item, case));
            return each.max().unwrap_or(Truth::No);
        }
        _ => return Truth::Possible,
    };
    let found = known(one, case);
    if equal(&found, other) == Truth::Yes {
        return Truth::Yes;
    }
    match (one, kind, case.resource) {
        (Term::Principal, "Role", _) => match case.role {
            Some(role) => (role == id).into(),
            None if case.agent.is_some() => Truth::No,
            None => Truth::Possible,
        },
        (Term::Resource, "Label", WorstResource::Tool(_, tool)) => {
            tool.is_some_and(|tool| tool.labels.iter().any(|label| **label == *id)).into()
        }
        (Term::Resource, "ToolServer", WorstResource::Tool(name, tool)) => {
            let server = name.split('.').next().unwrap_or_default();
            (tool.map_or(server, |tool| &tool.server) == id).into()
        }
        (Term::Principal | Term::Resource, ..) => match found {
            Known::Entity(..) => Truth::No,
            _ => Truth::Possible,
        },
        _ => Truth::Possible,
    }
}

/// Whether some subset of the labels can have an item.
fn has_label(labels: &BTreeSet<Arc<str>>, item: &Known<'_>) -> Truth {
    match item {
        Known::Text(name) if !labels.contains(*name) => Truth::No,
        _ if labels.is_empty() => Truth::No,
        _ => Truth::Possible,
    }
}

fn contains(set: &Known<'_>, item: &Known<'_>) -> Truth {
    match set {
        Known::Labels(labels) => has_label(labels, item),
        Known::Set(items) => {
            let each = items.iter().map(|one| equal(one, item));
            each.max().unwrap_or(Truth::No)
        }
        _ => Truth::Possible,
    }
}

fn contains_all(set: &Known<'_>, wanted: &Known<'_>) -> Truth {
    match (set, wanted) {
        (_, Known::Set(items)) => {
            let each = items.iter().map(|item| contains(set, item));
            each.min().unwrap_or(Truth::Yes)
        }
        // Every subset of labels that the list has is contained.
        (Known::Set(_), Known::Labels(labels)) => {
            let has = |label: &Arc<str>| contains(set, &Known::Text(label)) == Truth::Yes;
            if labels.iter().all(has) { Truth::Yes } else { Truth::Possible }
        }
        _ => Truth::Possible,
    }
}

fn contains_any(set: &Known<'_>, wanted: &Known<'_>) -> Truth {
    match (set, wanted) {
        (_, Known::Set(items)) => {
            let each = items.iter().map(|item| contains(set, item));
            each.max().unwrap_or(Truth::No)
        }
        (Known::Set(_), Known::Labels(_)) => contains_any(wanted, set),
        _ => Truth::Possible,
    }
}

#[cfg(test)]
mod tests;
