//! Dispatches that a bridge has accepted: cancelled when the run no longer wants them.

use sluice_core::journal::event::StepAt;
use sluice_core::port::adapter::Recall;
use sluice_core::run::state::Run;
use sluice_core::status::StepStatus;
use std::collections::BTreeMap;

/// Accepted dispatches, by step and dispatch number.
#[derive(Debug, Default)]
pub(crate) struct RemoteDispatches {
    dispatches: BTreeMap<(StepAt, u32), RemoteDispatch>,
}

/// An accepted dispatch and the agent and gateway that execute it.
#[derive(Debug, Clone)]
pub(crate) struct RemoteDispatch {
    pub(crate) agent: String,
    pub(crate) gateway: String,
    pub(crate) recall: Recall,
    cancel_sent: bool,
}

impl RemoteDispatches {
    /// Compares with the run; returns dispatches that must be cancelled now.
    pub(crate) fn update(&mut self, run: &Run) -> Vec<RemoteDispatch> {
        let mut unwanted_now = Vec::new();
        self.dispatches.retain(|(at, dispatch_no), remote| {
            let stays = run.is_accepted_dispatch(*at, *dispatch_no);
            // A completed dispatch needs no cancellation.
            let answered = run.get(*at).is_some_and(|one| one.status() == StepStatus::Completed);
            let unwanted = if stays { run.is_stopping() } else { !answered };
            if unwanted && !remote.cancel_sent {
                remote.cancel_sent = true;
                unwanted_now.push(remote.clone());
            }
            stays
        });
        for (at, dispatch_no) in run.accepted_dispatches() {
            self.dispatches.entry((at, dispatch_no)).or_insert_with(|| {
                let state = run.state(at);
                let remote = RemoteDispatch {
                    agent: state.agent().unwrap_or_default().to_owned(),
                    gateway: state.gateway().unwrap_or_default().to_owned(),
                    recall: Recall { run: run.id, step: run.name(at), dispatch_no },
                    cancel_sent: run.is_stopping(),
                };
                if remote.cancel_sent {
                    unwanted_now.push(remote.clone());
                }
                remote
            });
        }
        unwanted_now
    }
}
