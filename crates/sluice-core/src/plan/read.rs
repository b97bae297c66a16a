//! Reads a plan back from its JSON.
//!
//! Journals keep this JSON forever, so every later version must read it: unknown fields are
//! ignored, and a missing field has its original default.
//!
//! INVARIANT: a plan that was read is as sound as a new one: ids are unique, and dependencies
//! lead to existing steps without a cycle.

use super::graph::Graph;
use super::policy::{Family, Scheduling};
use super::step::Step;
use super::{Phase, Plan, PlanError, Recovery, Role, Team};
use crate::args::ArgDecl;
use crate::money::Money;
use crate::template::Template;
use crate::visible::shorten;
use indexmap::IndexMap;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

impl Plan {
    /// Reads the JSON that a plan serialises to, canonical or not.
    pub fn from_json(text: &str) -> Result<Plan, PlanError> {
        let written: PlanJson =
            serde_json::from_str(text).map_err(|error| PlanError(error.to_string()))?;
        Plan::try_from(written)
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a plan")]
pub(super) struct PlanJson {
    family: Family,
    name: String,
    version: Option<u64>,
    description: Option<String>,
    #[serde(default)]
    args: IndexMap<String, ArgDecl>,
    #[serde(default)]
    roles: IndexMap<String, Role>,
    #[serde(default)]
    phases: Vec<Phase>,
    default_model: Option<String>,
    max_cost: Option<Money>,
    timeout_ms: Option<u64>,
    max_parallel: u32,
    scheduling: Scheduling,
    recovery: Option<Recovery>,
    #[serde(default)]
    outputs: IndexMap<String, Template>,
    team: Option<Team>,
    steps: Vec<Step>,
}

impl TryFrom<PlanJson> for Plan {
    type Error = PlanError;

    fn try_from(written: PlanJson) -> Result<Plan, PlanError> {
        Ok(Plan {
            graph: graph(&written.steps)?,
            family: written.family,
            name: written.name,
            version: written.version,
            description: written.description,
            args: written.args,
            roles: written.roles,
            phases: written.phases,
            default_model: written.default_model,
            max_cost: written.max_cost,
            timeout_ms: written.timeout_ms,
            max_parallel: written.max_parallel,
            scheduling: written.scheduling,
            recovery: written.recovery,
            outputs: written.outputs,
            team: written.team,
            steps: written.steps,
        })
    }
}

fn graph(steps: &[Step]) -> Result<Graph, PlanError> {
    let mut positions = BTreeMap::new();
    for (at, step) in (0u32..).zip(steps) {
        if positions.insert(step.id.as_str(), at).is_some() {
            return Err(PlanError(format!("two steps have the id `{}`", shorten(&step.id))));
        }
    }
    let mut pairs = Vec::new();
    for (at, step) in (0u32..).zip(steps) {
        for on in &step.depends_on {
            let Some(position) = positions.get(on.as_str()) else {
                let (id, on) = (shorten(&step.id), shorten(on));
                return Err(PlanError(format!(
                    "step `{id}` depends on `{on}`, which is not a step"
                )));
            };
            pairs.push((at, *position));
        }
        check_edges(step)?;
    }
    let ids: Vec<&str> = steps.iter().map(|step| step.id.as_str()).collect();
    Graph::new(&ids, &pairs).map_err(|cycles| {
        let through = cycles.0.first().and_then(|cycle| cycle.first());
        let through = through.map_or("", |at| ids[*at]);
        PlanError(format!("the dependencies of `{}` form a cycle", shorten(through)))
    })
}

/// Checks that an edge comes from a dependency.
fn check_edges(step: &Step) -> Result<(), PlanError> {
    if step.edges.is_empty() {
        return Ok(());
    }
    let known: BTreeSet<&String> = step.depends_on.iter().collect();
    match step.edges.iter().find(|edge| !known.contains(&edge.source)) {
        None => Ok(()),
        Some(edge) => {
            let (edge, source) = (shorten(&edge.id), shorten(&edge.source));
            let id = shorten(&step.id);
            let message =
                format!("edge `{edge}` comes from `{source}`, on which `{id}` does not depend");
            Err(PlanError(message))
        }
    }
}
