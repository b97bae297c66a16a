//! Loads policies: splits, measures, parses, validates and indexes them. Reports all
//! errors at once.

use super::answer_cache::AnswerCache;
use super::changeable::PolicyNames;
use super::index::Index;
use super::request::Names;
use super::rule::{Rule, Who};
use super::{Policies, PolicyError, scan};
use crate::canonical;
use crate::facts::Verb;
use crate::limits::{
    POLICIES_BYTES_MAX, POLICIES_MAX, POLICY_ERRORS_MAX, POLICY_FILE_BYTES_MAX, POLICY_STACK_BYTES,
};
use cedar_policy::{Policy, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::thread;

/// Validates policies against our schema.
static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let text = include_str!("../../policies/schema.cedarschema");
    let (schema, _) = Schema::from_cedarschema_str(text).expect("our schema is well formed");
    Validator::new(schema)
});

/// Loads a set on a thread with a stack that Cedar cannot exhaust.
pub(super) fn load(files: &[(String, String)]) -> Result<Policies, Vec<PolicyError>> {
    let mut files = files.to_vec();
    files.sort();
    check_limits(&files)?;
    thread::scope(|scope| {
        let builder =
            thread::Builder::new().name("policies".to_owned()).stack_size(POLICY_STACK_BYTES);
        let loading = builder.spawn_scoped(scope, move || read(files)).map_err(|error| {
            let mib = POLICY_STACK_BYTES / (1024 * 1024);
            let message = format!(
                "cannot start a thread with a stack of {mib} MiB to load policies: {error}"
            );
            vec![PolicyError { machine: true, ..PolicyError::for_set(message) }]
        })?;
        loading.join().unwrap_or_else(|_| {
            Err(vec![PolicyError::for_set("the policies made Cedar panic".to_owned())])
        })
    })
}

