//! Cedar policies of the operator, and their evaluation.
//!
//! A set is loaded completely or not at all, validated against our own schema, and
//! indexed so that a decision evaluates only the few policies that can apply.
//! Annotations define the effect of a matching forbid; see `policies/default.cedar`.
//!
//! INVARIANT: an evaluation error of Cedar blocks.
//!
//! INVARIANT: which policies match depends on [`PolicyFacts`] alone, never on whether a
//! budget is exceeded. Otherwise raising a cap would void an approval that was given
//! before.

mod answer_cache;
mod call;
mod changeable;
pub mod explain;
mod facts;
pub mod history;
mod index;
mod input;
mod keyword;
mod load;
mod names;
mod needs;
mod number;
mod reference;
mod request;
mod rule;
mod scan;
mod validate;
mod worst_case;

pub use facts::{InputsSeen, PolicyFacts, Principal, Resource, RunSeen, StepSeen};
pub use keyword::{Category, Consequence, Enforcement};
pub use reference::reference;
pub use rule::Rule;
pub use worst_case::{WorstCase, WorstResource};

use crate::catalog::Catalog;
use crate::decision::{Disposition, Matched};
use crate::facts::Verb;
use answer_cache::{AnswerCache, PolicyAnswer};
use cedar_policy::{AuthorizationError, Authorizer, PolicyId, PolicySet};
use changeable::PolicyNames;
use history::{History, HistoryFact, HistoryFacts, HistoryScope};
use index::Bins;
use input::InputType;
use load::NameCheck;
use needs::Needs;
use request::{CedarRequest, Names};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use worst_case::WorstCaseRules;

/// The default set: name and text of its file.
pub const DEFAULT: (&str, &str) = ("default.cedar", include_str!("../policies/default.cedar"));

/// A loaded policy set.
#[derive(Debug, Clone)]
pub struct Policies {
    files: Vec<(String, String)>,
    rules: Vec<Rule>,
    categories: BTreeMap<Category, Vec<usize>>,
    index: index::Index,
    /// The actions about whose values some policy asks.
    reads_values: BTreeSet<Verb>,
    /// The types of the arguments of tools, for policies that read them.
    inputs: BTreeMap<String, InputType>,
    /// What stored policies name and nothing has.
    notes: Vec<PolicyError>,
    /// The actions about whose labels some policy asks.
    reads_flow: BTreeSet<Verb>,
    worst_case: WorstCaseRules,
    names: Names,
    names_in_changes: PolicyNames,
    /// Facts about history that some policy tests.
    history: HistoryFacts,
    cache: AnswerCache,
    hash: String,
    shadow: Option<Box<Policies>>,
}

/// An error in a policy set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PolicyError {
    /// The file; empty if the error concerns the whole set.
    pub file: String,
    /// The line where the policy begins, from 1.
    pub line: Option<usize>,
    /// The message, lower case, no full stop.
    pub message: String,
    /// Whether the machine is the cause and not the policies: too little memory or too
    /// few threads.
    pub machine: bool,
}

impl PolicyError {
    fn new(file: &str, line: Option<usize>, message: String) -> PolicyError {
        PolicyError { file: file.to_owned(), line, message, machine: false }
    }

    fn for_set(message: String) -> PolicyError {
        PolicyError::new("", None, message)
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => f.write_str(&self.message),
            (file, Some(line)) => write!(f, "{file}:{line}: {}", self.message),
            (file, None) => write!(f, "{file}: {}", self.message),
        }
    }
}

/// The policies of a set that match a decision.
#[derive(Debug, Clone)]
pub struct Matches<'p> {
    /// Whether a permit matched.
    pub permitted: bool,
    /// Forbids that matched, whatever their effect, in the order of the set.
    pub rules: Vec<&'p Rule>,
    /// Policies that could not be evaluated, with the error.
    pub errors: Vec<(&'p str, String)>,
}

