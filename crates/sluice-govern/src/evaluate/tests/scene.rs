//! Facts that own their data, so that a test can change one thing.

use crate::action::Action;
use crate::decision::{Constraints, Decision};
use crate::evaluate;
use crate::facts::{
    Asks, Cap, CapGate, Facts, FlowFacts, Granted, Inputs, Place, RunFacts, StepFacts, Subject,
    Verb, Worst,
};
use crate::money::Money;
use crate::policy::{self, Policies};
use crate::registry::{Agent, Gateway, Health, Held, Posture, Role};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// 2026-11-15, a Sunday.
pub(crate) const NOW_MS: u64 = 1_794_700_800_000;

/// All input of a decision. The default scene is allowed.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub verb: Verb,
    /// Name and row of the agent, or a person.
    pub who: Who,
    pub role: Option<Role>,
    pub gateway: Option<(String, Option<Gateway>)>,
    pub health: Health,
    /// Whether the gateway can do the agent's work.
    pub serves: bool,
    pub held: Held,
    pub running: u32,
    pub in_window: u32,
    pub caps: Vec<Cap<'static>>,
    pub worst: Worst,
    pub trust_ceiling: u8,
    pub classes: Vec<&'static str>,
    pub age_ms: Option<u64>,
    pub posture: Posture,
    pub asks: Option<Vec<String>>,
    pub grant: Option<(String, Constraints)>,
    pub object: Option<String>,
    pub command: String,
    pub tools: Vec<String>,
    pub constraints: Constraints,
    pub inputs: Map<String, Value>,
    pub definition: String,
    /// Policies in addition to the default set.
    pub policies: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Who {
    Agent(String, Option<Box<Agent>>),
    User(String),
}

impl Default for Scene {
    fn default() -> Scene {
        Scene {
            verb: Verb::DispatchStep,
            who: Who::Agent("scribe".to_owned(), Some(Box::default())),
            role: None,
            gateway: Some(("local".to_owned(), Some(Gateway::default()))),
            health: Health::Healthy,
            serves: true,
            held: Held::No,
            running: 0,
            in_window: 0,
            caps: Vec::new(),
            worst: Worst::Known(money(25)),
            trust_ceiling: 10,
            classes: Vec::new(),
            age_ms: None,
            posture: Posture::BoundedAutonomous,
            asks: None,
            grant: None,
            object: None,
            command: "write it".to_owned(),
            tools: Vec::new(),
            constraints: Constraints::default(),
            inputs: Map::new(),
            definition: "0".repeat(64),
            policies: String::new(),
        }
    }
}

/// An amount in cents.
pub(crate) fn money(cents: u64) -> Money {
    Money::from_micro_cents(cents * 1_000_000)
}

pub(crate) fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A cap, in cents.
pub(crate) fn cap(whose: CapGate, name: &'static str, amount: u64, held: u64) -> Cap<'static> {
    Cap {
        whose,
        name: name.into(),
        account: format!("envelope/{name}/total").into(),
        amount: money(amount),
        held: money(held),
        over: Money::ZERO,
        accepted: Money::ZERO,
    }
}

impl Scene {
    pub(crate) fn agent(&mut self) -> &mut Agent {
        match &mut self.who {
            Who::Agent(_, Some(agent)) => agent,
            who => panic!("{who:?} has no row"),
        }
    }

    pub(crate) fn gateway(&mut self) -> &mut Gateway {
        self.gateway.as_mut().unwrap().1.as_mut().unwrap()
    }

    pub(crate) fn role(&mut self) -> &mut Role {
        self.role.get_or_insert_default()
    }

    pub(crate) fn set(&self) -> Policies {
        let (name, text) = policy::DEFAULT;
        let files = [(name.to_owned(), text.to_owned()), ("own".to_owned(), self.policies.clone())];
        Policies::load(&files).unwrap()
    }

    pub(crate) fn decide(&self) -> Decision {
        evaluate(&self.facts(), &self.set()).decision
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            now_ms: NOW_MS,
            verb: self.verb,
            subject: match &self.who {
                Who::Agent(name, row) => Subject::Agent(name, row.as_deref()),
                Who::User(name) => Subject::User(name),
            },
            role: self.role.as_ref().map(|role| ("writer", role)),
            place: self.gateway.as_ref().map(|(name, gateway)| Place {
                name,
                gateway: gateway.as_ref(),
                health: self.health,
                serves: self.serves,
            }),
            object: self.object.as_deref(),
            held: self.held,
            running: self.running,
            in_window: self.in_window,
            caps: self.caps.clone(),
            worst: self.worst,
            trust_ceiling: self.trust_ceiling,
            inputs: Inputs {
                classes: self.classes.clone(),
                untrusted: false,
                private: false,
                age_ms: self.age_ms,
            },
            call: None,
            flow: FlowFacts::default(),
            tool: None,
            history: None,
            posture: self.posture,
            run: RunFacts {
                id: "run_1",
                workflow: "report",
                version: Some(1),
                initiator: "ada",
                depth: 0,
                registered: false,
                definition: "",
            },
            step: Some(StepFacts { id: "write", kind: "command", attempt: 1, capabilities: &[] }),
            asks: self.asks.as_ref().map(|approvers| Asks { approvers }),
            grant: self.grant.as_ref().map(|(digest, constraints)| Granted { digest, constraints }),
            action: Action {
                agent: "scribe",
                gateway: "local",
                workflow: "report",
                step: "write",
                command: &self.command,
                stdin: None,
                env: &[],
                cwd: None,
                inputs: &self.inputs,
                memory: None,
                session: None,
                model: None,
                system_prompt: None,
                tools: &self.tools,
                constraints: self.constraints.clone(),
                cost_ceiling: None,
                policies: Cow::Borrowed(""),
                definition: &self.definition,
            },
        }
    }
}
