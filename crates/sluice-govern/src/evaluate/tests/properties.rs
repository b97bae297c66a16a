//! Properties that hold for any facts.

use super::scene::{NOW_MS, Scene, Who, cap, list, money};
use crate::canonical;
use crate::decision::{Constraints, Decision, Disposition, GateOutcome, Known, expand};
use crate::evaluate;
use crate::facts::{CapGate, Verb, Worst};
use crate::money::Money;
use crate::policy::Policies;
use crate::registry::{
    Agent, AgentStatus, Gateway, Health, Held, Phase, Posture, Rate, Role, TrustedContext,
};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Policy sets that block, hold, warn and request approvals for budgets; loaded once.
static SETS: LazyLock<Vec<Policies>> = LazyLock::new(|| {
    let forbid = "forbid (principal, action, resource)";
    let texts = [
        String::new(),
        format!("{forbid} when {{ context has cost && context.cost > 30000000 }};"),
        format!("@action(\"require_approval\") {forbid};"),
        format!("@action(\"require_approval\") @category(\"budget\") {forbid};"),
        format!("@action(\"warn\") {forbid} unless {{ context.inputs.untrusted }};"),
    ];
    texts.map(|policies| Scene { policies, ..Scene::default() }.set()).into()
});

fn any_agent() -> impl Strategy<Value = Option<Box<Agent>>> {
    let status = prop_oneof![
        4 => Just(AgentStatus::Idle),
        1 => Just(AgentStatus::Paused),
        1 => Just(AgentStatus::Error),
    ];
    let phase = prop_oneof![
        4 => Just(Phase::Production),
        4 => Just(Phase::Poc),
        1 => Just(Phase::Sunset),
    ];
    let agent = (status, phase, 1..=10_u8, prop::option::of(0..3_u32), prop::option::of(0..3_u32));
    let agent = agent.prop_map(|(status, phase, trust_level, max, limit)| Agent {
        status,
        phase,
        phase_since_ms: Some(NOW_MS),
        trust_level,
        max_concurrent_steps: max,
        rate: limit.map(|limit| Rate { limit, window_s: 60 }),
        ..Agent::default()
    });
    prop::option::weighted(0.9, agent.prop_map(Box::new))
}

fn any_gateway() -> impl Strategy<Value = Option<(String, Option<Gateway>)>> {
    let gateway = (1..=10_u8, prop::bool::weighted(0.1)).prop_map(|(min_trust_level, paused)| {
        Gateway { min_trust_level, paused, ..Gateway::default() }
    });
    let named = prop::option::weighted(0.9, gateway).prop_map(|row| ("local".to_owned(), row));
    prop::option::weighted(0.9, named)
}

fn any_role() -> impl Strategy<Value = Option<Role>> {
    let environments = prop::sample::select(vec![vec![], list(&["local"]), list(&["dev"])]);
    let role = (environments, prop::option::of(0..3_u64)).prop_map(|(environments, age)| Role {
        allowed_environments: environments,
        trusted_context: age.map(|age| TrustedContext {
            accepted_source_classes: list(&["human"]),
            max_age_s: Some(age),
        }),
        ..Role::default()
    });
    prop::option::of(role)
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let who = prop_oneof![
        8 => any_agent().prop_map(|row| Who::Agent("scribe".to_owned(), row)),
        1 => any_agent().prop_map(|row| Who::Agent("shell".to_owned(), row)),
        1 => Just(Who::User("ada".to_owned())),
    ];
    let place = (any_gateway(), 0..6_usize, 0..12_usize);
    let counters = (0..3_u32, 0..3_u32, prop::option::of(0..60_u64), 1..=10_u8);
    let whose = prop::sample::select(vec![CapGate::Agent, CapGate::Budget]);
    let caps = prop::collection::vec((whose, 0..100_u64, 0..100_u64), 0..4);
    let inputs = (prop::sample::select(vec![vec![], vec!["human"], vec!["tool"]]), 0..3_usize);
    let asking = (0..4_usize, any::<bool>(), prop::option::of("[0-9a-f]{64}"));
    (who, place, counters, caps, inputs, asking, any_role()).prop_map(
        |(who, (gateway, health, held), counters, caps, (classes, age), asking, role)| Scene {
            who,
            role,
            gateway,
            health: [Health::Degraded, Health::Offline][..]
                .get(health)
                .copied()
                .unwrap_or(Health::Healthy),
            held: if held == 0 { Held::Yes } else { Held::No },
            running: counters.0,
            in_window: counters.1,
            worst: counters.2.map_or(Worst::Unknown, |cents| Worst::Known(money(cents))),
            trust_ceiling: counters.3,
            caps: caps.into_iter().map(|(w, amount, held)| cap(w, "cap", amount, held)).collect(),
            classes,
            age_ms: [None, Some(500), Some(5000)][age],
            posture: [
                Posture::BoundedAutonomous,
                Posture::ApprovalRequired,
                Posture::Retrieval,
                Posture::Advisory,
            ][asking.0],
            asks: asking.1.then(Vec::new),
            grant: asking.2.map(|digest| (digest, Constraints::default())),
            ..Scene::default()
        },
    )
}

