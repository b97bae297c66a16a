//! A parsed policy: its effect and its scope.

use super::history::Clause;
use super::keyword::{self, Category, Consequence, Enforcement};
use super::scan::Piece;
use crate::canonical;
use crate::choice::Choice;
use crate::facts::Verb;
use crate::limits::{POLICY_NAME_CHARS_MAX, QUORUM_MAX};
use cedar_policy::{ActionConstraint, Effect, EntityUid, Policy};
use cedar_policy::{PrincipalConstraint, ResourceConstraint};
use std::sync::Arc;

/// A policy.
#[derive(Debug, Clone)]
pub struct Rule {
    /// `file/id`, or `file#n` without an id.
    pub name: String,
    /// File of the policy.
    pub file: String,
    /// The line it begins on.
    pub line: usize,
    /// Whether it is a permit; a forbid has the effect `consequence`.
    pub permits: bool,
    /// Effect of a forbid.
    pub consequence: Consequence,
    /// How strictly a forbid is enforced.
    pub enforcement: Enforcement,
    /// Subject of the policy, if annotated.
    pub category: Option<Category>,
    /// Users or groups that may approve; empty means anyone with the permission.
    pub approvers: Vec<String>,
    /// How many people must approve.
    pub quorum: u32,
    /// Whether the initiator of the run may not approve.
    pub not_initiator: bool,
    /// Reason for the policy, for people.
    pub description: Option<String>,
    /// Whether `sluice validate --policies` reports a possible match as an error, not as a
    /// warning: `@static("error")`.
    pub static_error: bool,
    /// SHA-256 of its name and text.
    pub digest: String,
    /// Its conditions about what happened before.
    pub(super) history: Vec<Clause>,
    /// What these conditions name: the field of an event, and the name.
    pub(super) history_names: Vec<(Arc<str>, Arc<str>)>,
    /// The requests that it can match.
    pub(super) scope: Scope,
    /// Why a stored policy cannot say any more which actions it means.
    pub(super) broken: Option<String>,
    /// Whether it has no conditions, so that Cedar need not evaluate it.
    pub(super) unconditional: bool,
}

/// The requests that a policy can match.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub verbs: Vec<Verb>,
    pub who: Who,
    pub what: What,
}

/// Principals that a scope admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Who {
    AnyPrincipal,
    Agents,
    Users,
    Agent(String),
    Role(String),
    User(String),
    Nothing,
}

/// Resources that a scope admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Anything,
    Kind(String),
    One(String, String),
    /// The tools with a label.
    Label(String),
    /// The tools of a server.
    Server(String),
    Nothing,
}

const ANNOTATIONS: [&str; 9] = [
    "id",
    "action",
    "enforcement",
    "category",
    "approvers",
    "quorum",
    "not_initiator",
    "description",
    "static",
];
/// Values of `@static`.
const STATIC: [&str; 2] = ["warning", "error"];
/// Annotations that configure the approval.
const AGREEING: [&str; 3] = ["approvers", "quorum", "not_initiator"];

