use super::*;
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
        features: Features::default(),
    }
}

fn check(want: &Want<'_>, ill: &[(&str, Health)], expected: &Expect) {
    let health = |name: &str| {
        ill.iter().find(|(one, _)| *one == name).map_or(Health::Healthy, |(_, health)| *health)
    };
    let route = route(&fabric(), &health, want);
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
        &[("local", Health::Offline)],
        &expect![[r#"
        Some("local") by Default
    "#]],
    );
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
fn agents_go_where_they_are_deployed_if_anybody_asks() {
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
    let route = route(&fabric(), &|_| Health::Healthy, &Want { capabilities: &gpu, ..want() });
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
        let route = route(&fabric, &health, &want);
        match &route.gateway {
            Some(name) => prop_assert!(fabric.gateways[name].capabilities == gpu),
            None => prop_assert!(offers.iter().all(|(able, ..)| !able)),
        }
        prop_assert_eq!(route.candidates.len(), offers.len());
        let taken = route.candidates.iter().filter(|one| one.lost.is_none()).count();
        prop_assert_eq!(taken, usize::from(route.gateway.is_some()));
    }
}
