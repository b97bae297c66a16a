//! The facts that the gates compare, read from the run, the rows and the counters.

use crate::journal::event::StepAt;
use crate::layers;
use crate::limits::TOOL_TURNS_RESERVED;
use crate::money::Money;
use crate::origin::{Labels, SourceClass};
use crate::plan::step::Work;
use crate::port::adapter::Quote;
use crate::run::decide::draft::costs::signed;
use crate::run::decide::draft::{Draft, PreparedStep};
use crate::run::state::{Grant, Run};
use sluice_govern::account::{
    Costing, Estimate, Name, RunCap, Spender, caps_for, input_tokens, worst,
};
use sluice_govern::action::Action;
use sluice_govern::decision::Constraints;
use sluice_govern::facts::{
    Asks, Cap, Facts, FlowFacts, Granted, Inputs, Place, RunFacts, StepFacts, Subject, Verb, Worst,
};
use sluice_govern::registry::{Price, Role, TrustedContext};
use sluice_govern::route::{DeployedOn, Features, Layer, Route, Sight, Want, route};
use std::borrow::Cow;

/// The facts of a decision that are computed once and owned.
pub(super) struct DecisionFacts {
    pub(super) run: String,
    pub(super) name: String,
    pub(super) gateway: String,
    pub(super) role: Option<Role>,
    pub(super) model: Option<String>,
    /// The price of the model, if its tokens are charged.
    pub(super) price: Option<Price>,
    /// Layers 1 to 5, if there are more than the engine's own.
    pub(super) system_prompt: Option<String>,
    /// The tools of the step that its member may use.
    pub(super) tools: Option<Vec<String>>,
    pub(super) estimate: Estimate,
    pub(super) grant: Option<(String, Constraints)>,
    /// The session of the provider that the dispatch continues.
    pub(super) session: Option<String>,
}

/// Whether a step starts a child run instead of a dispatch to a gateway.
pub(super) fn starts_child(run: &Run, at: StepAt) -> bool {
    matches!(run.step(at).work, Work::Workflow(_))
}

pub(super) fn gather_facts(
    draft: &Draft<'_>,
    ready: &PreparedStep,
    role: Option<Role>,
    route: Option<&Route>,
) -> DecisionFacts {
    let at = ready.at;
    let (run, name) = (draft.run.id.to_string(), draft.run.name(at));
    let agent_name = draft.run.agent_of(at.step).unwrap_or_default();
    let agent = draft.given.authority.agent(agent_name).filter(|_| !starts_child(draft.run, at));
    let gateway = route.and_then(|route| route.gateway.clone()).unwrap_or_default();
    let model = draft.run.model_of(at.step);
    let model = model.or_else(|| agent.and_then(|agent| agent.model.as_deref()));
    let model = model.or(draft.run.started.fallback_model.as_deref()).map(str::to_owned);
    let estimate = estimate(draft, ready, model.as_deref(), &gateway, &name);
    let price = price(draft, agent_name, &gateway, &name, model.as_deref()).cloned();
    DecisionFacts {
        run,
        name,
        gateway,
        role,
        price,
        model,
        system_prompt: (!ready.prepared.layers.is_empty())
            .then(|| layers::system_prompt(&ready.prepared.layers)),
        tools: draft.run.member_of(at.step).map(|_| draft.run.tools_of(at.step)),
        estimate,
        grant: grant(draft, at),
        session: None,
    }
}

