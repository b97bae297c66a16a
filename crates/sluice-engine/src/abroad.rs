//! Dispatches that were accepted elsewhere: when nobody wants one any more,
//! whoever does it is told.

use sluice_core::journal::event::StepAt;
use sluice_core::port::adapter::Recall;
use sluice_core::run::state::Run;
use sluice_core::run::status::StepStatus;
use std::collections::BTreeMap;

/// Dispatches that go on elsewhere, by step and number.
#[derive(Debug, Default)]
pub(crate) struct Abroad {
    known: BTreeMap<(StepAt, u32), Away>,
}

/// Who does it, and where.
#[derive(Debug, Clone)]
pub(crate) struct Away {
    pub(crate) agent: String,
    pub(crate) gateway: String,
    pub(crate) recall: Recall,
    /// Whether they were told to stop.
    told: bool,
}

impl Abroad {
    /// Looks at the run again, and answers with what is no longer wanted.
    pub(crate) fn update(&mut self, run: &Run) -> Vec<Away> {
        let mut gone = Vec::new();
        self.known.retain(|(at, dispatch_no), away| {
            let stays = run.is_elsewhere(*at, *dispatch_no);
            // A result is the end of it.
            let answered = run.get(*at).is_some_and(|one| one.status == StepStatus::Completed);
            let unwanted = if stays { run.is_stopping() } else { !answered };
            if unwanted && !away.told {
                away.told = true;
                gone.push(away.clone());
            }
            stays
        });
        for (at, dispatch_no) in run.elsewhere() {
            self.known.entry((at, dispatch_no)).or_insert_with(|| {
                let state = run.state(at);
                let away = Away {
                    agent: state.agent.clone().unwrap_or_default(),
                    gateway: state.gateway.clone().unwrap_or_default(),
                    recall: Recall { run: run.id, step: run.name(at), dispatch_no },
                    told: run.is_stopping(),
                };
                if away.told {
                    gone.push(away.clone());
                }
                away
            });
        }
        gone
    }
}
