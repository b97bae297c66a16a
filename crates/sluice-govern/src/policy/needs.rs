//! Which attributes of a request the conditions of a policy use.
//!
//! Converting facts to Cedar values costs more than evaluating a policy, so only
//! attributes that some policy uses are converted. They are found in Cedar's syntax
//! tree of the policy, not in its text.
//!
//! INVARIANT: an expression that is not understood uses everything.

use cedar_policy::{Policy, PolicyId};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// An attribute of a request, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestAttribute {
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
    Call,
    Input,
    FlowOrigins,
    FlowSecrecy,
    FlowControl,
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
    ResourceLabels,
    ResourceServer,
    ResourceReadOnly,
    ResourceSendsTo,
}

/// Roles, labels and servers are not attributes, but an expression that uses the whole
/// principal or resource needs them.
const PATHS: [(&str, RequestAttribute); 42] = [
    ("context.run.id", RequestAttribute::RunId),
    ("context.run.workflow", RequestAttribute::RunWorkflow),
    ("context.run.version", RequestAttribute::RunVersion),
    ("context.run.initiator", RequestAttribute::RunInitiator),
    ("context.run.depth", RequestAttribute::RunDepth),
    ("context.run.registered", RequestAttribute::RunRegistered),
    ("context.run.definition_hash", RequestAttribute::RunDefinition),
    ("context.step", RequestAttribute::Step),
    ("context.step.id", RequestAttribute::StepId),
    ("context.step.kind", RequestAttribute::StepKind),
    ("context.step.attempt", RequestAttribute::StepAttempt),
    ("context.step.capabilities", RequestAttribute::StepCapabilities),
    ("context.inputs.classes", RequestAttribute::InputClasses),
    ("context.inputs.untrusted", RequestAttribute::InputUntrusted),
    ("context.inputs.private", RequestAttribute::InputPrivate),
    ("context.inputs.age_s", RequestAttribute::InputAge),
    ("context.cost", RequestAttribute::Cost),
    ("context.time.ms", RequestAttribute::TimeMs),
    ("context.time.hour", RequestAttribute::TimeHour),
    ("context.time.weekday", RequestAttribute::TimeWeekday),
    ("context.posture", RequestAttribute::Posture),
    ("context.tools", RequestAttribute::Tools),
    ("context.call", RequestAttribute::Call),
    ("context.input", RequestAttribute::Input),
    ("context.flow.origins", RequestAttribute::FlowOrigins),
    ("context.flow.secrecy", RequestAttribute::FlowSecrecy),
    ("context.flow.control", RequestAttribute::FlowControl),
    ("principal.(role)", RequestAttribute::PrincipalRole),
    ("principal.trust_level", RequestAttribute::PrincipalTrust),
    ("principal.phase", RequestAttribute::PrincipalPhase),
    ("principal.status", RequestAttribute::PrincipalStatus),
    ("principal.model", RequestAttribute::PrincipalModel),
    ("principal.capabilities", RequestAttribute::PrincipalCapabilities),
    ("resource.provider", RequestAttribute::ResourceProvider),
    ("resource.environment", RequestAttribute::ResourceEnvironment),
    ("resource.min_trust_level", RequestAttribute::ResourceMinTrust),
    ("resource.capabilities", RequestAttribute::ResourceCapabilities),
    ("resource.kind", RequestAttribute::ResourceKind),
    ("resource.(labels)", RequestAttribute::ResourceLabels),
    ("resource.(server)", RequestAttribute::ResourceServer),
    ("resource.read_only", RequestAttribute::ResourceReadOnly),
    ("resource.sends_to", RequestAttribute::ResourceSendsTo),
];

/// A set of attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needs(u64);

impl Needs {
    pub(super) const ALL: Needs = Needs((1 << PATHS.len()) - 1);

    /// The attributes that the conditions of a policy use.
    pub(super) fn from_policy(policy: &Policy) -> Needs {
        let mut needs = Needs::default();
        match policy.to_json() {
            Ok(Value::Object(mut tree)) => match tree.remove("conditions") {
                Some(conditions) => needs.collect(&conditions),
                None => needs = Needs::ALL,
            },
            _ => needs = Needs::ALL,
        }
        needs
    }

    pub(super) const fn has(self, attribute: RequestAttribute) -> bool {
        self.0 & (1 << attribute as u32) != 0
    }

