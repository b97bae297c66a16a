//! The one way to a dispatch: the gates are asked, the answer is recorded, then
//! it is followed.
//!
//! INVARIANT: every dispatch, the first and every later one, is made here, after
//! a recorded allow whose digest is that of what is sent. An earlier allow is
//! never used again.

use super::Turn;
use super::dossier::Dossier;
use super::money::signed;
use crate::id::RunId;
use crate::journal::event::{
    Account, Dispatch, Path, Prepared, Record, Skip, SkipCause, StepAt, StepEvent, Terms,
};
use crate::limits::SYNC_MS_MAX;
use crate::money::Money;
use crate::plan::step::Work;
use crate::port::adapter::{Quote, Usage};
#[cfg(feature = "sabotage")]
use crate::port::authority::Unasked;
use crate::run::label::Labels;
use crate::status::StepStatus;
use serde_json::{Value, json};
use sluice_govern::account::Name;
use sluice_govern::decision::{Decision, Disposition};
use sluice_govern::evaluate;
use sluice_govern::facts::{Cap, Worst};
use sluice_govern::registry::{Phase, Posture, Price, Role};
use sluice_govern::route::Route;
use std::sync::Arc;

/// What a gateway offers that holds a request until it has the result.
const SYNC: &str = "sync";

/// What the gates said of a dispatch, and what it rests on.
struct Judged {
    decision: Decision,
    gateway: String,
    /// What is written down of it.
    record: Record,
    caps: Vec<Bound>,
    worst: Worst,
    max_output_tokens: Option<u64>,
    model: Option<String>,
    price: Option<Price>,
    session: Option<String>,
}

/// Where a dispatch goes, and by whose bounds.
struct Routed {
    role: Option<Role>,
    route: Option<Route>,
    /// The session of the provider that it continues.
    session: Option<String>,
}

/// A cap that the dispatch must keep to.
struct Bound {
    account: Account,
    /// Overruns of it that somebody has accepted.
    accepted: Money,
}

/// A step that is about to be sent.
pub(super) struct Ready {
    pub(super) at: StepAt,
    pub(super) attempt: u32,
    pub(super) prepared: Arc<Prepared>,
    /// Whether the journal has what was prepared.
    pub(super) known: bool,
}

impl Ready {
    /// The same, with what is known of more that it reads.
    fn with_labels(mut self, labels: Labels) -> Ready {
        let all = self.prepared.labels.with(labels);
        if all != self.prepared.labels {
            Arc::make_mut(&mut self.prepared).labels = all;
            self.known = false;
        }
        self
    }
}

