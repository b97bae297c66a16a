//! Chooses the gateway of a step, before the gates are evaluated.
//!
//! A step without special needs goes to the gateway of its run, or to the
//! organisation's default if the run has none. Otherwise these layers compare all
//! gateways, in order:
//!
//! 0. Pinned: by the deployment, else by the agent. Nothing else is checked, not even
//!    health: the gates refuse a pin to a missing gateway.
//! 1. Capabilities: excludes gateways that do not offer what the step (or, without own
//!    capabilities, its agent) requires, and those that cannot do the agent's work: no
//!    adapter for its provider, or a URL although the agent works only in the engine's
//!    process.
//! 2. Cost and preference: an earlier provider of the agent's preferences comes first,
//!    then a lower cost rank.
//! 3. Deployed on: excludes gateways that name their agents, but not this one. Only when
//!    the feature is on.
//! 4. Health: offline or paused gateways come last, whatever they cost; among equals of
//!    layer 2 the healthier one comes first.
//!
//! Ties go to the gateway of the run, then to the first by name.
//!
//! If the gateway of the run is offline, the step fails over to a healthy one that can
//! replace it: configured by an operator, with the same provider, in an environment
//! that the role names (else in the same one), and open to agents of this trust level.
//! Without such a gateway the step waits for its own.
//!
//! INVARIANT: a route never leads to an excluded gateway. If all are excluded, there is
//! no gateway, and the first gate blocks.

use crate::choice::choices;
use crate::limits::CANDIDATES_MAX;
use crate::registry::{ANYTHING, Agent, Fabric, Gateway, Health};
use serde::Serialize;

/// Requirements of a step for its gateway.
#[derive(Debug, Clone, Copy)]
pub struct Want<'a> {
    /// The name of the agent.
    pub agent: &'a str,
    /// The agent in the registry, if it has a row.
    pub row: Option<&'a Agent>,
    /// The gateway that its deployment pins it to.
    pub pin: Option<&'a str>,
    /// Capabilities that the step requires.
    pub capabilities: &'a [String],
    /// The gateway that the caller chose for the whole run.
    pub run_gateway: Option<&'a str>,
    /// The environments that its role allows; empty if no role says.
    pub environments: &'a [String],
    /// Caps the trust level of every agent in the run.
    pub trust_ceiling: u8,
    /// Enabled features.
    pub features: Features,
}

/// State of the gateways that their rows do not contain.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    /// Health of a gateway.
    pub health: &'a dyn Fn(&str) -> Health,
    /// Whether an adapter at a gateway can do the work of the step's agent.
    pub serves: &'a dyn Fn(&str) -> bool,
    /// Whether a gateway exists only because every process has it.
    pub implied: &'a dyn Fn(&str) -> bool,
}

/// Enabled features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Whether the agents deployed on a gateway are checked.
    pub deployed_on: DeployedOn,
}

/// Whether the agents deployed on a gateway are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeployedOn {
    /// Not checked.
    #[default]
    Ignored,
    /// Checked.
    Asked,
}

/// The gateway of a step, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The gateway; `None` if no gateway fits.
    pub gateway: Option<String>,
    /// The layer that decided.
    pub layer: Layer,
    /// The gateways that were compared, the winner first; empty if none were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
}

impl Route {
    /// The layer, if the route leads to this gateway and has no candidates.
    pub(crate) fn layer_to(&self, gateway: &str) -> Option<Layer> {
        let plain = self.gateway.as_deref() == Some(gateway) && self.candidates.is_empty();
        plain.then_some(self.layer)
    }
}

choices! {
    /// The layer that decides a route.
    pub enum Layer, "a layer of routing" {
        /// The gateway of the run, or the organisation's default.
        Default = "default",
        /// A pin.
        Pinned = "pinned",
        /// Capabilities of the gateways.
        Capabilities = "capabilities",
        /// Cost and provider preference.
        Cost = "cost",
        /// Agents deployed on the gateways.
        Deployed = "deployed",
        /// Health of the gateways.
        Health = "health",
        /// The name, or the gateway of the run.
        Tie = "tie",
    }
}

/// A gateway that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Name of the gateway.
    pub gateway: String,
    /// Why it was not chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// Chooses a gateway.
