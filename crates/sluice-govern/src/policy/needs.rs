//! Which parts of a request a policy's conditions look at.
//!
//! Putting facts into Cedar's values costs more than evaluating a policy, so
//! only what some policy looks at is put there. What a policy looks at is read
//! from the tree that Cedar made of it, not from its text.
//!
//! INVARIANT: what is not understood counts as everything.

use cedar_policy::{Policy, PolicyId};
use serde_json::{Map, Value, json};

/// A part of a request, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    RunId,
    RunWorkflow,
    RunVersion,
    RunInitiator,
    RunDepth,
    RunRegistered,
    RunDefinition,
    Step,
    StepId,
    StepKind,
    StepAttempt,
    StepCapabilities,
    InputClasses,
    InputUntrusted,
    InputPrivate,
    InputAge,
    Cost,
    TimeMs,
    TimeHour,
    TimeWeekday,
    Posture,
    Tools,
    PrincipalRole,
    PrincipalTrust,
    PrincipalPhase,
    PrincipalStatus,
    PrincipalModel,
    PrincipalCapabilities,
    ResourceProvider,
    ResourceEnvironment,
    ResourceMinTrust,
    ResourceCapabilities,
    ResourceKind,
}

/// The role is no attribute; whoever uses the principal as a whole may ask for it.
const PATHS: [(&str, Part); 33] = [
    ("context.run.id", Part::RunId),
    ("context.run.workflow", Part::RunWorkflow),
    ("context.run.version", Part::RunVersion),
    ("context.run.initiator", Part::RunInitiator),
    ("context.run.depth", Part::RunDepth),
    ("context.run.registered", Part::RunRegistered),
    ("context.run.definition_hash", Part::RunDefinition),
    ("context.step", Part::Step),
    ("context.step.id", Part::StepId),
    ("context.step.kind", Part::StepKind),
    ("context.step.attempt", Part::StepAttempt),
    ("context.step.capabilities", Part::StepCapabilities),
    ("context.inputs.classes", Part::InputClasses),
    ("context.inputs.untrusted", Part::InputUntrusted),
    ("context.inputs.private", Part::InputPrivate),
    ("context.inputs.age_s", Part::InputAge),
    ("context.cost", Part::Cost),
    ("context.time.ms", Part::TimeMs),
    ("context.time.hour", Part::TimeHour),
    ("context.time.weekday", Part::TimeWeekday),
    ("context.posture", Part::Posture),
    ("context.tools", Part::Tools),
    ("principal.(role)", Part::PrincipalRole),
    ("principal.trust_level", Part::PrincipalTrust),
    ("principal.phase", Part::PrincipalPhase),
    ("principal.status", Part::PrincipalStatus),
    ("principal.model", Part::PrincipalModel),
    ("principal.capabilities", Part::PrincipalCapabilities),
    ("resource.provider", Part::ResourceProvider),
    ("resource.environment", Part::ResourceEnvironment),
    ("resource.min_trust_level", Part::ResourceMinTrust),
    ("resource.capabilities", Part::ResourceCapabilities),
    ("resource.kind", Part::ResourceKind),
];

/// A set of parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needs(u64);

impl Needs {
    /// Everything.
    pub(super) const ALL: Needs = Needs((1 << PATHS.len()) - 1);

    /// What a policy's conditions look at.
    pub(super) fn of(policy: &Policy) -> Needs {
        let mut needs = Needs::default();
        match policy.to_json() {
            Ok(Value::Object(mut tree)) => match tree.remove("conditions") {
                Some(conditions) => needs.look(&conditions),
                None => needs = Needs::ALL,
            },
            _ => needs = Needs::ALL,
        }
        needs
    }

    pub(super) const fn has(self, part: Part) -> bool {
        self.0 & (1 << part as u32) != 0
    }

    /// Whether anything of the principal or the resource is needed.
    pub(super) const fn entities(self) -> bool {
        self.0 >> Part::PrincipalRole as u32 != 0
    }

    #[must_use]
    pub(super) const fn and(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }

