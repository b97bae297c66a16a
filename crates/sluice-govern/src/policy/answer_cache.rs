//! A cache of policy answers.
//!
//! Most dispatches of a workflow are the same for the policies: the same agent, gateway
//! and few attributes that some policy uses. The answer depends on nothing else, so it
//! is cached.
//!
//! INVARIANT: a key contains everything that the answer depends on.

use super::facts::{PolicyFacts, Principal, Resource};
use super::needs::{Needs, RequestAttribute};
use crate::account::Civil;
use crate::facts::{SendsTo, ToolFacts};
use crate::key_bytes::KeyBytes;
use crate::limits::ANSWERS_MAX;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The result of evaluating the policies by Cedar: numbers of those that matched and
/// that failed. What they say about history is not part of it.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyAnswer {
    pub(super) permitted: bool,
    /// Permits that depend on history.
    pub(super) permits: Vec<usize>,
    /// Forbids, whether or not they depend on history too.
    pub(super) found: Vec<usize>,
    pub(super) errors: Vec<(usize, String)>,
}

/// Answers by key. A full cache starts over: tracking usage would cost more than
/// evaluating again.
#[derive(Debug, Clone, Default)]
pub(super) struct AnswerCache {
    answers: Arc<Mutex<BTreeMap<Vec<u8>, Arc<PolicyAnswer>>>>,
}

impl AnswerCache {
    pub(super) fn get(&self, key: &[u8]) -> Option<Arc<PolicyAnswer>> {
        self.answers.lock().ok()?.get(key).cloned()
    }

    pub(super) fn insert(&self, key: Vec<u8>, answer: &Arc<PolicyAnswer>) {
        if let Ok(mut answers) = self.answers.lock() {
            if answers.len() >= ANSWERS_MAX {
                answers.clear();
            }
            answers.insert(key, Arc::clone(answer));
        }
    }
}

/// The cache key, or `None` if the same request is unlikely to recur.
pub(super) fn key(facts: &PolicyFacts<'_>, needs: Needs) -> Option<Vec<u8>> {
    if needs.has(RequestAttribute::TimeMs) || needs.has(RequestAttribute::RunId) || needs.values() {
        return None;
    }
    let mut key = CacheKey { key: KeyBytes::with_capacity(128), needs };
    key.key.number(facts.verb as u64);
    key.principal(&facts.who);
    key.resource(&facts.what);
    let run = &facts.run;
    key.attribute(RequestAttribute::RunWorkflow, |key| key.text(&run.workflow));
    key.attribute(RequestAttribute::RunVersion, |key| key.maybe(run.version));
    key.attribute(RequestAttribute::RunInitiator, |key| key.text(&run.initiator));
    key.attribute(RequestAttribute::RunDepth, |key| key.number(u64::from(run.depth)));
    key.attribute(RequestAttribute::RunRegistered, |key| key.number(u64::from(run.registered)));
    key.attribute(RequestAttribute::RunDefinition, |key| key.text(&run.definition));
    key.key.number(u64::from(facts.step.is_some()));
    if let Some(step) = &facts.step {
        key.attribute(RequestAttribute::StepId, |key| key.text(&step.id));
        key.attribute(RequestAttribute::StepKind, |key| key.text(&step.kind));
        key.attribute(RequestAttribute::StepAttempt, |key| key.number(u64::from(step.attempt)));
        key.attribute(RequestAttribute::StepCapabilities, |key| key.texts(&step.capabilities));
    }
    let inputs = &facts.inputs;
    key.attribute(RequestAttribute::InputClasses, |key| key.texts(&inputs.classes));
    key.attribute(RequestAttribute::InputUntrusted, |key| key.number(u64::from(inputs.untrusted)));
    key.attribute(RequestAttribute::InputPrivate, |key| key.number(u64::from(inputs.private)));
    key.attribute(RequestAttribute::InputAge, |key| key.maybe(inputs.age_s));
    key.attribute(RequestAttribute::Cost, |key| key.maybe(facts.cost));
    if needs.has(RequestAttribute::TimeHour) || needs.has(RequestAttribute::TimeWeekday) {
        let civil = Civil::at(facts.at);
        key.key.number(u64::from(civil.hour));
        key.key.number(u64::from(civil.days_since_sunday));
    }
    key.attribute(RequestAttribute::Posture, |key| key.text(facts.posture.as_str()));
    key.attribute(RequestAttribute::Tools, |key| key.texts(&facts.tools));
    let flow = &facts.flow;
    key.attribute(RequestAttribute::FlowOrigins, |key| key.names(&flow.origins));
    key.attribute(RequestAttribute::FlowSecrecy, |key| key.names(&flow.secrecy));
    key.attribute(RequestAttribute::FlowControl, |key| key.number(u64::from(flow.control)));
    if let Some(tool) = &facts.tool {
        key.tool(tool);
    }
    Some(key.key.into_bytes())
}

