//! Attempts to get work done that nobody, or the wrong person, agreed to. Each
//! fails if its defence does.

mod changed;
mod people;

use crate::world::until;
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use sluice_core::run::status::RunStatus;
use sluice_engine::Engine;

/// Waits until a run waits for people only.
async fn asks(engine: &Engine, run: RunId) -> Run {
    until(engine, run, |run| run.status == RunStatus::Paused).await
}