impl Rule {
    /// Parses the annotations and the scope of a policy. Returns all errors.
    pub(super) fn read(
        file: &str,
        number: usize,
        piece: &Piece<'_>,
        policy: &Policy,
    ) -> Result<Rule, Vec<String>> {
        let mut faults = Vec::new();
        for (key, _) in policy.annotations() {
            if !ANNOTATIONS.contains(&key) {
                faults.push(format!("annotation {}", keyword::unknown(key, &ANNOTATIONS)));
            }
        }
        let permits = policy.effect() == Effect::Permit;
        for key in ["action", "enforcement", "static"].into_iter().chain(AGREEING) {
            if permits && policy.annotation(key).is_some() {
                faults.push(format!("@{key} has no effect on a permit: add a forbid"));
            }
        }
        let consequence = read(policy, "action", Consequence::Block, &mut faults);
        let enforcement = read(policy, "enforcement", Enforcement::Hard, &mut faults);
        let category = policy.annotation("category").map(|_| ());
        let category =
            category.map(|()| read(policy, "category", Category::Guardrail, &mut faults));
        let approvers = approvers(policy, &mut faults);
        for key in AGREEING {
            if policy.annotation(key).is_some() && consequence != Consequence::RequireApproval {
                faults.push(format!("@{key} is for @action(\"require_approval\")"));
            }
        }
        let quorum = quorum(policy, &mut faults);
        let not_initiator = flag(policy, "not_initiator", &mut faults);
        let static_error = static_error(policy, &mut faults);
        let name = name(policy, (file, number), &mut faults);
        let scope = Scope {
            verbs: verbs(&policy.action_constraint()),
            who: who(&policy.principal_constraint()),
            what: what(&policy.resource_constraint()),
        };
        if scope.verbs.is_empty() || scope.who == Who::Nothing || scope.what == What::Nothing {
            faults.push("the policy can never match".to_owned());
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Rule {
            file: file.to_owned(),
            line: piece.line,
            permits,
            consequence,
            enforcement,
            category,
            approvers,
            quorum,
            not_initiator,
            static_error,
            description: policy.annotation("description").map(str::to_owned),
            digest: canonical::sha256_hex(&(&name, piece.text), 256),
            broken: None,
            history: Vec::new(),
            history_names: Vec::new(),
            unconditional: !policy.has_non_scope_constraint(),
            name,
            scope,
        })
    }

    /// Whether it turns a budget block into an approval request.
    pub(crate) fn requests_budget_approval(&self) -> bool {
        self.requires_approval() && self.category == Some(Category::Budget)
    }

    /// Whether it requires an approval by itself.
    pub fn holds(&self) -> bool {
        self.requires_approval() && self.category != Some(Category::Budget)
    }

    /// Whether it blocks a dispatch.
    pub fn blocks(&self) -> bool {
        !self.permits
            && self.consequence == Consequence::Block
            && self.enforcement == Enforcement::Hard
    }

    /// Whether it only warns.
    pub(crate) fn warns(&self) -> bool {
        let soft = self.enforcement == Enforcement::Soft;
        // A budget policy requests an approval only if a budget blocks.
        let quiet = self.consequence == Consequence::Log
            || (self.consequence == Consequence::RequireApproval
                && self.category == Some(Category::Budget));
        let loud = self.consequence == Consequence::Warn;
        !self.permits && !quiet && self.enforcement != Enforcement::Audit && (soft || loud)
    }

    pub(super) fn requires_approval(&self) -> bool {
        !self.permits
            && self.consequence == Consequence::RequireApproval
            && self.enforcement == Enforcement::Hard
    }
}

/// `file/id`, or `file#n` without an id.
fn name(policy: &Policy, (file, number): (&str, usize), faults: &mut Vec<String>) -> String {
    match policy.annotation("id") {
        Some(id) if good_name(id) => format!("{file}/{id}"),
        Some(_) => {
            faults.push(format!("@id needs 1 to {POLICY_NAME_CHARS_MAX} visible characters"));
            String::new()
        }
        None => format!("{file}#{number}"),
    }
}

fn read<W: Choice>(policy: &Policy, key: &str, absent: W, faults: &mut Vec<String>) -> W {
    match policy.annotation(key).map(keyword::read) {
        None => absent,
        Some(Ok(meaning)) => meaning,
        Some(Err(why)) => {
            faults.push(format!("@{key}: {why}"));
            absent
        }
    }
}

fn approvers(policy: &Policy, faults: &mut Vec<String>) -> Vec<String> {
    let Some(list) = policy.annotation("approvers") else { return Vec::new() };
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    if !names.iter().all(|name| good_name(name)) {
        faults.push("@approvers needs users or groups with commas between them".to_owned());
    }
    names
}

