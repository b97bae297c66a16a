//! Policies: rules an operator writes in Cedar, and what they say of a decision.
//!
//! A set is loaded whole or not at all, checked against our own schema, and
//! sorted so that a decision looks only at the few policies that can apply.
//! Annotations say what a matching forbid does; see `policies/default.cedar`.
//!
//! INVARIANT: what Cedar cannot evaluate blocks.
//!
//! INVARIANT: which policies match depends on [`PolicyFacts`] alone, never on
//! whether a budget is short: else raising a cap would void what a person agreed
//! to when it was.

mod changeable;
mod facts;
mod index;
mod load;
mod memo;
mod needs;
mod request;
mod rule;
mod scan;
mod word;

pub use facts::{InputsSeen, PolicyFacts, Principal, Resource, RunSeen, StepSeen};
pub use rule::Rule;
pub use word::{Category, Consequence, Enforcement};

use crate::decision::{Disposition, Matched};
use cedar_policy::{AuthorizationError, Authorizer, PolicyId, PolicySet};
use changeable::Named;
use index::Bin;
use memo::{Answer, Memo};
use needs::Needs;
use request::{Names, Question};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The set that ships: its file's name and its text.
pub const DEFAULT: (&str, &str) = ("default.cedar", include_str!("../policies/default.cedar"));

/// A set of policies, ready to be asked.
#[derive(Debug, Clone)]
pub struct Policies {
    files: Vec<(String, String)>,
    rules: Vec<Rule>,
    categories: BTreeMap<Category, Vec<usize>>,
    index: index::Index,
    names: Names,
    named: Named,
    memo: Memo,
    hash: String,
    shadow: Option<Box<Policies>>,
}

/// Something wrong with a set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PolicyError {
    /// The file; empty where it is about the whole set.
    pub file: String,
    /// The line where the policy begins, from 1.
    pub line: Option<usize>,
    /// What is wrong, lower case, no full stop.
    pub message: String,
    /// Whether the machine is at fault and not the policies: it has too little memory, or
    /// too few threads.
    pub machine: bool,
}

impl PolicyError {
    fn new(file: &str, line: Option<usize>, message: String) -> PolicyError {
        PolicyError { file: file.to_owned(), line, message, machine: false }
    }

    fn whole(message: String) -> PolicyError {
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

/// What a set says of a decision.
#[derive(Debug, Clone)]
pub struct Matches<'p> {
    /// Whether a permit matched.
    pub permitted: bool,
    /// Forbids that matched, whatever they do, in the order of the set.
    pub rules: Vec<&'p Rule>,
    /// Policies that could not be evaluated, and why.
    pub errors: Vec<(&'p str, String)>,
}

/// What a set would have done with a recorded decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The policies' part of it. Other gates may still have said no.
    pub disposition: Disposition,
    /// Policies that matched.
    pub matched: Vec<Matched>,
    /// Why not, for a block.
    pub because: Option<String>,
}

impl Policies {
    /// Loads a set: names and texts of its files. Answers everything that is
    /// wrong with it.
    pub fn load(files: &[(String, String)]) -> Result<Policies, Vec<PolicyError>> {
        load::load(files)
    }

    /// The permits of the default set and nothing else: every action is allowed
    /// as far as policies go. For measurements and tests.
    pub fn permit_all() -> Policies {
        let (name, text) = DEFAULT;
        Policies::load(&[(name.to_owned(), text.to_owned())]).expect("the default set loads")
    }

    /// With a set that is evaluated and recorded beside this one, never enforced.
    #[must_use]
    pub fn with_shadow(mut self, shadow: Policies) -> Policies {
        self.shadow = Some(Box::new(shadow));
        self
    }

    /// The set that is evaluated beside this one.
    pub fn shadow(&self) -> Option<&Policies> {
        self.shadow.as_deref()
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

    /// Asks the policies that can apply, unless they were asked the same before.
    pub fn matches(&self, facts: &PolicyFacts<'_>) -> Matches<'_> {
        let bins = self.index.bins(facts);
        let all = bins.iter().flatten();
        let needs = all.fold(Needs::default(), |needs, bin| needs.and(bin.needs));
        let key = memo::key(facts, needs);
        let known = key.as_ref().and_then(|key| self.memo.get(key));
        let answer = known.unwrap_or_else(|| {
            let answer = Arc::new(self.ask(facts, needs, &bins));
            if let Some(key) = key {
                self.memo.keep(key, &answer);
            }
            answer
        });
        let rules = answer.found.iter().map(|&number| &self.rules[number]).collect();
        let name =
            |(number, why): &(usize, String)| (self.rules[*number].name.as_str(), why.clone());
        let errors = answer.errors.iter().map(name).collect();
        Matches { permitted: answer.permitted, rules, errors }
    }

    fn ask(&self, facts: &PolicyFacts<'_>, needs: Needs, bins: &[Option<&Bin>]) -> Answer {
        let mut answer = Answer::default();
        let mut question = None;
        for bin in bins.iter().flatten() {
            for &number in &bin.plain {
                self.matched(&mut answer, number);
            }
            for set in [&bin.permits, &bin.forbids].into_iter().flatten() {
                let asked = question.get_or_insert_with(|| self.names.question(facts, needs));
                self.ask_set(&mut answer, set, asked);
            }
        }
        answer.found.sort_unstable();
        answer
    }

    fn matched(&self, answer: &mut Answer, number: usize) {
        if self.rules[number].permits {
            answer.permitted = true;
        } else {
            answer.found.push(number);
        }
    }

    fn ask_set(&self, answer: &mut Answer, set: &PolicySet, question: &Result<Question, String>) {
        let question = match question {
            Ok(question) => question,
            Err(why) => {
                let failed = set.policies().map(|policy| (number(policy.id()), why.clone()));
                answer.errors.extend(failed);
                return;
            }
        };
        let Question { request, entities } = question;
        let response = Authorizer::new().is_authorized(request, set, entities);
        for id in response.diagnostics().reason() {
            self.matched(answer, number(id));
        }
        for error in response.diagnostics().errors() {
            let AuthorizationError::PolicyEvaluationError(error) = error;
            answer.errors.push((number(error.policy_id()), error.inner().to_string()));
        }
    }
}

fn number(id: &PolicyId) -> usize {
    let id: &str = id.as_ref();
    id.parse().expect("ids are numbers")
}

impl Matches<'_> {
    /// Why the policies block it, if they do.
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

    /// For the record.
    pub fn matched(&self) -> Vec<Matched> {
        let matched = self.rules.iter().map(|rule| Matched {
            policy: rule.name.clone(),
            action: rule.consequence.as_str(),
            enforcement: rule.enforcement.as_str(),
        });
        matched.collect()
    }
}

/// What a set would have done with a recorded decision, as far as policies go.
pub fn replay(policies: &Policies, facts: &PolicyFacts<'_>) -> Replayed {
    let matches = policies.matches(facts);
    let asks = matches.rules.iter().any(|rule| rule.holds());
    let asks_about_money = matches.rules.iter().any(|rule| rule.asks_about_money());
    let because = matches.blocked().or_else(|| {
        let short = facts.short_of_money && !asks_about_money;
        short.then(|| "a budget stops it and no policy asks instead".to_owned())
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
