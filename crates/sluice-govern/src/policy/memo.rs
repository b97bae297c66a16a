//! Answers that were given before.
//!
//! Most dispatches of a workflow look alike to the policies: the same agent, the
//! same gateway, the same few attributes that some policy looks at. What the
//! policies say depends on nothing else, so it is kept.
//!
//! INVARIANT: a key holds everything that the answer depends on.

use super::facts::{PolicyFacts, Principal, Resource};
use super::needs::{Needs, Part};
use crate::account::Civil;
use crate::key::Key;
use crate::limits::ANSWERS_MAX;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What the policies said: who matched, by number, and who failed.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) permitted: bool,
    pub(super) found: Vec<usize>,
    pub(super) errors: Vec<(usize, String)>,
}

/// Answers by what they depend on. When it is full it starts anew: an order of
/// use would cost more than asking again.
#[derive(Debug, Clone, Default)]
pub(super) struct Memo {
    answers: Arc<Mutex<BTreeMap<Vec<u8>, Arc<Answer>>>>,
}

impl Memo {
    pub(super) fn get(&self, key: &[u8]) -> Option<Arc<Answer>> {
        self.answers.lock().ok()?.get(key).cloned()
    }

    pub(super) fn keep(&self, key: Vec<u8>, answer: &Arc<Answer>) {
        if let Ok(mut answers) = self.answers.lock() {
            if answers.len() >= ANSWERS_MAX {
                answers.clear();
            }
            answers.insert(key, Arc::clone(answer));
        }
    }
}

/// What an answer depends on; none if it will hardly be asked for again.
pub(super) fn key(facts: &PolicyFacts<'_>, needs: Needs) -> Option<Vec<u8>> {
    if needs.has(Part::TimeMs) || needs.has(Part::RunId) {
        return None;
    }
    let mut key = Needed { key: Key::with_capacity(128), needs };
    key.key.number(facts.verb as u64);
    key.principal(&facts.who);
    key.resource(&facts.what);
    let run = &facts.run;
    key.part(Part::RunWorkflow, |key| key.text(&run.workflow));
    key.part(Part::RunVersion, |key| key.maybe(run.version));
    key.part(Part::RunInitiator, |key| key.text(&run.initiator));
    key.part(Part::RunDepth, |key| key.number(u64::from(run.depth)));
    key.part(Part::RunRegistered, |key| key.number(u64::from(run.registered)));
    key.part(Part::RunDefinition, |key| key.text(&run.definition));
    key.key.number(u64::from(facts.step.is_some()));
    if let Some(step) = &facts.step {
        key.part(Part::StepId, |key| key.text(&step.id));
        key.part(Part::StepKind, |key| key.text(&step.kind));
        key.part(Part::StepAttempt, |key| key.number(u64::from(step.attempt)));
        key.part(Part::StepCapabilities, |key| key.texts(&step.capabilities));
    }
    let inputs = &facts.inputs;
    key.part(Part::InputClasses, |key| key.texts(&inputs.classes));
    key.part(Part::InputUntrusted, |key| key.number(u64::from(inputs.untrusted)));
    key.part(Part::InputPrivate, |key| key.number(u64::from(inputs.private)));
    key.part(Part::InputAge, |key| key.maybe(inputs.age_s));
    key.part(Part::Cost, |key| key.maybe(facts.cost));
    if needs.has(Part::TimeHour) || needs.has(Part::TimeWeekday) {
        let civil = Civil::at(facts.at);
        key.key.number(u64::from(civil.hour));
        key.key.number(u64::from(civil.days_since_sunday));
    }
    key.part(Part::Posture, |key| key.text(facts.posture.as_str()));
    key.part(Part::Tools, |key| key.texts(&facts.tools));
    Some(key.key.into_bytes())
}

/// A key of the parts that some policy looks at.
struct Needed {
    key: Key,
    needs: Needs,
}

impl Needed {
    fn part(&mut self, part: Part, write: impl FnOnce(&mut Key)) {
        if self.needs.has(part) {
            write(&mut self.key);
        }
    }

    /// Names and roles always count: the scopes of policies speak of them.
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
                self.part(Part::PrincipalTrust, |key| key.number(u64::from(*trust)));
                self.part(Part::PrincipalPhase, |key| key.text(phase));
                self.part(Part::PrincipalStatus, |key| key.text(status));
                self.part(Part::PrincipalModel, |key| {
                    key.maybe_text(model.as_deref());
                });
                self.part(Part::PrincipalCapabilities, |key| key.texts(capabilities));
            }
        }
    }

    fn resource(&mut self, what: &Resource<'_>) {
        match what {
            Resource::Gateway { name, provider, environment, min_trust, capabilities } => {
                self.key.number(0);
                self.key.text(name);
                self.part(Part::ResourceProvider, |key| key.text(provider));
                self.part(Part::ResourceEnvironment, |key| key.text(environment));
                self.part(Part::ResourceMinTrust, |key| key.number(u64::from(*min_trust)));
                self.part(Part::ResourceCapabilities, |key| key.texts(capabilities));
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