/// The facts in the form that the gates read.
pub(super) fn facts<'f>(
    draft: &'f Draft<'_>,
    ready: &'f PreparedStep,
    gathered: &'f DecisionFacts,
    caps: Vec<Cap<'f>>,
) -> Facts<'f> {
    let (run, authority) = (&*draft.run, draft.given.authority);
    let step = run.step(ready.at);
    let child = starts_child(run, ready.at);
    let agent_name = run.agent_of(ready.at.step).unwrap_or_default();
    let agent = authority.agent(agent_name).filter(|_| !child);
    let started = &run.started;
    let verb = if child { Verb::StartRun } else { Verb::DispatchStep };
    Facts {
        now_ms: draft.given.now_ms,
        verb,
        subject: if child {
            Subject::User(&started.initiator)
        } else {
            Subject::Agent(agent_name, agent)
        },
        role: run.role_of(ready.at.step).zip(gathered.role.as_ref()),
        place: (!child).then(|| Place {
            name: &gathered.gateway,
            gateway: authority.gateway(&gathered.gateway),
            health: authority.health(&gathered.gateway),
            serves: authority.serves(agent_name, &gathered.gateway),
        }),
        object: match &step.work {
            Work::Workflow(work) => Some(&work.name),
            _ => None,
        },
        held: authority.fabric().held,
        running: others_in_flight(draft, ready.at, agent_name),
        in_window: in_window(draft, agent_name),
        caps,
        worst: gathered.estimate.worst,
        trust_ceiling: started.trust_ceiling.unwrap_or(u8::MAX),
        inputs: inputs(draft, &ready.prepared.labels),
        call: None,
        flow: flow(draft, verb, &ready.prepared.labels),
        tool: None,
        history: None,
        posture: authority.judged_by(started.posture),
        run: RunFacts {
            id: &gathered.run,
            workflow: &started.workflow,
            version: started.version,
            initiator: &started.initiator,
            depth: started.depth,
            registered: started.source.is_registered(),
            definition: &started.definition_hash,
        },
        step: Some(StepFacts {
            id: &gathered.name,
            kind: step.work.kind(),
            attempt: ready.attempt,
            capabilities: &step.capabilities,
        }),
        asks: run.approval_of(ready.at.step).map(|asked| Asks { approvers: &asked.approvers }),
        grant: gathered.grant.as_ref().map(|(digest, constraints)| {
            let digest = digest.as_str();
            Granted { digest, constraints }
        }),
        action: action(draft, ready, agent_name, gathered),
    }
}

