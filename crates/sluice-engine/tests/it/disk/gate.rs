//! A store that can be kept from writing.

use sluice_core::port::Later;
use sluice_core::port::store::{
    Answer, Append, Appended, Claim, Filter, Frame, Hash, Inbox, Letter, Loaded, NodeId, Posted,
    Received, RunRow, Store, StoreError, Taken,
};
use sluice_core::run::id::RunId;
use std::future::ready;
use std::sync::{Arc, Mutex};

/// Passes everything on, but writes only while it is open.
pub(super) struct Gate {
    store: Arc<dyn Store>,
    closed: Mutex<Option<String>>,
}

impl Gate {
    pub(super) fn new(store: Arc<dyn Store>) -> Gate {
        Gate { store, closed: Mutex::default() }
    }

    pub(super) fn close(&self, reason: &str) {
        *self.closed.lock().expect("nobody panics while holding it") = Some(reason.to_owned());
    }

    pub(super) fn open(&self) {
        *self.closed.lock().expect("nobody panics while holding it") = None;
    }

    fn pass<'a, T: Send + 'a>(&'a self, write: impl FnOnce() -> Answer<'a, T>) -> Answer<'a, T> {
        let closed = self.closed.lock().expect("nobody panics while holding it").clone();
        match closed {
            Some(reason) => Box::pin(ready(Err(StoreError::Unavailable(reason)))),
            None => write(),
        }
    }
}

impl Store for Gate {
    fn append(&self, append: Append) -> Answer<'_, Appended> {
        self.pass(|| self.store.append(append))
    }

    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>> {
        self.store.load(run)
    }

    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>> {
        self.store.frames(run, after, bytes_max)
    }

    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>> {
        self.store.blob(hash)
    }

    fn post(&self, letter: Letter) -> Answer<'_, Posted> {
        self.pass(|| self.store.post(letter))
    }

    fn letters(&self, of: Inbox) -> Answer<'_, Vec<Received>> {
        self.store.letters(of)
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()> {
        self.pass(|| self.store.renew(node, ttl_ms))
    }

    fn leave(&self, node: NodeId) -> Answer<'_, ()> {
        self.pass(|| self.store.leave(node))
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>> {
        self.pass(|| self.store.claim(node, due_by_ms, limit))
    }

    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken> {
        self.pass(|| self.store.take(run, node))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>> {
        self.store.list(filter)
    }

    fn changed(&self, patience_ms: u64) -> Later<'_, ()> {
        self.store.changed(patience_ms)
    }
}
