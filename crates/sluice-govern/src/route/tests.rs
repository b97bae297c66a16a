use super::*;
use crate::registry::ExecutionTarget;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn fabric() -> Fabric {
    let gateway = |provider: &str, cost_rank, capabilities: &[&str], agents: &[&str]| Gateway {
        provider: provider.to_owned(),
        cost_rank,
        capabilities: list(capabilities),
        agents: list(agents),
        ..Gateway::default()
    };
    let gateways = BTreeMap::from([
        ("cheap".to_owned(), gateway("openai", 1, &["gpu", "web"], &["clerk"])),
        ("dear".to_owned(), gateway("anthropic", 5, &["gpu"], &[])),
        ("local".to_owned(), Gateway { default: true, ..gateway("mock", 3, &[], &[]) }),
        ("other".to_owned(), gateway("openai", 1, &["gpu"], &["scribe"])),
    ]);
    Fabric { gateways, ..Fabric::default() }
}

fn want() -> Want<'static> {
    Want {
        agent: "scribe",
        row: None,
        pin: None,
        capabilities: &[],
        run_gateway: None,
        environments: &[],
        trust_ceiling: u8::MAX,
        features: Features::default(),
    }
}

/// Every gateway serves every agent; unhealthy gateways are listed.
fn sight<'a>(health: &'a dyn Fn(&str) -> Health) -> Sight<'a> {
    Sight { health, serves: &|_| true, implied: &|_| false }
}

fn check(want: &Want<'_>, ill: &[(&str, Health)], expected: &Expect) {
    let health = |name: &str| {
        ill.iter().find(|(one, _)| *one == name).map_or(Health::Healthy, |(_, health)| *health)
    };
    shown_as(&route(&fabric(), &sight(&health), want), expected);
}

fn shown_as(route: &Route, expected: &Expect) {
    let mut text = format!("{:?} by {:?}\n", route.gateway.as_deref(), route.layer);
    for candidate in &route.candidates {
        let why = candidate.lost.as_deref().unwrap_or("taken");
        text.push_str(&format!("  {}: {why}\n", candidate.gateway));
    }
    expected.assert_eq(&text);
}

