//! A run and its unfinished child runs.

use crate::local::Local;
use sluice_core::id::{ApprovalId, RunId};
use sluice_core::plan::step::Work;
use sluice_core::port::Clock as _;
use sluice_core::port::store::{Filter, RunRow};
use sluice_core::run::phase::StepPhase;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::engine::TakeError;
use sluice_engine::world::SystemClock;
use sluice_server::service::find::{self, UNFINISHED};
use std::collections::VecDeque;

/// Most runs of a family that are loaded at once.
const FAMILY_MAX: usize = 1000;

pub(super) struct Family {
    /// Pending approvals, oldest first, with their runs.
    pub(super) open: Vec<(Run, ApprovalId)>,
    /// Steps that wait for an assignment, with their runs.
    pub(super) blocked: Vec<(RunId, String)>,
    /// Whether a step waits for its next attempt.
    pub(super) retries: bool,
    /// Whether a run was claimed, which therefore does not wait.
    pub(super) claimed: bool,
}

impl Family {
    /// Loads the run and its child runs. Runs that are due are claimed: another process may have
    /// decided an approval.
    pub(super) async fn load(local: &Local, root: &Run) -> anyhow::Result<Family> {
        let mut family =
            Family { open: Vec::new(), blocked: Vec::new(), retries: false, claimed: false };
        let filter = Filter { run: Some(root.id), ..Filter::default() };
        let mut rows: VecDeque<RunRow> = local.store.list(filter).await?.into();
        let mut seen = 0;
        while let Some(row) = rows.pop_front() {
            seen += 1;
            family.claim(local, &row).await?;
            let own = row.run == root.id;
            // A child that is being cancelled cannot wait for an approval, so it is not loaded.
            let quiet = !own && row.status == RunStatus::Cancelling;
            if quiet || seen > FAMILY_MAX {
                continue;
            }
            let loaded;
            let run = if own {
                root
            } else {
                loaded = find::load(local, row.run).await?;
                &loaded
            };
            if has_children(run) {
                let statuses = UNFINISHED.to_vec();
                let below = Filter { parent: Some(run.id), statuses, ..Filter::default() };
                rows.extend(local.store.list(below).await?);
            }
            family.add(run);
        }
        family.open.sort_by_key(|(_, id)| *id);
        Ok(family)
    }

    async fn claim(&mut self, local: &Local, row: &RunRow) -> anyhow::Result<()> {
        let due = row.due_at_ms.is_some_and(|due_ms| due_ms <= SystemClock.now_ms());
        if row.owner.is_some() || row.status.is_terminal() || !due {
            return Ok(());
        }
        match local.engine.take_up(row.run).await {
            Ok(()) => self.claimed = true,
            // Another process claimed it first.
            Err(TakeError::Held(_) | TakeError::Stopping) => {}
            Err(error) => return Err(crate::refused::claim(row.run, error)),
        }
        Ok(())
    }

    fn add(&mut self, run: &Run) {
        self.retries |= run.all().any(|(_, state)| state.status() == StepStatus::Retrying);
        let blocked = run.all().filter(|(_, state)| state.phase == StepPhase::AwaitingAssignment);
        let blocked = blocked.map(|(at, _)| (run.id, run.step(at).id.clone()));
        self.blocked.extend(blocked);
        self.blocked.dedup();
        let open = run.approvals.iter().filter(|(_, approval)| approval.resolution.is_none());
        self.open.extend(open.map(|(id, _)| (run.clone(), *id)));
    }
}

fn has_children(run: &Run) -> bool {
    run.definition.plan.steps.iter().any(|step| matches!(step.work, Work::Workflow(_)))
}
