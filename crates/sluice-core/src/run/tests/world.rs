//! The run of a script, with its journal, its clock and its registry.

use super::super::command::{Command, Decision, Dispatching, Given, Resolve};
use super::super::decide::{Decided, Turn};
use super::super::definition::Definition;
use super::super::due::Effect;
use super::super::history::counters::open_name;
use super::super::start::{Carried, start};
use super::super::state::Run;
use super::label_oracle::LabelOracle;
use super::{order, outputs_of};
use crate::id::Entropy;
use crate::id::{ApprovalId, RunId};
use crate::journal::event::{Event, Path, RunStarted, StepAt, StepEvent};
use crate::plan::Plan;
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::port::moderator::Verdict;
use crate::status::RunStatus;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The time at which scripts begin.
pub(super) const START_MS: u64 = 1_700_000_000_000;

/// Entropy that is the same in every test.
pub(super) struct Seeded(pub(super) u64);

impl Entropy for Seeded {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// The run that a script drives.
pub(super) struct World {
    pub(super) run: Run,
    /// Every event so far, and when it happened.
    pub(super) journal: Vec<(u64, Event)>,
    /// The output of the script so far.
    pub(super) told: String,
    pub(super) now_ms: u64,
    pub(super) dispatching: Dispatching,
    /// Registry rows, policies and counters.
    pub(super) desk: Desk,
    entropy: Seeded,
    /// The time of the last line of output.
    told_ms: u64,
    /// The number of printed events.
    pub(super) shown: usize,
    /// Short names for ids, in order of appearance.
    names: BTreeMap<u128, String>,
    /// What other runs have reserved of the counters that this run uses.
    others: BTreeMap<String, i64>,
}

impl World {
    pub(super) fn start(
        plan: Plan,
        document: String,
        args: Map<String, Value>,
        set: impl FnOnce(&mut RunStarted),
        carried: Carried,
        desk: Desk,
    ) -> World {
        let definition = Arc::new(Definition::new(plan, document));
        let id = RunId(7);
        let mut started = RunStarted {
            workflow: definition.plan.name.clone(),
            definition_hash: definition.hash.clone(),
            args: Arc::new(args),
            default_agent: Some("mock".to_owned()),
            gateway: "local".to_owned(),
            initiator: "ada".to_owned(),
            ..RunStarted::default()
        };
        set(&mut started);
        let mut entropy = Seeded(1);
        let dispatching = Dispatching::Allowed;
        let given =
            Given { now_ms: START_MS, entropy: &mut entropy, dispatching, authority: &desk };
        let (run, decided) = start(id, definition, started, carried, given);
        let others = taken_beside(&desk, None);
        let names = [(7, "run".to_owned()), (3, "parent".to_owned())];
        let mut world = World {
            run,
            journal: Vec::new(),
            told: String::new(),
            now_ms: START_MS,
            dispatching,
            desk,
            entropy,
            told_ms: START_MS,
            shown: 0,
            names: names.into_iter().collect(),
            others,
        };
        world.record(decided);
        world
    }

    /// Makes one turn.
    pub(super) fn turn(&mut self, commands: Vec<Command>) {
        let mut refused = Vec::new();
        let given = Given {
            now_ms: self.now_ms,
            entropy: &mut self.entropy,
            dispatching: self.dispatching,
            authority: &self.desk,
        };
        let mut turn = Turn::new(&mut self.run, given);
        for command in commands {
            if let Err(refusal) = turn.apply(command) {
                refused.push(format!("refused: {} ({refusal})", refusal.code()));
            }
        }
        let decided = turn.finish();
        for line in refused {
            let line = self.shorten(&line);
            self.say(&line);
        }
        self.record(decided);
    }

    /// Advances the clock and fires timers.
    pub(super) fn advance(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while let Some(due_ms) = self.run.next_due_ms().filter(|due_ms| *due_ms <= until_ms) {
            assert!(due_ms >= self.now_ms, "a timer that was due has not fired");
            self.now_ms = due_ms;
            let before = self.journal.len();
            self.turn(Vec::new());
            assert!(self.journal.len() > before, "a timer fired and nothing happened");
        }
        self.now_ms = until_ms;
    }

    /// Answers every dispatch in flight.
    pub(super) fn answer_all(&mut self) {
        for _ in 0..1000 {
            let Some(effect) = self.run.due().next() else { return };
            let command = match effect {
                Effect::Dispatch { at, dispatch_no } => {
                    let answer = Box::new(outputs_of(json!({"n": at.step})));
                    let command = Box::new(Command::Complete { at, dispatch_no, answer });
                    Command::Checked { command, verdict: Verdict::Clear }
                }
                Effect::Moderate { at } => self.judged(at, Verdict::Clear),
                Effect::Child { child, .. } => Command::ChildEnded {
                    child,
                    status: RunStatus::Completed,
                    outputs: Some(json!({})),
                    error: None,
                    origins: Vec::new(),
                    labels: None,
                },
            };
            self.turn(vec![command]);
        }
        panic!("the run does not come to an end");
    }