#[test]
fn a_pin_is_followed_wherever_it_leads() {
    let agent = Agent { gateway: Some("gone".to_owned()), ..Agent::default() };
    let by_agent = Want { row: Some(&agent), ..want() };
    check(
        &by_agent,
        &[],
        &expect![[r#"
        Some("gone") by Pinned
    "#]],
    );
    check(
        &Want { pin: Some("dear"), ..by_agent },
        &[("dear", Health::Offline)],
        &expect![[r#"
        Some("dear") by Pinned
    "#]],
    );
}

#[test]
fn a_step_that_needs_nothing_goes_to_its_runs_gateway() {
    check(
        &Want { run_gateway: Some("dear"), ..want() },
        &[],
        &expect![[r#"
        Some("dear") by Default
    "#]],
    );
    check(
        &want(),
        &[],
        &expect![[r#"
        Some("local") by Default
    "#]],
    );
}

/// Two gateways of one provider, and gateways that cannot replace them.
fn pair() -> Fabric {
    let gateway = |provider: &str, environment: &str, cost_rank| Gateway {
        provider: provider.to_owned(),
        environment: environment.to_owned(),
        cost_rank,
        ..Gateway::default()
    };
    let strict = Gateway { min_trust_level: 9, ..gateway("anthropic", "production", 0) };
    let idle = Gateway { paused: true, ..gateway("anthropic", "production", 0) };
    let gateways = [
        ("main", gateway("anthropic", "production", 5)),
        ("spare", gateway("anthropic", "production", 7)),
        ("third", gateway("anthropic", "production", 9)),
        ("bench", gateway("anthropic", "staging", 0)),
        ("other", gateway("openai", "production", 0)),
        ("strict", strict),
        ("idle", idle),
        ("local", gateway("anthropic", "production", 0)),
    ];
    let gateways = gateways.map(|(name, gateway)| (name.to_owned(), gateway)).into();
    Fabric { gateways, ..Fabric::default() }
}

fn check_pair(want: &Want<'_>, offline: &[&str], expected: &Expect) {
    let health =
        |name: &str| if offline.contains(&name) { Health::Offline } else { Health::Healthy };
    let sight = Sight {
        health: &health,
        serves: &|name| name != "third",
        implied: &|name| name == "local",
    };
    shown_as(&route(&pair(), &sight, want), expected);
}

#[test]
fn a_step_whose_gateway_is_offline_goes_to_one_that_stands_in_for_it() {
    let agent = Agent::default();
    let want = Want { row: Some(&agent), run_gateway: Some("main"), ..want() };
    check_pair(
        &want,
        &["main"],
        &expect![[r#"
            Some("spare") by Health
              spare: taken
              bench: the step may not use the environment staging
              idle: it is offline or paused
              other: its provider is openai, not anthropic
              strict: it requires trust level 9, not 5
              third: it cannot do the work of agent scribe
              main: it is offline
        "#]],
    );
    // Without a replacement the step waits for its own gateway.
    check_pair(
        &want,
        &["main", "spare"],
        &expect![[r#"
            Some("main") by Default
              main: taken
              bench: the step may not use the environment staging
              idle: it is offline or paused
              other: its provider is openai, not anthropic
              spare: it is offline or paused
              strict: it requires trust level 9, not 5
              third: it cannot do the work of agent scribe
        "#]],
    );
    // A role may name the environments of its steps.
    let environments = list(&["production", "staging"]);
    check_pair(
        &Want { environments: &environments, ..want },
        &["main"],
        &expect![[r#"
            Some("bench") by Health
              bench: taken
              idle: it is offline or paused
              other: its provider is openai, not anthropic
              strict: it requires trust level 9, not 5
              third: it cannot do the work of agent scribe
              main: it is offline
              spare: cost rank 7 is above 0
        "#]],
    );
    // A pinned step does not fail over.
    check_pair(
        &Want { pin: Some("main"), ..want },
        &["main"],
        &expect![[r#"
            Some("main") by Pinned
        "#]],
    );
}

#[test]
fn a_gateway_that_cannot_do_the_agents_work_is_out() {
    let fabric = fabric();
    let served = |able: &'static [&'static str], want: &Want<'_>| {
        let sight = Sight {
            health: &|_| Health::Healthy,
            serves: &|name| able.contains(&name),
            implied: &|_| false,
        };
        route(&fabric, &sight, want)
    };
    let gpu = list(&["gpu"]);
    shown_as(
        &served(&["dear"], &Want { capabilities: &gpu, ..want() }),
        &expect![[r#"
            Some("dear") by Capabilities
              dear: taken
              cheap: it cannot do the work of agent scribe
              local: it does not offer gpu
              other: it cannot do the work of agent scribe
        "#]],
    );
    // The default gateway is not exempt.
    shown_as(
        &served(&["dear"], &want()),
        &expect![[r#"
            Some("dear") by Capabilities
              dear: taken
              cheap: it cannot do the work of agent scribe
              local: it cannot do the work of agent scribe
              other: it cannot do the work of agent scribe
        "#]],
    );
    shown_as(
        &served(&[], &want()),
        &expect![[r#"
            None by Capabilities
              cheap: it cannot do the work of agent scribe
              dear: it cannot do the work of agent scribe
              local: it cannot do the work of agent scribe
              other: it cannot do the work of agent scribe
        "#]],
    );
}

#[test]
fn a_native_agent_never_goes_to_a_gateway_with_a_url() {
    let mut fabric = fabric();
    let local = fabric.gateways.get_mut("local").expect("it is there");
    local.url = Some("http://bridge.example".to_owned());
    let agent = Agent { execution_target: Some(ExecutionTarget::Native), ..Agent::default() };
    let healthy = |_: &str| Health::Healthy;
    let native = Want { row: Some(&agent), ..want() };
    shown_as(
        &route(&fabric, &sight(&healthy), &native),
        &expect![[r#"
            Some("cheap") by Tie
              cheap: taken
              local: agent scribe works in the engine's process, and it has a URL
              other: cheap comes first by name
              dear: cost rank 5 is above 1
        "#]],
    );
    let cloud = Agent { execution_target: Some(ExecutionTarget::Cloud), ..Agent::default() };
    let cloud = Want { row: Some(&cloud), ..want() };
    assert_eq!(route(&fabric, &sight(&healthy), &cloud).gateway.as_deref(), Some("local"));
}

#[test]
fn what_is_required_rules_out_and_what_is_cheap_comes_first() {
    let gpu = list(&["gpu"]);
    check(
        &Want { capabilities: &gpu, ..want() },
        &[],
        &expect![[r#"
        Some("cheap") by Tie
          cheap: taken
          local: it does not offer gpu
          other: cheap comes first by name
          dear: cost rank 5 is above 1
    "#]],
    );
    check(
        &Want { capabilities: &gpu, run_gateway: Some("other"), ..want() },
        &[],
        &expect![[r#"
        Some("other") by Tie
          other: taken
          local: it does not offer gpu
          cheap: other is the run's gateway
          dear: cost rank 5 is above 1
    "#]],
    );
}

#[test]
fn an_agents_capabilities_count_where_the_step_asks_for_none() {
    let agent = Agent { capabilities: list(&["web"]), ..Agent::default() };
    check(
        &Want { row: Some(&agent), ..want() },
        &[],
        &expect![[r#"
        Some("cheap") by Capabilities
          cheap: taken
          dear: it does not offer web
          local: it does not offer web
          other: it does not offer web
    "#]],
    );
}

#[test]
fn a_preferred_provider_comes_before_a_cheaper_one() {
    let agent = Agent { provider_preferences: list(&["anthropic", "openai"]), ..Agent::default() };
    check(
        &Want { row: Some(&agent), ..want() },
        &[],
        &expect![[r#"
        Some("dear") by Cost
          dear: taken
          cheap: provider anthropic is preferred to openai
          other: provider anthropic is preferred to openai
          local: provider anthropic is preferred to mock
    "#]],
    );
}

#[test]
fn agents_go_where_they_are_deployed_if_the_feature_is_on() {
    let gpu = list(&["gpu"]);
    let features = Features { deployed_on: DeployedOn::Asked };
    check(
        &Want { capabilities: &gpu, features, ..want() },
        &[],
        &expect![[r#"
        Some("other") by Deployed
          other: taken
          cheap: agent scribe is not deployed on it
          local: it does not offer gpu
          dear: cost rank 5 is above 1
    "#]],
    );
    check(
        &Want { run_gateway: Some("cheap"), features, ..want() },
        &[],
        &expect![[r#"
        Some("other") by Deployed
          other: taken
          cheap: agent scribe is not deployed on it
          local: cost rank 3 is above 1
          dear: cost rank 5 is above 1
    "#]],
    );
}

#[test]
fn what_is_offline_comes_last_and_the_healthier_of_equals_first() {
    let gpu = list(&["gpu"]);
    let want = Want { capabilities: &gpu, ..want() };
    check(
        &want,
        &[("cheap", Health::Degraded)],
        &expect![[r#"
        Some("other") by Health
          other: taken
          local: it does not offer gpu
          cheap: it is degraded
          dear: cost rank 5 is above 1
    "#]],
    );
    let offline = [("cheap", Health::Offline), ("other", Health::Offline)];
    check(
        &want,
        &offline,
        &expect![[r#"
        Some("dear") by Health
          dear: taken
          local: it does not offer gpu
          cheap: it is offline or paused
          other: it is offline or paused
    "#]],
    );
}

#[test]
fn where_nothing_fits_the_route_leads_nowhere() {
    let moon = list(&["moon"]);
    check(
        &Want { capabilities: &moon, run_gateway: Some("local"), ..want() },
        &[],
        &expect![[r#"
        None by Capabilities
          cheap: it does not offer moon
          dear: it does not offer moon
          local: it does not offer moon
          other: it does not offer moon
    "#]],
    );
}

#[test]
fn a_route_is_written_for_the_audit() {
    let gpu = list(&["gpu"]);
    let healthy = |_: &str| Health::Healthy;
    let route = route(&fabric(), &sight(&healthy), &Want { capabilities: &gpu, ..want() });
    expect![[r#"{"gateway":"cheap","layer":"tie","candidates":[{"gateway":"cheap"},{"gateway":"local","lost":"it does not offer gpu"},{"gateway":"other","lost":"cheap comes first by name"},{"gateway":"dear","lost":"cost rank 5 is above 1"}]}"#]].assert_eq(&serde_json::to_string(&route).unwrap());
}

proptest! {
    #[test]
    fn a_route_keeps_to_what_is_required_and_names_everybody_else(
        offers in prop::collection::vec((any::<bool>(), 0..3_u32, 0..3_usize), 1..6),
        default in prop::option::of(0..6_usize),
    ) {
        let mut fabric = Fabric::default();
        for (at, (able, cost_rank, _)) in offers.iter().enumerate() {
            let capabilities = if *able { list(&["gpu"]) } else { Vec::new() };
            let gateway = Gateway { capabilities, cost_rank: *cost_rank, ..Gateway::default() };
            fabric.gateways.insert(format!("g{at}"), gateway);
        }
        let health = |name: &str| {
            let at: usize = name[1..].parse().unwrap();
            [Health::Healthy, Health::Degraded, Health::Offline][offers[at].2]
        };
        let (gpu, run) = (list(&["gpu"]), default.map(|at| format!("g{at}")));
        let want = Want { capabilities: &gpu, run_gateway: run.as_deref(), ..want() };
        let route = route(&fabric, &sight(&health), &want);
        match &route.gateway {
            Some(name) => prop_assert!(fabric.gateways[name].capabilities == gpu),
            None => prop_assert!(offers.iter().all(|(able, ..)| !able)),
        }
        prop_assert_eq!(route.candidates.len(), offers.len());
        let taken = route.candidates.iter().filter(|one| one.lost.is_none()).count();
        prop_assert_eq!(taken, usize::from(route.gateway.is_some()));
    }
}
