//! What the gates look at, gathered from the run, the rows and the counters in
//! one reading.

use super::Turn;
use super::govern::Ready;
use super::money::signed;
use crate::journal::event::StepAt;
use crate::layers;
use crate::limits::TOOL_TURNS_RESERVED;
use crate::money::Money;
use crate::plan::step::Work;
use crate::port::adapter::Quote;
use crate::run::label::{Labels, SourceClass};
use crate::run::state::Grant;
use sluice_govern::account::{
    Costing, Estimate, Name, RunCap, Spender, caps_for, input_tokens, worst,
};
use sluice_govern::action::Action;
use sluice_govern::decision::Constraints;
use sluice_govern::facts::{
    Asks, Cap, Facts, Granted, Inputs, Place, RunFacts, StepFacts, Subject, Verb, Worst,
};
use sluice_govern::registry::{Price, Role, TrustedContext};
use sluice_govern::route::{DeployedOn, Features, Layer, Route, Sight, Want, route};
use std::borrow::Cow;

/// What the gates look at, gathered.
pub(super) struct Dossier {
    pub(super) run: String,
    pub(super) name: String,
    pub(super) gateway: String,
    pub(super) role: Option<Role>,
    pub(super) model: Option<String>,
    /// What the model costs now, where its tokens are what is paid for.
    pub(super) price: Option<Price>,
    /// Layers 1 to 5, where there are any but the engine's own.
    pub(super) system_prompt: Option<String>,
    /// What a member may use of the step's tools.
    pub(super) tools: Option<Vec<String>>,
    pub(super) estimate: Estimate,
    pub(super) grant: Option<(String, Constraints)>,
    /// The session of the provider that the dispatch continues.
    pub(super) session: Option<String>,
}

