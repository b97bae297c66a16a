//! Registry rows that an operator sets up and changes under one seed: agents with limits,
//! budgets, policies, a gateway that can be paused.
//!
//! [`crate::check`] knows the row names: the policy `ask` requires approval for the agent
//! `async`, the policy `broken` cannot be parsed.

use crate::random::SeededRandom;
use crate::world::Rule;
use serde_json::{Value, json};
use sluice_core::money::Money;
use sluice_govern::policy::DEFAULT;
use sluice_govern::registry::{Kind, Row};
use std::collections::BTreeMap;

/// A cent in micro-cents.
const CENT: u64 = 1_000_000;
/// A policy that requires approval for the agent `async`.
pub(crate) const ASK: &str = "ask.cedar";
/// A policy that cannot be parsed.
pub(crate) const BROKEN: &str = "broken.cedar";
/// Budgets by name, with their scopes.
const BUDGETS: [(&str, &str, Option<&str>, &str); 4] = [
    ("all", "global", None, "total"),
    ("leaf", "workflow", Some("leaf"), "monthly"),
    ("edge-day", "agent", Some("edge"), "daily"),
    ("here", "gateway", Some("local"), "weekly"),
];

/// The current rows.
pub(crate) struct Registry {
    rows: BTreeMap<(Kind, String), Value>,
    window_s: u64,
    chance: SeededRandom,
}

/// One change: rows to put, and rows to remove.
pub(crate) type Edit = (Vec<Row>, Vec<(Kind, String)>);

impl Registry {
    /// Initial rows of a seed.
    pub(crate) fn of(seed: u64) -> Registry {
        let mut chance = SeededRandom::of(&[seed, 7]);
        let window_s = chance.between(1, 8);
        let mut registry = Registry { rows: BTreeMap::new(), window_s, chance };
        for agent in ["edge", "async"] {
            if registry.chance.permille(850) {
                let row = registry.agent();
                registry.rows.insert((Kind::Agent, agent.to_owned()), row);
            }
        }
        if registry.chance.permille(500) {
            registry.rows.insert((Kind::Gateway, "local".to_owned()), json!({}));
        }
        if seed.is_multiple_of(2) {
            // A dispatch to this gateway is repeated under the same number until accepted.
            let row = json!({"provider": "async", "url": "https://elsewhere.example"});
            registry.rows.insert((Kind::Gateway, "elsewhere".to_owned()), row);
            let agent = registry.rows.entry((Kind::Agent, "async".to_owned()));
            agent.or_insert_with(|| json!({}))["gateway"] = json!("elsewhere");
        }
        for budget in BUDGETS {
            if registry.chance.permille(450) {
                let row = registry.budget(budget, 0);
                registry.rows.insert((Kind::Budget, budget.0.to_owned()), row);
            }
        }
        registry.policy(DEFAULT.0, DEFAULT.1, "active");
        if registry.chance.permille(300) {
            registry.policy(ASK, &ask(), "active");
        }
        registry
    }

    /// A cap that admits this many steps of a cent each.
    pub(crate) fn capped(cents: u64) -> Registry {
        let row = json!({"scope": "global", "period": "total", "amount_cents": cents});
        let rows = BTreeMap::from([((Kind::Budget, "all".to_owned()), row)]);
        Registry { rows, window_s: 1, chance: SeededRandom::of(&[cents]) }
    }

    /// All rows, for the first change.
    pub(crate) fn all(&self) -> Vec<Row> {
        let row = |((kind, name), body): (&(Kind, String), &Value)| Row {
            kind: *kind,
            name: name.clone(),
            body: body.clone(),
        };
        self.rows.iter().map(row).collect()
    }

    fn agent(&mut self) -> Value {
        let chance = &mut self.chance;
        let mut row = json!({});
        if chance.permille(700) {
            row["max_concurrent_steps"] = json!(chance.between(1, 8));
        }
        if chance.permille(500) {
            // A window of another length would restart, so a seed has one length.
            row["rate"] = json!({"limit": chance.between(2, 20), "window_s": self.window_s});
        }
        if chance.permille(350) {
            row["budget_monthly_cents"] = json!(chance.between(20, 900));
        }
        if chance.permille(400) {
            row["queue_timeout_s"] = json!(chance.between(0, 60));
        }
        row
    }

