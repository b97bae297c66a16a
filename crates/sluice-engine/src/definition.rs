//! Stored definitions: document and plan, content-addressed by hash.

use serde_json::value::RawValue;
use sluice_core::hash::Hash;
use sluice_core::plan::Plan;
use sluice_core::port::store::Blob;
use sluice_core::run::definition::Definition;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// A definition with its stored form.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Hash of the stored form.
    pub hash: Hash,
    /// Document and plan.
    pub definition: Arc<Definition>,
    body: Arc<Vec<u8>>,
}

impl Stored {
    /// Builds the stored form of a plan that was made from `document`.
    pub fn new(plan: Plan, document: &str) -> Stored {
        let body = serde_json::json!({"v": 1, "document": document, "plan": &plan});
        let body = body.to_string().into_bytes();
        let definition = Arc::new(Definition::new(plan, document.to_owned()));
        Stored { hash: Hash::of(&body), definition, body: Arc::new(body) }
    }

    pub(crate) fn blob(&self) -> Blob {
        Blob { hash: self.hash, body: (*self.body).clone() }
    }

    /// Decodes a stored definition.
    pub(crate) fn read(hash: Hash, body: Vec<u8>) -> Result<Stored, String> {
        #[derive(serde::Deserialize)]
        struct DefinitionRecord<'a> {
            v: u64,
            document: String,
            #[serde(borrow)]
            plan: &'a RawValue,
        }
        let record: DefinitionRecord<'_> =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if record.v != 1 {
            return Err(format!("definition version {} is not supported", record.v));
        }
        let plan = Plan::from_json(record.plan.get()).map_err(|error| error.to_string())?;
        let definition = Arc::new(Definition::new(plan, record.document));
        Ok(Stored { hash, definition, body: Arc::new(body) })
    }
}

/// Cache of recently stored or loaded definitions.
#[derive(Debug, Default)]
pub(crate) struct Definitions(Mutex<DefinitionCache>);

#[derive(Debug, Default)]
struct DefinitionCache {
    by_hash: BTreeMap<Hash, Stored>,
    order: VecDeque<Hash>,
}

/// Most definitions in the cache.
const DEFINITIONS_MAX: usize = 256;

impl Definitions {
    pub(crate) fn get(&self, hash: Hash) -> Option<Stored> {
        let cache = self.0.lock().expect("the lock is not poisoned");
        cache.by_hash.get(&hash).cloned()
    }

    /// Caches a definition that is in the store.
    pub(crate) fn keep(&self, stored: &Stored) {
        let mut cache = self.0.lock().expect("the lock is not poisoned");
        if cache.by_hash.insert(stored.hash, stored.clone()).is_none() {
            cache.order.push_back(stored.hash);
        }
        if cache.order.len() > DEFINITIONS_MAX
            && let Some(oldest) = cache.order.pop_front()
        {
            cache.by_hash.remove(&oldest);
        }
    }
}
