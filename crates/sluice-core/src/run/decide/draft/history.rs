//! Facts about history for a decision, and the counters that the decision changes.

use super::Draft;
use crate::journal::event::{CallRecord, HistoryTaken, LogLine, Ruling, StepAt, StepEvent};
use crate::port::adapter::ToolUse;
use crate::run::history::counters::{HistoryEnd, counter_of, open_name, window_name};
use crate::run::history::view::{Now, PastEvents, numbers, value};
use crate::run::history::{PastCall, has_failed};
use sluice_govern::account::Name;
use sluice_govern::facts::ArgumentRole;
use sluice_govern::policy::history::{
    ALLOWED, DENIED, EFFECTIVE, ERROR, Events as _, History, HistoryFact, HistoryScope,
    HistoryValue, REQUEST, RESPONSE,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The facts across runs that a decision relies on, with their values.
pub(crate) type UsedFacts = BTreeMap<Arc<str>, i128>;

/// The facts about history of one decision.
pub(crate) struct PastFacts<'d, 'a> {
    draft: &'d Draft<'a>,
    now: Now<'d>,
    /// The facts across runs that the decision relies on, with their values.
    used: RefCell<UsedFacts>,
}

impl<'d, 'a> PastFacts<'d, 'a> {
    pub(crate) fn new(draft: &'d Draft<'a>, now: Now<'d>) -> PastFacts<'d, 'a> {
        PastFacts { draft, now, used: RefCell::default() }
    }

    /// The facts across runs that the decision relies on, with their values.
    pub(crate) fn into_used(self) -> UsedFacts {
        self.used.into_inner()
    }
}

impl fmt::Debug for PastFacts<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PastFacts").field("run", &self.draft.run.id).finish_non_exhaustive()
    }
}

impl History for PastFacts<'_, '_> {
    fn value(&self, fact: &HistoryFact) -> HistoryValue {
        let PastFacts { draft, now, .. } = self;
        if fact.scope != HistoryScope::Agent {
            return value(draft.run, now, fact);
        }
        let past = PastEvents::of_run(draft.run, now);
        if let Some(why) = fact.missing(&past) {
            return HistoryValue::Unknown(why);
        }
        let own = fact.contribution(&past, past.count() - 1).unwrap_or(0);
        let counter = counter_of(fact, now.agent);
        let (open, window) = amounts(draft, fact, &counter);
        let sum = i128::from(open) + i128::from(window) + own;
        self.used.borrow_mut().insert(Arc::clone(&fact.name), sum);
        fact.of_sum(sum)
    }
}

/// What is in flight and what has happened in the window, with the changes of this turn.
fn amounts(draft: &Draft<'_>, fact: &HistoryFact, counter: &str) -> (i64, i64) {
    let authority = draft.given.authority;
    let open = draft.guards.count(authority, Name::of(&open_name(counter)));
    let window = window_name(counter);
    let window = draft.guards.in_window(authority, Name::of(&window), fact.window_ms());
    (open, window.max(0))
}

/// Facts of a call that the journal keeps.
pub(crate) fn call_record(draft: &Draft<'_>, wanted: &ToolUse) -> CallRecord {
    let numbers = numbers(&wanted.input);
    let tool = draft.given.authority.catalog().tool(&wanted.tool).map(|tool| &tool.facts);
    let roles = tool.into_iter().flat_map(|tool| &tool.roles);
    let amounts = roles.filter(|(_, role)| **role == ArgumentRole::Amount);
    // A sum without one of its parts is not known.
    let sum = |sum: Option<i64>, part: Option<i64>| sum?.checked_add(part?);
    let amount = amounts.map(|(path, _)| numbers.get(path).copied()).reduce(sum).flatten();
    CallRecord {
        labels: tool.map(|tool| tool.labels.clone()).unwrap_or_default(),
        amount,
        numbers,
        taken: Vec::new(),
    }
}

