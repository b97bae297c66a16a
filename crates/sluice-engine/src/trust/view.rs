//! Governance data as one turn sees it.

use super::GovernanceCache;
use super::rules::{Local, Rules};
use crate::agents::{Agents, LOCAL_GATEWAY};
use sluice_core::port::adapter::Quote;
use sluice_core::port::authority::{Authority, Patience, Tally};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_govern::account::Name;
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::Policies;
use sluice_govern::registry::{Agent, Fabric, Gateway, Health, Posture};
use std::sync::Arc;

/// Rules of one epoch, with the cached counters and health.
pub(crate) struct View<'a> {
    rules: Arc<Rules>,
    catalog: Option<Arc<Catalog>>,
    trust: &'a GovernanceCache,
    agents: &'a Agents,
    now_ms: u64,
    /// Posture to decide under in a forecast, instead of the dry run's own.
    ahead_for: Option<Posture>,
}

impl<'a> View<'a> {
    pub(crate) fn new(
        rules: Arc<Rules>,
        trust: &'a GovernanceCache,
        agents: &'a Agents,
        now_ms: u64,
    ) -> View<'a> {
        let catalog = trust.catalog();
        View { rules, catalog, trust, agents, now_ms, ahead_for: None }
    }

    /// Decides under the posture of the run that is forecast.
    pub(crate) fn ahead_for(self, posture: Option<Posture>) -> View<'a> {
        View { ahead_for: posture, ..self }
    }
}

impl Authority for View<'_> {
    fn fabric(&self) -> &Fabric {
        &self.rules.fabric
    }

    fn policies(&self) -> &Policies {
        &self.rules.policies
    }

    fn catalog(&self) -> &Catalog {
        self.catalog.as_deref().unwrap_or(Catalog::empty())
    }

    fn agent(&self, name: &str) -> Option<&Agent> {
        let plain = || self.agents.get(name).map(|_| &self.rules.plain);
        self.rules.fabric.agents.get(name).or_else(plain)
    }

    fn gateway(&self, name: &str) -> Option<&Gateway> {
        self.rules.fabric.gateways.get(name)
    }

    fn health(&self, gateway: &str) -> Health {
        self.trust.gateway_health.health(gateway)
    }

    fn serves(&self, agent: &str, gateway: &str) -> bool {
        // An unknown agent is refused for that reason, at any gateway.
        self.agent(agent).is_none()
            || self.gateway(gateway).is_some_and(|row| self.agents.serves(agent, row))
    }

    fn is_implied(&self, gateway: &str) -> bool {
        self.rules.local == Local::Implied && gateway == LOCAL_GATEWAY
    }

    fn count(&self, counter: Name<'_>) -> i64 {
        self.trust.counts.get(counter)
    }

    fn tally(&self, account: &str) -> Tally {
        self.trust.counts.tally(account)
    }

    fn in_window(&self, counter: Name<'_>, window_ms: u64) -> i64 {
        self.trust.counts.in_window(counter, window_ms, self.now_ms)
    }

    fn remembered_outputs(&self, agent: &str) -> Arc<[RememberedOutput]> {
        self.trust.remembered.outputs(agent)
    }

    fn quote(&self, agent: &str, gateway: &str, step: &str) -> Quote {
        let row = self.gateway(gateway);
        let adapter = self.agents.at(agent, row.map(|row| (gateway, row)));
        adapter.map_or(Quote::Priced, |adapter| adapter.quote(step))
    }

    fn judged_by(&self, posture: Posture) -> Posture {
        self.ahead_for.unwrap_or(posture)
    }

    fn patience(&self) -> &Patience {
        &self.trust.patience
    }
}
