//! Loads policies: splits, measures, parses, validates and indexes them. Reports all
//! errors at once.

use super::answer_cache::AnswerCache;
use super::changeable::PolicyNames;
use super::history::{self, HistoryFacts, Split};
use super::index::Index;
use super::input::InputType;
use super::keyword::nearest;
use super::names::{Missing, missing};
use super::request::Names;
use super::rule::{Rule, Who};
use super::validate::{InputUse, arguments_of, validate};
use super::worst_case::WorstCaseRules;
use super::{Policies, PolicyError, scan};
use crate::canonical;
use crate::catalog::Catalog;
use crate::facts::Verb;
use crate::limits::{
    POLICIES_BYTES_MAX, POLICIES_MAX, POLICY_ERRORS_MAX, POLICY_FILE_BYTES_MAX, POLICY_STACK_BYTES,
};
use cedar_policy::{Policy, PolicyId};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

/// What happens to a policy that names something that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameCheck {
    /// It is not checked.
    Off,
    /// The set is refused.
    New,
    /// The set is in force: the policy stays, and fails closed.
    Stored,
}

/// Loads a set on a thread with a stack that Cedar cannot exhaust.
pub(super) fn load(
    files: &[(String, String)],
    catalog: &Catalog,
    check: NameCheck,
) -> Result<Policies, Vec<PolicyError>> {
    let mut files = files.to_vec();
    files.sort();
    check_limits(&files)?;
    thread::scope(|scope| {
        let builder =
            thread::Builder::new().name("policies".to_owned()).stack_size(POLICY_STACK_BYTES);
        let loading =
            builder.spawn_scoped(scope, move || read(files, catalog, check)).map_err(|error| {
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
    /// Facts about history that some policy tests.
    history: HistoryFacts,
    errors: Vec<PolicyError>,
    /// What stored policies name and nothing has.
    notes: Vec<PolicyError>,
    /// The types of the arguments of tools, for policies that read them.
    inputs: BTreeMap<String, InputType>,
}

fn read(
    files: Vec<(String, String)>,
    catalog: &Catalog,
    check: NameCheck,
) -> Result<Policies, Vec<PolicyError>> {
    let mut loader = PolicyLoader::default();
    for (name, text) in &files {
        loader.file(name, text);
    }
    if loader.errors.is_empty() {
        loader.check(catalog, check);
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
    let mut reads_flow = BTreeSet::new();
    let mut worst_case = WorstCaseRules::default();
    let mut names_in_changes = PolicyNames::default();
    let mut rules = Vec::with_capacity(loader.rules.len());
    let mut categories = BTreeMap::<_, Vec<usize>>::new();
    for (number, (rule, policy)) in std::mem::take(&mut loader.rules).into_iter().enumerate() {
        let needs = index.add(number, &rule, &policy);
        if needs.values() {
            reads_values.extend(&rule.scope.verbs);
        }
        if needs.flow() {
            reads_flow.extend(&rule.scope.verbs);
        }
        worst_case.add(number, &rule, &policy);
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
        inputs: loader.inputs,
        notes: loader.notes,
        reads_flow,
        worst_case,
        names: Names::new(),
        names_in_changes,
        history: loader.history,
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
            let split = match history::split(piece.text) {
                Ok(split) => split,
                Err((lines, fault)) => {
                    self.fault(file, piece.line + lines, fault);
                    continue;
                }
            };
            match Policy::parse(Some(id), split.rest.as_deref().unwrap_or(piece.text)) {
                Ok(policy) => self.policy(file, at + 1, (piece, &split), policy),
                Err(errors) => {
                    for error in errors.iter() {
                        self.fault(file, piece.line, error.to_string());
                    }
                }
            }
        }
    }

    fn policy(
        &mut self,
        file: &str,
        number: usize,
        (piece, split): (&scan::Piece<'_>, &Split),
        policy: Policy,
    ) {
        match Rule::read(file, number, piece, &policy) {
            Ok(mut rule) => {
                match split.compile(&rule.scope.verbs, &mut self.history) {
                    Ok(clauses) => {
                        rule.history = clauses;
                        rule.history_names = split.names();
                    }
                    Err(faults) => {
                        for (lines, fault) in faults {
                            self.fault(file, piece.line + lines, fault);
                        }
                    }
                }
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

    /// Validates all policies against the schema, and the names in them.
    fn check(&mut self, catalog: &Catalog, check: NameCheck) {
        let mut plain = Vec::new();
        let mut typed: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut wrong: Vec<(usize, Missing)> = Vec::new();
        for (number, (rule, policy)) in self.rules.iter().enumerate() {
            match InputUse::of(rule, policy) {
                InputUse::None => plain.push(number),
                InputUse::Tool(tool) => typed.entry(tool).or_default().push(number),
                InputUse::Unclear => {
                    let message = "`context.input` is for a policy about one tool \
                                   (`resource == Tool::\"NAME\"`); others read \
                                   `context.call.getTag(\"ARGUMENT\")`";
                    self.errors.push(error_at(rule, message.to_owned()));
                }
            }
            if check != NameCheck::Off {
                wrong.extend(missing(rule, policy, catalog).into_iter().map(|one| (number, one)));
            }
        }
        for (number, message) in validate(plain.iter().map(|number| &self.rules[*number].1), None) {
            self.errors.push(error_at(&self.rules[number].0, message));
        }
        for (tool, numbers) in typed {
            let policies = numbers.iter().map(|number| (*number, &self.rules[*number].1));
            match type_of(catalog, &tool) {
                Ok(kind) => {
                    wrong.extend(validate_typed(policies, &tool, &kind));
                    self.inputs.insert(tool, kind);
                }
                Err(message) => {
                    wrong.extend(numbers.iter().map(|number| {
                        (*number, Missing { message: message.clone(), breaks: true })
                    }));
                }
            }
        }
        wrong.sort_by_key(|(number, _)| *number);
        for (number, Missing { message, breaks }) in wrong {
            let rule = &mut self.rules[number].0;
            let error = error_at(rule, message);
            if check != NameCheck::Stored {
                self.errors.push(error);
                continue;
            }
            if breaks {
                rule.broken.get_or_insert_with(|| error.message.clone());
            }
            self.notes.push(error);
        }
        self.errors.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
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

fn error_at(rule: &Rule, message: String) -> PolicyError {
    PolicyError::new(&rule.file, Some(rule.line), message)
}

/// The type of a tool's arguments, or why it is not known.
fn type_of(catalog: &Catalog, tool: &str) -> Result<InputType, String> {
    let schema = catalog.tool(tool).and_then(|tool| tool.input_schema.as_deref());
    let Some(schema) = schema else {
        return Err(format!(
            "the definition of tool `{tool}` is not known, so `context.input` has no type: \
             list the tools of its server first, or read `context.call.getTag(\"ARGUMENT\")`"
        ));
    };
    InputType::from_schema(schema)
        .ok_or_else(|| format!("the input schema of tool `{tool}` describes no object"))
}

/// Validates the policies that read the arguments of a tool.
fn validate_typed<'p>(
    policies: impl Iterator<Item = (usize, &'p Policy)>,
    tool: &str,
    kind: &InputType,
) -> Vec<(usize, Missing)> {
    let names = kind.names();
    let mut wrong = Vec::new();
    let mut rest = Vec::new();
    for (number, policy) in policies {
        let arguments = arguments_of(policy);
        match arguments.iter().find(|name| !names.contains(&name.as_str())) {
            Some(name) => {
                let mut message =
                    format!("the definition of tool `{tool}` has no typed argument `{name}`");
                if let Some(nearest) = nearest(name, &names) {
                    message.push_str(&format!("; did you mean \"{nearest}\"?"));
                }
                wrong.push((number, Missing { message, breaks: true }));
            }
            None => rest.push(policy),
        }
    }
    let found = validate(rest.into_iter(), Some(kind)).into_iter();
    wrong.extend(found.map(|(number, message)| (number, Missing { message, breaks: true })));
    wrong
}
