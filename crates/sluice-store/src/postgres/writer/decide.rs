//! What passes, decided in memory while the rows are locked.
//!
//! One after the other, each on what those before it have left, as if each were
//! alone in its transaction. A refusal leaves nothing.

use super::batch::{KeyRow, Known, Locked};
use super::{Outcome, Write};
use crate::authentic::{AppendMacs, Keys, bytes};
use sluice_core::evidence::entry::link;
use sluice_core::evidence::mac::Mac;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::{Append, Appended, Create, Hash, Hold, Key, Letter, NodeId, Posted};
use sluice_core::run::id::RunId;

/// What was decided, and everything needed to write it.
pub(super) struct Decided<'a> {
    pub(super) now_ms: u64,
    pub(super) locked: Locked<'a>,
    /// Appends that pass.
    pub(super) done: Vec<&'a Append>,
    /// Their MACs, in the same order.
    pub(super) macs: Vec<&'a AppendMacs>,
    keys: &'a Keys,
    pub(super) letters: Vec<Sent<'a>>,
    pub(super) entries: Vec<Link>,
    pub(super) outcomes: Vec<Outcome>,
}

/// A letter to a run that is there.
pub(super) struct Sent<'a> {
    pub(super) letter: &'a Letter,
    pub(super) mac: &'a [u8],
    /// The outcome that depends on it, if one does.
    pub(super) outcome: Option<usize>,
}

/// An entry in its chain.
pub(super) struct Link {
    pub(super) writer: NodeId,
    pub(super) seq: u64,
    pub(super) hash: Hash,
    pub(super) mac: Option<Mac>,
    pub(super) text: String,
}

/// Decides a batch.
pub(super) fn decide<'a>(
    locked: Locked<'a>,
    writes: impl Iterator<Item = &'a Write>,
    now_ms: u64,
    keys: &'a Keys,
) -> Decided<'a> {
    let (done, letters, entries, outcomes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let macs = Vec::new();
    let mut decided = Decided { now_ms, locked, done, macs, keys, letters, entries, outcomes };
    for write in writes {
        let outcome = match write {
            Write::Append(append, macs) => Outcome::Appended(decided.append(append, macs)),
            Write::Post(letter, mac) => {
                let place = decided.outcomes.len();
                Outcome::Posted(decided.post(letter, bytes(mac.as_ref()), Some(place)))
            }
            Write::Record(writer, entries) => {
                decided.record(*writer, entries);
                Outcome::Recorded
            }
        };
        decided.outcomes.push(outcome);
    }
    decided
}

impl<'a> Decided<'a> {
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
            if head.hold == Hold::Release {
                run.owner = None;
            }
        }
        self.done.push(append);
        self.macs.push(macs);
        for (at, letter) in append.letters.iter().enumerate() {
            self.post(letter, macs.letter(at), None);
        }
        self.record(append.node, &append.entries);
        Appended::Done { counts }
    }

    /// A run that exists was created from the same inputs if the fingerprints agree;
    /// without a key on either side only a repeated call can name the same id.
    fn refuse_create(&self, append: &Append, create: &Create) -> Option<Appended> {
        let fingerprint = create.key.as_ref().map(|key| key.fingerprint);
        if let Some(Some(known)) = self.locked.runs.get(&append.run) {
            let same = known.fingerprint == fingerprint;
            return Some(Appended::Exists { run: append.run, same });
        }
        let row = create.key.as_ref().and_then(|key| self.used(key));
        if let Some(row) = row {
            let same = Some(row.fingerprint) == fingerprint;
            return Some(Appended::Exists { run: row.run, same });
        }
        if append.epoch != 1 {
            return Some(Appended::NotOwner);
        }
        (append.after != 0).then_some(Appended::Conflict)
    }

    /// The run that a key stands for now.
    fn used(&self, key: &Key) -> Option<&KeyRow> {
        let fresh = |name: &String| {
            let row = self.locked.keys.get(name.as_str())?.as_ref();
            row.filter(|row| row.expires_at_ms > self.now_ms)
        };
        let former = || fresh(key.former.as_ref()?);
        let same = |row: &&KeyRow| row.fingerprint == key.fingerprint;
        fresh(&key.key).or_else(|| former().filter(same))
    }

    fn refuse_append(&self, append: &Append) -> Option<Appended> {
        let known = self.locked.runs.get(&append.run).and_then(Option::as_ref);
        let is_owner =
            |known: &&Known<'_>| known.owner == Some(append.node) && known.epoch == append.epoch;
        match known.filter(is_owner) {
            None => Some(Appended::NotOwner),
            Some(known) => (known.version != append.after).then_some(Appended::Conflict),
        }
    }

    fn create(&mut self, append: &'a Append, create: &'a Create, macs: &AppendMacs) {
        if let Some(key) = &create.key {
            self.keep_key(append.run, key, macs.key());
        }
        let run = Known {
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

    /// Whether it is a duplicate is seen when it is written.
    fn post(&mut self, letter: &'a Letter, mac: &'a [u8], outcome: Option<usize>) -> Posted {
        if !matches!(self.locked.runs.get(&letter.run), Some(Some(_))) {
            return Posted::NoRun;
        }
        self.letters.push(Sent { letter, mac, outcome });
        Posted::Duplicate
    }

    fn record(&mut self, writer: NodeId, entries: &[Entry]) {
        let Some(tip) = self.locked.chains.get_mut(&writer) else { return };
        for entry in entries {
            let seq = tip.0 + 1;
            let (text, hash) = link(entry, writer, seq, tip.1);
            *tip = (seq, hash);
            let mac = self.keys.get().map(|key| key.entry(writer, seq, hash));
            self.entries.push(Link { writer, seq, hash, mac, text });
        }
    }
}
