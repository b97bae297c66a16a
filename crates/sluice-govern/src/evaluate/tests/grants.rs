//! Grants, constraints and shadow sets of a decision.

use super::scene::{Scene, cap, list, money};
use crate::canonical;
use crate::decision::{Constraints, Disposition};
use crate::evaluate;
use crate::facts::CapGate;
use crate::policy::Policies;
use crate::registry::Posture;
use expect_test::expect;
use serde_json::json;

const ASK: &str =
    "@id(\"ask\") @action(\"require_approval\") forbid (principal, action, resource);";
const ASK_ABOUT_MONEY: &str = "@id(\"money\") @action(\"require_approval\") \
     @category(\"budget\") forbid (principal, action, resource);";

/// A scene that is held, and the digest its approvers agree to.
fn held() -> (Scene, String) {
    let scene = Scene { policies: ASK.to_owned(), ..Scene::default() };
    let decision = scene.decide();
    assert_eq!(decision.disposition, Disposition::Hold);
    (scene, decision.action_digest)
}

/// The digest of a scene's action with an approver's constraints.
fn tightened(scene: &Scene, by: &Constraints) -> String {
    let decision = scene.decide();
    let mut action = decision.action.unwrap();
    assert_eq!(canonical::sha256_hex(&action, 512), decision.action_digest);
    let constraints = decision.constraints.tighten(by).unwrap();
    if let Some(max_cost) = constraints.max_cost {
        action["cost_ceiling"] = json!(max_cost);
    }
    action["constraints"] = json!(constraints);
    canonical::sha256_hex(&action, 512)
}

#[test]
fn an_unrelated_policy_does_not_void_a_grant_and_a_changed_one_does() {
    let (mut scene, digest) = held();
    scene.grant = Some((digest, Constraints::default()));
    assert_eq!(scene.decide().disposition, Disposition::Allow);
    scene.policies = format!("{ASK} forbid (principal == Agent::\"clerk\", action, resource);");
    assert_eq!(scene.decide().disposition, Disposition::Allow);
    scene.policies = ASK.replace("resource)", "resource) when { true }");
    assert_eq!(scene.decide().disposition, Disposition::Hold);
    scene.policies = format!("{ASK} @action(\"log\") forbid (principal, action, resource);");
    assert_eq!(scene.decide().disposition, Disposition::Hold);
}

#[test]
fn a_grant_with_tighter_constraints_is_for_the_tighter_action() {
    let (mut scene, digest) = held();
    let by = Constraints {
        tools_allow: Some(list(&["read"])),
        max_cost: Some(money(5)),
        ..Constraints::default()
    };
    scene.grant = Some((tightened(&scene, &by), by.clone()));
    let decision = scene.decide();
    assert_eq!(decision.disposition, Disposition::Allow);
    assert_eq!(decision.constraints.tools_allow, by.tools_allow);
    assert_eq!(decision.constraints.max_cost, Some(money(5)));
    assert_eq!(Some(decision.action_digest), scene.grant.map(|(digest, _)| digest));
    scene.grant = Some((digest, by));
    let decision = scene.decide();
    assert_eq!(decision.disposition, Disposition::Hold);
    assert_eq!(decision.constraints.tools_allow, None, "a new question is about the whole action");
}

#[test]
fn what_a_person_agreed_to_while_money_was_short_holds_once_the_cap_is_raised() {
    let mut scene = Scene {
        policies: ASK_ABOUT_MONEY.to_owned(),
        caps: vec![cap(CapGate::Budget, "daily", 10, 0)],
        asks: Some(Vec::new()),
        ..Scene::default()
    };
    let decision = scene.decide();
    assert_eq!(decision.disposition, Disposition::Hold);
    scene.grant = Some((decision.action_digest, Constraints::default()));
    let still = scene.decide();
    assert_eq!(still.disposition, Disposition::Hold);
    assert_eq!(still.gates[9].hint.as_deref(), Some("raise the cap first, then approve"));
    scene.caps = vec![cap(CapGate::Budget, "daily", 100, 0)];
    assert_eq!(scene.decide().disposition, Disposition::Allow);
}

#[test]
fn a_block_keeps_no_question_alive() {
    let scene = Scene {
        policies: format!(
            "{ASK_ABOUT_MONEY} {ASK} @id(\"no\") forbid (principal, action, resource);"
        ),
        caps: vec![cap(CapGate::Budget, "daily", 10, 0)],
        ..Scene::default()
    };
    let decision = scene.decide();
    assert_eq!(decision.disposition, Disposition::Block);
    assert_eq!(decision.holds, []);
}