pub fn route(fabric: &Fabric, sight: &Sight<'_>, want: &Want<'_>) -> Route {
    let pin = want.pin.or_else(|| want.row.and_then(|row| row.gateway.as_deref()));
    if let Some(pin) = pin {
        return straight(pin, Layer::Pinned);
    }
    let default = want.run_gateway.or_else(|| default_gateway(fabric));
    if let Some(name) = default
        && has_no_requirements(want)
    {
        let row = fabric.gateways.get(name);
        if row.is_none_or(|row| exclusion(sight, want, name, row).is_none()) {
            return match row {
                Some(row) if (sight.health)(name) == Health::Offline => {
                    fail_over(fabric, sight, want, (name, row))
                }
                // A gateway without a row is not excluded: the gates report that it is
                // missing.
                _ => straight(name, Layer::Default),
            };
        }
    }
    let (mut lost, mut fit) = (Vec::new(), Vec::new());
    for (name, gateway) in &fabric.gateways {
        match exclusion(sight, want, name, gateway) {
            Some((layer, why)) => lost.push((layer, name.as_str(), why)),
            None => {
                fit.push(RankedGateway::new(want, name, gateway, (sight.health)(name), default));
            }
        }
    }
    fit.sort_by(|a, b| a.key().cmp(&b.key()));
    if let Some((winner, others)) = fit.split_first() {
        lost.extend(others.iter().map(|other| {
            let (layer, why) = winner.beats(other);
            (layer, other.name, why)
        }));
    }
    conclude(fit.first().map(|winner| winner.name), lost)
}

/// The route of a step whose gateway is offline: to the best replacement, or to its own
/// gateway, where it waits.
fn fail_over(
    fabric: &Fabric,
    sight: &Sight<'_>,
    want: &Want<'_>,
    (own, row): (&str, &Gateway),
) -> Route {
    let (mut lost, mut fit) = (Vec::new(), Vec::new());
    let others = fabric.gateways.iter().filter(|(name, _)| *name != own && !(sight.implied)(name));
    for (name, gateway) in others {
        let health = (sight.health)(name);
        let reason = exclusion(sight, want, name, gateway).map(|(_, why)| why);
        match reason.or_else(|| cannot_replace(want, row, gateway, health)) {
            Some(why) => lost.push((Layer::Health, name.as_str(), why)),
            None => fit.push(RankedGateway::new(want, name, gateway, health, None)),
        }
    }
    fit.sort_by(|a, b| a.key().cmp(&b.key()));
    let Some((winner, others)) = fit.split_first() else {
        let route = conclude(Some(own), lost);
        return Route { layer: Layer::Default, ..route };
    };
    lost.push((Layer::Health, own, "it is offline".to_owned()));
    lost.extend(others.iter().map(|other| {
        let (_, why) = winner.beats(other);
        (Layer::Health, other.name, why)
    }));
    conclude(Some(winner.name), lost)
}

/// Why a gateway cannot replace an offline one.
fn cannot_replace(
    want: &Want<'_>,
    own: &Gateway,
    other: &Gateway,
    health: Health,
) -> Option<String> {
    if other.paused || health == Health::Offline {
        return Some("it is offline or paused".to_owned());
    }
    if other.provider != own.provider {
        let (other, own) = (provider_name(&other.provider), provider_name(&own.provider));
        return Some(format!("its provider is {other}, not {own}"));
    }
    let allowed = match want.environments {
        [] => other.environment == own.environment,
        named => named.contains(&other.environment),
    };
    if !allowed {
        return Some(format!("the step may not use the environment {}", other.environment));
    }
    let trust = want.row.map_or(0, |row| row.trust_level).min(want.trust_ceiling);
    (trust < other.min_trust_level)
        .then(|| format!("it requires trust level {}, not {trust}", other.min_trust_level))
}

fn provider_name(provider: &str) -> &str {
    if provider.is_empty() { "none" } else { provider }
}

fn straight(name: &str, layer: Layer) -> Route {
    Route { gateway: Some(name.to_owned()), layer, candidates: Vec::new() }
}

fn default_gateway(fabric: &Fabric) -> Option<&str> {
    let mut gateways = fabric.gateways.iter();
    let marked = gateways.find(|(_, gateway)| gateway.default).map(|(name, _)| name.as_str());
    let only = || match fabric.gateways.len() {
        1 => fabric.gateways.keys().next().map(String::as_str),
        _ => None,
    };
    marked.or_else(only)
}

/// Whether the step has no requirements that distinguish gateways.
fn has_no_requirements(want: &Want<'_>) -> bool {
    required(want).is_empty() && preferences(want).is_empty()
}

fn required<'a>(want: &Want<'a>) -> &'a [String] {
    match want.row {
        Some(row) if want.capabilities.is_empty() => &row.capabilities,
        _ => want.capabilities,
    }
}