/// What a policy set would have decided for a recorded decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// The disposition by policies alone. Other gates may still have blocked.
    pub disposition: Disposition,
    /// Policies that matched.
    pub matched: Vec<Matched>,
    /// The reason for a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl Policies {
    /// Loads a set from the names and texts of its files without checking whether the tools
    /// and words in it exist: for tests and benchmarks. Returns all errors.
    pub fn load(files: &[(String, String)]) -> Result<Policies, Vec<PolicyError>> {
        load::load(files, &Catalog::default(), NameCheck::Off)
    }

    /// Loads a set that is to be stored. A policy about something that does not exist is an
    /// error.
    pub fn load_with(
        files: &[(String, String)],
        catalog: &Catalog,
    ) -> Result<Policies, Vec<PolicyError>> {
        load::load(files, catalog, NameCheck::New)
    }

    /// Loads a set that is in force. A policy about something that does not exist any more
    /// stays and fails closed: see [`Policies::notes`].
    pub fn load_stored(
        files: &[(String, String)],
        catalog: &Catalog,
    ) -> Result<Policies, Vec<PolicyError>> {
        load::load(files, catalog, NameCheck::Stored)
    }

    /// What policies of a stored set name and nothing has any more.
    pub fn notes(&self) -> &[PolicyError] {
        &self.notes
    }

    /// The default set, under which policies allow every action.
    /// For benchmarks and tests.
    pub fn permit_all() -> Policies {
        let (name, text) = DEFAULT;
        Policies::load(&[(name.to_owned(), text.to_owned())]).expect("the default set loads")
    }

    /// Adds a shadow set, which is evaluated and recorded but never enforced.
    #[must_use]
    pub fn with_shadow(mut self, shadow: Policies) -> Policies {
        self.reads_values.extend(&shadow.reads_values);
        self.reads_flow.extend(&shadow.reads_flow);
        self.shadow = Some(Box::new(shadow));
        self
    }

    /// The shadow set.
    pub fn shadow(&self) -> Option<&Policies> {
        self.shadow.as_deref()
    }

    /// Whether a policy of this set or its shadow reads the values of such an action:
    /// `context.call` or `context.input`.
    pub fn reads_values(&self, verb: Verb) -> bool {
        self.reads_values.contains(&verb)
    }

    /// Whether a policy of this set or its shadow reads the labels of such an action,
    /// `context.flow`, or those of its values.
    pub fn reads_flow(&self, verb: Verb) -> bool {
        self.reads_flow.contains(&verb)
    }

    /// SHA-256 over names and texts of the files.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The files, by name.
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    /// All policies, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The policies of a category, in order.
    pub fn of(&self, category: Category) -> impl Iterator<Item = &Rule> {
        let numbers = self.categories.get(&category).into_iter().flatten();
        numbers.map(|&number| &self.rules[number])
    }

    /// Evaluates the policies that can apply, or returns a cached answer.
    pub fn matches(&self, facts: &PolicyFacts<'_>) -> Matches<'_> {
        let bins = self.index.bins(facts);
        let needs = bins.each().fold(Needs::default(), |needs, bin| needs.and(bin.needs));
        let key = answer_cache::key(facts, needs);
        let known = key.as_ref().and_then(|key| self.cache.get(key));
        let answer = known.unwrap_or_else(|| {
            let answer = Arc::new(self.evaluate(facts, needs, &bins));
            if let Some(key) = key {
                self.cache.insert(key, &answer);
            }
            answer
        });
        let name =
            |(number, why): &(usize, String)| (self.rules[*number].name.as_str(), why.clone());
        let mut matches = Matches {
            permitted: answer.permitted,
            rules: Vec::with_capacity(answer.found.len()),
            errors: answer.errors.iter().map(name).collect(),
        };
        for &number in answer.permits.iter().chain(&answer.found) {
            matches.add(&self.rules[number], facts);
        }
        matches
    }

    /// Adds the values of the facts about history that policies in the scope of a decision
    /// test, of this set and of its shadow.
    pub(crate) fn add_history(&self, seen: &mut PolicyFacts<'_>, history: Option<&dyn History>) {
        if let (false, Some(history)) = (self.history.is_empty(), history) {
            let bins = self.index.bins(seen);
            let wanted = bins.each().flat_map(|bin| &bin.with_history);
            let names = wanted.flat_map(|number| &self.rules[*number].history);
            for name in names.flat_map(history::Clause::facts) {
                if let (false, Some(fact)) =
                    (seen.history.contains_key(name), self.history.get(name))
                {
                    seen.history.insert(name.clone(), history.value(fact));
                }
            }
        }
        if let Some(shadow) = &self.shadow {
            shadow.add_history(seen, history);
        }
    }

    /// Whether a policy, of this set or of its shadow, tests what happened before.
    pub fn has_history(&self) -> bool {
        !self.history.is_empty() || self.shadow.as_ref().is_some_and(|shadow| shadow.has_history())
    }

    /// The facts across runs that policies of this set and of its shadow test. One name
    /// may occur in both.
    pub fn facts_of_agents(&self) -> impl Iterator<Item = &HistoryFact> {
        let shadow = self.shadow.iter().flat_map(|shadow| shadow.history.values());
        let all = self.history.values().chain(shadow);
        all.filter(|fact| fact.scope == HistoryScope::Agent)
    }

    /// Whether policies that can apply read values or facts about history that the facts do
    /// not have, because the decision was recorded before any policy asked for them.
    pub fn misses_values(&self, facts: &PolicyFacts<'_>) -> bool {
        let bins = self.index.bins(facts);
        let with_history = bins.each().flat_map(|bin| &bin.with_history);
        let mut history = with_history.flat_map(|number| &self.rules[*number].history);
        let is_recorded = |name: &Arc<str>| facts.history.contains_key(name);
        if history.any(|clause| !clause.facts().all(is_recorded)) {
            return true;
        }
        let has_values = matches!(facts.verb, Verb::DispatchStep | Verb::StartRun | Verb::UseTool);
        let needs = || bins.each().fold(Needs::default(), |a, b| a.and(b.needs));
        has_values && facts.call.is_none() && facts.input.is_none() && needs().values()
    }

    fn evaluate(&self, facts: &PolicyFacts<'_>, needs: Needs, bins: &Bins<'_>) -> PolicyAnswer {
        let mut answer = PolicyAnswer::default();
        let mut request = None;
        for bin in bins.each() {
            for &number in &bin.plain {
                self.matched(&mut answer, number);
            }
            for &number in &bin.broken {
                self.undecided(&mut answer, number);
            }
            for set in [&bin.permits, &bin.forbids].into_iter().flatten() {
                let request =
                    request.get_or_insert_with(|| self.names.request(facts, needs, &self.inputs));
                self.evaluate_set(&mut answer, set, request);
            }
        }
        answer.found.sort_unstable();
        answer
    }

    fn matched(&self, answer: &mut PolicyAnswer, number: usize) {
        let rule = &self.rules[number];
        if rule.permits && rule.history.is_empty() {
            answer.permitted = true;
        } else if rule.permits {
            answer.permits.push(number);
        } else {
            answer.found.push(number);
        }
    }

    /// A stored policy names something that does not exist any more: a permit grants
    /// nothing, and a forbid that would be enforced blocks.
    fn undecided(&self, answer: &mut PolicyAnswer, number: usize) {
        let rule = &self.rules[number];
        if (rule.blocks() || rule.requires_approval())
            && let Some(why) = &rule.broken
        {
            answer.errors.push((number, why.clone()));
        }
    }

    fn evaluate_set(
        &self,
        answer: &mut PolicyAnswer,
        set: &PolicySet,
        request: &Result<CedarRequest, String>,
    ) {
        let request = match request {
            Ok(request) => request,
            Err(why) => {
                let failed = set.policies().map(|policy| (number(policy.id()), why.clone()));
                answer.errors.extend(failed);
                return;
            }
        };
        let CedarRequest { request, entities, mismatch } = request;
        let response = Authorizer::new().is_authorized(request, set, entities);
        for id in response.diagnostics().reason() {
            self.matched(answer, number(id));
        }
        for error in response.diagnostics().errors() {
            let AuthorizationError::PolicyEvaluationError(error) = error;
            let mut why = error.inner().to_string();
            if let Some(mismatch) = mismatch {
                why = format!("{why}; {}", mismatch.message());
            }
            answer.errors.push((number(error.policy_id()), why));
        }
    }
}