impl Turn<'_> {
    /// Asks the gates about a step and does what they say.
    pub(super) fn govern(&mut self, ready: Ready) {
        #[cfg(feature = "sabotage")]
        if self.given.authority.unasked() == Some(&Unasked::Silent) {
            return self.send_unasked(ready);
        }
        let at = ready.at;
        let child = matches!(self.run.step(at).work, Work::Workflow(_));
        let role = self.role(at);
        let route = self.route(at, role.as_ref(), child);
        let continued = route.as_ref().and_then(|route| self.continued(at, route));
        let ready = match &continued {
            Some(continued) => ready.with_labels(continued.labels),
            None => ready,
        };
        let session = continued.map(|continued| continued.session);
        let judged = self.judge(&ready, Routed { role, route, session });
        self.node(at, StepEvent::GovernanceDecided(judged.record.clone()));
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
        self.node(at, StepEvent::Skipped(Skip::new(SkipCause::Advisory, reason)));
    }

    fn judge(&self, ready: &Ready, routed: Routed) -> Judged {
        let child = matches!(self.run.step(ready.at).work, Work::Workflow(_));
        let Routed { role, route, session } = routed;
        let dossier = Dossier { session, ..self.dossier(ready, role, route.as_ref(), child) };
        let caps = self.caps(ready.at, &dossier, child);
        let facts = self.facts(ready, &dossier, caps, child);
        let authority = self.given.authority;
        #[cfg(feature = "sabotage")]
        if let Some(Unasked::Noted(decision, record)) = authority.unasked() {
            let (decision, record) = ((**decision).clone(), record.clone());
            let caps = bounds(facts.caps);
            return judged(decision, record, caps, dossier);
        }
        let evaluated = evaluate(&facts, authority.policies());
        let record = Record::new(evaluated.write(route.as_ref(), authority.fabric().epoch));
        let decision = evaluated.decision;
        let caps = bounds(facts.caps);
        judged(decision, record, caps, dossier)
    }

    /// Marks a step as sent, with everything that is taken for it. What `due`
    /// then shows is sent.
    fn send(&mut self, ready: Ready, mut judged: Judged) {
        let at = ready.at;
        let step = self.run.step(at);
        let child = matches!(step.work, Work::Workflow(_));
        let path = if child {
            Path::Child(RunId::new(self.given.now_ms, &mut *self.given.entropy))
        } else {
            self.way(at, &judged.gateway)
        };
        let agent = self.run.agent_of(at.step).map(str::to_owned).filter(|_| !child);
        // Sent again after a crash, it takes what it now needs for what it had.
        let had = self.run.in_flight_terms(at).cloned();
        let fresh = had.is_none();
        if let Some(had) = had {
            self.give_back(&had);
        }
        let terms = Arc::new(self.take(agent.as_deref(), &mut judged));
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
            session: judged.session,
        };
        // What is sent again may have begun before.
        if fresh {
            self.sent.insert((at, dispatch.dispatch_no));
        }
        self.guards.require_rows();
        self.node(at, StepEvent::Started(Box::new(dispatch)));
    }

    /// How a step reaches its gateway.
    fn way(&self, at: StepAt, gateway: &str) -> Path {
        let authority = self.given.authority;
        let Some(row) = authority.gateway(gateway).filter(|row| row.url.is_some()) else {
            return Path::Edge;
        };
        let soon = self.run.step(at).timeout_ms <= SYNC_MS_MAX;
        if soon && row.capabilities.iter().any(|one| one == SYNC) {
            Path::Sync
        } else {
            Path::Bridge
        }
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
            session: None,
        };
        self.node(at, StepEvent::Started(Box::new(dispatch)));
    }

    /// Takes a slot, a place in the rate's window, and the money.
    fn take(&mut self, agent: Option<&str>, judged: &mut Judged) -> Terms {
        let authority = self.given.authority;
        let reserved = match judged.worst {
            Worst::Known(money) => money,
            Worst::Unknown => Money::ZERO,
        };
        let row = agent.and_then(|name| authority.agent(name));
        let observes = row.is_some_and(|row| row.phase_at(self.given.now_ms) == Phase::Poc);
        for Bound { account: Account { name, cap }, accepted } in &judged.caps {
            let account = self.guards.account(authority, name);
            account.held.take(signed(reserved), (!observes).then(|| signed(*cap)));
            // An overrun that this process has not heard of closes the cap too.
            account.over.take(0, (!observes).then(|| signed(*accepted)));
        }
        self.count_dispatch(agent);
        let registered = agent.filter(|name| authority.fabric().agents.contains_key(*name));
        if let (Some(name), Some(row)) = (registered, row) {
            let max = row.max_concurrent_steps.map(i64::from);
            self.guards.take(Name::busy(name), 1, max);
        }
        let accounts = std::mem::take(&mut judged.caps).into_iter().map(|bound| bound.account);
        Terms {
            slot: registered.map(str::to_owned),
            reserved,
            accounts: accounts.collect(),
            constraints: std::mem::take(&mut judged.decision.constraints),
            model: judged.model.take(),
            max_output_tokens: judged.max_output_tokens,
            price: judged.price.take().map(|price| Price { max_output_tokens: None, ..price }),
        }
    }

    fn give_back(&mut self, terms: &Terms) {
        for one in &terms.accounts {
            let account = self.guards.account(self.given.authority, &one.name);
            account.held.add(-signed(terms.reserved));
        }
        if let Some(agent) = &terms.slot {
            self.guards.add(Name::busy(agent), -1);
        }
    }

    fn count_dispatch(&mut self, agent: Option<&str>) {
        let Some(name) = agent else { return };
        let rate = self.given.authority.agent(name).and_then(|row| row.rate);
        if let Some(rate) = rate {
            let window_ms = u64::from(rate.window_s) * 1000;
            let max = Some(i64::from(rate.limit));
            self.guards.take_in(Name::rate(name), 1, max, Some(window_ms));
        }
    }

    /// What is known of the cost of a step that is given up now: nothing, if it may
    /// have begun, and may cost something.
    pub(super) fn given_up(&self, at: StepAt) -> Usage {
        let number = self.run.state(at).dispatch_no;
        let unsure = !self.sent.contains(&(at, number))
            && self
                .run
                .in_flight_terms(at)
                .is_some_and(|terms| !terms.accounts.is_empty() || self.may_cost(at));
        if unsure { Usage::unknown() } else { Usage::default() }
    }

    /// Whether a dispatch in flight may cost something, budget or not. What a child
    /// run costs is counted there.
    fn may_cost(&self, at: StepAt) -> bool {
        let state = self.run.state(at);
        let works = matches!(state.path(), Some(Path::Edge | Path::Bridge | Path::Sync));
        let (agent, gateway) = (state.agent(), state.gateway());
        let (agent, gateway) = (agent.unwrap_or_default(), gateway.unwrap_or_default());
        works
            && match self.given.authority.quote(agent, gateway, &self.run.name(at)) {
                Quote::Free => false,
                Quote::AtMost(most) => !most.is_zero(),
                Quote::Priced => true,
            }
    }

    /// Whether a step is in flight already: it is sent again after a crash.
    pub(super) fn flies(&self, at: StepAt) -> bool {
        matches!(self.run.state(at).status(), StepStatus::Running | StepStatus::Streaming)
    }
}

fn bounds(caps: Vec<Cap<'_>>) -> Vec<Bound> {
    let bound = |cap: Cap<'_>| Bound {
        account: Account { name: cap.account, cap: cap.amount },
        accepted: cap.accepted,
    };
    caps.into_iter().map(bound).collect()
}

fn judged(decision: Decision, record: Record, caps: Vec<Bound>, dossier: Dossier) -> Judged {
    Judged {
        decision,
        record,
        caps,
        worst: dossier.estimate.worst,
        max_output_tokens: dossier.estimate.max_output_tokens,
        gateway: dossier.gateway,
        price: dossier.price,
        model: dossier.model,
        session: dossier.session,
    }
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
