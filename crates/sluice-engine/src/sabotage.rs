//! Disables safeguards, so that the simulator can prove that each is needed.

use crate::engine::Inner;
use crate::turn::TurnInput;
use sluice_core::port::store::Guard;
use sluice_core::run::command::Command;
use sluice_core::run::decide::Decided;
use sluice_core::run::state::{Grant, Run};
use sluice_govern::account::{CounterName, Figure};

impl Inner {
    /// Accepts results of earlier dispatches.
    pub(crate) fn sabotaged(&self, mut command: Command, run: &Run) -> Command {
        if let Command::Complete { at, dispatch_no, .. } = &mut command
            && self.config.sabotage.accept_late
            && let Some(state) = run.get(*at)
        {
            *dispatch_no = state.dispatch_no;
        }
        command
    }

    /// Lets an approval be used more than once.
    pub(crate) fn keep_grants(&self, run: &mut Run) {
        if !self.config.sabotage.reuse_grants {
            return;
        }
        let granted = run.steps.iter_mut().filter(|step| step.granted.is_some());
        for step in granted {
            step.grant = Grant::Retries;
        }
    }

    /// Reserves again when a dispatch in flight is sent again.
    pub(crate) fn taken_twice(&self, run: &Run, inputs: &[TurnInput]) -> Vec<Guard> {
        let again = inputs.iter().any(|input| matches!(input.command, Command::TakeOver));
        if !self.config.sabotage.reserve_again || !again {
            return Vec::new();
        }
        let terms = run.all().filter_map(|(_, step)| step.terms().map(|terms| &**terms));
        let accounts = terms.flat_map(|terms| {
            let delta = i64::try_from(terms.reserved.micro_cents()).unwrap_or(i64::MAX);
            terms.accounts.iter().map(move |one| Guard {
                counter: CounterName::of_account(Figure::Held, &one.name, 0),
                delta,
                max: None,
                window_ms: None,
            })
        });
        accounts.collect()
    }

    /// Removes the limits of guards, or the guards that free slots.
    pub(crate) fn unguarded(&self, mut decided: Decided, twice: Vec<Guard>) -> Decided {
        let sabotage = self.config.sabotage;
        if !decided.events.is_empty() {
            decided.guards.extend(twice);
        }
        for guard in &mut decided.guards {
            if sabotage.unguarded.is_some_and(|prefix| guard.counter.starts_with(prefix)) {
                guard.max = None;
            }
        }
        if sabotage.forget_slots {
            decided.guards.retain(|guard| guard.delta >= 0 || !guard.counter.starts_with("busy:"));
        }
        decided
    }
}