/// Checks the limits that need no parsing.
fn check_limits(files: &[(String, String)]) -> Result<(), Vec<PolicyError>> {
    let mut errors = Vec::new();
    for (name, text) in files {
        if text.len() > POLICY_FILE_BYTES_MAX {
            let message = format!("the file is longer than {POLICY_FILE_BYTES_MAX} bytes");
            errors.push(PolicyError::new(name, None, message));
        }
    }
    for pair in files.windows(2) {
        if pair[0].0 == pair[1].0 {
            let message = "two files have this name".to_owned();
            errors.push(PolicyError::new(&pair[0].0, None, message));
        }
    }
    if files.iter().map(|(_, text)| text.len()).sum::<usize>() > POLICIES_BYTES_MAX {
        errors.push(PolicyError::for_set(format!(
            "the policies together are longer than {POLICIES_BYTES_MAX} bytes"
        )));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The policies parsed so far, and the errors.
#[derive(Default)]
struct PolicyLoader {
    rules: Vec<(Rule, Policy)>,
    /// File and line of each policy name.
    names: BTreeMap<String, (String, usize)>,
    errors: Vec<PolicyError>,
}

fn read(files: Vec<(String, String)>) -> Result<Policies, Vec<PolicyError>> {
    let mut loader = PolicyLoader::default();
    for (name, text) in &files {
        loader.file(name, text);
    }
    if loader.errors.is_empty() {
        loader.check();
    }
    if loader.errors.is_empty() && !loader.permits_steps() {
        let message = "no policy permits dispatch_step, so no step could ever run".to_owned();
        loader.errors.push(PolicyError::for_set(message));
    }
    if !loader.errors.is_empty() {
        loader.errors.truncate(POLICY_ERRORS_MAX);
        return Err(loader.errors);
    }
    let mut index = Index::default();
    let mut reads_values = BTreeSet::new();
    let mut names_in_changes = PolicyNames::default();
    let mut rules = Vec::with_capacity(loader.rules.len());
    let mut categories = BTreeMap::<_, Vec<usize>>::new();
    for (number, (rule, policy)) in loader.rules.into_iter().enumerate() {
        let needs = index.add(number, &rule, &policy);
        if needs.values() {
            reads_values.extend(&rule.scope.verbs);
        }
        names_in_changes.record(&rule, &policy);
        if let Some(category) = rule.category {
            categories.entry(category).or_default().push(number);
        }
        rules.push(rule);
    }
    let hash = canonical::sha256_hex(&files, 0);
    Ok(Policies {
        files,
        rules,
        categories,
        index,
        reads_values,
        names: Names::new(),
        names_in_changes,
        cache: AnswerCache::default(),
        hash,
        shadow: None,
    })
}

impl PolicyLoader {
    fn file(&mut self, file: &str, text: &str) {
        let pieces = match scan::pieces(text) {
            Ok(pieces) => pieces,
            Err(too_much) => {
                self.fault(file, too_much.line, too_much.message);
                return;
            }
        };
        for (at, piece) in pieces.iter().enumerate() {
            if self.rules.len() >= POLICIES_MAX {
                self.fault(file, piece.line, format!("more than {POLICIES_MAX} policies"));
                return;
            }
            if self.errors.len() >= POLICY_ERRORS_MAX {
                return;
            }
            let id = PolicyId::new(self.rules.len().to_string());
            match Policy::parse(Some(id), piece.text) {
                Ok(policy) => self.policy(file, at + 1, piece, policy),
                Err(errors) => {
                    for error in errors.iter() {
                        self.fault(file, piece.line, error.to_string());
                    }
                }
            }
        }
    }

    fn policy(&mut self, file: &str, number: usize, piece: &scan::Piece<'_>, policy: Policy) {
        match Rule::read(file, number, piece, &policy) {
            Ok(rule) => {
                let place = (file.to_owned(), piece.line);
                if let Some((other, line)) = self.names.insert(rule.name.clone(), place) {
                    let message =
                        format!("the name {} is already used by {other}:{line}", rule.name);
                    self.fault(file, piece.line, message);
                }
                self.rules.push((rule, policy));
            }
            Err(faults) => {
                for fault in faults {
                    self.fault(file, piece.line, fault);
                }
            }
        }
    }

    /// Validates all policies against the schema. A warning is an error too: a policy
    /// that can never match, or confusable characters, are mistakes.
    fn check(&mut self) {
        let policies = self.rules.iter().map(|(_, policy)| policy.clone());
        let set = PolicySet::from_policies(policies).expect("a number is given once");
        let result = VALIDATOR.validate(&set, ValidationMode::Strict);
        let errors = result.validation_errors().map(|e| (e.policy_id().to_string(), e.to_string()));
        let warnings =
            result.validation_warnings().map(|w| (w.policy_id().to_string(), w.to_string()));
        let mut found: Vec<(usize, String)> = errors
            .chain(warnings)
            .map(|(id, message)| (id.parse().expect("ids are numbers"), message))
            .collect();
        found.sort();
        for (number, message) in found {
            let rule = &self.rules[number].0;
            let prefix = format!("for policy `{number}`, ");
            // The same mistake is found once per action; once is enough.
            let message = message.strip_prefix(&prefix).unwrap_or(&message);
            let message = message.split(" for Action::").next().unwrap_or(message).to_owned();
            let error = PolicyError::new(&rule.file, Some(rule.line), message);
            if self.errors.last() != Some(&error) {
                self.errors.push(error);
            }
        }
    }

    fn permits_steps(&self) -> bool {
        self.rules.iter().any(|(rule, _)| {
            rule.permits
                && rule.scope.verbs.contains(&Verb::DispatchStep)
                && !matches!(rule.scope.who, Who::Users | Who::User(_))
        })
    }

    fn fault(&mut self, file: &str, line: usize, message: String) {
        self.errors.push(PolicyError::new(file, Some(line), message));
    }
}