fn preferences<'a>(want: &Want<'a>) -> &'a [String] {
    want.row.map_or(&[], |row| row.provider_preferences.as_slice())
}

/// Why a gateway is excluded.
fn exclusion(
    sight: &Sight<'_>,
    want: &Want<'_>,
    name: &str,
    gateway: &Gateway,
) -> Option<(Layer, String)> {
    let offers = |one: &&String| {
        gateway.capabilities.iter().any(|offered| offered == *one || offered == ANYTHING)
    };
    let missing = required(want).iter().find(|one| !offers(one));
    if let Some(missing) = missing {
        return Some((Layer::Capabilities, format!("it does not offer {missing}")));
    }
    if want.row.is_some_and(|row| is_out_of_reach(row, gateway)) {
        let why = format!("agent {} works in the engine's process, and it has a URL", want.agent);
        return Some((Layer::Capabilities, why));
    }
    if !(sight.serves)(name) {
        let why = format!("it cannot do the work of agent {}", want.agent);
        return Some((Layer::Capabilities, why));
    }
    let asked = want.features.deployed_on == DeployedOn::Asked;
    let named = gateway.agents.is_empty() || gateway.agents.iter().any(|one| one == want.agent);
    if asked && !named {
        return Some((Layer::Deployed, format!("agent {} is not deployed on it", want.agent)));
    }
    None
}

/// Whether an agent that works only in the engine's process would be sent to a remote
/// gateway.
pub fn is_out_of_reach(agent: &Agent, gateway: &Gateway) -> bool {
    agent.is_native() && gateway.url.is_some()
}

/// The rank of a gateway among those that fit.
struct RankedGateway<'a> {
    name: &'a str,
    provider: &'a str,
    working: Working,
    preference: usize,
    cost_rank: u32,
    health: Health,
    own: OwnGateway,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Working {
    Yes,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OwnGateway {
    Yes,
    No,
}

impl<'a> RankedGateway<'a> {
    fn new(
        want: &Want<'_>,
        name: &'a str,
        gateway: &'a Gateway,
        health: Health,
        default: Option<&str>,
    ) -> RankedGateway<'a> {
        let preferences = preferences(want);
        let place = preferences.iter().position(|one| *one == gateway.provider);
        let stopped = gateway.paused || health == Health::Offline;
        RankedGateway {
            name,
            provider: &gateway.provider,
            working: if stopped { Working::No } else { Working::Yes },
            preference: place.unwrap_or(preferences.len()),
            cost_rank: gateway.cost_rank,
            health,
            own: if default == Some(name) { OwnGateway::Yes } else { OwnGateway::No },
        }
    }

    /// Sort key: lower comes first.
    fn key(&self) -> (Working, usize, u32, Health, OwnGateway, &str) {
        (self.working, self.preference, self.cost_rank, self.health, self.own, self.name)
    }

    /// Why another gateway lost to this one.
    fn beats(&self, other: &RankedGateway<'_>) -> (Layer, String) {
        if self.working < other.working {
            return (Layer::Health, "it is offline or paused".to_owned());
        }
        if self.preference < other.preference {
            let why = format!("provider {} is preferred to {}", self.provider, other.provider);
            return (Layer::Cost, why);
        }
        if self.cost_rank < other.cost_rank {
            let why = format!("cost rank {} is above {}", other.cost_rank, self.cost_rank);
            return (Layer::Cost, why);
        }
        if self.health < other.health {
            return (Layer::Health, format!("it is {}", other.health.as_str()));
        }
        if self.own < other.own {
            return (Layer::Tie, format!("{} is the run's gateway", self.name));
        }
        (Layer::Tie, format!("{} comes first by name", self.name))
    }
}

/// The last layer at which a candidate lost decided the route.
fn conclude(winner: Option<&str>, lost: Vec<(Layer, &str, String)>) -> Route {
    let layer = lost.iter().map(|(layer, ..)| *layer).max().unwrap_or(Layer::Default);
    let first = winner.map(|name| Candidate { gateway: name.to_owned(), lost: None });
    let others = lost
        .into_iter()
        .map(|(_, name, why)| Candidate { gateway: name.to_owned(), lost: Some(why) });
    let candidates = first.into_iter().chain(others).take(CANDIDATES_MAX).collect();
    Route { gateway: winner.map(str::to_owned), layer, candidates }
}

#[cfg(test)]
mod tests;