/// Changes the counters of the facts that a decided request is an event of, and makes the
/// append depend on those that the decision relies on. Returns what it holds until it ends.
pub(crate) fn take_history(
    draft: &mut Draft<'_>,
    now: &Now<'_>,
    used: &UsedFacts,
) -> Vec<HistoryTaken> {
    let authority = draft.given.authority;
    let mut facts = BTreeMap::new();
    for fact in authority.policies().facts_of_agents() {
        let past = PastEvents::of_run(draft.run, now);
        let own = fact.contribution(&past, past.count() - 1);
        let other = facts.insert(&fact.name, (fact, own));
        debug_assert!(other.is_none_or(|(_, before)| before == own), "a name is one fact");
    }
    let mut taken = Vec::new();
    for (name, (fact, own)) in facts {
        let own = own.map(|own| i64::try_from(own).unwrap_or(i64::MAX));
        let sum = used.get(name).copied();
        if own.is_none() && sum.is_none() {
            continue;
        }
        let counter = counter_of(fact, now.agent);
        let is_held = own.filter(|_| fact.counts().is_some_and(|(_, kind)| kind == EFFECTIVE));
        let happened = own.filter(|_| is_held.is_none()).unwrap_or(0);
        let (open, window) = amounts(draft, fact, &counter);
        let room = sum.and_then(|sum| Some(fact.highest_like(sum)? - sum));
        let room = room.map(|room| i64::try_from(room).unwrap_or(i64::MAX));
        // Either counter may grow by half of the room: together they stay below the limit.
        let most = |known: i64, own: i64, share: fn(i64) -> i64| {
            room.map(|room| known.saturating_add(own).saturating_add(share(room)))
        };
        let most_open = most(open, is_held.unwrap_or(0), |room| room / 2);
        let most_window = most(window, happened, |room| room - room / 2);
        if is_held.is_some() || most_open.is_some() {
            let amount = is_held.unwrap_or(0);
            draft.guards.take_latest(Name::of(&open_name(&counter)), amount, most_open, None);
        }
        if happened != 0 || most_window.is_some() {
            let window = Some(fact.window_ms());
            draft.guards.take_latest(
                Name::of(&window_name(&counter)),
                happened,
                most_window,
                window,
            );
        }
        taken.extend(is_held.map(|amount| HistoryTaken {
            counter,
            amount,
            window_ms: fact.window_ms(),
        }));
    }
    taken
}

/// Counts the end of a call or an attempt, for facts across runs. Must be called before
/// the event is folded.
pub(super) fn note_end(draft: &mut Draft<'_>, at: StepAt, event: &StepEvent) {
    let authority = draft.given.authority;
    if authority.policies().facts_of_agents().next().is_none() {
        return;
    }
    let (call, kinds): (Option<Arc<PastCall>>, &'static [&'static str]) = match event {
        StepEvent::Log { line: LogLine::ToolEnded(call), .. } => {
            let ended = &call.ended;
            let Some(call) = draft.run.history.call(at, &ended.id) else { return };
            (Some(call), if ended.failed { &[ERROR] } else { &[RESPONSE] })
        }
        StepEvent::Completed(_) => (None, &[RESPONSE]),
        event if has_failed(event) => (None, &[ERROR]),
        _ => return,
    };
    if call.is_none() && !draft.run.history.is_in_flight(at) {
        return;
    }
    let agent = draft.run.agent_of(at.step).unwrap_or_default().to_owned();
    let now = Now {
        at,
        at_ms: draft.given.now_ms,
        agent: &agent,
        call: call.as_deref(),
        kinds,
        principal: String::new(),
        resource: String::new(),
    };
    take_history(draft, &now, &UsedFacts::new());
}

/// The agent of a step, as policies call it.
fn principal(agent: &str) -> String {
    format!("Agent::{agent:?}")
}

