//! The conformance suite that every store must pass.
//!
//! `suite` is a list of cases; each gets a fresh store and a clock that it controls.
//! `script` runs random commands, whose transcript must be the same on every store. The
//! suite knows only the store port, so that a store in any crate runs it unchanged:
//! `check` calls a function that opens an empty store.

mod append;
pub mod authentic;
mod beside;
mod create;
mod crowd;
mod deliver;
mod entry;
mod erase;
mod feed;
mod guard;
pub mod inspect;
mod list;
mod mailbox;
mod own;
mod read;
mod registry;
mod remembered_output;
pub mod rolled_back;
pub mod script;
mod seal;
mod trigger;
mod window;

use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::Clock;
use sluice_core::port::ledger::{Counter, Entry, Recorded, Unsealed};
use sluice_core::port::store::{
    Answer, Append, Appended, Claim, Create, Filter, Frame, Guard, Head, Loaded, MailboxMessage,
    Mailboxes, NodeId, Ownership, Posted, Received, RunRow, Store, StoreError, Taken,
};
use sluice_core::status::RunStatus;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, current, park};

/// A clock that stands still until it is set. Starts at 1000.
#[derive(Debug)]
pub struct SetClock(AtomicU64);

impl SetClock {
    /// Sets the time.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Default for SetClock {
    fn default() -> SetClock {
        SetClock(AtomicU64::new(1000))
    }
}

impl Clock for SetClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// An empty store and its clock.
pub struct Bench {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The store's clock.
    pub clock: Arc<SetClock>,
}

/// One property of every store.
#[derive(Clone, Copy)]
pub struct Case {
    /// A sentence, with underscores.
    pub name: &'static str,
    /// Panics if the property does not hold.
    pub check: fn(&Bench),
}

/// Makes a list of cases from functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(super) const CASES: &[super::Case] =
            &[$(super::Case { name: stringify!($name), check: $name }),*];
    };
}
use cases;

/// Every case.
pub fn suite() -> Vec<Case> {
    [
        create::CASES,
        append::CASES,
        guard::CASES,
        window::CASES,
        own::CASES,
        mailbox::CASES,
        read::CASES,
        list::CASES,
        registry::CASES,
        entry::CASES,
        seal::CASES,
        erase::CASES,
        beside::CASES,
        feed::CASES,
        trigger::CASES,
        deliver::CASES,
        remembered_output::CASES,
        inspect::CASES,
        crowd::CASES,
    ]
    .concat()
}

/// Runs every case, each on a fresh bench, and panics with the names of all that fail.
pub fn check(mut fresh: impl FnMut() -> Bench) {
    let mut failed = Vec::new();
    for case in suite() {
        let bench = fresh();
        if catch_unwind(AssertUnwindSafe(|| (case.check)(&bench))).is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "these do not hold:\n{}", failed.join("\n"));
}

/// Waits for a result on this thread. Needs no runtime.
pub fn wait<T>(answer: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Unpark>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(current())));
    let mut answer = pin!(answer);
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => park(),
        }
    }
}

/// Waits for several results, all requested before the first one is ready.
pub fn wait_all<T>(mut answers: Vec<Answer<'_, T>>) -> Vec<Result<T, StoreError>> {
    let mut results: Vec<Option<Result<T, StoreError>>> = answers.iter().map(|_| None).collect();
    wait(poll_fn(|context| {
        let mut all = Poll::Ready(());
        for (answer, result) in answers.iter_mut().zip(&mut results) {
            if result.is_some() {
                continue;
            }
            match answer.as_mut().poll(context) {
                Poll::Ready(ready) => *result = Some(ready),
                Poll::Pending => all = Poll::Pending,
            }
        }
        all
    }));
    results.into_iter().flatten().collect()
}

/// A loaded run that is completely authentic.
fn loaded(snapshot: Option<(u64, Vec<u8>)>, frames: Vec<Frame>) -> Loaded {
    Loaded { snapshot, frames, has_foreign_snapshot: false }
}

/// A run id.
pub fn run(number: u128) -> RunId {
    RunId(number)
}

/// A node id.
pub fn node(number: u128) -> NodeId {
    NodeId(number)
}

/// One event by node 1 under epoch 1.
pub fn plain(run: RunId, after: u64) -> Append {
    Append {
        run,
        node: node(1),
        epoch: 1,
        after,
        count: 1,
        body: format!("{run} after {after}").into_bytes(),
        beside: Vec::new(),
        chain: Vec::new(),
        create: None,
        head: None,
        snapshot: None,
        blobs: Vec::new(),
        read: Vec::new(),
        messages: Vec::new(),
        guards: Vec::new(),
        entries: Vec::new(),
        provenance_edges: Vec::new(),
        remembered_outputs: Vec::new(),
    }
}

