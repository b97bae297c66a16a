//! Definitions as they are stored: the document and the plan, once, by hash.

use serde_json::value::RawValue;
use sluice_core::plan::Plan;
use sluice_core::port::store::{Blob, Hash};
use sluice_core::run::definition::Definition;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// A definition and where it is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The hash of its stored form.
    pub hash: Hash,
    /// The definition.
    pub definition: Arc<Definition>,
    body: Arc<Vec<u8>>,
}

impl Stored {
    /// Of a plan made from `document`.
    pub fn new(plan: Plan, document: &str) -> Stored {
        let body = serde_json::json!({"v": 1, "document": document, "plan": &plan});
        let body = body.to_string().into_bytes();
        let definition = Arc::new(Definition::new(plan, document.to_owned()));
        Stored { hash: Hash::of(&body), definition, body: Arc::new(body) }
    }

    /// For the store.
    pub(crate) fn blob(&self) -> Blob {
        Blob { hash: self.hash, body: (*self.body).clone() }
    }

    /// Reads a stored definition.
    pub(crate) fn read(hash: Hash, body: Vec<u8>) -> Result<Stored, String> {
        #[derive(serde::Deserialize)]
        struct Written<'a> {
            v: u64,
            document: String,
            #[serde(borrow)]
            plan: &'a RawValue,
        }
        let written: Written<'_> =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if written.v != 1 {
            return Err(format!("the definition is of version {}", written.v));
        }
        let plan = Plan::from_json(written.plan.get()).map_err(|error| error.to_string())?;
        let definition = Arc::new(Definition::new(plan, written.document));
        Ok(Stored { hash, definition, body: Arc::new(body) })
    }
}

/// Definitions in memory, the most recently used of them.
#[derive(Debug, Default)]
pub(crate) struct Definitions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_hash: BTreeMap<Hash, Stored>,
    order: VecDeque<Hash>,
}

/// Most definitions kept beside those that runs hold.
const DEFINITIONS_MAX: usize = 256;

impl Definitions {
    pub(crate) fn get(&self, hash: Hash) -> Option<Stored> {
        let kept = self.0.lock().expect("nobody panics while holding it");
        kept.by_hash.get(&hash).cloned()
    }

    /// Keeps a definition that the store has.
    pub(crate) fn keep(&self, stored: &Stored) {
        let mut kept = self.0.lock().expect("nobody panics while holding it");
        if kept.by_hash.insert(stored.hash, stored.clone()).is_none() {
            kept.order.push_back(stored.hash);
        }
        if kept.order.len() > DEFINITIONS_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.by_hash.remove(&oldest);
        }
    }
}
