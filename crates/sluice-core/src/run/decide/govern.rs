//! The one way to a dispatch: the gates are asked, the answer is recorded, then
//! it is followed.
//!
//! INVARIANT: every dispatch, the first and every later one, is made here, after
//! a recorded allow whose digest is that of what is sent. An earlier allow is
//! never used again.

use super::Turn;
use super::money::signed;
use crate::journal::event::{
    Account, Dispatch, NodeEvent, Path, Prepared, Record, Skip, SkipCause, StepAt, Terms,
};
use crate::money::Money;
use crate::plan::step::Work;
use crate::port::adapter::{Quote, Usage};
#[cfg(feature = "sabotage")]
use crate::port::authority::Unasked;
use crate::run::id::RunId;
use crate::run::state::Grant;
use crate::run::status::StepStatus;
use serde_json::{Value, json};
use sluice_govern::account::{
    self, Costing, Estimate, RunCap, Spender, caps_for, input_tokens, worst,
};
use sluice_govern::action::Action;
use sluice_govern::decision::{Constraints, Decision, Disposition};
use sluice_govern::evaluate;
use sluice_govern::facts::{
    Asks, Cap, Facts, Granted, Inputs, Place, RunFacts, StepFacts, Subject, Verb, Worst,
};
use sluice_govern::registry::{Phase, Posture, Role, TrustedContext};
use sluice_govern::route::{DeployedOn, Features, Layer, Route, Want, route};
use std::fmt::Write as _;
use std::sync::Arc;

/// What the gates said of a dispatch, and what it rests on.
struct Judged {
    decision: Decision,
    gateway: String,
    /// What is written down of it.
    record: Record,
    /// Account, cap, and overruns that somebody has accepted.
    caps: Vec<(String, Money, Money)>,
    worst: Worst,
    max_output_tokens: Option<u64>,
    model: Option<String>,
}

/// What the gates look at, gathered.
struct Dossier {
    run: String,
    name: String,
    gateway: String,
    role: Option<Role>,
    model: Option<String>,
    estimate: Estimate,
    caps: Vec<Cap<'static>>,
    /// Overruns of each cap that somebody has accepted.
    accepted: Vec<Money>,
    grant: Option<(String, Constraints)>,
}

/// A step that is about to be sent.
pub(super) struct Ready {
    pub(super) at: StepAt,
    pub(super) attempt: u32,
    pub(super) prepared: Arc<Prepared>,
    /// Whether the journal has what was prepared.
    pub(super) known: bool,
}