/// The labels of the inputs, as the gates read them.
pub(super) fn inputs(draft: &Draft<'_>, labels: &Labels) -> Inputs<'static> {
    let age = |since_ms| draft.given.now_ms.saturating_sub(since_ms);
    Inputs {
        classes: labels.classes().map(SourceClass::as_str).collect(),
        untrusted: labels.untrusted,
        private: labels.private,
        age_ms: labels.since_ms.map(age),
    }
}

/// The named labels of an action, if a policy reads them. Those of a tool call are recorded in
/// any case, so that a new rule can be tried on old calls.
pub(super) fn flow(draft: &Draft<'_>, verb: Verb, labels: &Labels) -> FlowFacts {
    let is_read = verb == Verb::UseTool || draft.given.authority.policies().reads_flow(verb);
    if is_read { labels.flow.facts() } else { FlowFacts::default() }
}

fn in_window(draft: &Draft<'_>, agent: &str) -> u32 {
    let authority = draft.given.authority;
    let rate = authority.agent(agent).and_then(|agent| agent.rate);
    rate.map_or(0, |rate| {
        let window_ms = u64::from(rate.window_s) * 1000;
        clamped(draft.guards.in_window(authority, Name::rate(agent), window_ms))
    })
}

/// The route of a step to a gateway; none for a child run.
pub(super) fn route_of(draft: &Draft<'_>, at: StepAt, role: Option<&Role>) -> Option<Route> {
    if starts_child(draft.run, at) {
        return None;
    }
    let run = &*draft.run;
    let authority = draft.given.authority;
    // The approval is for this gateway.
    if let Some(gateway) = granted_gateway(run, at) {
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

fn granted_gateway(run: &Run, at: StepAt) -> Option<String> {
    let state = run.state(at);
    let granted = state.granted.filter(|_| state.grant != Grant::None)?;
    let action = run.approvals.get(&granted)?.action.as_ref()?;
    action.action["gateway"].as_str().map(str::to_owned)
}

/// The bounds of the role of a step: those of the workflow and of the registry.
pub(super) fn role(draft: &Draft<'_>, at: StepAt) -> Option<Role> {
    let name = draft.run.role_of(at.step)?;
    let written = draft.run.definition.plan.roles.get(name).map(|role| Role {
        max_spend_cents: role.max_spend,
        allowed_environments: role.allowed_environments.clone(),
        trusted_context: role.trusted_context.as_ref().map(|context| TrustedContext {
            accepted_source_classes: context.accepted_source_classes.clone(),
            max_age_s: context.max_age_s,
        }),
    });
    let written = written.unwrap_or_default();
    Some(match draft.given.authority.fabric().roles.get(name) {
        Some(row) => written.with(row),
        None => written,
    })
}

fn estimate(
    draft: &Draft<'_>,
    ready: &PreparedStep,
    model: Option<&str>,
    gateway: &str,
    name: &str,
) -> Estimate {
    let authority = draft.given.authority;
    let step = draft.run.step(ready.at);
    if matches!(step.work, Work::Workflow(_)) {
        return worst(Costing::Free, None, None);
    }
    let agent_name = draft.run.agent_of(ready.at.step).unwrap_or_default();
    let fallback = authority.agent(agent_name).and_then(|agent| agent.max_cost_cents);
    let declared = step.max_cost;
    match authority.quote(agent_name, gateway, name) {
        Quote::Free => worst(Costing::Free, None, None),
        Quote::AtMost(money) => {
            let least = declared.map_or(money, |declared| declared.min(money));
            worst(Costing::Unpriced, Some(least), None)
        }
        Quote::Priced => {
            let price = price(draft, agent_name, gateway, name, model);
            let prepared = &ready.prepared;
            let texts = [prepared.prompt.as_str(), prepared.stdin.as_deref().unwrap_or("")];
            let texts = texts.into_iter().chain(prepared.layers.iter().map(|one| &*one.text));
            let costing = price.map_or(Costing::Unpriced, |price| Costing::Priced {
                price,
                input_tokens: input_tokens(texts),
                max_output_tokens: step.max_output_tokens,
            });
            if price.is_none() || draft.run.tools_of(ready.at.step).is_empty() {
                return worst(costing, declared, fallback);
            }
            of_turns(costing, declared.or(fallback))
        }
    }
}

/// The price of a model, if its tokens are charged.
fn price<'d>(
    draft: &'d Draft<'_>,
    agent: &str,
    gateway: &str,
    name: &str,
    model: Option<&str>,
) -> Option<&'d Price> {
    let authority = draft.given.authority;
    let prices = &authority.fabric().prices;
    let price = prices.get(model?)?;
    (authority.quote(agent, gateway, name) == Quote::Priced).then_some(price)
}

/// Every cap that applies, with the amount held in it. The steps of a child run are
/// checked against the caps themselves.
pub(super) fn caps<'d>(draft: &'d Draft<'_>, at: StepAt, gathered: &DecisionFacts) -> Vec<Cap<'d>> {
    if starts_child(draft.run, at) {
        return Vec::new();
    }
    let authority = draft.given.authority;
    let run = &*draft.run;
    let agent = run.agent_of(at.step).unwrap_or_default();
    let role = run.role_of(at.step).zip(gathered.role.as_ref());
    let capped = run.family_caps();
    let row = authority.agent(agent);
    let bounded = !capped.is_empty()
        || !authority.fabric().budgets.is_empty()
        || role.is_some_and(|(_, role)| role.max_spend_cents.is_some())
        || row.is_some_and(|row| row.budget_monthly_cents.is_some());
    if !bounded {
        return Vec::new();
    }
    let above = run.started.parent.iter().map(|parent| parent.run).chain(run.started.root);
    let others = above.chain(capped.iter().map(|(run, _)| *run)).filter(|one| *one != run.id);
    let others: Vec<String> = others.map(|run| run.to_string()).collect();
    let mut family = vec![gathered.run.as_str()];
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
        now_ms: draft.given.now_ms,
        agent: row.map(|row| (agent, row)),
        role,
        runs: &family,
        run_caps: &run_caps,
        workflow: &run.started.workflow,
        gateway: Some(&gathered.gateway),
    };
    let mut caps = caps_for(authority.fabric(), &spender);
    for cap in &mut caps {
        let tally = draft.guards.tally(authority, &cap.account);
        let held = unsigned(held_by_others(draft, at, &cap.account, tally.held));
        cap.count(held, unsigned(tally.over));
    }
    caps
}