fn outcomes(decision: &Decision) -> Vec<GateOutcome> {
    decision.gates.iter().map(|verdict| verdict.outcome).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_facts_have_a_decision_and_the_first_block_ends_it(
        scene in any_scene(),
        set in 0..5_usize,
    ) {
        let evaluated = evaluate(&scene.facts(), &SETS[set]);
        let decision = &evaluated.decision;
        let outcomes = outcomes(decision);
        prop_assert_eq!(outcomes.len(), 10);
        let block = outcomes.iter().position(|outcome| *outcome == GateOutcome::Block);
        let expected = match block {
            Some(at) => {
                let by = decision.blocked_by.as_ref().unwrap();
                prop_assert_eq!(by.gate, decision.gates[at].gate);
                prop_assert!(outcomes[at + 1..].iter().all(|outcome| *outcome == GateOutcome::Skip));
                Disposition::Block
            }
            None if outcomes.contains(&GateOutcome::Hold) => Disposition::Hold,
            None => Disposition::Allow,
        };
        prop_assert_eq!(decision.disposition, expected);
        prop_assert_eq!(decision.blocked_by.is_some(), expected == Disposition::Block);
        prop_assert_eq!(decision.holds.is_empty(), expected != Disposition::Hold);
        prop_assert_eq!(decision.action.is_some(), expected == Disposition::Hold);
        if let Some(action) = &decision.action {
            prop_assert_eq!(&canonical::sha256_hex(action, 512), &decision.action_digest);
        }
        let known = Known { at_ms: NOW_MS, run: "run_1", workflow: "report", step: "write", registered: false, definition: "" };
        let written = evaluated.write(None, 7);
        let whole = expand(serde_json::from_str(&written).unwrap(), &known);
        let mut expected = evaluated.to_json();
        if let Some(cost) = evaluated.facts.cost.filter(|cost| *cost > 0) {
            let dollars = Money::from_micro_cents(cost).to_string();
            expected.insert("worst".to_owned(), serde_json::from_str(&dollars).unwrap());
        }
        expected.insert("registry".to_owned(), 7.into());
        prop_assert_eq!(
            serde_json::to_string(&whole).unwrap(),
            serde_json::to_string(&expected).unwrap(),
            "{}", written
        );
        prop_assert_eq!(&evaluate(&scene.facts(), &SETS[set]), &evaluated);
    }

    #[test]
    fn troubles_are_explained_and_passes_are_silent(scene in any_scene(), set in 0..5_usize) {
        for verdict in evaluate(&scene.facts(), &SETS[set]).decision.gates {
            let trouble = !matches!(verdict.outcome, GateOutcome::Pass | GateOutcome::Skip);
            prop_assert_eq!(verdict.message.is_some(), trouble, "{:?}", verdict);
            prop_assert_eq!(verdict.code.is_some(), trouble, "{:?}", verdict);
            let stops = matches!(verdict.outcome, GateOutcome::Block | GateOutcome::Hold);
            prop_assert!(!stops || verdict.hint.is_some(), "{:?}", verdict);
        }
    }

    #[test]
    fn money_trust_and_context_only_observe_an_agent_on_trial(
        scene in any_scene(),
        set in 0..5_usize,
    ) {
        let facts = scene.facts();
        let decision = evaluate(&facts, &SETS[set]).decision;
        for verdict in &decision.gates[4..8] {
            let stops = matches!(verdict.outcome, GateOutcome::Block | GateOutcome::Hold);
            prop_assert!(!(facts.on_trial() && stops), "{:?}", verdict);
            prop_assert!(facts.on_trial() || !verdict.observe, "{:?}", verdict);
        }
    }

    #[test]
    fn a_grant_for_another_digest_never_passes(scene in any_scene()) {
        let scene = Scene { asks: Some(Vec::new()), ..scene };
        prop_assert_ne!(evaluate(&scene.facts(), &SETS[0]).decision.disposition, Disposition::Allow);
    }

    #[test]
    fn nothing_is_allowed_past_a_cap(scene in any_scene(), set in 0..5_usize) {
        let facts = scene.facts();
        let decision = evaluate(&facts, &SETS[set]).decision;
        if decision.disposition == Disposition::Allow && !facts.on_trial() {
            prop_assert!(!facts.short_of_money());
        }
    }

    #[test]
    fn the_first_gates_stop_what_cannot_work_whatever_the_action(scene in any_scene()) {
        let scene = Scene { held: Held::Yes, verb: Verb::DispatchStep, ..scene };
        let facts = scene.facts();
        if facts.place.is_some() || matches!(scene.who, Who::Agent(..)) {
            let decision = evaluate(&facts, &SETS[0]).decision;
            prop_assert_eq!(decision.blocked_by.unwrap().gate, "gateway_health");
        }
    }
}
