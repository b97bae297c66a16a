//! Checkpoints: the points of a run to which it can be rewound.

use super::Service;
use crate::refused::{self, CHECKPOINT_UNKNOWN, Refused, ServiceResult};
use serde_json::Value;
use sluice_core::journal::envelope::Seen;
use sluice_core::run::state::Run;

/// A step that was completed or skipped.
pub struct Checkpoint {
    /// Counted from 1.
    pub number: usize,
    /// The event that made it.
    pub event: u64,
    /// When the event was written.
    pub at_ms: u64,
    /// Id of the step.
    pub step: String,
    /// `completed` or `skipped`.
    pub word: &'static str,
    /// Whether the step went back to pending afterwards.
    pub undone: bool,
}

/// All checkpoints of a run, oldest first.
pub async fn list(service: &Service, run: &Run) -> ServiceResult<Vec<Checkpoint>> {
    let mut found: Vec<Checkpoint> = Vec::new();
    let mut after = 0;
    while after < run.version {
        let page = service.engine.events(run, after).await.map_err(refused::load)?;
        let Some(last) = page.last() else { break };
        after = last.id();
        for event in page.into_iter().filter_map(Seen::event) {
            let word = match event.kind.as_str() {
                "node.completed" => "completed",
                "node.skipped" => "skipped",
                "node.invalidated" => "",
                _ => continue,
            };
            let envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
            let step = envelope["payload"]["nodeId"].as_str().unwrap_or_default().to_owned();
            // Instances are part of their step.
            if run.find(&step).is_none_or(|at| at.item.is_some()) {
                continue;
            }
            if word.is_empty() {
                let same = found.iter_mut().filter(|one| one.step == step);
                same.for_each(|one| one.undone = true);
                continue;
            }
            let (number, at_ms) = (found.len() + 1, event.at_ms);
            found.push(Checkpoint { number, event: event.id, at_ms, step, word, undone: false });
        }
    }
    Ok(found)
}

/// The run as it was at a checkpoint; 0 is its beginning.
pub async fn at(service: &Service, run: &Run, number: usize) -> ServiceResult<Run> {
    let event = match number.checked_sub(1) {
        None => 1,
        Some(position) => {
            let all = list(service, run).await?;
            let one = all.get(position).ok_or_else(|| unknown(run, number, all.len()))?;
            one.event
        }
    };
    service.engine.load_at(run.id, event).await.map_err(refused::load)
}

fn unknown(run: &Run, number: usize, last: usize) -> Refused {
    let message = format!("{} has no checkpoint {number}; the last is {last}", run.id);
    let remedy = format!("`sluice runs show {}` lists them", run.id);
    Refused::new(CHECKPOINT_UNKNOWN, message, remedy)
}