/// The amount that other dispatches hold in an account: one that is repeated after a crash
/// already holds its own reservation.
fn held_by_others(draft: &Draft<'_>, at: StepAt, account: &str, held: i64) -> i64 {
    let own = draft
        .run
        .in_flight_terms(at)
        .filter(|terms| terms.accounts.iter().any(|one| *one.name == *account));
    held.saturating_sub(own.map_or(0, |terms| signed(terms.reserved)))
}

/// How many other steps of the agent are in flight.
fn others_in_flight(draft: &Draft<'_>, at: StepAt, agent: &str) -> u32 {
    let running = draft.guards.count(draft.given.authority, Name::busy(agent));
    let own = draft.run.in_flight_terms(at).is_some_and(|terms| terms.slot.is_some());
    clamped(running.saturating_sub(i64::from(own)))
}

/// The approval of the step that is still valid.
fn grant(draft: &Draft<'_>, at: StepAt) -> Option<(String, Constraints)> {
    let state = draft.run.state(at);
    if state.grant == Grant::None {
        return None;
    }
    let approval = draft.run.approvals.get(&state.granted?)?;
    let constraints = approval.tightened.as_ref().map(|tightened| tightened.constraints.clone());
    Some((approval.digest()?.to_owned(), constraints.unwrap_or_default()))
}

fn action<'f>(
    draft: &'f Draft<'_>,
    ready: &'f PreparedStep,
    agent: &'f str,
    gathered: &'f DecisionFacts,
) -> Action<'f> {
    let step = draft.run.step(ready.at);
    let prepared = &ready.prepared;
    Action {
        agent,
        gateway: &gathered.gateway,
        workflow: &draft.run.started.workflow,
        step: &gathered.name,
        command: &prepared.prompt,
        stdin: prepared.stdin.as_deref(),
        env: &prepared.env,
        cwd: step.cwd.as_deref(),
        inputs: &prepared.inputs,
        memory: layers::memory(&prepared.layers),
        model: gathered.model.as_deref(),
        session: gathered.session.as_deref(),
        system_prompt: gathered.system_prompt.as_deref(),
        tools: gathered.tools.as_deref().unwrap_or(&step.tools),
        constraints: Constraints::default(),
        cost_ceiling: None,
        policies: Cow::Borrowed(""),
        definition: &draft.run.definition.hash,
    }
}

/// The worst cost of a model with tools, which is called again with their results. The
/// whole ceiling is reserved; without one, enough for some turns. The adapter stops
/// before a turn that could exceed the reservation.
fn of_turns(costing: Costing<'_>, ceiling: Option<Money>) -> Estimate {
    let once = worst(costing, ceiling, None);
    let Worst::Known(one) = once.worst else { return once };
    let turns = Money::from_micro_cents(one.micro_cents().saturating_mul(TOOL_TURNS_RESERVED));
    // Input tokens alone may cost more than the ceiling; then a cap refuses the dispatch.
    let all = ceiling.map_or(turns, |ceiling| ceiling.max(one));
    Estimate { worst: Worst::Known(all), ..once }
}

fn clamped(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

fn unsigned(count: i64) -> Money {
    Money::from_micro_cents(u64::try_from(count).unwrap_or(0))
}