/// The first event of a run, by node 1.
pub fn first(run: RunId) -> Append {
    let create = Create {
        workflow: "review".to_owned(),
        version: None,
        initiator: "ada".to_owned(),
        started_at_ms: 900,
        parent: None,
        key: None,
    };
    Append { create: Some(create), ..plain(run, 0) }
}

/// The result of a successful append without guards.
pub const DONE: Appended = Appended::Done { counts: Vec::new() };

/// The append with a hash for each of its events.
pub fn hashed(append: Append) -> Append {
    let ids = (1..=u64::from(append.count)).map(|number| append.after + number);
    let chain = ids.flat_map(|id| event_hash(append.run, id).0).collect();
    Append { chain, ..append }
}

/// The hash that `hashed` gives an event.
pub fn event_hash(run: RunId, event: u64) -> Hash {
    Hash::of(format!("{run} {event}").as_bytes())
}

/// A guard on a plain counter.
pub fn guard(counter: &str, delta: i64, max: Option<i64>) -> Guard {
    Guard { counter: counter.into(), delta, max, window_ms: None }
}

/// The result of an append that a counter refuses, with the counter's value.
pub fn refused(counter: &str, count: i64) -> Appended {
    Appended::Refused { counter: counter.to_owned(), count }
}

/// An audit entry.
pub fn entry(what: &str) -> Entry {
    Entry {
        at_ms: 900,
        category: "governance",
        what: what.to_owned(),
        actor: "ada".to_owned(),
        resource_type: "run".to_owned(),
        resource_id: run(1).to_string(),
        event: None,
        detail: serde_json::json!({ "why": what }),
    }
}

/// A head that releases the run until `due_at_ms`.
pub fn released(due_at_ms: Option<u64>) -> Head {
    Head {
        status: RunStatus::Paused,
        ended_at_ms: None,
        due_at_ms,
        asks: false,
        ownership: Ownership::Release,
    }
}

/// A message whose body is its key.
pub fn message(run: RunId, key: &str) -> MailboxMessage {
    MailboxMessage { run, key: key.to_owned(), body: key.as_bytes().to_vec() }
}

/// Blocking access to the port, for a store that is expected to work.
impl Bench {
    fn wait_ok<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> T {
        wait(answer).expect("the store works")
    }

    fn append(&self, append: Append) -> Appended {
        self.wait_ok(self.store.append(Arc::new(append)))
    }

    /// An append that must succeed.
    fn done(&self, append: Append) {
        let appended = self.append(append);
        assert!(matches!(appended, Appended::Done { .. }), "{appended:?}");
    }

    /// Creates a run, owned by node 1.
    fn create(&self, run: RunId) {
        self.done(first(run));
    }

    /// Creates a run without an owner.
    fn park(&self, run: RunId, due_at_ms: Option<u64>) {
        self.done(Append { head: Some(released(due_at_ms)), ..first(run) });
    }

    fn load(&self, run: RunId) -> Option<Loaded> {
        self.wait_ok(self.store.load(run))
    }

    /// First id and count of every frame.
    fn journal(&self, run: RunId) -> Vec<(u64, u32)> {
        let frames = self.wait_ok(self.store.frames(run, 0, usize::MAX));
        frames.iter().map(|frame| (frame.first, frame.count)).collect()
    }

    fn post(&self, message: MailboxMessage) -> Posted {
        self.wait_ok(self.store.post(message))
    }

    fn messages(&self, of: Mailboxes) -> Vec<Received> {
        self.wait_ok(self.store.messages(of))
    }

    /// The keys of unread messages.
    fn keys(&self, of: Mailboxes) -> Vec<String> {
        self.messages(of).into_iter().map(|received| received.message.key).collect()
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) {
        self.wait_ok(self.store.renew(node, ttl_ms));
    }

    fn leave(&self, node: NodeId) {
        self.wait_ok(self.store.leave(node));
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Vec<Claim> {
        self.wait_ok(self.store.claim(node, due_by_ms, limit))
    }

    /// The runs of a claim.
    fn claimed(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Vec<RunId> {
        self.claim(node, due_by_ms, limit).into_iter().map(|claim| claim.run).collect()
    }

    fn take(&self, run: RunId, node: NodeId) -> Taken {
        self.wait_ok(self.store.take(run, node))
    }

    fn list(&self, filter: Filter) -> Vec<RunRow> {
        self.wait_ok(self.store.list(filter))
    }

    fn row(&self, run: RunId) -> RunRow {
        let filter = Filter { run: Some(run), ..Filter::default() };
        self.list(filter).pop().expect("the run is listed")
    }

    /// A plain counter.
    fn count(&self, counter: &str) -> i64 {
        self.wait_ok(self.store.counts(vec![Counter::plain(counter)]))[0]
    }

    fn entries(&self) -> Vec<Recorded> {
        self.wait_ok(self.store.entries(0, usize::MAX))
    }

    fn unsealed(&self) -> Unsealed {
        self.wait_ok(self.store.unsealed(usize::MAX))
    }
}