    /// Checks that the output begins with these lines, and removes them.
    pub(super) fn begins(&mut self, lines: &str) {
        let rest = self.told.strip_prefix(lines).map(str::to_owned);
        self.told = rest.unwrap_or_else(|| panic!("it begins otherwise:\n{}", self.told));
    }

    /// Changes rows, policies or counters.
    pub(super) fn set(&mut self, set: impl FnOnce(&mut Desk)) {
        set(&mut self.desk);
        self.desk.fabric.epoch += 1;
        self.others = taken_beside(&self.desk, Some(&self.run));
    }

    fn record(&mut self, decided: Decided) {
        self.desk.take(&decided.guards).expect("a turn keeps to what it was told");
        for remembered_output in decided.remembered_outputs {
            self.desk.remembered_outputs.insert(0, remembered_output);
        }
        let others = taken_beside(&self.desk, Some(&self.run));
        assert_eq!(others, self.others, "what is taken is given back once");
        for event in decided.events {
            // Most decisions allow: scripts print only the others.
            let passed = is_allow(&event);
            self.journal.push((self.now_ms, event));
            if passed {
                continue;
            }
            self.shown += 1;
            let line = self.line(self.journal.len());
            if self.told_ms != self.now_ms {
                let passed = crate::duration::format(self.now_ms - START_MS);
                self.told.push_str(&format!("after {passed}\n"));
                self.told_ms = self.now_ms;
            }
            self.say(&line);
        }
        for message in decided.messages {
            let body =
                super::super::message::encode(&message.command).expect("messages can be sent");
            let read =
                super::super::message::decode(&body, |_| None).expect("messages can be read");
            assert_eq!(read, message.command);
            let body = String::from_utf8(body).expect("messages are text");
            let line = self.shorten(&format!("message to {}: {body}", message.run));
            self.say(&line);
        }
        self.verify();
    }

    pub(super) fn say(&mut self, line: &str) {
        self.told.push_str(line);
        self.told.push('\n');
    }

    /// Replays the journal and compares the runs.
    pub(super) fn verify(&self) {
        let definition = Arc::clone(&self.run.definition);
        let mut replayed = Run::new(self.run.id, definition, Arc::clone(&self.run.started));
        let mut order = order::Order::default();
        let mut labels = LabelOracle::default();
        for (at_ms, event) in &self.journal {
            order.before(&replayed, event);
            labels.check(&replayed, event);
            replayed.evolve(event, *at_ms);
            assert_eq!(replayed.index, replayed.reindex(), "after {}", event.name());
            order.after(&replayed, event);
        }
        assert_same(&replayed, &self.run);
        order.end(&replayed);
        labels.end(&replayed);
    }

    pub(super) fn at(&self, step: &str) -> StepAt {
        self.run.find(step).unwrap_or_else(|| panic!("there is no step {step}"))
    }

    pub(super) fn child_of(&self, step: &str) -> RunId {
        match self.run.state(self.at(step)).path() {
            Some(Path::Child(child)) => child,
            other => panic!("{step} has no child: {other:?}"),
        }
    }

    pub(super) fn resolve(
        &self,
        step: &str,
        decision: Decision,
        comment: Option<String>,
        values: Map<String, Value>,
    ) -> Command {
        let at = self.at(step);
        let asked = self.journal.iter().rev().find_map(|(_, event)| match event {
            Event::Step(one, StepEvent::ApprovalRequested(asked)) if *one == at => {
                Some(asked.approval)
            }
            _ => None,
        });
        let approval = asked.unwrap_or(ApprovalId(99));
        let by = "bob".to_owned();
        let (roles, constraints) = (Vec::new(), None);
        let resolve = Resolve { approval, decision, by, comment, values, roles, constraints };
        Command::Resolve(Box::new(resolve))
    }

    /// The moderator answers about the inputs of a step.
    pub(super) fn judged(&self, at: StepAt, verdict: Verdict) -> Command {
        let asked = self.run.input_subject(at).map(|(digest, _)| digest);
        Command::Moderated { at, digest: asked.unwrap_or_default(), verdict }
    }

    pub(super) fn due(&self) -> String {
        let effects = self.run.due().map(|effect| match effect {
            Effect::Dispatch { at, dispatch_no } => {
                let request = self.run.request(at);
                let key = &request.idempotency_key[..6];
                format!("{} dispatch={dispatch_no} key={key}", self.run.name(at))
            }
            Effect::Moderate { at } => {
                let (_, subject) = self.run.input_subject(at).expect("something is asked");
                format!("{} moderator {:?}", subject.step, subject.text)
            }
            Effect::Child { at, child } => {
                format!("{} {}", self.run.name(at), self.shorten_known(&child.to_string()))
            }
        });
        format!("due: {}", effects.collect::<Vec<_>>().join(", "))
    }

