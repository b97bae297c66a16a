//! Decides each write of a batch in memory, while the rows are locked.
//!
//! Each decision builds on the result of the earlier ones, as if each write were alone
//! in its transaction. A refused write changes nothing.

use super::batch::{KeyRow, LockedRows, LockedRun};
use super::{Write, WriteOutcome};
use crate::authentic::{AppendMacs, Keys, bytes};
use sluice_core::evidence::entry::link;
use sluice_core::evidence::mac::Mac;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::{
    Append, Appended, Create, Key, MailboxMessage, NodeId, Ownership, Posted,
};

/// The decisions of a batch, and everything needed to write them.
pub(super) struct DecidedBatch<'a> {
    pub(super) now_ms: u64,
    pub(super) locked: LockedRows<'a>,
    /// Accepted appends.
    pub(super) done: Vec<&'a Append>,
    /// The MACs of `done`, in the same order.
    pub(super) macs: Vec<&'a AppendMacs>,
    keys: &'a Keys,
    pub(super) messages: Vec<OutgoingMessage<'a>>,
    pub(super) entries: Vec<ChainedEntry>,
    pub(super) outcomes: Vec<WriteOutcome>,
}

/// A message to an existing run.
pub(super) struct OutgoingMessage<'a> {
    pub(super) message: &'a MailboxMessage,
    pub(super) mac: &'a [u8],
    /// Index of the outcome that depends on it, if any.
    pub(super) outcome: Option<usize>,
}

/// An entry with its position in a chain.
pub(super) struct ChainedEntry {
    pub(super) writer: NodeId,
    pub(super) seq: u64,
    pub(super) hash: Hash,
    pub(super) mac: Option<Mac>,
    pub(super) text: String,
}

pub(super) fn decide<'a>(
    locked: LockedRows<'a>,
    writes: impl Iterator<Item = &'a Write>,
    now_ms: u64,
    keys: &'a Keys,
) -> DecidedBatch<'a> {
    let (done, messages, entries, outcomes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let macs = Vec::new();
    let mut decided =
        DecidedBatch { now_ms, locked, done, macs, keys, messages, entries, outcomes };
    for write in writes {
        let outcome = match write {
            Write::Append(append, macs) => WriteOutcome::Appended(decided.append(append, macs)),
            Write::Post(message, mac) => {
                let place = decided.outcomes.len();
                WriteOutcome::Posted(decided.post(message, bytes(mac.as_ref()), Some(place)))
            }
            Write::Record(writer, entries) => {
                decided.record(*writer, entries);
                WriteOutcome::Recorded
            }
        };
        decided.outcomes.push(outcome);
    }
    decided
}

impl<'a> DecidedBatch<'a> {
    fn append(&mut self, append: &'a Append, macs: &'a AppendMacs) -> Appended {
        let refusal = match &append.create {
            Some(create) => self.refuse_create(append, create),
            None => self.refuse_append(append),
        };
        if let Some(refusal) = refusal {
            return refusal;
        }
        let counts = match self.locked.counters.guard(&append.guards, self.now_ms) {
            Ok(counts) => counts,
            Err(refused) => return refused,
        };
        if let Some(create) = &append.create {
            self.create(append, create, macs);
        }
        let run = self.locked.runs.get_mut(&append.run).and_then(Option::as_mut);
        let run = run.expect("a run to append to was found or made");
        run.version += u64::from(append.count);
        run.is_moved |= append.count > 0;
        if let Some(head) = &append.head {
            run.head = Some(head);
            run.is_moved = true;
            if head.ownership == Ownership::Release {
                run.owner = None;
            }
        }
        self.done.push(append);
        self.macs.push(macs);
        for (at, message) in append.messages.iter().enumerate() {
            self.post(message, macs.message(at), None);
        }
        self.record(append.node, &append.entries);
        Appended::Done { counts }
    }

    /// An existing run has the same inputs if the fingerprints are equal. Without a key
    /// on either side only a repeated call can name the same id.
    fn refuse_create(&self, append: &Append, create: &Create) -> Option<Appended> {
        let fingerprint = create.key.as_ref().map(|key| key.fingerprint);
        if let Some(Some(known)) = self.locked.runs.get(&append.run) {
            let same = known.fingerprint == fingerprint;
            return Some(Appended::Exists { run: append.run, same });
        }
        let row = create.key.as_ref().and_then(|key| self.key_row(key));
        if let Some(row) = row {
            let same = Some(row.fingerprint) == fingerprint;
            return Some(Appended::Exists { run: row.run, same });
        }
        if append.epoch != 1 {
            return Some(Appended::NotOwner);
        }
        (append.after != 0).then_some(Appended::Conflict)
    }

    /// The unexpired row of an idempotency key.
    fn key_row(&self, key: &Key) -> Option<&KeyRow> {
        let unexpired = |name: &String| {
            let row = self.locked.keys.get(name.as_str())?.as_ref();
            row.filter(|row| row.expires_at_ms > self.now_ms)
        };
        let former = || unexpired(key.former.as_ref()?);
        let same = |row: &&KeyRow| row.fingerprint == key.fingerprint;
        unexpired(&key.key).or_else(|| former().filter(same))
    }

    fn refuse_append(&self, append: &Append) -> Option<Appended> {
        let known = self.locked.runs.get(&append.run).and_then(Option::as_ref);
        let is_owner = |known: &&LockedRun<'_>| {
            known.owner == Some(append.node) && known.epoch == append.epoch
        };
        match known.filter(is_owner) {
            None => Some(Appended::NotOwner),
            Some(known) => (known.version != append.after).then_some(Appended::Conflict),
        }
    }

    fn create(&mut self, append: &'a Append, create: &'a Create, macs: &AppendMacs) {
        if let Some(key) = &create.key {
            self.keep_key(append.run, key, macs.key());
        }
        let run = LockedRun {
            owner: Some(append.node),
            epoch: 1,
            version: 0,
            fingerprint: create.key.as_ref().map(|key| key.fingerprint),
            create: Some(create),
            head: None,
            is_moved: true,
        };
        self.locked.runs.insert(append.run, Some(run));
    }

    fn keep_key(&mut self, run: RunId, key: &'a Key, mac: &[u8]) {
        let row = self.locked.keys.entry(&key.key).or_default();
        let is_stored = row.as_ref().is_some_and(|row| row.is_stored);
        *row = Some(KeyRow {
            run,
            fingerprint: key.fingerprint,
            expires_at_ms: key.expires_at_ms,
            mac: mac.to_vec(),
            is_stored,
            is_changed: true,
        });
    }

    /// The database detects duplicates when the message is written, so this returns
    /// `Duplicate` until then.
    fn post(
        &mut self,
        message: &'a MailboxMessage,
        mac: &'a [u8],
        outcome: Option<usize>,
    ) -> Posted {
        if !matches!(self.locked.runs.get(&message.run), Some(Some(_))) {
            return Posted::NoRun;
        }
        self.messages.push(OutgoingMessage { message, mac, outcome });
        Posted::Duplicate
    }

    fn record(&mut self, writer: NodeId, entries: &[Entry]) {
        let Some(tip) = self.locked.chains.get_mut(&writer) else { return };
        for entry in entries {
            let seq = tip.0 + 1;
            let (text, hash) = link(entry, writer, seq, tip.1);
            *tip = (seq, hash);
            let mac = self.keys.get().map(|key| key.entry(writer, seq, hash));
            self.entries.push(ChainedEntry { writer, seq, hash, mac, text });
        }
    }
}