/// A key of the attributes that some policy uses.
struct CacheKey {
    key: KeyBytes,
    needs: Needs,
}

impl CacheKey {
    fn attribute(&mut self, attribute: RequestAttribute, write: impl FnOnce(&mut KeyBytes)) {
        if self.needs.has(attribute) {
            write(&mut self.key);
        }
    }

    /// Names and roles are always included, because the scopes of policies use them.
    fn principal(&mut self, who: &Principal<'_>) {
        match who {
            Principal::User { name } => {
                self.key.number(0);
                self.key.text(name);
            }
            Principal::Agent { name, role, trust, phase, status, model, capabilities } => {
                self.key.number(1);
                self.key.text(name);
                self.key.maybe_text(role.as_deref());
                self.attribute(RequestAttribute::PrincipalTrust, |key| {
                    key.number(u64::from(*trust));
                });
                self.attribute(RequestAttribute::PrincipalPhase, |key| key.text(phase));
                self.attribute(RequestAttribute::PrincipalStatus, |key| key.text(status));
                self.attribute(RequestAttribute::PrincipalModel, |key| {
                    key.maybe_text(model.as_deref());
                });
                self.attribute(RequestAttribute::PrincipalCapabilities, |key| {
                    key.texts(capabilities);
                });
            }
        }
    }

    /// The scopes of policies use the labels and the server.
    fn tool(&mut self, tool: &ToolFacts) {
        self.key.text(&tool.server);
        self.key.texts(&tool.labels);
        self.attribute(RequestAttribute::ResourceReadOnly, |key| {
            key.number(u64::from(tool.read_only));
        });
        self.attribute(RequestAttribute::ResourceSendsTo, |key| {
            key.maybe_text(tool.sends_to.map(SendsTo::as_str));
        });
    }

    fn resource(&mut self, what: &Resource<'_>) {
        match what {
            Resource::Gateway {
                name,
                provider,
                environment,
                min_trust,
                capabilities,
                sends_to,
            } => {
                self.key.number(0);
                self.key.text(name);
                self.attribute(RequestAttribute::ResourceProvider, |key| key.text(provider));
                self.attribute(RequestAttribute::ResourceEnvironment, |key| key.text(environment));
                self.attribute(RequestAttribute::ResourceMinTrust, |key| {
                    key.number(u64::from(*min_trust));
                });
                self.attribute(RequestAttribute::ResourceCapabilities, |key| {
                    key.texts(capabilities);
                });
                self.attribute(RequestAttribute::ResourceSendsTo, |key| {
                    key.maybe_text(sends_to.map(SendsTo::as_str));
                });
            }
            Resource::Workflow(name) => {
                self.key.number(1);
                self.key.text(name);
            }
            Resource::Tool(name) => {
                self.key.number(2);
                self.key.text(name);
            }
            Resource::Row(name) => {
                self.key.number(3);
                self.key.text(name);
            }
        }
    }
}
