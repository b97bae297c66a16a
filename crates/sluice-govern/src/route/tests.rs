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
    check(&by_agent, &[], &expect![[""]]);
    check(&Want { pin: Some("dear"), ..by_agent }, &[("dear", Health::Offline)], &expect![[""]]);
}

#[test]
fn a_step_that_needs_nothing_goes_to_its_runs_gateway() {
    check(&Want { run_gateway: Some("dear"), ..want() }, &[], &expect![[""]]);
    check(&want(), &[("local", Health::Offline)], &expect![[""]]);
}

#[test]
fn what_is_required_rules_out_and_what_is_cheap_comes_first() {
    let gpu = list(&["gpu"]);
    check(&Want { capabilities: &gpu, ..want() }, &[], &expect![[""]]);
    check(&Want { capabilities: &gpu, run_gateway: Some("other"), ..want() }, &[], &expect![[""]]);
}

#[test]
fn an_agents_capabilities_count_where_the_step_asks_for_none() {
    let agent = Agent { capabilities: list(&["web"]), ..Agent::default() };
    check(&Want { row: Some(&agent), ..want() }, &[], &expect![[""]]);
}

#[test]
fn a_preferred_provider_comes_before_a_cheaper_one() {
    let agent = Agent { provider_preferences: list(&["anthropic", "openai"]), ..Agent::default() };
    check(&Want { row: Some(&agent), ..want() }, &[], &expect![[""]]);
}

#[test]
fn agents_go_where_they_are_deployed_if_anybody_asks() {
    let gpu = list(&["gpu"]);
    let features = Features { deployed_on: DeployedOn::Asked };
    check(&Want { capabilities: &gpu, features, ..want() }, &[], &expect![[""]]);
    check(&Want { run_gateway: Some("cheap"), features, ..want() }, &[], &expect![[""]]);
}

#[test]
fn what_is_offline_comes_last_and_the_healthier_of_equals_first() {
    let gpu = list(&["gpu"]);
    let want = Want { capabilities: &gpu, ..want() };
    check(&want, &[("cheap", Health::Degraded)], &expect![[""]]);
    let offline = [("cheap", Health::Offline), ("other", Health::Offline)];
    check(&want, &offline, &expect![[""]]);
}

#[test]
fn where_nothing_fits_the_route_leads_nowhere() {
    let moon = list(&["moon"]);
    check(&Want { capabilities: &moon, run_gateway: Some("local"), ..want() }, &[], &expect![[""]]);
}

#[test]
fn a_route_is_written_for_the_audit() {
    let gpu = list(&["gpu"]);
    let route = route(&fabric(), &|_| Health::Healthy, &Want { capabilities: &gpu, ..want() });
    expect![[""]].assert_eq(&serde_json::to_string(&route).unwrap());
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