#[test]
fn constraints_are_what_role_agent_and_posture_leave() {
    let mut scene = Scene::default();
    scene.role().allowed_environments = list(&["local", "dev"]);
    scene.agent().tools.allow = list(&["read", "write"]);
    scene.agent().tools.deny = list(&["mail"]);
    scene.agent().tools.read_only = list(&["read", "look"]);
    scene.posture = Posture::Retrieval;
    scene.constraints.max_output_tokens = Some(100);
    let decision = scene.decide();
    assert_eq!(
        serde_json::to_value(&decision.constraints).unwrap(),
        json!({
            "environments": ["local", "dev"],
            "tools_allow": ["read"],
            "tools_deny": ["mail"],
            "data_access": "read_only",
            "max_cost": 25_000_000,
            "max_output_tokens": 100,
        })
    );
}

#[test]
fn widening_is_refused_by_name() {
    let own = Constraints {
        environments: list(&["dev"]),
        tools_allow: Some(list(&["read"])),
        tools_deny: list(&["mail"]),
        data_access: Some("read_only".to_owned()),
        max_cost: Some(money(5)),
        max_output_tokens: Some(10),
    };
    for (by, refusal) in [
        (json!({"environments": ["production"]}), "environments: production is not among dev"),
        (json!({"tools_allow": ["read", "write"]}), "tools_allow: write is not among read"),
        (json!({"data_access": "read_write"}), "data_access read_write is more than read_only"),
        (json!({"data_access": "all"}), "data_access is read_only or read_write, not all"),
        (json!({"max_cost": 5_000_001}), "max_cost: 5000001 is more than 5000000"),
        (json!({"max_output_tokens": 11}), "max_output_tokens: 11 is more than 10"),
    ] {
        let by: Constraints = serde_json::from_value(by).unwrap();
        assert_eq!(own.tighten(&by).unwrap_err(), refusal);
    }
    assert_eq!(own.tighten(&Constraints::default()).unwrap(), own);
    let by = Constraints { tools_deny: list(&["fly"]), ..Constraints::default() };
    assert_eq!(own.tighten(&by).unwrap().tools_deny, ["mail", "fly"]);
    let none = Constraints { tools_allow: Some(Vec::new()), ..Constraints::default() };
    assert_eq!(own.tighten(&none).unwrap().tools_allow, Some(Vec::new()));
}

#[test]
fn a_set_in_shadow_is_recorded_and_enforces_nothing() {
    let scene = Scene::default();
    let shadow = Scene { policies: ASK.to_owned(), ..Scene::default() }.set();
    let hash = shadow.hash().to_owned();
    let decision = evaluate(&scene.facts(), &scene.set().with_shadow(shadow)).decision;
    assert_eq!(decision.disposition, Disposition::Allow);
    let shadow = decision.shadow.unwrap();
    assert_eq!((shadow.disposition, shadow.policy_hash), (Disposition::Hold, hash));
    assert_eq!(shadow.matched[0].policy, "own/ask");
}

#[test]
fn an_allow_is_written_short() {
    let scene = Scene::default();
    let evaluated = evaluate(&scene.facts(), &Policies::permit_all());
    let mut map = evaluated.to_json();
    let decision = evaluated.decision;
    for (key, value) in [
        ("policyHash", &decision.policy_hash),
        ("factsDigest", &decision.facts_digest),
        ("actionDigest", &decision.action_digest),
    ] {
        assert_eq!(map.insert(key.to_owned(), json!("…")), Some(json!(value)));
    }
    expect![[r#"{"disposition":"allow","gates":[{"gate":"gateway_health","outcome":"pass","figures":{"gateway":"local","health":"healthy"}},{"gate":"agent_status","outcome":"pass","figures":{"status":"idle","phase":"production"}},{"gate":"concurrency","outcome":"pass"},{"gate":"rate_limit","outcome":"pass"},{"gate":"budget_agent","outcome":"pass"},{"gate":"budget_envelopes","outcome":"pass"},{"gate":"trust_level","outcome":"pass","figures":{"trust":5,"minimum":1}},{"gate":"context_trust","outcome":"pass"},{"gate":"policy_rules","outcome":"pass"},{"gate":"approval_required","outcome":"pass"}],"constraints":{"max_cost":25000000},"policyHash":"…","factsDigest":"…","actionDigest":"…","facts":{"at":1794700800000,"verb":"dispatch_step","who":{"agent":{"name":"scribe","trust":5,"phase":"production","status":"idle"}},"what":{"gateway":{"name":"local","environment":"local","min_trust":1}},"run":{"id":"run_1","workflow":"report","version":1,"initiator":"ada"},"step":{"id":"write","kind":"command","attempt":1},"cost":25000000}}"#]].assert_eq(&serde_json::to_string(&map).unwrap());
}

#[test]
fn a_block_is_written_with_its_cause() {
    let mut scene = Scene::default();
    scene.gateway().paused = true;
    let map = evaluate(&scene.facts(), &scene.set()).to_json();
    assert_eq!(
        map["blockedBy"],
        json!({
            "gate": "gateway_health",
            "code": "gateway_unreachable",
            "retryable": true,
            "paused": true,
        })
    );
}
