//! Whoever changes the registry while runs are under way.

use super::Scene;
use crate::fault::Fault;
use crate::registry::{Edit, Registry};
use crate::world::Rule;
use sluice_core::port::ledger::{Change, Ledger as _};
use sluice_core::port::store::NodeId;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Of a thousand steps, those that fit the cap.
pub(crate) const FIT: u64 = 137;

/// The operator of a governed seed, with the rows as it left them.
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
        self.0.lock().expect("nobody panics while holding it")
    }
}

impl Scene {
    /// Writes down what the seed begins with.
    pub(crate) async fn set_up(&self) {
        let Some(operator) = &self.operator else { return };
        let rows = operator.registry().all();
        self.change((rows, Vec::new())).await;
    }

    /// Changes something now and then.
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

    /// Whatever an operator stopped goes on.
    pub(crate) async fn reopen(&self) {
        let Some(operator) = &self.operator else { return };
        let edit = operator.registry().reopen();
        self.change(edit).await;
    }

    /// The store answers at once, so that the checkers always know the rows in force.
    async fn change(&self, (put, remove): Edit) {
        if put.is_empty() && remove.is_empty() {
            return;
        }
        let (expect, node, entries) = (None, NodeId(1), Vec::new());
        let change = Change { expect, put, remove, node, entries };
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