impl Turn<'_> {
    /// Asks the gates about a step and does what they say.
    pub(super) fn govern(&mut self, ready: Ready) {
        #[cfg(feature = "sabotage")]
        if self.given.authority.unasked() == Some(&Unasked::Silent) {
            return self.send_unasked(ready);
        }
        let judged = self.judge(&ready);
        let at = ready.at;
        self.node(at, NodeEvent::GovernanceDecided(judged.record.clone()));
        match judged.decision.disposition {
            would if self.run.started.posture == Posture::Advisory => self.looked_at(at, would),
            Disposition::Block => self.refused(at, &judged.gateway, &judged.decision),
            Disposition::Hold => self.hold(&ready, &judged.decision),
            Disposition::Allow => self.send(ready, judged),
        }
    }

    /// The run only looks: what the gates said is recorded, whatever it was, and
    /// nothing comes of it.
    fn looked_at(&mut self, at: StepAt, would: Disposition) {
        let reason = match would {
            Disposition::Allow => "the run only looks: this would be sent",
            Disposition::Block => "the run only looks: a gate would stop this",
            Disposition::Hold => "the run only looks: a person would be asked about this",
        };
        self.node(at, NodeEvent::Skipped(Skip::new(SkipCause::Advisory, reason)));
    }

    fn judge(&self, ready: &Ready) -> Judged {
        let child = matches!(self.run.step(ready.at).work, Work::Workflow(_));
        let route = self.route(ready.at, child);
        let mut dossier = self.dossier(ready, route.as_ref(), child);
        let caps = std::mem::take(&mut dossier.caps);
        let facts = Facts { caps, ..self.facts(ready, &dossier, child) };
        let authority = self.given.authority;
        #[cfg(feature = "sabotage")]
        if let Some(Unasked::Noted(decision, record)) = authority.unasked() {
            let (decision, record) = ((**decision).clone(), record.clone());
            let caps = accounts(facts.caps);
            return judged(decision, record, caps, dossier);
        }
        let decision = evaluate(&facts, authority.policies());
        let record =
            record(&decision, route.as_ref(), dossier.estimate.worst, authority.fabric().epoch);
        let caps = accounts(facts.caps);
        judged(decision, record, caps, dossier)
    }

    /// Gathers what the gates look at.
    fn dossier(&self, ready: &Ready, route: Option<&Route>, child: bool) -> Dossier {
        let at = ready.at;
        let step = self.run.step(at);
        let name = self.run.name(at);
        let agent_name = self.run.agent_of(at.step).unwrap_or_default();
        let agent = self.given.authority.agent(agent_name).filter(|_| !child);
        let gateway = route.and_then(|route| route.gateway.clone()).unwrap_or_default();
        let role = self.role(at);
        let model = step.model.clone().or_else(|| agent.and_then(|agent| agent.model.clone()));
        let estimate = self.estimate(ready, model.as_deref(), &gateway, &name);
        let (caps, accepted) = if child {
            (Vec::new(), Vec::new())
        } else {
            let role = step.role.as_deref().zip(role.as_ref());
            self.caps(at, role, agent_name, &gateway).into_iter().unzip()
        };
        Dossier {
            run: self.run.id.to_string(),
            name,
            gateway,
            role,
            model,
            estimate,
            caps,
            accepted,
            grant: self.grant(at),
        }
    }

    fn facts<'f>(&'f self, ready: &'f Ready, dossier: &'f Dossier, child: bool) -> Facts<'f> {
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
            role: step.role.as_deref().zip(dossier.role.as_ref()),
            place: (!child).then(|| Place {
                name: &dossier.gateway,
                gateway: authority.gateway(&dossier.gateway),
                health: authority.health(&dossier.gateway),
            }),
            object: match &step.work {
                Work::Workflow(work) => Some(&work.name),
                _ => None,
            },
            held: authority.fabric().held,
            running: self.running_beside(ready.at, agent_name),
            in_window: self.in_window(agent_name),
            // Moved in by the caller: they are large.
            caps: Vec::new(),
            worst: dossier.estimate.worst,
            trust_ceiling: started.trust_ceiling.unwrap_or(u8::MAX),
            inputs: inputs(&ready.prepared, self.given.now_ms),
            posture: started.posture,
            run: RunFacts {
                id: &dossier.run,
                workflow: &started.workflow,
                version: started.version,
                initiator: &started.initiator,
                depth: started.depth,
            },
            step: Some(StepFacts {
                id: &dossier.name,
                kind: step.work.kind(),
                attempt: ready.attempt,
                capabilities: &step.capabilities,
            }),
            asks: step.approval.as_deref().map(|asked| Asks { approvers: &asked.approvers }),
            grant: dossier.grant.as_ref().map(|(digest, constraints)| {
                let digest = digest.as_str();
                Granted { digest, constraints }
            }),
            action: self.action(ready, agent_name, dossier),
        }
    }

    fn in_window(&self, agent: &str) -> u32 {
        let authority = self.given.authority;
        let rate = authority.agent(agent).and_then(|agent| agent.rate);
        rate.map_or(0, |rate| {
            let window_ms = u64::from(rate.window_s) * 1000;
            clamped(self.guards.in_window(authority, &account::rate(agent), window_ms))
        })
    }

    /// Where the step would go; none for a child run, which goes nowhere itself.
    fn route(&self, at: StepAt, child: bool) -> Option<Route> {
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
            features: Features { deployed_on: DeployedOn::Asked },
        };
        Some(route(authority.fabric(), &|gateway| authority.health(gateway), &want))
    }

    fn granted_gateway(&self, at: StepAt) -> Option<String> {
        let state = self.run.state(at);
        let granted = state.granted.filter(|_| state.grant != Grant::None)?;
        let action = self.run.approvals.get(&granted)?.action.as_ref()?;
        action.action["gateway"].as_str().map(str::to_owned)
    }

    /// The bounds of the step's role: the workflow's and the registry's together.
    fn role(&self, at: StepAt) -> Option<Role> {
        let name = self.run.step(at).role.as_ref()?;
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
                let price = model.and_then(|model| authority.fabric().prices.get(model));
                let prepared = &ready.prepared;
                let texts = [prepared.prompt.as_str(), prepared.stdin.as_deref().unwrap_or("")];
                let costing = price.map_or(Costing::Unpriced, |price| Costing::Priced {
                    price,
                    input_tokens: input_tokens(texts),
                    max_output_tokens: step.max_output_tokens,
                });
                worst(costing, declared, fallback)
            }
        }
    }

    /// Every cap that applies, with what is held in it and what overruns of it
    /// somebody has accepted.
    fn caps(
        &self,
        at: StepAt,
        role: Option<(&str, &Role)>,
        agent: &str,
        gateway: &str,
    ) -> Vec<(Cap<'static>, Money)> {
        let authority = self.given.authority;
        let run = &*self.run;
        let capped = run.family_caps();
        let row = authority.agent(agent);
        let bounded = !capped.is_empty()
            || !authority.fabric().envelopes.is_empty()
            || role.is_some_and(|(_, role)| role.max_spend_cents.is_some())
            || row.is_some_and(|row| row.budget_monthly_cents.is_some());
        if !bounded {
            return Vec::new();
        }
        let above = run.started.parent.iter().map(|(run, _)| *run).chain(run.started.root);
        let mut family = vec![run.id.to_string()];
        for one in above.chain(capped.iter().map(|(run, _)| *run)).map(|run| run.to_string()) {
            if !family.contains(&one) {
                family.push(one);
            }
        }
        let family: Vec<&str> = family.iter().map(String::as_str).collect();
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
            gateway: Some(gateway),
        };
        let caps = caps_for(authority.fabric(), &spender).into_iter().map(|cap| {
            let held = unsigned(self.held_by_others(at, &cap.account));
            let over = self.guards.count(authority, &account::over(&cap.account));
            let accepted = cap.accepted;
            let cap = cap.counted(held, unsigned(over));
            (Cap { name: cap.name.into_owned().into(), ..cap }, accepted)
        });
        caps.collect()
    }

    /// What others hold in an account: what is sent again after a crash holds
    /// its own part already.
    fn held_by_others(&self, at: StepAt, account: &str) -> i64 {
        let held = self.guards.count(self.given.authority, &account::held(account));
        let own = self
            .in_flight_terms(at)
            .filter(|terms| terms.accounts.iter().any(|one| one.name == account));
        held.saturating_sub(own.map_or(0, |terms| signed(terms.reserved)))
    }

    fn running_beside(&self, at: StepAt, agent: &str) -> u32 {
        let running = self.guards.count(self.given.authority, &account::busy(agent));
        let own = self.in_flight_terms(at).is_some_and(|terms| terms.slot.is_some());
        clamped(running.saturating_sub(i64::from(own)))
    }

    fn in_flight_terms(&self, at: StepAt) -> Option<&Arc<Terms>> {
        self.run.index.in_flight.get(&at)?;
        self.run.state(at).terms.as_ref()
    }

    /// What a person has agreed to, if it still counts.
    fn grant(&self, at: StepAt) -> Option<(String, Constraints)> {
        let state = self.run.state(at);
        if state.grant == Grant::None {
            return None;
        }
        let approval = self.run.approvals.get(&state.granted?)?;
        let constraints = approval.tightened.as_ref().map(|(constraints, _)| constraints.clone());
        Some((approval.digest()?.to_owned(), constraints.unwrap_or_default()))
    }

    fn action(&self, ready: &Ready, agent: &str, dossier: &Dossier) -> Action {
        let step = self.run.step(ready.at);
        let prepared = &ready.prepared;
        Action {
            agent: agent.to_owned(),
            gateway: dossier.gateway.clone(),
            workflow: self.run.started.workflow.clone(),
            step: dossier.name.clone(),
            command: prepared.prompt.clone(),
            stdin: prepared.stdin.clone(),
            env: prepared.env.clone(),
            cwd: step.cwd.clone(),
            inputs: Value::Object(prepared.inputs.clone()),
            model: dossier.model.clone(),
            tools: step.tools.clone(),
            constraints: Constraints::default(),
            cost_ceiling: None,
            policies: String::new(),
            definition: self.run.definition.hash.clone(),
        }
    }

    /// Marks a step as sent, with everything that is taken for it. What `due`
    /// then shows is sent.
    fn send(&mut self, ready: Ready, judged: Judged) {
        let at = ready.at;
        let step = self.run.step(at);
        let child = matches!(step.work, Work::Workflow(_));
        let path = if child {
            Path::Child(RunId::new(self.given.now_ms, &mut *self.given.entropy))
        } else {
            Path::Edge
        };
        let agent = self.run.agent_of(at.step).map(str::to_owned).filter(|_| !child);
        // Sent again after a crash, it takes what it now needs for what it had.
        let had = self.in_flight_terms(at).cloned();
        let fresh = had.is_none();
        if let Some(had) = had {
            self.give_back(&had);
        }
        let terms = Arc::new(self.take(agent.as_deref(), &judged));
        let run = &*self.run;
        let dispatch = Dispatch {
            attempt: ready.attempt,
            dispatch_no: run.state(at).dispatch_no + 1,
            wave: run.definition.plan.graph.layer_of(at.step as usize),
            agent,
            gateway: if child { run.started.gateway.clone() } else { judged.gateway },
            path,
            deadline_ms: Some(self.given.now_ms.saturating_add(run.step(at).timeout_ms)),
            prepared: (!ready.known).then_some(ready.prepared),
            digest: Some(judged.decision.action_digest),
            terms,
        };
        // What is sent again may have begun before.
        if fresh {
            self.sent.insert((at, dispatch.dispatch_no));
        }
        self.guards.dispatched();
        self.node(at, NodeEvent::Started(Box::new(dispatch)));
    }

    #[cfg(feature = "sabotage")]
    fn send_unasked(&mut self, ready: Ready) {
        let at = ready.at;
        let run = &*self.run;
        let dispatch = Dispatch {
            attempt: ready.attempt,
            dispatch_no: run.state(at).dispatch_no + 1,
            wave: run.definition.plan.graph.layer_of(at.step as usize),
            agent: run.agent_of(at.step).map(str::to_owned),
            gateway: run.started.gateway.clone(),
            path: Path::Edge,
            deadline_ms: Some(self.given.now_ms.saturating_add(run.step(at).timeout_ms)),
            prepared: (!ready.known).then_some(ready.prepared),
            digest: None,
            terms: Arc::default(),
        };
        self.node(at, NodeEvent::Started(Box::new(dispatch)));
    }

    /// Takes a slot, a place in the rate's window, and the money.
    fn take(&mut self, agent: Option<&str>, judged: &Judged) -> Terms {
        let authority = self.given.authority;
        let reserved = match judged.worst {
            Worst::Known(money) => money,
            Worst::Unknown => Money::ZERO,
        };
        let row = agent.and_then(|name| authority.agent(name));
        let observes = row.is_some_and(|row| row.phase_at(self.given.now_ms) == Phase::Poc);
        for (account, amount, accepted) in &judged.caps {
            let max = (!observes).then(|| signed(*amount));
            self.guards.take(account::held(account), signed(reserved), max);
            // An overrun that this process has not heard of closes the cap too.
            let max = (!observes).then(|| signed(*accepted));
            self.guards.take(account::over(account), 0, max);
        }
        self.count_dispatch(agent);
        let registered = agent.filter(|name| authority.fabric().agents.contains_key(*name));
        if let (Some(name), Some(row)) = (registered, row) {
            let max = row.max_concurrent_steps.map(i64::from);
            self.guards.take(account::busy(name), 1, max);
        }
        let accounts = judged
            .caps
            .iter()
            .map(|(account, amount, _)| Account { name: account.clone(), cap: *amount });
        Terms {
            slot: registered.map(str::to_owned),
            reserved,
            accounts: accounts.collect(),
            constraints: judged.decision.constraints.clone(),
            model: judged.model.clone(),
            max_output_tokens: judged.max_output_tokens,
        }
    }

    fn give_back(&mut self, terms: &Terms) {
        for one in &terms.accounts {
            self.guards.add(account::held(&one.name), -signed(terms.reserved));
        }
        if let Some(agent) = &terms.slot {
            self.guards.add(account::busy(agent), -1);
        }
    }

    fn count_dispatch(&mut self, agent: Option<&str>) {
        let Some(name) = agent else { return };
        let rate = self.given.authority.agent(name).and_then(|row| row.rate);
        if let Some(rate) = rate {
            let window_ms = u64::from(rate.window_s) * 1000;
            let max = Some(i64::from(rate.limit));
            self.guards.take_in(account::rate(name), 1, max, Some(window_ms));
        }
    }

    /// What is known of the cost of a step that is given up now: nothing, if
    /// something was reserved for it and it may have begun.
    pub(super) fn given_up(&self, at: StepAt) -> Usage {
        let number = self.run.state(at).dispatch_no;
        let unsure = self.in_flight_terms(at).is_some_and(|terms| !terms.accounts.is_empty())
            && !self.sent.contains(&(at, number));
        if unsure { Usage::unknown() } else { Usage::default() }
    }

    /// Whether a step is in flight already: it is sent again after a crash.
    pub(super) fn flies(&self, at: StepAt) -> bool {
        matches!(self.run.state(at).status, StepStatus::Running | StepStatus::Streaming)
    }
}

