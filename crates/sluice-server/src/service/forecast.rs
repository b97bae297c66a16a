//! Forecasts a run: what the gates would decide about each step, without starting it.

use super::start::{self, StartRequest};
use crate::limits::FORECAST_DECISIONS_MAX;
use crate::organisation::Organisation;
use crate::refused::{self, ServiceResult};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use sluice_core::expr::Expr;
use sluice_core::journal::envelope::Shown;
use sluice_core::plan::step::Step;
use std::collections::BTreeMap;

/// The forecast of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ForecastShown {
    /// Name of the workflow.
    pub workflow: String,
    /// Whether the forecast reached every step.
    pub whole: bool,
    /// The steps in the order of the document; instances follow their step.
    pub steps: Vec<StepForecast>,
    /// The gateways that steps would be sent to, with their current health.
    pub gateways: Vec<GatewayForecast>,
}

/// The forecast of a step.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StepForecast {
    /// Id of the step, or of an instance of it.
    pub node_id: String,
    /// `send`, `ask` (waits for an approval), `stop` (a gate blocks it), `skip`, `fail`,
    /// `depends` (on the outputs of earlier steps), or `unknown`.
    pub outcome: String,
    /// Whether the outcome depends on the outputs of earlier steps.
    pub conditional: bool,
    /// The reason, for people.
    pub reason: Option<String>,
    /// The gateway that it would be sent to.
    pub gateway: Option<String>,
    /// The decision gate by gate, as in the payload of `governance.decided`. In long runs
    /// it is left out of steps that would simply be sent.
    pub decision: Option<Map<String, Value>>,
}

/// A gateway that a run would use.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GatewayForecast {
    /// Name of the gateway.
    pub name: String,
    /// `healthy`, `degraded` or `offline`, as this process last observed it.
    pub health: String,
}

/// Forecasts a run of a registered workflow.
pub(crate) async fn forecast_workflow(
    organisation: &Organisation,
    reference: &str,
    request: StartRequest,
) -> ServiceResult<ForecastShown> {
    let ready = start::prepare_workflow(organisation, reference).await?;
    let request = start::with_request(organisation, ready, &request);
    let plan = &request.stored.definition.plan;
    let workflow = plan.name.clone();
    let mut steps: Vec<StepForecast> = plan.steps.iter().map(unknown).collect();
    let engine = &organisation.service().engine;
    let forecast = engine.forecast(request).await.map_err(refused::start)?;
    let mut positions: BTreeMap<String, usize> =
        steps.iter().enumerate().map(|(at, step)| (step.node_id.clone(), at)).collect();
    for event in &forecast.events {
        apply(&mut steps, &mut positions, event);
    }
    drop_plain_decisions(&mut steps);
    let mut gateways: Vec<String> = steps.iter().filter_map(|step| step.gateway.clone()).collect();
    gateways.sort_unstable();
    gateways.dedup();
    let gateways = gateways.into_iter().map(async |name| {
        let (health, _) = engine.health(&name).await?;
        Ok(GatewayForecast { name, health: health.as_str().to_owned() })
    });
    let gateways = join_all(gateways).await.into_iter().collect::<ServiceResult<_>>()?;
    Ok(ForecastShown { workflow, whole: forecast.whole, gateways, steps: in_order(steps) })
}

fn unknown(step: &Step) -> StepForecast {
    let reads_steps = |expr: &Expr| expr.references().any(|one| one.path.head() != "args");
    let conditional = step.condition.as_ref().is_some_and(reads_steps)
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

/// Bounds the size of a forecast: beyond a limit, steps that would simply be sent have no
/// decision.
fn drop_plain_decisions(steps: &mut [StepForecast]) {
    let plain = steps.iter_mut().filter(|step| step.outcome == "send");
    plain.skip(FORECAST_DECISIONS_MAX).for_each(|step| step.decision = None);
}

/// Applies an event to the forecast of its step.
fn apply(steps: &mut Vec<StepForecast>, positions: &mut BTreeMap<String, usize>, event: &Shown) {
    let mut envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
    let Value::Object(payload) = envelope["payload"].take() else { return };
    let Some(node) = payload.get("nodeId").and_then(Value::as_str) else { return };
    let Some(at) = position_of(steps, positions, node) else { return };
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
            step.gateway = gateway_of(&payload);
            step.decision = Some(payload);
        }
        "node.skipped" => {
            step.reason = text("reason");
            // Without a decision it is an approval step, or nothing would be executed.
            if step.decision.is_none() {
                let dry_run = text("cause").as_deref() == Some("advisory");
                step.outcome = match (dry_run, step.conditional) {
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

/// The position of a step or instance in the list. A new instance copies its step.
fn position_of(
    steps: &mut Vec<StepForecast>,
    positions: &mut BTreeMap<String, usize>,
    node: &str,
) -> Option<usize> {
    if let Some(at) = positions.get(node) {
        return Some(*at);
    }
    let whole = *positions.get(node.split('[').next()?)?;
    let conditional = steps[whole].conditional;
    steps.push(StepForecast {
        node_id: node.to_owned(),
        outcome: "unknown".to_owned(),
        conditional,
        reason: None,
        gateway: None,
        decision: None,
    });
    positions.insert(node.to_owned(), steps.len() - 1);
    Some(steps.len() - 1)
}

/// The gateway that a decision is about.
fn gateway_of(payload: &Map<String, Value>) -> Option<String> {
    let facts = payload.get("facts")?;
    let name = facts["what"]["gateway"]["name"].as_str()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Sorts instances directly after their step.
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