    /// Names ids by their order of appearance.
    pub(super) fn shorten(&mut self, text: &str) -> String {
        let mut short = String::new();
        let mut rest = text;
        while let Some(at) = next_id(rest) {
            let id = &rest[at..at + 36];
            let (kind, digits) = id.split_at(4);
            let number = u128::from_str_radix(digits, 16).expect("an id has digits");
            let kind = if kind == "run_" { "child" } else { "apr" };
            let known = self.names.values().filter(|name| name.starts_with(kind)).count();
            let name = self.names.entry(number).or_insert_with(|| format!("{kind}{}", known + 1));
            short.push_str(&rest[..at]);
            short.push_str(name);
            rest = &rest[at + 36..];
        }
        short.push_str(rest);
        short
    }

    fn shorten_known(&self, id: &str) -> String {
        let number = u128::from_str_radix(&id[4..], 16).expect("an id has digits");
        self.names.get(&number).cloned().unwrap_or_else(|| id.to_owned())
    }
}

/// What other runs have reserved and use.
fn taken_beside(desk: &Desk, run: Option<&Run>) -> BTreeMap<String, i64> {
    let mut taken: BTreeMap<String, i64> = BTreeMap::new();
    for (counter, count) in &desk.counts {
        match counter.split_once(':') {
            Some(("held", account)) => *taken.entry(account.to_owned()).or_default() += count,
            Some(("spent", account)) => *taken.entry(account.to_owned()).or_default() -= count,
            Some(("history-open", _)) => {
                *taken.entry(counter.clone()).or_default() += count;
            }
            Some(("busy", _)) => *taken.entry(counter.clone()).or_default() += count,
            _ => {}
        }
    }
    let flying = run.iter().flat_map(|run| {
        run.index.in_flight.keys().map(|at| run.state(*at).terms().expect("terms"))
    });
    let calls = run.iter().flat_map(|run| run.all()).flat_map(|(_, state)| state.calls.values());
    let amounts = calls.flat_map(|call| &call.taken);
    for one in amounts.chain(flying.clone().flat_map(|terms| &terms.history)) {
        *taken.entry(open_name(&one.counter)).or_default() -= one.amount;
    }
    for terms in flying.clone() {
        if let Some(agent) = &terms.slot {
            *taken.entry(format!("busy:{agent}")).or_default() -= 1;
        }
    }
    let open = run.iter().flat_map(|run| run.open.values().map(|open| &open.terms));
    for terms in flying.chain(open) {
        for account in &terms.accounts {
            let reserved = i64::try_from(terms.reserved.micro_cents()).expect("a small sum");
            *taken.entry(account.name.to_string()).or_default() -= reserved;
        }
    }
    taken.retain(|_, count| *count != 0);
    taken
}

fn is_allow(event: &Event) -> bool {
    let Event::Step(_, StepEvent::GovernanceDecided(decision)) = event else { return false };
    decision.value()["disposition"] == "allow"
}

/// The position of the next id in a text.
fn next_id(text: &str) -> Option<usize> {
    let is_id = |at: usize| {
        let digits = text.get(at + 4..at + 36);
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let runs = text.match_indices("run_").map(|(at, _)| at);
    let approvals = text.match_indices("apr_").map(|(at, _)| at);
    runs.chain(approvals).filter(|at| is_id(*at)).min()
}

/// Asserts that two runs have the same state.
fn assert_same(replayed: &Run, live: &Run) {
    let Run {
        id,
        definition: _,
        started,
        version,
        tip,
        status,
        pause,
        started_at_ms,
        ended_at_ms,
        end,
        cancel_reason,
        halted_by,
        reopened,
        recoveries,
        checkpoints,
        writers,
        steps,
        approvals,
        provenance,
        taken,
        open,
        history,
        clock,
        seen,
        answers,
        args,
        index,
    } = replayed;
    assert_eq!(*id, live.id);
    assert_eq!((started, args), (&live.started, &live.args));
    assert_eq!(*tip, live.tip);
    assert_eq!((*version, *status, *pause), (live.version, live.status, live.pause));
    assert_eq!((*started_at_ms, *ended_at_ms), (live.started_at_ms, live.ended_at_ms));
    assert_eq!((end, cancel_reason), (&live.end, &live.cancel_reason));
    assert_eq!((*halted_by, *reopened), (live.halted_by, live.reopened));
    assert_eq!(*recoveries, live.recoveries);
    assert_eq!((*checkpoints, writers), (live.checkpoints, &live.writers));
    assert_eq!(*steps, live.steps);
    assert_eq!(*approvals, live.approvals);
    assert_eq!(*open, live.open);
    assert_eq!(*history, live.history);
    assert_eq!((*provenance, *clock), (live.provenance, live.clock));
    assert_eq!(*taken, live.taken);
    assert_eq!(*seen, live.seen);
    assert_eq!(*answers, live.answers);
    assert_eq!(*index, live.index);
}