/// A tool call that is decided. It was requested before if it waits for an approval.
pub(crate) fn past_call(
    draft: &Draft<'_>,
    at: StepAt,
    tool: &str,
    record: &CallRecord,
) -> PastCall {
    let agent = draft.run.agent_of(at.step).unwrap_or_default();
    PastCall { tool: tool.into(), agent: agent.into(), record: record.clone() }
}

/// The request to call a tool.
pub(crate) fn now_of_call<'r>(
    draft: &Draft<'_>,
    at: StepAt,
    id: &str,
    call: &'r PastCall,
) -> Now<'r> {
    let held = draft.run.history.is_held(at, id);
    Now {
        at,
        at_ms: draft.given.now_ms,
        agent: &call.agent,
        call: Some(call),
        kinds: if held { &[EFFECTIVE] } else { &[REQUEST, EFFECTIVE] },
        principal: principal(&call.agent),
        resource: format!("Tool::{:?}", call.tool),
    }
}

/// The dispatch of a step. One that is repeated after a crash is an event already.
pub(crate) fn now_of_step<'r>(
    draft: &Draft<'_>,
    at: StepAt,
    agent: &'r str,
    gateway: &str,
) -> Now<'r> {
    let repeated = draft.run.history.is_in_flight(at);
    Now {
        at,
        at_ms: draft.given.now_ms,
        agent,
        call: None,
        kinds: if repeated { &[] } else { &[REQUEST, EFFECTIVE] },
        principal: principal(agent),
        resource: format!("Gateway::{gateway:?}"),
    }
}

/// Counts a decided call, and adds what it takes to its record.
pub(crate) fn take_of_call(
    draft: &mut Draft<'_>,
    at: StepAt,
    (wanted, record): (&ToolUse, &mut CallRecord),
    ruling: &Ruling,
    used: &UsedFacts,
) {
    if draft.given.authority.policies().facts_of_agents().next().is_none() {
        return;
    }
    let call = past_call(draft, at, &wanted.tool, record);
    let held = draft.run.history.is_held(at, &wanted.id);
    let kinds: &'static [&'static str] = match (ruling, held) {
        (Ruling::Allowed(_), false) => &[REQUEST, ALLOWED, EFFECTIVE],
        (Ruling::Allowed(_), true) => &[ALLOWED, EFFECTIVE],
        (Ruling::Denied(_), false) => &[REQUEST, DENIED],
        (Ruling::Denied(_), true) => &[DENIED],
        (Ruling::Held(_), false) => &[REQUEST],
        (Ruling::Held(_), true) => &[],
    };
    let now = Now { kinds, ..now_of_call(draft, at, &wanted.id, &call) };
    // What was refused relies on no bound: the counters may only be higher.
    let none = UsedFacts::new();
    let used = if matches!(ruling, Ruling::Allowed(_)) { used } else { &none };
    record.taken = take_history(draft, &now, used);
}

/// Counts a dispatch that is sent. Returns what it holds until it ends.
pub(crate) fn take_of_step(
    draft: &mut Draft<'_>,
    at: StepAt,
    agent: &str,
    used: &UsedFacts,
) -> Vec<HistoryTaken> {
    if draft.given.authority.policies().facts_of_agents().next().is_none() {
        return Vec::new();
    }
    let repeated = draft.run.history.is_in_flight(at);
    let kinds: &'static [&'static str] =
        if repeated { &[EFFECTIVE] } else { &[REQUEST, ALLOWED, EFFECTIVE] };
    let now = Now { kinds, ..now_of_step(draft, at, agent, "") };
    take_history(draft, &now, used)
}

/// Returns an amount, and counts it if it happened.
pub(super) fn settle_history(draft: &mut Draft<'_>, end: &HistoryEnd) {
    let HistoryEnd { taken, counts } = end;
    draft.guards.add(Name::of(&open_name(&taken.counter)), -taken.amount);
    if *counts {
        let window = Some(taken.window_ms);
        let name = window_name(&taken.counter);
        draft.guards.take_in(Name::of(&name), taken.amount, None, window);
    }
}
