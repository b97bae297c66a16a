//! Moves and views for scripts of governed runs.

use super::super::command::{Command, Decision};
use super::super::projection::project;
use super::world::World;
use super::{Move, Script, outputs_of};
use crate::journal::event::{Event, StepEvent};
use crate::money::Money;
use crate::port::adapter::{Answer, CallErrorCode, Usage};
use crate::port::authority::fake::FakeAuthority as Desk;
use serde_json::{Map, Value, json};
use sluice_govern::decision::Known;
use sluice_govern::policy::{self, Policies};
use sluice_govern::registry::{Agent, Budget, Period, Scope};

/// An amount in cents.
pub(super) fn cents(cents: u64) -> Money {
    Money::from_micro_cents(cents * 1_000_000)
}

/// The default policies and these rules.
pub(super) fn rules(own: &str) -> Policies {
    let (name, text) = policy::DEFAULT;
    let files = [(name.to_owned(), text.to_owned()), ("own.cedar".to_owned(), own.to_owned())];
    Policies::load(&files).expect("the rules load")
}

/// A budget that applies.
pub(super) fn budget(scope: Scope, of: Option<&str>, period: Period, amount: u64) -> Budget {
    Budget {
        scope,
        of: of.map(str::to_owned),
        period,
        amount_cents: cents(amount),
        enabled: true,
        accepted_overrun_cents: Money::ZERO,
    }
}

impl Desk {
    /// Sets the row of an agent.
    pub(super) fn agent_row(&mut self, name: &str, set: impl FnOnce(&mut Agent)) {
        set(self.fabric.agents.entry(name.to_owned()).or_default());
    }

    /// Sets the highest cost of steps, in cents.
    pub(super) fn quoted(&mut self, steps: &[&str], most: u64) {
        self.quotes.extend(steps.iter().map(|&step| (step.to_owned(), cents(most))));
    }

    /// Sets a budget.
    pub(super) fn budget_row(&mut self, name: &str, budget: Budget) {
        self.fabric.budgets.insert(name.to_owned(), budget);
    }
}

impl Script {
    /// Changes rows, policies or counters without a turn.
    pub(super) fn set(self, set: impl FnOnce(&mut Desk) + 'static) -> Script {
        self.play(Move::Set(Box::new(set)))
    }

    /// Makes a turn without a command.
    pub(super) fn look(self) -> Script {
        self.play(Move::Turn(Vec::new()))
    }

    /// A dispatch in flight succeeds and reports its cost.
    pub(super) fn costs(self, step: &str, cost: u64) -> Script {
        let usage = Usage { cost: cents(cost), ..Usage::default() };
        self.answers(step, Answer { usage, ..outputs_of(json!({})) })
    }

    /// A dispatch in flight fails and reports its cost.
    pub(super) fn fails_at(self, step: &str, code: CallErrorCode, cost: u64) -> Script {
        let usage = Usage { cost: cents(cost), ..Usage::default() };
        self.answers(step, Answer { usage, ..Answer::failed(code, "it broke") })
    }

    /// The cost of an aborted dispatch is reported late.
    pub(super) fn late(self, step: &str, dispatch_no: u32, cost: Money) -> Script {
        let step = step.to_owned();
        let usage = Usage { cost, ..Usage::default() };
        let answer = Answer { usage, ..outputs_of(json!({})) };
        self.turn(move |world| Command::Complete {
            at: world.at(&step),
            dispatch_no,
            answer: Box::new(answer.clone()),
        })
    }

    /// A person with some roles decides an approval.
    pub(super) fn answered(
        self,
        step: &str,
        (decision, comment): (Decision, Option<&str>),
        (by, roles): (&str, &[&str]),
        constraints: Value,
    ) -> Script {
        let (step, by) = (step.to_owned(), by.to_owned());
        let roles: Vec<String> = roles.iter().map(|&role| role.to_owned()).collect();
        let comment = comment.map(str::to_owned);
        let constraints = (!constraints.is_null())
            .then(|| serde_json::from_value(constraints).expect("these are constraints"));
        self.turn(move |world| {
            let command = world.resolve(&step, decision, comment.clone(), Map::new());
            let Command::Resolve(mut resolve) = command else { panic!("an answer") };
            resolve.by.clone_from(&by);
            resolve.roles.clone_from(&roles);
            resolve.constraints.clone_from(&constraints);
            Command::Resolve(resolve)
        })
    }

