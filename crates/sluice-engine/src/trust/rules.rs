//! Registry rows and policies, parsed.

use crate::agents::LOCAL_GATEWAY;
use sluice_core::port::ledger::Rows;
use sluice_govern::catalog::Catalog;
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
    /// The tools that the policies were loaded for; `None` if this machine declares none.
    catalog: Option<Arc<Catalog>>,
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
        catalog: Option<Arc<Catalog>>,
        before: Option<&Rules>,
    ) -> Result<Rules, RulesError> {
        let before = before.filter(|before| before.is_for(catalog.as_ref()));
        let policies = match (source, before) {
            (PolicySource::Fixed(_), Some(before)) => Arc::clone(&before.policies),
            (PolicySource::Fixed(policies), None) => loaded_again(policies, catalog.as_ref())?,
            (PolicySource::Registry, before) => from_rows(rows, catalog.as_ref(), before)?,
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
        Ok(Rules { fabric, policies, catalog, plain: Agent::default(), local })
    }

    /// Whether its policies were loaded for this catalog.
    pub(crate) fn is_for(&self, catalog: Option<&Arc<Catalog>>) -> bool {
        match (&self.catalog, catalog) {
            (None, None) => true,
            (Some(known), Some(catalog)) => Arc::ptr_eq(known, catalog),
            _ => false,
        }
    }

    /// The same rules, with policies for another catalog.
    pub(crate) fn under(&self, catalog: Option<Arc<Catalog>>) -> Result<Rules, RulesError> {
        let policies = loaded_again(&self.policies, catalog.as_ref())?;
        let (fabric, plain) = (self.fabric.clone(), self.plain.clone());
        Ok(Rules { fabric, policies, catalog, plain, local: self.local })
    }
}

/// A set and its shadow, loaded for a catalog.
fn loaded_again(
    policies: &Policies,
    catalog: Option<&Arc<Catalog>>,
) -> Result<Arc<Policies>, RulesError> {
    let shadow = policies.shadow().map_or(&[][..], Policies::files);
    load(policies.files(), shadow, catalog)
}

fn from_rows(
    rows: &Rows,
    catalog: Option<&Arc<Catalog>>,
    before: Option<&Rules>,
) -> Result<Arc<Policies>, RulesError> {
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
    load(&active, &shadow, catalog)
}

fn load(
    active: &[(String, String)],
    shadow: &[(String, String)],
    catalog: Option<&Arc<Catalog>>,
) -> Result<Arc<Policies>, RulesError> {
    let catalog = catalog.map_or(Catalog::empty(), AsRef::as_ref);
    let load = |files: &[(String, String)]| {
        let loaded = Policies::load_stored(files, catalog).map_err(|errors| {
            let machine = errors.iter().any(|error| error.machine);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let all = errors.join("; ");
            if machine { RulesError::Machine(all) } else { RulesError::Policies(all) }
        })?;
        for note in loaded.notes() {
            tracing::error!(%note, "a policy names what does not exist");
        }
        Ok(loaded)
    };
    let mut policies = load(active)?;
    if !shadow.is_empty() {
        policies = policies.with_shadow(load(shadow)?);
    }
    Ok(Arc::new(policies))
}
