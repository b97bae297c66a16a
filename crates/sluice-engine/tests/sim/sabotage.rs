//! Safeguards that can be disabled one by one, to prove that the checkers notice it.
//!
//! The engine stays as it is. The ports around it defeat the safeguard: they change what
//! it hands to the store, or report to it what is not true.

use crate::world::World;
use sluice_core::plan::policy::ModerationPhase;
use sluice_core::port::ledger::{Counter, Ledger as _};
use sluice_core::port::store::{Append, Appended, Guard, StoreError};
use sluice_core::run::definition::Definition;
use sluice_core::run::state::Run;
use sluice_engine::definition::Stored;
use sluice_govern::account::{CounterName, Figure};
use sluice_store::memory::MemoryStore;
use std::sync::Arc;

/// A disabled safeguard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// A remote worker reports its result under the number of the dispatch in flight.
    AcceptLate,
    /// The store forgets when a parked run is due.
    ForgetTimers,
    /// The store acknowledges an append before it is durable.
    DispatchBeforeLog,
    /// The store ignores the limits of counters with this prefix.
    Unguarded(&'static str),
    /// The store does not free concurrency slots.
    ForgetSlots,
    /// The store reserves again when another owner continues a run.
    ReserveAgain,
    /// The engine executes approvals that cover retries; in the documents of the checkers
    /// each is for one attempt.
    ReuseGrants,
    /// The moderator clears every text of this phase unread.
    ClearUnread(ModerationPhase),
}

impl Sabotage {
    /// The append that the store receives. Added guards come last, since the engine expects
    /// the counters of its own guards in their order.
    fn rewrite(self, append: &mut Append, world: &World) {
        match self {
            Sabotage::ForgetTimers => {
                if let Some(head) = &mut append.head {
                    head.due_at_ms = None;
                }
            }
            Sabotage::Unguarded(prefix) => {
                let guards = append.guards.iter_mut();
                for guard in guards.filter(|guard| guard.counter.starts_with(prefix)) {
                    guard.max = None;
                }
            }
            Sabotage::ForgetSlots => {
                let guards = append.guards.iter_mut();
                for guard in guards.filter(|guard| guard.counter.starts_with("busy:")) {
                    guard.delta = guard.delta.max(0);
                }
            }
            Sabotage::ReserveAgain if append.count > 0 => {
                let journal = world.journal();
                let taken_over = journal.taken_over(append);
                append.guards.extend(taken_over.into_iter().flat_map(reservations));
            }
            Sabotage::AcceptLate
            | Sabotage::DispatchBeforeLog
            | Sabotage::ReserveAgain
            | Sabotage::ReuseGrants
            | Sabotage::ClearUnread(_) => {}
        }
    }
}

/// Guards that reserve once more for every dispatch in flight.
fn reservations(run: &Run) -> Vec<Guard> {
    let terms = run.all().filter_map(|(_, step)| step.terms());
    let guards = terms.flat_map(|terms| {
        let delta = i64::try_from(terms.reserved.micro_cents()).unwrap_or(i64::MAX);
        terms.accounts.iter().map(move |one| Guard {
            counter: CounterName::of_account(Figure::Held, &one.name, 0),
            delta,
            max: None,
            window_ms: None,
        })
    });
    guards.collect()
}

impl World {
    /// The append as the store receives it.
    pub(crate) fn sabotaged(&self, append: Arc<Append>) -> Arc<Append> {
        let Some(sabotage) = self.sabotage else { return append };
        let mut append = Arc::unwrap_or_clone(append);
        sabotage.rewrite(&mut append, self);
        Arc::new(append)
    }

    /// The definition that the checkers hold for a stored one.
    pub(crate) fn definition(&self, stored: &Stored) -> Arc<Definition> {
        let definition = &stored.definition;
        if self.sabotage != Some(Sabotage::ReuseGrants) {
            return Arc::clone(definition);
        }
        let mut plan = definition.plan.clone();
        for approval in plan.steps.iter_mut().filter_map(|step| step.approval.as_mut()) {
            approval.covers_retries = false;
        }
        Arc::new(Definition::new(plan, definition.document.clone()))
    }
}

/// The acknowledgement of an append that is not written yet.
pub(crate) async fn acknowledgement(
    store: &MemoryStore,
    append: &Append,
) -> Result<Appended, StoreError> {
    let counter =
        |guard: &Guard| Counter { name: guard.counter.whole(), window_ms: guard.window_ms };
    let counts = store.counts(append.guards.iter().map(counter).collect()).await?;
    let after = counts.iter().zip(&append.guards).map(|(count, guard)| count + guard.delta);
    Ok(Appended::Done { counts: after.collect() })
}