fn accounts(caps: Vec<Cap<'_>>) -> Vec<(String, Money)> {
    caps.into_iter().map(|cap| (cap.account, cap.amount)).collect()
}

fn judged(
    decision: Decision,
    record: Record,
    caps: Vec<(String, Money)>,
    dossier: Dossier,
) -> Judged {
    let caps = caps.into_iter().zip(dossier.accepted);
    Judged {
        decision,
        record,
        caps: caps.map(|((account, cap), accepted)| (account, cap, accepted)).collect(),
        worst: dossier.estimate.worst,
        max_output_tokens: dossier.estimate.max_output_tokens,
        gateway: dossier.gateway,
        model: dossier.model,
    }
}

/// What is written down of a decision: itself, where it leads, and what it
/// rests on. Written straight into text: this is done once for every dispatch.
fn record(decision: &Decision, route: Option<&Route>, worst: Worst, epoch: u64) -> Record {
    let mut text = serde_json::to_string(decision).expect("a decision is plain data");
    text.pop();
    text.push_str(",\"facts\":");
    text.push_str(&decision.facts);
    if let Some(route) = route {
        let route = serde_json::to_string(route).expect("a route is plain data");
        text.push_str(",\"route\":");
        text.push_str(&route);
    }
    if let Worst::Known(money) = worst
        && money != Money::ZERO
    {
        let _ = write!(text, ",\"worst\":{money}");
    }
    let _ = write!(text, ",\"registry\":{epoch}}}");
    Record::new(text)
}

fn inputs(prepared: &Prepared, now_ms: u64) -> Inputs<'static> {
    let labels = prepared.labels;
    Inputs {
        classes: labels.classes().map(crate::run::label::SourceClass::as_str).collect(),
        untrusted: labels.untrusted,
        private: labels.private,
        age_ms: labels.since_ms.map(|since_ms| now_ms.saturating_sub(since_ms)),
    }
}

fn clamped(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

fn unsigned(count: i64) -> Money {
    Money::from_micro_cents(u64::try_from(count).unwrap_or(0))
}

/// What stands in an approval step for an action that is sent nowhere.
pub(super) fn question(
    run: &crate::run::state::Run,
    at: StepAt,
    prepared: &Prepared,
    summary: &str,
) -> Value {
    json!({
        "workflow": run.started.workflow, "step": run.name(at), "question": summary,
        "inputs": prepared.inputs, "definition": run.definition.hash,
    })
}
