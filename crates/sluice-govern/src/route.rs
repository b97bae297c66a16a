//! Which gateway a step goes to, decided before the gates are asked.
//!
//! A step that needs nothing in particular goes to its run's gateway, and to the
//! organisation's default where the run has none. Else the layers below look at
//! all gateways, in order:
//!
//! 0. Pinned: by the deployment, else by the agent. Nothing else is looked at,
//!    not even health: a pin to a gateway that is gone is refused by the gates.
//! 1. Capabilities: a gateway that does not offer what the step asks for (or its
//!    agent, where the step asks for nothing) is out, and so is one that cannot do
//!    the work of this agent: nothing there speaks for its provider, or it has a URL
//!    and the agent works in the engine's process alone.
//! 2. Cost and preference: an earlier provider of the agent's preferences comes
//!    first, then a lower cost rank.
//! 3. Deployed on: a gateway that names its agents, but not this one, is out.
//!    Only when the feature is on.
//! 4. Health: what is offline or paused comes last, whatever it costs; among
//!    equals of layer 2 the healthier comes first.
//!
//! Ties go to the run's gateway, then to the first by name.
//!
//! A step whose run's gateway is offline fails over to a healthy one that stands in
//! for it: set up by an operator, of the same provider, in an environment the role
//! names (else in the same one), and open to agents of this trust. Where there is
//! none, the step waits for its own.
//!
//! INVARIANT: a route never leads to a gateway that is out. Where all are out it
//! leads nowhere, and the first gate says so.

use crate::limits::CANDIDATES_MAX;
use crate::registry::{ANYTHING, Agent, Fabric, Gateway, Health};
use serde::Serialize;

/// What a step needs of a gateway.
#[derive(Debug, Clone, Copy)]
pub struct Want<'a> {
    /// Who does it.
    pub agent: &'a str,
    /// Its row.
    pub row: Option<&'a Agent>,
    /// The gateway its deployment pins it to.
    pub pin: Option<&'a str>,
    /// What the step asks for.
    pub capabilities: &'a [String],
    /// The run's gateway.
    pub run_gateway: Option<&'a str>,
    /// The environments its role allows; none named means that no role says.
    pub environments: &'a [String],
    /// No agent counts as more trusted than this in the run.
    pub trust_ceiling: u8,
    /// What is switched on.
    pub features: Features,
}

/// What is known of gateways beside their rows.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    /// Whether a gateway can do work.
    pub health: &'a dyn Fn(&str) -> Health,
    /// Whether something at a gateway can do the work of the step's agent.
    pub serves: &'a dyn Fn(&str) -> bool,
    /// Whether a gateway is only there because every process has it.
    pub implied: &'a dyn Fn(&str) -> bool,
}

/// What is switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Whether gateways are asked which agents are deployed on them.
    pub deployed_on: DeployedOn,
}

/// Whether gateways are asked which agents are deployed on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeployedOn {
    /// They are not.
    #[default]
    Ignored,
    /// They are.
    Asked,
}

/// Where a step goes, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The gateway; none if no gateway fits.
    pub gateway: Option<String>,
    /// What settled it.
    pub layer: Layer,
    /// The gateways that were looked at, the winner first; none where nothing
    /// was compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
}

impl Route {
    /// What settled it, if it leads to this gateway and there is no more to say.
    pub(crate) fn layer_to(&self, gateway: &str) -> Option<Layer> {
        let plain = self.gateway.as_deref() == Some(gateway) && self.candidates.is_empty();
        plain.then_some(self.layer)
    }
}

/// What settles a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The run's gateway, or the organisation's: nothing speaks against it.
    Default,
    /// A pin.
    Pinned,
    /// What the gateway offers.
    Capabilities,
    /// What it costs, and which provider it is.
    Cost,
    /// Who is deployed on it.
    Deployed,
    /// How it is.
    Health,
    /// Its name, or that it is the run's.
    Tie,
}

impl Layer {
    /// The word for it, as it is written.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Layer::Default => "default",
            Layer::Pinned => "pinned",
            Layer::Capabilities => "capabilities",
            Layer::Cost => "cost",
            Layer::Deployed => "deployed",
            Layer::Health => "health",
            Layer::Tie => "tie",
        }
    }
}

/// A gateway that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The gateway.
    pub gateway: String,
    /// Why it was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// Picks a gateway.
