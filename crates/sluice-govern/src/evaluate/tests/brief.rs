//! Compact records of decisions. The property tests check that any decision can be
//! restored.

use super::scene::{NOW_MS, Scene, cap, list};
use crate::decision::{Evaluated, Known, expand};
use crate::evaluate;
use crate::facts::{CapGate, Worst};
use crate::route::{Candidate, Layer, Route};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const KNOWN: Known<'_> = Known {
    at_ms: NOW_MS,
    run: "run_1",
    workflow: "report",
    step: "write",
    registered: false,
    definition: "",
};

fn written(evaluated: &Evaluated<'_>, route: Option<&Route>) -> String {
    let mut text = evaluated.write(route, 3);
    let decision = &evaluated.decision;
    for digest in [&decision.policy_hash, &decision.facts_digest, &decision.action_digest] {
        text = text.replace(digest.as_str(), "…");
    }
    text
}

fn check(scene: &Scene, layer: Layer, expected: &Expect) {
    let evaluated = evaluate(&scene.facts(), &scene.set());
    let route = Route { gateway: Some("local".to_owned()), layer, candidates: Vec::new() };
    expected.assert_eq(&written(&evaluated, Some(&route)));
    let text = evaluated.write(Some(&route), 3);
    let whole = expand(serde_json::from_str(&text).unwrap(), &KNOWN);
    assert_eq!(whole["route"], json!(route));
    assert_eq!(whole["gates"], json!(evaluated.decision.gates));
    assert_eq!(whole["facts"], json!(evaluated.facts));
    assert_eq!(whole["registry"], 3);
}

#[test]
fn a_plain_pass_is_its_digests_and_what_the_policies_saw() {
    check(
        &Scene::default(),
        Layer::Default,
        &expect![[
            r#"{"disposition":"allow","passed":{},"policyHash":"…","factsDigest":"…","actionDigest":"…","facts":{"who":{"agent":{"name":"scribe","trust":5,"phase":"production","status":"idle"}},"what":{"gateway":{"name":"local","environment":"local","min_trust":1}},"by":"ada","version":1,"attempt":1,"cost":25000000},"layer":"default","registry":3}"#
        ]],
    );
}

#[test]
fn what_does_not_follow_from_the_facts_is_written() {
    let mut scene = Scene { running: 2, in_window: 3, ..Scene::default() };
    scene.agent().max_concurrent_steps = Some(4);
    scene.caps = vec![cap(CapGate::Budget, "daily", 100, 20)];
    scene.tools = list(&["read"]);
    scene.constraints.max_output_tokens = Some(100);
    check(
        &scene,
        Layer::Pinned,
        &expect![[
            r#"{"disposition":"allow","passed":{"concurrency":{"running":2,"max":4},"budget_envelopes":{"caps":1,"tightest":"daily","amount":100000000,"held":20000000,"worst":25000000}},"constraints":{"max_cost":25000000,"max_output_tokens":100},"policyHash":"…","factsDigest":"…","actionDigest":"…","facts":{"who":{"agent":{"name":"scribe","trust":5,"phase":"production","status":"idle"}},"what":{"gateway":{"name":"local","environment":"local","min_trust":1}},"by":"ada","version":1,"attempt":1,"cost":25000000,"tools":["read"]},"layer":"pinned","registry":3}"#
        ]],
    );
}

#[test]
fn a_route_that_compared_gateways_is_written_whole() {
    let scene = Scene::default();
    let lost = Candidate { gateway: "far".to_owned(), lost: Some("cost".to_owned()) };
    let route =
        Route { gateway: Some("local".to_owned()), layer: Layer::Cost, candidates: vec![lost] };
    let text = evaluate(&scene.facts(), &scene.set()).write(Some(&route), 3);
    let whole = expand(serde_json::from_str(&text).unwrap(), &KNOWN);
    assert_eq!(whole["route"], json!(route));
}

#[test]
fn what_was_erased_stays_as_it_is() {
    let left = json!({"disposition": "allow", "passed": {}, "actionDigest": "…"});
    let Value::Object(left) = left else { unreachable!("it is a map") };
    assert_eq!(expand(left.clone(), &KNOWN), left);
}

#[test]
fn what_is_not_brief_stays_as_it_is() {
    let scene = Scene { worst: Worst::Unknown, ..Scene::default() };
    let mut decision = evaluate(&scene.facts(), &scene.set()).to_json();
    decision.insert("more".to_owned(), json!(1));
    assert_eq!(expand(decision.clone(), &KNOWN), decision);
}

/// Digests in old records must never change for the same facts.
#[test]
fn digests_are_those_that_were_always_written() {
    let mut scene = Scene { running: 2, in_window: 3, ..Scene::default() };
    scene.agent().max_concurrent_steps = Some(4);
    scene.caps = vec![cap(CapGate::Budget, "daily", 100, 20), cap(CapGate::Agent, "own", 90, 1)];
    scene.tools = list(&["read", "wri\"te"]);
    scene.classes = vec!["caller", "agent"];
    scene.role().allowed_environments = list(&["local"]);
    let brief = scene.decide();
    scene.caps = vec![cap(CapGate::Budget, "daily", 100, 200)];
    let short = scene.decide();
    assert_eq!(
        [brief.facts_digest, brief.action_digest, short.facts_digest, short.action_digest],
        [
            "9f12422981c0821a1931a841af0f4194b78aa81d76908b9c93d5458f0ca62345",
            "aae5f15b6448e4002c14e24923a20c062b640abc6227047707734ea263b97e5d",
            "3bb1583b484d23990bf3b7dbed84d4e6371448085a6ec64ec3d3003c125d200c",
            "aae5f15b6448e4002c14e24923a20c062b640abc6227047707734ea263b97e5d",
        ]
    );
}
