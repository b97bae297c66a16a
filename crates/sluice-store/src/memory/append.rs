//! Appends and messages.

use super::{Checks, KeyRow, MemoryState, Ordered, Record};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::{
    Append, Appended, Create, Frame, Key, MailboxMessage, NodeId, Ownership, Posted,
};
use sluice_core::status::RunStatus;

impl MemoryState {
    /// Checks everything before it changes anything.
    pub(super) fn append(&mut self, checks: Checks, append: Append, now_ms: u64) -> Appended {
        let refusal = match &append.create {
            Some(create) => self.refuse_create(checks, &append, create, now_ms),
            None => self.refuse_append(checks, &append),
        };
        if let Some(refusal) = refusal {
            return refusal;
        }
        if let Some(refusal) = self.refuse_guards(&append.guards, now_ms) {
            return refusal;
        }
        let counts = self.count(&append.guards, now_ms);
        self.write(checks, append, now_ms);
        Appended::Done { counts }
    }

    /// An existing run has the same inputs if the fingerprints are equal. Without a key
    /// on either side only a repeated call can name the same id.
    fn refuse_create(
        &self,
        checks: Checks,
        append: &Append,
        create: &Create,
        now_ms: u64,
    ) -> Option<Appended> {
        let fingerprint = create.key.as_ref().map(|key| key.fingerprint);
        if let Some(record) = self.runs.get(&append.run) {
            return Some(Appended::Exists {
                run: append.run,
                same: record.fingerprint == fingerprint,
            });
        }
        let row = create.key.as_ref().and_then(|key| self.key_row(key, now_ms));
        if let Some(row) = row.filter(|_| checks.dedupe) {
            return Some(Appended::Exists {
                run: row.run,
                same: Some(row.fingerprint) == fingerprint,
            });
        }
        if append.epoch != 1 {
            return Some(Appended::NotOwner);
        }
        (append.after != 0).then_some(Appended::Conflict)
    }

    /// The unexpired row of an idempotency key.
    fn key_row(&self, key: &Key, now_ms: u64) -> Option<&KeyRow> {
        let unexpired =
            |name: &String| self.keys.get(name).filter(|row| row.expires_at_ms > now_ms);
        let former = || unexpired(key.former.as_ref()?);
        let same = |row: &&KeyRow| row.fingerprint == key.fingerprint;
        unexpired(&key.key).or_else(|| former().filter(same))
    }

    fn refuse_append(&self, checks: Checks, append: &Append) -> Option<Appended> {
        let Some(record) = self.runs.get(&append.run) else {
            return Some(Appended::NotOwner);
        };
        let owned = record.owner == Some(append.node) && record.epoch == append.epoch;
        if checks.epoch && !owned {
            return Some(Appended::NotOwner);
        }
        (checks.version && record.version != append.after).then_some(Appended::Conflict)
    }

    fn write(&mut self, checks: Checks, append: Append, now_ms: u64) {
        for blob in append.blobs {
            self.blobs.entry(blob.hash).or_insert(blob.body);
        }
        for read in append.read {
            if self.messages.get(&read.id).is_some_and(|message| message.run == append.run) {
                self.messages.remove(&read.id);
            }
        }
        if let Some(create) = append.create {
            self.create(append.run, append.node, create);
        }
        let unread = self.messages.values().any(|message| message.run == append.run);
        let record = self.runs.get_mut(&append.run).expect("a run to append to was found");
        if append.count > 0 {
            let first = append.after + 1;
            let hash = append.chain.last_chunk().copied().map(Hash);
            let (run, version) = (append.run, append.after + u64::from(append.count));
            self.order.push(Ordered { run, frame: record.frames.len(), version, hash });
            let Append { count, body, beside, chain, .. } = append;
            record.frames.push(Frame { first, count, body, beside, chain });
        }
        record.version = append.after + u64::from(append.count);
        if let Some(state) = append.snapshot {
            record.snapshot = Some((record.version, state));
        }
        if let Some(head) = append.head {
            record.status = head.status;
            record.ended_at_ms = head.ended_at_ms;
            record.due_at_ms = head.due_at_ms;
            record.asks = head.asks;
            if head.ownership == Ownership::Release {
                record.owner = None;
            }
            if unread {
                record.wake(now_ms);
            }
        }
        for message in append.messages {
            self.post(checks, message, now_ms);
        }
        self.store_edges(append.run, &append.provenance_edges);
        for remembered_output in append.remembered_outputs {
            self.remember_output(remembered_output);
        }
        self.record(append.node, &append.entries);
    }

    fn create(&mut self, run: RunId, node: NodeId, create: Create) {
        let fingerprint = create.key.as_ref().map(|key| key.fingerprint);
        if let Some(key) = create.key {
            let expires_at_ms = key.expires_at_ms;
            let row = KeyRow { run, fingerprint: key.fingerprint, expires_at_ms };
            self.keys.insert(key.key, row);
        }
        let record = Record {
            workflow: create.workflow,
            workflow_version: create.version,
            initiator: create.initiator,
            started_at_ms: create.started_at_ms,
            parent: create.parent,
            fingerprint,
            status: RunStatus::Queued,
            ended_at_ms: None,
            due_at_ms: None,
            asks: false,
            owner: Some(node),
            epoch: 1,
            version: 0,
            frames: Vec::new(),
            snapshot: None,
        };
        self.runs.insert(run, record);
    }

    pub(super) fn post(&mut self, checks: Checks, message: MailboxMessage, now_ms: u64) -> Posted {
        let Some(record) = self.runs.get_mut(&message.run) else {
            return Posted::NoRun;
        };
        let name = (message.run, message.key.clone());
        if checks.dedupe && self.letter_keys.contains_key(&name) {
            return Posted::Duplicate;
        }
        record.wake(now_ms);
        self.letters_posted += 1;
        self.letter_keys.insert(name, self.letters_posted);
        self.messages.insert(self.letters_posted, message);
        Posted::Done
    }
}

impl Record {
    /// Makes a run without an owner due at once.
    fn wake(&mut self, now_ms: u64) {
        if self.owner.is_none() {
            self.due_at_ms = Some(self.due_at_ms.map_or(now_ms, |due| due.min(now_ms)));
        }
    }
}
