//! A run and the runs it started, as far as they have not ended.

use crate::local::Local;
use sluice_core::plan::step::Work;
use sluice_core::port::Clock as _;
use sluice_core::port::store::{Filter, RunRow};
use sluice_core::run::id::{ApprovalId, RunId};
use sluice_core::run::phase::StepPhase;
use sluice_core::run::state::Run;
use sluice_core::run::status::{RunStatus, StepStatus};
use sluice_engine::engine::TakeError;
use sluice_engine::world::SystemClock;
use sluice_server::service::find::{self, UNFINISHED};
use std::collections::VecDeque;

/// Most runs of a family that are looked at in one go.
const FAMILY_MAX: usize = 1000;

pub(super) struct Family {
    /// Questions that wait for an answer, oldest first, and who asks.
    pub(super) open: Vec<(Run, ApprovalId)>,
    /// Steps that wait until somebody is assigned: the run, and their names.
    pub(super) blocked: Vec<(RunId, String)>,
    /// Whether some step is only waiting for its next attempt.
    pub(super) retries: bool,
    /// Whether a run had to be taken up: it does not wait, whatever it looked like.
    pub(super) taken_up: bool,
}

impl Family {
    /// Looks at the run and everything below it. What lies around and is due
    /// is taken up: answers may have come from another process.
    pub(super) async fn look(local: &Local, root: &Run) -> anyhow::Result<Family> {
        let mut family =
            Family { open: Vec::new(), blocked: Vec::new(), retries: false, taken_up: false };
        let filter = Filter { run: Some(root.id), ..Filter::default() };
        let mut rows: VecDeque<RunRow> = local.store.list(filter).await?.into();
        let mut seen = 0;
        while let Some(row) = rows.pop_front() {
            seen += 1;
            family.take_up(local, &row).await?;
            let own = row.run == root.id;
            // A child's row is all that is needed where it cannot wait for people.
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

    async fn take_up(&mut self, local: &Local, row: &RunRow) -> anyhow::Result<()> {
        let due = row.due_at_ms.is_some_and(|due_ms| due_ms <= SystemClock.now_ms());
        if row.owner.is_some() || row.status.is_terminal() || !due {
            return Ok(());
        }
        match local.engine.take_up(row.run).await {
            Ok(()) => self.taken_up = true,
            // Somebody was faster.
            Err(TakeError::Held(_) | TakeError::Stopping) => {}
            Err(error) => return Err(crate::refused::take(row.run, error)),
        }
        Ok(())
    }

    fn add(&mut self, run: &Run) {
        self.retries |= run.all().any(|(_, state)| state.status() == StepStatus::Retrying);
        let blocked = run.all().filter(|(_, state)| state.phase == StepPhase::AwaitingAssignment);
        let blocked = blocked.map(|(at, _)| (run.id, run.step(at).id.clone()));
        self.blocked.extend(blocked);
        self.blocked.dedup();
        let open = run.approvals.iter().filter(|(_, asked)| asked.resolution.is_none());
        self.open.extend(open.map(|(id, _)| (run.clone(), *id)));
    }
}

fn has_children(run: &Run) -> bool {
    run.definition.plan.steps.iter().any(|step| matches!(step.work, Work::Workflow(_)))
}