fn quorum(policy: &Policy, faults: &mut Vec<String>) -> u32 {
    let Some(text) = policy.annotation("quorum") else { return 1 };
    match text.parse() {
        Ok(people) if (1..=QUORUM_MAX).contains(&people) => people,
        _ => {
            faults.push(format!("@quorum needs a number from 1 to {QUORUM_MAX}: @quorum(\"2\")"));
            1
        }
    }
}

/// Whether a possible match in a document is an error before anything runs.
fn static_error(policy: &Policy, faults: &mut Vec<String>) -> bool {
    let Some(word) = policy.annotation("static") else { return false };
    if !STATIC.contains(&word) {
        faults.push(format!("@static: {}", keyword::unknown(word, &STATIC)));
    }
    word == STATIC[1]
}

/// An annotation without a value: `@not_initiator`.
fn flag(policy: &Policy, key: &str, faults: &mut Vec<String>) -> bool {
    match policy.annotation(key) {
        None => false,
        Some("" | "true") => true,
        Some(_) => {
            faults.push(format!("@{key} has no value; leave it out to allow it"));
            true
        }
    }
}

fn good_name(name: &str) -> bool {
    let chars = name.chars().count();
    (1..=POLICY_NAME_CHARS_MAX).contains(&chars) && !name.chars().any(char::is_control)
}

fn verbs(constraint: &ActionConstraint) -> Vec<Verb> {
    let named = |uid: &EntityUid| Verb::parse(uid.id().unescaped());
    match constraint {
        ActionConstraint::Any => Verb::ALL.to_vec(),
        ActionConstraint::Eq(uid) => named(uid).into_iter().collect(),
        ActionConstraint::In(uids) => uids.iter().filter_map(named).collect(),
    }
}

fn who(constraint: &PrincipalConstraint) -> Who {
    let uid = |uid: &EntityUid| {
        let id = uid.id().unescaped().to_owned();
        match uid.type_name().to_string().as_str() {
            "Agent" => Who::Agent(id),
            "User" => Who::User(id),
            "Role" => Who::Role(id),
            _ => Who::Nothing,
        }
    };
    match constraint {
        PrincipalConstraint::Any => Who::AnyPrincipal,
        PrincipalConstraint::Eq(one) => match uid(one) {
            // A principal is in a role, never equal to one.
            Who::Role(_) => Who::Nothing,
            who => who,
        },
        PrincipalConstraint::In(one) => uid(one),
        PrincipalConstraint::Is(kind) => match kind.to_string().as_str() {
            "Agent" => Who::Agents,
            "User" => Who::Users,
            _ => Who::Nothing,
        },
        PrincipalConstraint::IsIn(kind, one) => match (kind.to_string().as_str(), uid(one)) {
            ("Agent", who @ (Who::Agent(_) | Who::Role(_))) | ("User", who @ Who::User(_)) => who,
            _ => Who::Nothing,
        },
    }
}

fn what(constraint: &ResourceConstraint) -> What {
    let one =
        |uid: &EntityUid| What::One(uid.type_name().to_string(), uid.id().unescaped().to_owned());
    // Only tools have a hierarchy; for all others `in` means equal.
    let within = |uid: &EntityUid| match one(uid) {
        What::One(kind, id) if kind == "Label" => What::Label(id),
        What::One(kind, id) if kind == "ToolServer" => What::Server(id),
        one => one,
    };
    match constraint {
        ResourceConstraint::Any => What::Anything,
        ResourceConstraint::Is(kind) => What::Kind(kind.to_string()),
        ResourceConstraint::Eq(uid) => match within(uid) {
            // A tool has a label and a server, and is never equal to one.
            What::Label(_) | What::Server(_) => What::Nothing,
            what => what,
        },
        ResourceConstraint::In(uid) => within(uid),
        ResourceConstraint::IsIn(kind, uid) => match within(uid) {
            what @ (What::Label(_) | What::Server(_)) if kind.to_string() == "Tool" => what,
            What::One(other, id) if other == kind.to_string() => What::One(other, id),
            _ => What::Nothing,
        },
    }
}
