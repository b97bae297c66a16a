//! Starts steps: asks for admission, and sends what is admitted.

use super::queue::{has_room_for, may_start};
use crate::code::Code;
use crate::id::RunId;
use crate::journal::event::{
    Account, ContractSide, Dispatch, Path, Skip, SkipCause, StepAt, StepEvent, Terms,
};
use crate::limits::SYNC_MS_MAX;
use crate::money::Money;
use crate::plan::step::Work;
use crate::run::decide::admit::bind::Unfit;
use crate::run::decide::admit::govern::{Bound, Judged};
use crate::run::decide::admit::{Admission, admit};
use crate::run::decide::draft::costs::signed;
use crate::run::decide::draft::history::take_of_step;
use crate::run::decide::draft::{Draft, PreparedStep};
use crate::run::decide::people::approval::{escalate, request_answer, request_consent};
use crate::run::decide::settle::Next;
use crate::run::decide::settle::fail::fail;
use crate::run::decide::settle::halt::spread;
use sluice_govern::account::Name;
use sluice_govern::facts::Worst;
use sluice_govern::registry::{Phase, Price};
use std::sync::Arc;

/// The capability of a gateway that holds a request until it has the result.
const SYNC: &str = "sync";

/// Starts the next attempt of a step, if it is admitted.
pub(super) fn start(draft: &mut Draft<'_>, at: StepAt) {
    match admit(draft, at) {
        Admission::Admitted(step, judged) => send(draft, step, judged),
        Admission::Question(step, summary) => request_answer(draft, &step, summary),
        Admission::Held(step, summary, decision) => {
            request_consent(draft, &step, summary, &decision);
        }
        Admission::Waiting(event) => draft.record(at, event),
        Admission::Refused(unfit) => refuse(draft, at, unfit),
        Admission::DryRun(reason) => {
            draft.record(at, StepEvent::Skipped(Skip::new(SkipCause::Advisory, reason)));
        }
    }
}

/// Does what follows from a result.
pub(crate) fn follow(draft: &mut Draft<'_>, next: Next) {
    match next {
        Next::Nothing => {}
        Next::Retry(at) => wake(draft, at),
        Next::Escalate(at, failed) => escalate(draft, at, *failed),
    }
}

/// Starts a step after the wait before an attempt, or queues it if there is no room.
pub(super) fn wake(draft: &mut Draft<'_>, at: StepAt) {
    let now = !draft.run.needs_approval(at) && may_start(draft.run) && has_room_for(draft, at);
    if now {
        start(draft, at);
    } else {
        draft.record(at, StepEvent::Queued { items: None });
    }
}

/// Fails or blocks a step that is not admitted.
fn refuse(draft: &mut Draft<'_>, at: StepAt, unfit: Unfit) {
    let (phase, failure) = match unfit {
        Unfit::Failure(failure) if failure.code != Code::InputContractViolation => {
            return fail(draft, at, failure);
        }
        Unfit::Failure(failure) | Unfit::Contract(failure) => (ContractSide::Input, failure),
        Unfit::Layers(failure) => (ContractSide::Instructions, failure),
        Unfit::Placeholder { label, message } => {
            let code = Code::PlaceholderUnbound.to_string();
            let placeholder = Some(label);
            draft.record(at, StepEvent::Blocked { code, message, placeholder, waits: false });
            return spread(draft, at);
        }
    };
    let errors = Arc::new(failure.violations.clone());
    draft.record(at, StepEvent::ContractViolated { phase, errors });
    fail(draft, at, failure);
}

/// Records a dispatch with everything that it takes. The engine sends what `due` then
/// shows.
fn send(draft: &mut Draft<'_>, step: PreparedStep, mut judged: Judged) {
    let at = step.at;
    let child = matches!(draft.run.step(at).work, Work::Workflow(_));
    let path = if child {
        Path::Child(RunId::new(draft.given.now_ms, &mut *draft.given.entropy))
    } else {
        path_to(draft, at, &judged.gateway)
    };
    let agent = draft.run.agent_of(at.step).map(str::to_owned).filter(|_| !child);
    // A dispatch that is repeated after a crash returns what the first one took.
    let had = draft.run.in_flight_terms(at).cloned();
    let fresh = had.is_none();
    if let Some(had) = had {
        give_back(draft, &had);
    }
    let mut terms = take(draft, agent.as_deref(), &mut judged);
    if let Some(agent) = &agent {
        terms.history = take_of_step(draft, at, agent, &judged.used);
    }
    let terms = Arc::new(terms);
    let run = &*draft.run;
    let dispatch = Dispatch {
        attempt: step.attempt,
        dispatch_no: run.state(at).dispatch_no + 1,
        wave: run.definition.plan.graph.layer_of(at.step as usize),
        agent,
        gateway: if child { run.started.gateway.clone() } else { judged.gateway },
        path,
        deadline_ms: Some(draft.given.now_ms.saturating_add(run.step(at).timeout_ms)),
        prepared: (!step.recorded).then_some(step.prepared),
        digest: Some(judged.decision.action_digest),
        terms,
        session: judged.session,
    };
    // A repeated one may have begun before.
    if fresh {
        draft.sent.insert((at, dispatch.dispatch_no));
    }
    draft.guards.require_rows();
    draft.record(at, StepEvent::Started(Box::new(dispatch)));
}

/// How a step reaches its gateway.
fn path_to(draft: &Draft<'_>, at: StepAt, gateway: &str) -> Path {
    let authority = draft.given.authority;
    let Some(row) = authority.gateway(gateway).filter(|row| row.url.is_some()) else {
        return Path::Edge;
    };
    let soon = draft.run.step(at).timeout_ms <= SYNC_MS_MAX;
    if soon && row.capabilities.iter().any(|one| one == SYNC) { Path::Sync } else { Path::Bridge }
}

/// Takes a slot, a place in the window of the rate limit, and the reservation.
fn take(draft: &mut Draft<'_>, agent: Option<&str>, judged: &mut Judged) -> Terms {
    let authority = draft.given.authority;
    let reserved = match judged.worst {
        Worst::Known(money) => money,
        Worst::Unknown => Money::ZERO,
    };
    let row = agent.and_then(|name| authority.agent(name));
    let observes = row.is_some_and(|row| row.phase_at(draft.given.now_ms) == Phase::Poc);
    for Bound { account: Account { name, cap }, accepted } in &judged.caps {
        let account = draft.guards.account(authority, name);
        account.held.take(signed(reserved), (!observes).then(|| signed(*cap)));
        // An overrun that this process does not know of closes the cap too.
        account.over.take(0, (!observes).then(|| signed(*accepted)));
    }
    if let (Some(name), Some(rate)) = (agent, row.and_then(|row| row.rate)) {
        let window_ms = u64::from(rate.window_s) * 1000;
        let max = Some(i64::from(rate.limit));
        draft.guards.take_in(Name::rate(name), 1, max, Some(window_ms));
    }
    let registered = agent.filter(|name| authority.fabric().agents.contains_key(*name));
    if let (Some(name), Some(row)) = (registered, row) {
        let max = row.max_concurrent_steps.map(i64::from);
        draft.guards.take(Name::busy(name), 1, max);
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
        history: Vec::new(),
    }
}

fn give_back(draft: &mut Draft<'_>, terms: &Terms) {
    for one in &terms.accounts {
        let account = draft.guards.account(draft.given.authority, &one.name);
        account.held.add(-signed(terms.reserved));
    }
    if let Some(agent) = &terms.slot {
        draft.guards.add(Name::busy(agent), -1);
    }
}
