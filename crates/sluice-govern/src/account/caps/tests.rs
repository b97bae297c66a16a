use super::*;
use crate::registry::{Kind, Row};
use proptest::prelude::*;
use serde_json::{Value, json};

/// 2026-11-15, a Sunday.
const NOW_MS: u64 = 1_794_700_800_000;

fn money(micro_cents: u64) -> Money {
    Money::from_micro_cents(micro_cents)
}

fn fabric(budgets: &[(&str, Value)]) -> Fabric {
    let rows: Vec<Row> = budgets
        .iter()
        .map(|(name, body)| Row {
            kind: Kind::Budget,
            name: (*name).to_owned(),
            body: body.clone(),
        })
        .collect();
    let fabric = Fabric::read(1, &rows);
    assert!(fabric.broken.is_empty(), "{:?}", fabric.broken);
    fabric
}

fn budget(scope: &str, of: Option<&str>, period: &str) -> Value {
    let mut body = json!({"scope": scope, "period": period, "amount_cents": 5});
    if let Some(of) = of {
        body["of"] = json!(of);
    }
    body
}

const CAPS: [RunCap<'static>; 2] = [
    RunCap { run: "run_1", name: "this run", amount: Money::from_micro_cents(7) },
    RunCap { run: "run_0", name: "root run", amount: Money::from_micro_cents(9) },
];

fn spender() -> Spender<'static> {
    Spender {
        now_ms: NOW_MS,
        agent: None,
        role: None,
        runs: &["run_1", "run_0"],
        run_caps: &CAPS,
        workflow: "report",
        gateway: Some("local"),
    }
}

fn accounts(caps: &[Cap<'_>]) -> Vec<String> {
    caps.iter().map(|cap| format!("{} {}", cap.account, cap.amount.micro_cents())).collect()
}

#[test]
fn a_step_keeps_to_its_role_its_agent_and_every_run_above_it() {
    let agent = Agent { budget_monthly_cents: Some(money(3)), ..Agent::default() };
    let role = Role { max_spend_cents: Some(money(2)), ..Role::default() };
    let fabric = Fabric::default();
    let caps = caps_for(
        &fabric,
        &Spender { agent: Some(("scribe", &agent)), role: Some(("writer", &role)), ..spender() },
    );
    assert_eq!(
        accounts(&caps),
        ["role/run_1/writer 2", "agent/scribe/2026-11 3", "run/run_1 7", "run/run_0 9"]
    );
    assert_eq!(caps[1].name, "agent scribe, monthly");
    assert_eq!(caps[1].whose, CapGate::Agent);
    assert_eq!(caps[2].whose, CapGate::Budget);
}

#[test]
fn budgets_apply_by_scope_and_begin_anew_by_period() {
    let mut off = budget("global", None, "daily");
    off["enabled"] = json!(false);
    let fabric = fabric(&[
        ("a", budget("global", None, "daily")),
        ("b", budget("gateway", Some("local"), "weekly")),
        ("c", budget("gateway", Some("cloud"), "weekly")),
        ("d", budget("agent", Some("scribe"), "monthly")),
        ("e", budget("workflow", Some("report"), "total")),
        ("f", budget("workflow", Some("other"), "total")),
        ("g", budget("agent", None, "total")),
        ("h", off),
        ("i", budget("run", None, "daily")),
        ("j", budget("run", Some("run_0"), "daily")),
        ("k", budget("run", Some("run_9"), "daily")),
    ]);
    let agent = Agent::default();
    let spender = Spender { run_caps: &[], ..spender() };
    let without = caps_for(&fabric, &spender);
    assert_eq!(
        accounts(&without),
        [
            "envelope/a/2026-11-15 5000000",
            "envelope/b/2026-11-15 5000000",
            "envelope/e/total 5000000",
            "envelope/i/2026-11-15 5000000",
            "envelope/j/2026-11-15 5000000",
        ]
    );
    let with = caps_for(&fabric, &Spender { agent: Some(("scribe", &agent)), ..spender });
    let names: Vec<&str> = with.iter().map(|cap| cap.name.as_ref()).collect();
    assert_eq!(names, ["a", "b", "d", "e", "g", "i", "j"]);
}

#[test]
fn a_budget_of_a_run_takes_the_place_of_its_documents_cap() {
    let fabric = fabric(&[("more", budget("run", Some("run_0"), "total"))]);
    let caps = caps_for(&fabric, &spender());
    assert_eq!(accounts(&caps), ["run/run_1 7", "run/run_0 5000000"]);
    let mut off = budget("run", Some("run_0"), "total");
    off["enabled"] = json!(false);
    let fabric = self::fabric(&[("more", off)]);
    assert_eq!(accounts(&caps_for(&fabric, &spender())), ["run/run_1 7", "run/run_0 9"]);
}

#[test]
fn an_overrun_closes_a_cap_until_it_is_accepted() {
    let mut body = budget("global", None, "total");
    body["accepted_overrun_cents"] = json!(0.000_004);
    let fabric = fabric(&[("a", body)]);
    let over = |over: u64| {
        let caps = caps_for(&fabric, &Spender { run_caps: &[], ..spender() });
        let mut caps = caps.into_iter().map(|mut cap| {
            cap.count(money(1), money(over));
            cap
        });
        caps.next().unwrap().over
    };
    assert_eq!(over(4), Money::ZERO);
    assert_eq!(over(5), money(1));
}

#[test]
fn thresholds_are_told_of_when_they_are_reached() {
    let crossed = |amount, before, after| crossed(money(amount), money(before), money(after));
    assert_eq!(crossed(100, 0, 49).len(), 0);
    assert_eq!(crossed(100, 49, 50), [50]);
    assert_eq!(crossed(100, 50, 79).len(), 0);
    assert_eq!(crossed(100, 10, 100), [50, 80, 100]);
    assert_eq!(crossed(100, 100, 200).len(), 0);
    assert_eq!(crossed(0, 0, 0).len(), 0);
    assert_eq!(crossed(0, 0, 1), [50, 80, 100]);
    assert_eq!(crossed(u64::MAX, 0, u64::MAX), [50, 80, 100]);
}

proptest! {
    #[test]
    fn however_it_is_spent_each_threshold_is_told_of_once(
        amount in 0..1000_u64,
        parts in prop::collection::vec(0..300_u64, 0..20),
    ) {
        let (mut spent, mut told) = (0, Vec::new());
        for part in parts {
            told.extend(crossed(money(amount), money(spent), money(spent + part)));
            spent += part;
        }
        prop_assert_eq!(told, crossed(money(amount), Money::ZERO, money(spent)));
    }
}