    /// Whether any attribute of the principal or the resource, or the entity of the
    /// call, is used.
    pub(super) const fn entities(self) -> bool {
        self.0 >> RequestAttribute::PrincipalRole as u32 != 0 || self.has(RequestAttribute::Call)
    }

    /// Whether the labels of the action or of its values are used.
    pub(super) const fn flow(self) -> bool {
        self.has(RequestAttribute::FlowOrigins)
            || self.has(RequestAttribute::FlowSecrecy)
            || self.has(RequestAttribute::FlowControl)
            || self.has(RequestAttribute::Call)
    }

    /// Whether the values of the action are used.
    pub(super) const fn values(self) -> bool {
        self.has(RequestAttribute::Call) || self.has(RequestAttribute::Input)
    }

    #[must_use]
    pub(super) const fn and(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }

    /// Collects attributes from a syntax tree. The depth is bounded, because the policy
    /// was measured.
    fn collect(&mut self, tree: &Value) {
        match tree {
            Value::Array(parts) => parts.iter().for_each(|part| self.collect(part)),
            // Policies often test whether there is a step, which needs none of its
            // attributes.
            Value::Object(node) if node.contains_key("has") && is_step(node) => {
                self.0 |= 1 << RequestAttribute::Step as u32;
            }
            Value::Object(node) => match path(node) {
                Some(path) => self.add(&path),
                None => node.values().for_each(|part| self.collect(part)),
            },
            _ => {}
        }
    }

    /// Adds the attributes of a path: itself, all below it, or the record above it.
    fn add(&mut self, wanted: &str) {
        let below = |path: &str, above: &str| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut known = false;
        for (path, attribute) in PATHS {
            if below(path, wanted) || below(wanted, path) {
                self.0 |= 1 << attribute as u32;
                known = true;
            }
        }
        // Users and workflows have no attributes, so naming one uses none.
        if !known && wanted != "action" {
            *self = Needs::ALL;
        }
    }
}

/// The policy without its scope, for a bin whose policies all have the same scope: the
/// scope already holds when the bin is read.
pub(super) fn without_scope(policy: &Policy, id: PolicyId) -> Option<Policy> {
    let mut tree = policy.to_json().ok()?;
    for part in ["principal", "action", "resource"] {
        tree[part] = json!({"op": "All"});
    }
    Policy::from_json(Some(id), tree).ok()
}

/// The paths of attributes that the conditions of a policy name.
pub(super) fn paths_of(policy: &Policy) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    if let Ok(tree) = policy.to_json()
        && let Some(conditions) = tree.get("conditions")
    {
        collect_paths(conditions, &mut paths);
    }
    paths
}

fn collect_paths(tree: &Value, paths: &mut BTreeSet<String>) {
    match tree {
        Value::Array(parts) => parts.iter().for_each(|part| collect_paths(part, paths)),
        Value::Object(node) => match path(node) {
            Some(path) => {
                paths.insert(path);
            }
            None => node.values().for_each(|part| collect_paths(part, paths)),
        },
        _ => {}
    }
}

fn is_step(node: &Map<String, Value>) -> bool {
    path(node).as_deref() == Some("context.step")
}

/// The path of an attribute chain that begins with a variable.
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
        let needs = Needs::from_policy(&text.parse().unwrap());
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
        assert_eq!(needs("context.flow.origins.contains(\"a\")"), ["context.flow.origins"]);
        assert_eq!(
            needs("context has call && context.call.getTag(\"a\").seen.isEmpty()"),
            ["context.call"]
        );
        assert_eq!(needs("context.call.to.seen.contains(\"prompt\")"), ["context.call"]);
        assert_eq!(needs("context.input.amount > 5"), ["context.input"]);
        assert_eq!(needs("resource.read_only"), ["resource.read_only"]);
        assert_eq!(
            needs("principal.trust_level > 3 && resource[\"kind\"] == \"x\""),
            ["principal.trust_level", "resource.kind"]
        );
        assert_eq!(needs("if principal has model then true else false"), ["principal.model"]);
    }

    #[test]
    fn what_is_used_as_a_whole_is_needed_as_a_whole() {
        assert_eq!(needs("[context].contains(context)").len(), 27);
        assert_eq!(needs("principal == resource").len(), 15);
        assert_eq!(needs("principal in Role::\"writer\"").len(), 6);
        assert_eq!(needs("(if true then context else context).cost == 1").len(), 27);
        assert_eq!(needs("principal.colour == 1").len(), PATHS.len());
    }
}