fn number(id: &PolicyId) -> usize {
    let id: &str = id.as_ref();
    id.parse().expect("ids are numbers")
}

impl<'p> Matches<'p> {
    /// Adds a policy that matches as far as Cedar knows, if its clauses about history hold.
    fn add(&mut self, rule: &'p Rule, facts: &PolicyFacts<'_>) {
        for clause in &rule.history {
            match clause.holds(&facts.history) {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => return self.errors.push((&rule.name, why)),
            }
        }
        if rule.permits {
            self.permitted = true;
        } else {
            self.rules.push(rule);
        }
    }

    /// The reason why the policies block the action, if they do.
    pub fn blocked(&self) -> Option<String> {
        if let Some((policy, why)) = self.errors.first() {
            return Some(format!("policy {policy} could not be evaluated: {why}"));
        }
        if !self.permitted {
            return Some("no policy permits it".to_owned());
        }
        let rule = self.rules.iter().find(|rule| rule.blocks())?;
        Some(match &rule.description {
            Some(description) => format!("policy {} forbids it: {description}", rule.name),
            None => format!("policy {} forbids it", rule.name),
        })
    }

    /// The matches as a decision records them.
    pub fn matched(&self) -> Vec<Matched> {
        let matched = self.rules.iter().map(|rule| Matched {
            policy: rule.name.clone(),
            action: rule.consequence,
            enforcement: rule.enforcement,
        });
        matched.collect()
    }
}

/// What a policy set would have decided for a recorded decision, by policies alone.
pub fn replay(policies: &Policies, facts: &PolicyFacts<'_>) -> Replayed {
    let matches = policies.matches(facts);
    let asks = matches.rules.iter().any(|rule| rule.holds());
    let requests_budget_approval = matches.rules.iter().any(|rule| rule.requests_budget_approval());
    let because = matches.blocked().or_else(|| {
        let short = facts.short_of_money && !requests_budget_approval;
        short.then(|| "a budget blocks it and no policy requests an approval".to_owned())
    });
    let disposition = if because.is_some() {
        Disposition::Block
    } else if asks || facts.short_of_money {
        Disposition::Hold
    } else {
        Disposition::Allow
    };
    Replayed { disposition, matched: matches.matched(), because }
}

#[cfg(test)]
mod tests;