pub fn route(fabric: &Fabric, sight: &Sight<'_>, want: &Want<'_>) -> Route {
    let pin = want.pin.or_else(|| want.row.and_then(|row| row.gateway.as_deref()));
    if let Some(pin) = pin {
        return straight(pin, Layer::Pinned);
    }
    let default = want.run_gateway.or_else(|| organisations(fabric));
    if let Some(name) = default
        && indifferent(want)
    {
        let row = fabric.gateways.get(name);
        if row.is_none_or(|row| out(sight, want, name, row).is_none()) {
            return match row {
                Some(row) if (sight.health)(name) == Health::Offline => {
                    fail_over(fabric, sight, want, (name, row))
                }
                // One without a row is not out: the gates say that it is gone.
                _ => straight(name, Layer::Default),
            };
        }
    }
    let (mut lost, mut fit) = (Vec::new(), Vec::new());
    for (name, gateway) in &fabric.gateways {
        match out(sight, want, name, gateway) {
            Some((layer, why)) => lost.push((layer, name.as_str(), why)),
            None => {
                fit.push(Standing::new(want, name, gateway, (sight.health)(name), default));
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
    told(fit.first().map(|winner| winner.name), lost)
}

/// Where a step goes whose gateway is offline: to the best of those that stand in
/// for it, else nowhere but there.
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
        let reason = out(sight, want, name, gateway).map(|(_, why)| why);
        match reason.or_else(|| no_stand_in(want, row, gateway, health)) {
            Some(why) => lost.push((Layer::Health, name.as_str(), why)),
            None => fit.push(Standing::new(want, name, gateway, health, None)),
        }
    }
    fit.sort_by(|a, b| a.key().cmp(&b.key()));
    let Some((winner, others)) = fit.split_first() else {
        let route = told(Some(own), lost);
        return Route { layer: Layer::Default, ..route };
    };
    lost.push((Layer::Health, own, "it is offline".to_owned()));
    lost.extend(others.iter().map(|other| {
        let (_, why) = winner.beats(other);
        (Layer::Health, other.name, why)
    }));
    told(Some(winner.name), lost)
}

/// Why a gateway does not stand in for one that is offline.
fn no_stand_in(want: &Want<'_>, own: &Gateway, other: &Gateway, health: Health) -> Option<String> {
    if other.paused || health == Health::Offline {
        return Some("it is offline or paused".to_owned());
    }
    if other.provider != own.provider {
        let (other, own) = (shown(&other.provider), shown(&own.provider));
        return Some(format!("its provider is {other}, not {own}"));
    }
    let allowed = match want.environments {
        [] => other.environment == own.environment,
        named => named.contains(&other.environment),
    };
    if !allowed {
        return Some(format!("the step does not move to the environment {}", other.environment));
    }
    let trust = want.row.map_or(0, |row| row.trust_level).min(want.trust_ceiling);
    (trust < other.min_trust_level)
        .then(|| format!("it takes trust level {}, not {trust}", other.min_trust_level))
}

fn shown(provider: &str) -> &str {
    if provider.is_empty() { "none" } else { provider }
}

fn straight(name: &str, layer: Layer) -> Route {
    Route { gateway: Some(name.to_owned()), layer, candidates: Vec::new() }
}

fn organisations(fabric: &Fabric) -> Option<&str> {
    let mut gateways = fabric.gateways.iter();
    let marked = gateways.find(|(_, gateway)| gateway.default).map(|(name, _)| name.as_str());
    let only = || match fabric.gateways.len() {
        1 => fabric.gateways.keys().next().map(String::as_str),
        _ => None,
    };
    marked.or_else(only)
}

/// Whether any gateway that is not out is as good as another.
fn indifferent(want: &Want<'_>) -> bool {
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

/// Why a gateway is out.
fn out(
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
    if want.row.is_some_and(|row| is_elsewhere(row, gateway)) {
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

/// Whether an agent that works in the engine's process alone would be sent away.
pub fn is_elsewhere(agent: &Agent, gateway: &Gateway) -> bool {
    agent.is_native() && gateway.url.is_some()
}

/// How a gateway stands among those that fit.
struct Standing<'a> {
    name: &'a str,
    provider: &'a str,
    works: Works,
    preference: usize,
    cost_rank: u32,
    health: Health,
    own: Own,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Works {
    Yes,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Own {
    Yes,
    No,
}

impl<'a> Standing<'a> {
    fn new(
        want: &Want<'_>,
        name: &'a str,
        gateway: &'a Gateway,
        health: Health,
        default: Option<&str>,
    ) -> Standing<'a> {
        let preferences = preferences(want);
        let place = preferences.iter().position(|one| *one == gateway.provider);
        let stopped = gateway.paused || health == Health::Offline;
        Standing {
            name,
            provider: &gateway.provider,
            works: if stopped { Works::No } else { Works::Yes },
            preference: place.unwrap_or(preferences.len()),
            cost_rank: gateway.cost_rank,
            health,
            own: if default == Some(name) { Own::Yes } else { Own::No },
        }
    }

    /// Lower comes first.
    fn key(&self) -> (Works, usize, u32, Health, Own, &str) {
        (self.works, self.preference, self.cost_rank, self.health, self.own, self.name)
    }

    /// Why another one lost to this one.
    fn beats(&self, other: &Standing<'_>) -> (Layer, String) {
        if self.works < other.works {
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

/// The last layer at which somebody lost settled it.
fn told(winner: Option<&str>, lost: Vec<(Layer, &str, String)>) -> Route {
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
