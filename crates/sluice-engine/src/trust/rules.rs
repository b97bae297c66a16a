//! Registry rows and policies, parsed.

use crate::agents::LOCAL_GATEWAY;
use sluice_core::port::ledger::Rows;
use sluice_govern::policy::{DEFAULT, Policies};
use sluice_govern::registry::{Agent, Fabric, Gateway, PolicySet, policy_files};
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Where policies come from.
#[derive(Clone, Default)]
pub enum PolicySource {
    /// The registry; the built-in set while it has none.
    #[default]
    Registry,
    /// This set, whatever the registry contains.
    Fixed(Arc<Policies>),
}

/// Policies cannot be used. Nothing is dispatched without them.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RulesError {
    /// The policies are not valid.
    #[error("the policies cannot be used: {0}")]
    Policies(String),
    /// The machine has too little memory or too few threads to load them.
    #[error("{0}")]
    Machine(String),
}

/// Rows and policies of one registry epoch.
pub(crate) struct Rules {
    pub(crate) fabric: Fabric,
    pub(crate) policies: Arc<Policies>,
    /// Row of agents that need no registration.
    pub(crate) plain: Agent,
    pub(crate) local: Local,
}

/// Whether a row defines the gateway of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Local {
    Implied,
    Registered,
}

impl Rules {
    /// Parses the rows. Policies that cannot be parsed are an error; unchanged ones are taken
    /// from `before`. `implied` is the gateway of this process if no row defines it.
    pub(crate) fn read(
        rows: &Rows,
        source: &PolicySource,
        implied: &Gateway,
        before: Option<&Rules>,
    ) -> Result<Rules, RulesError> {
        let policies = match source {
            PolicySource::Fixed(policies) => Arc::clone(policies),
            PolicySource::Registry => from_rows(rows, before)?,
        };
        let mut fabric = Fabric::read(rows.epoch, &rows.rows);
        let local = match fabric.gateways.entry(LOCAL_GATEWAY.to_owned()) {
            Entry::Occupied(_) => Local::Registered,
            Entry::Vacant(entry) => {
                entry.insert(implied.clone());
                Local::Implied
            }
        };
        for (kind, name) in &rows.foreign {
            fabric.refuse(kind, name);
        }
        if rows.is_rolled_back {
            tracing::error!("{}", sluice_core::port::ledger::ROLLED_BACK);
            fabric.refuse_all();
        }
        for (kind, name, why) in &fabric.broken {
            tracing::error!(kind = kind.as_str(), name, why, "a row cannot be read");
        }
        Ok(Rules { fabric, policies, plain: Agent::default(), local })
    }
}

fn from_rows(rows: &Rows, before: Option<&Rules>) -> Result<Arc<Policies>, RulesError> {
    let mut active = policy_files(&rows.rows, PolicySet::Active).map_err(RulesError::Policies)?;
    let shadow = policy_files(&rows.rows, PolicySet::Shadow).map_err(RulesError::Policies)?;
    if active.is_empty() {
        active.push((DEFAULT.0.to_owned(), DEFAULT.1.to_owned()));
    }
    if let Some(before) = before {
        let same_shadow = match before.policies.shadow() {
            Some(known) => known.files() == shadow,
            None => shadow.is_empty(),
        };
        if same_shadow && before.policies.files() == active {
            return Ok(Arc::clone(&before.policies));
        }
    }
    let load = |files: &[(String, String)]| {
        Policies::load(files).map_err(|errors| {
            let machine = errors.iter().any(|error| error.machine);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let all = errors.join("; ");
            if machine { RulesError::Machine(all) } else { RulesError::Policies(all) }
        })
    };
    let mut policies = load(&active)?;
    if !shadow.is_empty() {
        policies = policies.with_shadow(load(&shadow)?);
    }
    Ok(Arc::new(policies))
}
