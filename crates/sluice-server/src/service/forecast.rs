//! What would come of a run, step by step, before it is started.

use super::start::{self, Wish};
use crate::house::House;
use crate::limits::FORECAST_DECISIONS_MAX;
use crate::refused::{self, Done};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use sluice_core::expr::Expr;
use sluice_core::journal::envelope::Shown;
use sluice_core::plan::step::Step;
use std::collections::BTreeMap;

/// What the gates would say of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ForecastShown {
    /// The workflow.
    pub workflow: String,
    /// Whether every step was come to.
    pub whole: bool,
    /// Step by step, in the document's order; instances after their step.
    pub steps: Vec<StepForecast>,
    /// The gateways that steps would go to, and how they are now.
    pub gateways: Vec<GatewayForecast>,
}

/// What would come of a step.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StepForecast {
    /// The step, or an instance of it.
    pub node_id: String,
    /// `send`, `ask` (a person), `stop` (a gate), `skip`, `fail`, `depends` (on what
    /// steps before it say), or `unknown`.
    pub outcome: String,
    /// Whether it comes to that only if steps before it say the right things.
    pub conditional: bool,
    /// Why, for people.
    pub reason: Option<String>,
    /// Where it would go.
    pub gateway: Option<String>,
    /// The decision gate by gate, as the payload of `governance.decided`. In long
    /// runs it is left out of steps that would just be sent.
    pub decision: Option<Map<String, Value>>,
}

/// A gateway that a run would use.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GatewayForecast {
    /// Its name.
    pub name: String,
    /// `healthy`, `degraded` or `offline`, as far as this process can tell.
    pub health: String,
}

/// What would come of a run of a registered workflow.
pub async fn named(house: &House, reference: &str, wish: Wish) -> Done<ForecastShown> {
    let ready = start::ready(house, reference).await?;
    let request = start::filled(house, ready, &wish);
    let plan = &request.stored.definition.plan;
    let workflow = plan.name.clone();
    let mut steps: Vec<StepForecast> = plan.steps.iter().map(unknown).collect();
    let engine = &house.service().engine;
    let forecast = engine.forecast(request).await.map_err(refused::start)?;
    let mut places: BTreeMap<String, usize> =
        steps.iter().enumerate().map(|(at, step)| (step.node_id.clone(), at)).collect();
    for event in &forecast.events {
        see(&mut steps, &mut places, event);
    }
    bound(&mut steps);
    let mut gateways: Vec<String> = steps.iter().filter_map(|step| step.gateway.clone()).collect();
    gateways.sort_unstable();
    gateways.dedup();
    let gateways = gateways.into_iter().map(|name| {
        let (health, _) = engine.health(&name);
        let word = serde_json::to_value(health).ok();
        let health = word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default();
        GatewayForecast { name, health }
    });
    Ok(ForecastShown {
        workflow,
        whole: forecast.whole,
        gateways: gateways.collect(),
        steps: in_order(steps),
    })
}

fn unknown(step: &Step) -> StepForecast {
    let of_others = |expr: &Expr| expr.references().any(|one| one.path.head() != "args");
    let conditional = step.condition.as_ref().is_some_and(of_others)
        || step.edges.iter().any(|edge| edge.condition.is_some());
    StepForecast {
        node_id: step.id.clone(),
        outcome: "unknown".to_owned(),
        conditional,
        reason: None,
        gateway: None,
        decision: None,
    }
}

/// Leaves out what nobody reads of long runs: that step after step would be sent.
fn bound(steps: &mut [StepForecast]) {
    let plain = steps.iter_mut().filter(|step| step.outcome == "send");
    plain.skip(FORECAST_DECISIONS_MAX).for_each(|step| step.decision = None);
}

/// Takes over what an event says of a step.
fn see(steps: &mut Vec<StepForecast>, places: &mut BTreeMap<String, usize>, event: &Shown) {
    let mut envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
    let Value::Object(payload) = envelope["payload"].take() else { return };
    let Some(node) = payload.get("nodeId").and_then(Value::as_str) else { return };
    let Some(at) = place_of(steps, places, node) else { return };
    let step = &mut steps[at];
    let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
    match event.kind.as_str() {
        "governance.decided" => {
            let disposition = text("disposition");
            step.outcome = match disposition.as_deref() {
                Some("allow") => "send",
                Some("hold") => "ask",
                _ => "stop",
            }
            .to_owned();
            step.gateway = place(&payload);
            step.decision = Some(payload);
        }
        "node.skipped" => {
            step.reason = text("reason");
            // Without a decision it is a question, or nothing is done at all.
            if step.decision.is_none() {
                let looked = step.reason.as_deref().is_some_and(|why| why.contains("only looks"));
                step.outcome = match (looked, step.conditional) {
                    (true, _) => "ask",
                    (false, true) => "depends",
                    (false, false) => "skip",
                }
                .to_owned();
            }
        }
        "node.failed" => {
            step.outcome = "fail".to_owned();
            step.reason = text("errorMessage");
        }
        "node.completed" => step.outcome = "send".to_owned(),
        _ => {}
    }
}

/// Where a step or an instance of one stands; an instance is like its step.
fn place_of(
    steps: &mut Vec<StepForecast>,
    places: &mut BTreeMap<String, usize>,
    node: &str,
) -> Option<usize> {
    if let Some(at) = places.get(node) {
        return Some(*at);
    }
    let whole = *places.get(node.split('[').next()?)?;
    let conditional = steps[whole].conditional;
    steps.push(StepForecast {
        node_id: node.to_owned(),
        outcome: "unknown".to_owned(),
        conditional,
        reason: None,
        gateway: None,
        decision: None,
    });
    places.insert(node.to_owned(), steps.len() - 1);
    Some(steps.len() - 1)
}

/// The gateway that a decision was made about.
fn place(payload: &Map<String, Value>) -> Option<String> {
    let facts = payload.get("facts")?;
    let name = facts["what"]["gateway"]["name"].as_str()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Instances directly after their step.
fn in_order(steps: Vec<StepForecast>) -> Vec<StepForecast> {
    let mut order: Vec<String> = Vec::new();
    let mut groups: BTreeMap<String, Vec<StepForecast>> = BTreeMap::new();
    for step in steps {
        let base = step.node_id.split('[').next().unwrap_or_default().to_owned();
        if !groups.contains_key(&base) {
            order.push(base.clone());
        }
        groups.entry(base).or_default().push(step);
    }
    order.into_iter().filter_map(|base| groups.remove(&base)).flatten().collect()
}