    fn budget(&mut self, of: (&str, &str, Option<&str>, &str), accepted_cents: u64) -> Value {
        let (_, scope, of, period) = of;
        let mut row = json!({"scope": scope, "period": period});
        if let Some(of) = of {
            row["of"] = json!(of);
        }
        row["amount_cents"] = json!(self.chance.between(5, 900));
        row["accepted_overrun_cents"] = json!(accepted_cents);
        row
    }

    fn policy(&mut self, name: &str, text: &str, set: &str) {
        self.rows.insert((Kind::Policy, name.to_owned()), json!({"text": text, "set": set}));
    }

    /// An ordinary change by an operator.
    pub(crate) fn edit(&mut self) -> Edit {
        let before = self.rows.clone();
        match self.chance.below(12) {
            0 | 1 => self.edit_agent("status", "paused", "idle"),
            2 => self.flip(Kind::Gateway, "local", &json!({"paused": true})),
            3 => self.flip(Kind::Switch, "all", &json!({"held": true})),
            4 => self.flip(Kind::Policy, ASK, &json!({"text": ask(), "set": "active"})),
            5 => self.flip(Kind::Policy, BROKEN, &json!({"text": "forbid (", "set": "active"})),
            6 => {
                let text = "@id(\"no\") forbid (principal, action, resource);";
                let text = format!("{}{text}", DEFAULT.1);
                self.flip(Kind::Policy, "shadow/no", &json!({"text": text, "set": "shadow"}));
            }
            7 | 8 => {
                let agent = *self.chance.pick(&["edge", "async"]);
                let row = self.agent();
                let key = (Kind::Agent, agent.to_owned());
                self.rows.insert(key, row);
            }
            _ => {
                let budget = *self.chance.pick(&BUDGETS);
                let accepted_cents = self.chance.below(40);
                let row = self.budget(budget, accepted_cents);
                self.rows.insert((Kind::Budget, budget.0.to_owned()), row);
            }
        }
        self.since(&before)
    }

    fn edit_agent(&mut self, field: &str, one: &str, other: &str) {
        let agent = *self.chance.pick(&["edge", "async"]);
        if let Some(row) = self.rows.get_mut(&(Kind::Agent, agent.to_owned())) {
            let is_one = row.get(field).is_some_and(|word| word == one);
            row[field] = json!(if is_one { other } else { one });
        }
    }

    fn flip(&mut self, kind: Kind, name: &str, row: &Value) {
        let key = (kind, name.to_owned());
        if self.rows.remove(&key).is_none() {
            self.rows.insert(key, row.clone());
        }
    }

    /// Final changes: whatever is stopped resumes.
    pub(crate) fn reopen(&mut self) -> Edit {
        let before = self.rows.clone();
        for agent in ["edge", "async"] {
            if let Some(row) = self.rows.get_mut(&(Kind::Agent, agent.to_owned())) {
                row["status"] = json!("idle");
            }
        }
        self.rows.remove(&(Kind::Gateway, "local".to_owned()));
        self.rows.remove(&(Kind::Switch, "all".to_owned()));
        self.rows.remove(&(Kind::Policy, BROKEN.to_owned()));
        self.since(&before)
    }

    fn since(&self, before: &BTreeMap<(Kind, String), Value>) -> Edit {
        let put = self.all().into_iter().filter(|row| {
            let key = (row.kind, row.name.clone());
            before.get(&key) != Some(&row.body)
        });
        let gone = before.keys().filter(|key| !self.rows.contains_key(key)).cloned();
        (put.collect(), gone.collect())
    }
}

fn ask() -> String {
    "@id(\"ask\") @action(\"require_approval\") @approvers(\"bob\")
     forbid (principal == Agent::\"async\", action == Action::\"dispatch_step\", resource);"
        .to_owned()
}

/// Quoted maximum cost of a dispatch of a step.
pub(crate) fn worst(rule: Rule, seed: u64, step: &str) -> Money {
    if rule == Rule::Thousand {
        return Money::from_micro_cents(CENT);
    }
    let name = step.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    Money::from_micro_cents(SeededRandom::of(&[seed, 8, name]).between(1, 5 * CENT))
}