impl Turn<'_> {
    /// Gathers what the gates look at.
    pub(super) fn dossier(
        &self,
        ready: &Ready,
        role: Option<Role>,
        route: Option<&Route>,
        child: bool,
    ) -> Dossier {
        let at = ready.at;
        let (run, name) = (self.run.id.to_string(), self.run.name(at));
        let agent_name = self.run.agent_of(at.step).unwrap_or_default();
        let agent = self.given.authority.agent(agent_name).filter(|_| !child);
        let gateway = route.and_then(|route| route.gateway.clone()).unwrap_or_default();
        let model = self.run.model_of(at.step);
        let model = model.or_else(|| agent.and_then(|agent| agent.model.as_deref()));
        let model = model.or(self.run.started.fallback_model.as_deref()).map(str::to_owned);
        let estimate = self.estimate(ready, model.as_deref(), &gateway, &name);
        let price = self.price(agent_name, &gateway, &name, model.as_deref()).cloned();
        Dossier {
            run,
            name,
            gateway,
            role,
            price,
            model,
            system_prompt: (!ready.prepared.layers.is_empty())
                .then(|| layers::system_prompt(&ready.prepared.layers)),
            tools: self.run.member_of(at.step).map(|_| self.run.tools_of(at.step)),
            estimate,
            grant: self.grant(at),
            session: None,
        }
    }

    pub(super) fn facts<'f>(
        &'f self,
        ready: &'f Ready,
        dossier: &'f Dossier,
        caps: Vec<Cap<'f>>,
        child: bool,
    ) -> Facts<'f> {
        let (run, authority) = (&*self.run, self.given.authority);
        let step = run.step(ready.at);
        let agent_name = run.agent_of(ready.at.step).unwrap_or_default();
        let agent = authority.agent(agent_name).filter(|_| !child);
        let started = &run.started;
        Facts {
            now_ms: self.given.now_ms,
            verb: if child { Verb::StartRun } else { Verb::DispatchStep },
            subject: if child {
                Subject::User(&started.initiator)
            } else {
                Subject::Agent(agent_name, agent)
            },
            role: run.role_of(ready.at.step).zip(dossier.role.as_ref()),
            place: (!child).then(|| Place {
                name: &dossier.gateway,
                gateway: authority.gateway(&dossier.gateway),
                health: authority.health(&dossier.gateway),
                serves: authority.serves(agent_name, &dossier.gateway),
            }),
            object: match &step.work {
                Work::Workflow(work) => Some(&work.name),
                _ => None,
            },
            held: authority.fabric().held,
            running: self.running_beside(ready.at, agent_name),
            in_window: self.in_window(agent_name),
            caps,
            worst: dossier.estimate.worst,
            trust_ceiling: started.trust_ceiling.unwrap_or(u8::MAX),
            inputs: self.inputs(ready.prepared.labels),
            posture: authority.judged_by(started.posture),
            run: RunFacts {
                id: &dossier.run,
                workflow: &started.workflow,
                version: started.version,
                initiator: &started.initiator,
                depth: started.depth,
                registered: started.source.is_registered(),
                definition: &started.definition_hash,
            },
            step: Some(StepFacts {
                id: &dossier.name,
                kind: step.work.kind(),
                attempt: ready.attempt,
                capabilities: &step.capabilities,
            }),
            asks: run.approval_of(ready.at.step).map(|asked| Asks { approvers: &asked.approvers }),
            grant: dossier.grant.as_ref().map(|(digest, constraints)| {
                let digest = digest.as_str();
                Granted { digest, constraints }
            }),
            action: self.action(ready, agent_name, dossier),
        }
    }

    /// What the gates see of the values that an action rests on.
    pub(super) fn inputs(&self, labels: Labels) -> Inputs<'static> {
        let age = |since_ms| self.given.now_ms.saturating_sub(since_ms);
        Inputs {
            classes: labels.classes().map(SourceClass::as_str).collect(),
            untrusted: labels.untrusted,
            private: labels.private,
            age_ms: labels.since_ms.map(age),
        }
    }

    fn in_window(&self, agent: &str) -> u32 {
        let authority = self.given.authority;
        let rate = authority.agent(agent).and_then(|agent| agent.rate);
        rate.map_or(0, |rate| {
            let window_ms = u64::from(rate.window_s) * 1000;
            clamped(self.guards.in_window(authority, Name::rate(agent), window_ms))
        })
    }

    /// Where the step would go; none for a child run, which goes nowhere itself.
    pub(super) fn route(&self, at: StepAt, role: Option<&Role>, child: bool) -> Option<Route> {
        if child {
            return None;
        }
        let run = &*self.run;
        let authority = self.given.authority;
        // Fixed when a person was asked.
        if let Some(gateway) = self.granted_gateway(at) {
            return Some(Route {
                gateway: Some(gateway),
                layer: Layer::Pinned,
                candidates: Vec::new(),
            });
        }
        let name = run.agent_of(at.step).unwrap_or_default();
        let want = Want {
            agent: name,
            row: authority.agent(name),
            pin: run.started.pins.get(name).map(String::as_str),
            capabilities: &run.step(at).capabilities,
            run_gateway: Some(&run.started.gateway),
            environments: role.map_or(&[], |role| &role.allowed_environments),
            trust_ceiling: run.started.trust_ceiling.unwrap_or(u8::MAX),
            features: Features { deployed_on: DeployedOn::Asked },
        };
        let sight = Sight {
            health: &|gateway| authority.health(gateway),
            serves: &|gateway| authority.serves(name, gateway),
            implied: &|gateway| authority.is_implied(gateway),
        };
        Some(route(authority.fabric(), &sight, &want))
    }

    fn granted_gateway(&self, at: StepAt) -> Option<String> {
        let state = self.run.state(at);
        let granted = state.granted.filter(|_| state.grant != Grant::None)?;
        let action = self.run.approvals.get(&granted)?.action.as_ref()?;
        action.action["gateway"].as_str().map(str::to_owned)
    }

    /// The bounds of the step's role: the workflow's and the registry's together.
    pub(super) fn role(&self, at: StepAt) -> Option<Role> {
        let name = self.run.role_of(at.step)?;
        let written = self.run.definition.plan.roles.get(name).map(|role| Role {
            max_spend_cents: role.max_spend,
            allowed_environments: role.allowed_environments.clone(),
            trusted_context: role.trusted_context.as_ref().map(|context| TrustedContext {
                accepted_source_classes: context.accepted_source_classes.clone(),
                max_age_s: context.max_age_s,
            }),
        });
        let written = written.unwrap_or_default();
        Some(match self.given.authority.fabric().roles.get(name) {
            Some(row) => written.with(row),
            None => written,
        })
    }

    fn estimate(&self, ready: &Ready, model: Option<&str>, gateway: &str, name: &str) -> Estimate {
        let authority = self.given.authority;
        let step = self.run.step(ready.at);
        if matches!(step.work, Work::Workflow(_)) {
            return worst(Costing::Free, None, None);
        }
        let agent_name = self.run.agent_of(ready.at.step).unwrap_or_default();
        let fallback = authority.agent(agent_name).and_then(|agent| agent.max_cost_cents);
        let declared = step.max_cost;
        match authority.quote(agent_name, gateway, name) {
            Quote::Free => worst(Costing::Free, None, None),
            Quote::AtMost(money) => {
                let least = declared.map_or(money, |declared| declared.min(money));
                worst(Costing::Unpriced, Some(least), None)
            }
            Quote::Priced => {
                let price = self.price(agent_name, gateway, name, model);
                let prepared = &ready.prepared;
                let texts = [prepared.prompt.as_str(), prepared.stdin.as_deref().unwrap_or("")];
                let texts = texts.into_iter().chain(prepared.layers.iter().map(|one| &*one.text));
                let costing = price.map_or(Costing::Unpriced, |price| Costing::Priced {
                    price,
                    input_tokens: input_tokens(texts),
                    max_output_tokens: step.max_output_tokens,
                });
                if price.is_none() || self.run.tools_of(ready.at.step).is_empty() {
                    return worst(costing, declared, fallback);
                }
                of_turns(costing, declared.or(fallback))
            }
        }
    }

    /// What a model costs, where its tokens are what is paid for.
    fn price(&self, agent: &str, gateway: &str, name: &str, model: Option<&str>) -> Option<&Price> {
        let authority = self.given.authority;
        let prices = &authority.fabric().prices;
        let price = prices.get(model?)?;
        (authority.quote(agent, gateway, name) == Quote::Priced).then_some(price)
    }

    /// Every cap that applies, with what is held in it. A child run keeps to its
    /// own when it begins its steps.
    pub(super) fn caps(&self, at: StepAt, dossier: &Dossier, child: bool) -> Vec<Cap<'_>> {
        if child {
            return Vec::new();
        }
        let authority = self.given.authority;
        let run = &*self.run;
        let agent = run.agent_of(at.step).unwrap_or_default();
        let role = run.role_of(at.step).zip(dossier.role.as_ref());
        let capped = run.family_caps();
        let row = authority.agent(agent);
        let bounded = !capped.is_empty()
            || !authority.fabric().envelopes.is_empty()
            || role.is_some_and(|(_, role)| role.max_spend_cents.is_some())
            || row.is_some_and(|row| row.budget_monthly_cents.is_some());
        if !bounded {
            return Vec::new();
        }
        let above = run.started.parent.iter().map(|parent| parent.run).chain(run.started.root);
        let others = above.chain(capped.iter().map(|(run, _)| *run)).filter(|one| *one != run.id);
        let others: Vec<String> = others.map(|run| run.to_string()).collect();
        let mut family = vec![dossier.run.as_str()];
        for one in &others {
            if !family.contains(&one.as_str()) {
                family.push(one);
            }
        }
        let names: Vec<(String, String)> =
            capped.iter().map(|(run, _)| (run.to_string(), format!("budget of {run}"))).collect();
        let run_caps = names.iter().zip(&capped).map(|((run, name), (_, amount))| RunCap {
            run,
            name,
            amount: *amount,
        });
        let run_caps: Vec<RunCap<'_>> = run_caps.collect();
        let spender = Spender {
            now_ms: self.given.now_ms,
            agent: row.map(|row| (agent, row)),
            role,
            runs: &family,
            run_caps: &run_caps,
            workflow: &run.started.workflow,
            gateway: Some(&dossier.gateway),
        };
        let mut caps = caps_for(authority.fabric(), &spender);
        for cap in &mut caps {
            let tally = self.guards.tally(authority, &cap.account);
            let held = unsigned(self.held_by_others(at, &cap.account, tally.held));
            cap.count(held, unsigned(tally.over));
        }
        caps
    }

    /// What others hold of what is held in an account: what is sent again after a
    /// crash holds its own part already.
    fn held_by_others(&self, at: StepAt, account: &str, held: i64) -> i64 {
        let own = self
            .run
            .in_flight_terms(at)
            .filter(|terms| terms.accounts.iter().any(|one| *one.name == *account));
        held.saturating_sub(own.map_or(0, |terms| signed(terms.reserved)))
    }

    fn running_beside(&self, at: StepAt, agent: &str) -> u32 {
        let running = self.guards.count(self.given.authority, Name::busy(agent));
        let own = self.run.in_flight_terms(at).is_some_and(|terms| terms.slot.is_some());
        clamped(running.saturating_sub(i64::from(own)))
    }

    /// What a person has agreed to, if it still counts.
    fn grant(&self, at: StepAt) -> Option<(String, Constraints)> {
        let state = self.run.state(at);
        if state.grant == Grant::None {
            return None;
        }
        let approval = self.run.approvals.get(&state.granted?)?;
        let constraints =
            approval.tightened.as_ref().map(|tightened| tightened.constraints.clone());
        Some((approval.digest()?.to_owned(), constraints.unwrap_or_default()))
    }

    fn action<'f>(&'f self, ready: &'f Ready, agent: &'f str, dossier: &'f Dossier) -> Action<'f> {
        let step = self.run.step(ready.at);
        let prepared = &ready.prepared;
        Action {
            agent,
            gateway: &dossier.gateway,
            workflow: &self.run.started.workflow,
            step: &dossier.name,
            command: &prepared.prompt,
            stdin: prepared.stdin.as_deref(),
            env: &prepared.env,
            cwd: step.cwd.as_deref(),
            inputs: &prepared.inputs,
            memory: layers::memory(&prepared.layers),
            model: dossier.model.as_deref(),
            session: dossier.session.as_deref(),
            system_prompt: dossier.system_prompt.as_deref(),
            tools: dossier.tools.as_deref().unwrap_or(&step.tools),
            constraints: Constraints::default(),
            cost_ceiling: None,
            policies: Cow::Borrowed(""),
            definition: &self.run.definition.hash,
        }
    }
}

/// What a model with tools costs: it is asked again with what they answer. All of
/// the ceiling is reserved; where none is declared, enough for some turns. The adapter
/// stops when another turn could pass what is reserved.
fn of_turns(costing: Costing<'_>, ceiling: Option<Money>) -> Estimate {
    let once = worst(costing, ceiling, None);
    let Worst::Known(one) = once.worst else { return once };
    let turns = Money::from_micro_cents(one.micro_cents().saturating_mul(TOOL_TURNS_RESERVED));
    // Reading alone may cost more than the ceiling; then the dispatch is not affordable.
    let all = ceiling.map_or(turns, |ceiling| ceiling.max(one));
    Estimate { worst: Worst::Known(all), ..once }
}

fn clamped(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

fn unsigned(count: i64) -> Money {
    Money::from_micro_cents(u64::try_from(count).unwrap_or(0))
}
