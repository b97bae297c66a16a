//! Attempts to execute work without approval, or with the wrong approver. Each test fails
//! if its defence does.

mod changed;
mod people;

use crate::world::until;
use sluice_core::id::RunId;
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_engine::Engine;

/// Waits until a run waits only for approvals.
async fn asks(engine: &Engine, run: RunId) -> Run {
    until(engine, run, |run| run.status == RunStatus::Paused).await
}
