//! An operator that changes the registry while runs are in flight.

use super::Scene;
use crate::fault::Fault;
use crate::registry::{Edit, Registry};
use crate::world::Rule;
use sluice_core::port::ledger::{Change, Ledger as _};
use sluice_core::port::store::NodeId;
use sluice_core::rows;
use sluice_govern::registry::Kind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many of a thousand steps the cap admits.
pub(crate) const FIT: u64 = 137;

/// The operator of a governed seed, with the current rows.
pub(crate) struct Operator(Mutex<Registry>);

impl Operator {
    pub(crate) fn of(rule: Rule, seed: u64) -> Option<Operator> {
        let registry = match rule {
            Rule::Plain => return None,
            Rule::Governed => Registry::of(seed),
            Rule::Thousand => Registry::capped(FIT),
        };
        Some(Operator(Mutex::new(registry)))
    }

    fn registry(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.0.lock().expect("the lock is not poisoned")
    }
}

impl Scene {
    /// Writes the initial rows of the seed.
    pub(crate) async fn set_up(&self) {
        let Some(operator) = &self.operator else { return };
        let rows = operator.registry().all();
        self.change((rows, Vec::new())).await;
    }

    /// Makes changes at random times.
    pub(crate) async fn operate(self: Arc<Self>) {
        let Some(operator) = &self.operator else { return };
        while self.world.is_faulty() && self.world.rule == Rule::Governed {
            let pause_ms = self.world.chance().between(300, 5000);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            if self.world.is_faulty() {
                let edit = operator.registry().edit();
                self.change(edit).await;
            }
        }
    }

    /// Resumes whatever the operator has stopped.
    pub(crate) async fn reopen(&self) {
        let Some(operator) = &self.operator else { return };
        let edit = operator.registry().reopen();
        self.change(edit).await;
    }

    /// The store answers at once, so that the checkers always know the current rows.
    async fn change(&self, (put, remove): Edit) {
        let before = self.store.registry(None).await.expect("memory answers").rows;
        let after = rows::with(&before, &put, &remove);
        let differences = rows::diff(&before, &after);
        if differences.is_empty() {
            return;
        }
        let differs = |kind: Kind, name: &str| {
            differences.iter().any(|one| one.kind == kind && one.name == name)
        };
        let change = Change {
            expect: None,
            put: put.into_iter().filter(|row| differs(row.kind, &row.name)).collect(),
            remove: remove.into_iter().filter(|(kind, name)| differs(*kind, name)).collect(),
            node: NodeId(1),
            entries: rows::entries(&differences, "operator", 0),
        };
        self.store.change(change).await.expect("memory answers");
        let rows = self.store.registry(None).await.expect("memory answers");
        self.world.journal().ledger.set(&rows);
        for notice in &self.world.notices {
            if !self.world.strikes(Fault::NoticeLost) {
                notice.notify_one();
            }
        }
    }
}