    /// Looks at a tree. The depth is bounded: the policy was measured.
    fn look(&mut self, tree: &Value) {
        match tree {
            Value::Array(parts) => parts.iter().for_each(|part| self.look(part)),
            // Whether there is a step is asked often, and needs nothing of it.
            Value::Object(node) if node.contains_key("has") && is_step(node) => {
                self.0 |= 1 << Part::Step as u32;
            }
            Value::Object(node) => match path(node) {
                Some(path) => self.add(&path),
                None => node.values().for_each(|part| self.look(part)),
            },
            _ => {}
        }
    }

    /// Adds what a path leads to: itself, all below it, or the whole above it.
    fn add(&mut self, wanted: &str) {
        let below = |path: &str, above: &str| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut known = false;
        for (path, part) in PATHS {
            if below(path, wanted) || below(wanted, path) {
                self.0 |= 1 << part as u32;
                known = true;
            }
        }
        // A person or a workflow has no attributes; to name one is no need.
        if !known && wanted != "action" {
            *self = Needs::ALL;
        }
    }
}

/// A policy without its scope, for a bin whose policies all have the same: the
/// scope holds already when the bin is looked at.
pub(super) fn without_scope(policy: &Policy, id: PolicyId) -> Option<Policy> {
    let mut tree = policy.to_json().ok()?;
    for part in ["principal", "action", "resource"] {
        tree[part] = json!({"op": "All"});
    }
    Policy::from_json(Some(id), tree).ok()
}

fn is_step(node: &Map<String, Value>) -> bool {
    path(node).as_deref() == Some("context.step")
}

/// The path of a chain of attributes that begins with a variable.
fn path(node: &Map<String, Value>) -> Option<String> {
    if let Some(Value::String(name)) = node.get("Var") {
        return Some(name.clone());
    }
    let access = node.get(".").or_else(|| node.get("has"))?;
    let left = path(access.get("left")?.as_object()?)?;
    Some(format!("{left}.{}", access.get("attr")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(condition: &str) -> Vec<&'static str> {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        let needs = Needs::of(&text.parse().unwrap());
        PATHS.iter().filter(|(_, part)| needs.has(*part)).map(|(path, _)| *path).collect()
    }

    #[test]
    fn a_part_has_the_bit_of_its_place() {
        for (at, (_, part)) in PATHS.iter().enumerate() {
            assert_eq!(*part as usize, at);
        }
        assert!(PATHS.iter().all(|(_, part)| Needs::ALL.has(*part)));
    }

    #[test]
    fn a_policy_needs_what_its_conditions_look_at() {
        assert_eq!(needs("true"), [""; 0]);
        assert_eq!(needs("context has cost && context.cost > 1"), ["context.cost"]);
        assert_eq!(needs("context has \"co\\u{73}t\""), ["context.cost"]);
        assert_eq!(needs("context.time.hour < 6"), ["context.time.hour"]);
        assert_eq!(
            needs("context.time == context.time"),
            ["context.time.ms", "context.time.hour", "context.time.weekday"]
        );
        assert_eq!(
            needs("context has step && context.step.attempt > 1"),
            ["context.step", "context.step.attempt"]
        );
        assert_eq!(needs("context has step && context.step == context.step").len(), 5);
        assert_eq!(needs("context has run").len(), 7);
        assert_eq!(needs("context.tools.contains(\"a\")"), ["context.tools"]);
        assert_eq!(
            needs("principal.trust_level > 3 && resource[\"kind\"] == \"x\""),
            ["principal.trust_level", "resource.kind"]
        );
        assert_eq!(needs("if principal has model then true else false"), ["principal.model"]);
    }

    #[test]
    fn what_is_used_as_a_whole_is_needed_as_a_whole() {
        assert_eq!(needs("[context].contains(context)").len(), 22);
        assert_eq!(needs("principal == resource").len(), 11);
        assert_eq!(needs("principal in Role::\"writer\"").len(), 6);
        assert_eq!(needs("(if true then context else context).cost == 1").len(), 22);
        assert_eq!(needs("principal.colour == 1").len(), PATHS.len());
    }
}