    pub(super) fn approve_as(self, step: &str, by: &str, roles: &[&str]) -> Script {
        self.answered(step, (Decision::Approve, None), (by, roles), Value::Null)
    }

    pub(super) fn tighten(self, step: &str, by: &str, constraints: Value) -> Script {
        self.answered(step, (Decision::Approve, None), (by, &[]), constraints)
    }

    /// Prints why a step waits and what ends the wait.
    pub(super) fn show_wait(self, step: &str) -> Script {
        let step = step.to_owned();
        self.show(move |world| {
            let shown = project(&world.run);
            let node = shown.node_results.iter().find(|node| node.node_id == step);
            let node = node.expect("the step is shown");
            let reason = node.waiting_reason.map_or("nothing".to_owned(), |why| why.to_string());
            let hint = node.unblock_hint.clone().unwrap_or_default();
            format!("{step} is {} and waits for {reason}: {hint}", node.status)
        })
    }

    /// Prints the last decision about a step, without the gates that passed.
    pub(super) fn show_gates(self, step: &str) -> Script {
        let step = step.to_owned();
        self.show(move |world| {
            let decision = last_decision(world, &step);
            let gates = decision["gates"].as_array().expect("gates");
            let told = gates.iter().filter_map(|gate| {
                let outcome = gate["outcome"].as_str()?;
                let message = gate["message"].as_str().unwrap_or_default();
                let observe = if gate["observe"] == true { " (observe)" } else { "" };
                let name = gate["gate"].as_str()?;
                (!matches!(outcome, "pass" | "skip"))
                    .then(|| format!("\n  {name} {outcome}{observe}: {message}"))
            });
            format!("gates of {step}: {}{}", decision["disposition"], told.collect::<String>())
        })
    }

    /// Prints what is reserved, spent and overrun in every account, in dollars.
    pub(super) fn show_money(self) -> Script {
        self.show(|world| {
            let money = |kind: &str, account: &str| {
                let count = world.desk.counts.get(&format!("{kind}:{account}"));
                let count = count.copied().unwrap_or_default();
                Money::from_micro_cents(u64::try_from(count).expect("no account is negative"))
            };
            let accounts = world.desk.counts.keys().filter_map(|one| one.strip_prefix("held:"));
            let lines = accounts.map(|account| {
                let (held, spent, over) =
                    (money("held", account), money("spent", account), money("over", account));
                let over = if over.is_zero() { String::new() } else { format!(" over={over}") };
                format!("{account} held={held} spent={spent}{over}")
            });
            format!("money: {}", lines.collect::<Vec<_>>().join(", "))
        })
    }

    /// Prints the counters with this prefix.
    pub(super) fn show_counts(self, prefix: &str) -> Script {
        let prefix = prefix.to_owned();
        self.show(move |world| {
            let counts = world.desk.counts.iter().filter(|(name, _)| name.starts_with(&prefix));
            let counts: Vec<String> =
                counts.map(|(name, count)| format!("{name}={count}")).collect();
            format!("counts: {}", counts.join(", "))
        })
    }
}

pub(super) fn last_decision(world: &World, step: &str) -> Map<String, Value> {
    let at = world.at(step);
    let decided = world.journal.iter().rev().find_map(|(_, event)| match event {
        Event::Step(one, StepEvent::GovernanceDecided(decision)) if *one == at => Some(decision),
        _ => None,
    });
    let decided = decided.expect("the gates were asked");
    let known = Known { at_ms: 0, run: "", workflow: "", step, registered: false, definition: "" };
    let decided = decided.whole(&known);
    decided.as_object().expect("a decision is an object").clone()
}
