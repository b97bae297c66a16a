//! The MAC key of a store, and the MACs it makes and verifies.
//!
//! A store is opened without a key and gets one afterwards, since the key may depend on
//! the store's content. From then on the store writes every row that affects a decision
//! with a MAC, and uses only rows with a valid one. A store in which every such row has
//! a MAC is marked: a process without the key can read it but not write to it.

use crate::newest_rows::{HEAD, MARK};
use crate::transfer::table::{Cell, Table};
use sluice_core::evidence::entry;
use sluice_core::evidence::mac::{Doubts, FRAME_BYTES, FrameMac, FramePlace, Mac, MacKey};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::Recorded;
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::slots::Slot;
use sluice_core::port::store::{
    Answer, Append, Examined, Frame, MailboxMessage, MessageId, NodeId, ReadMessage, Store,
    StoreError,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store that authenticates its rows once it has a key.
pub trait Keyed: Store {
    /// Whether the store was marked when it was opened, and with this key or another
    /// one.
    fn marked(&self, key: &MacKey) -> Mark;

    /// Whether the store was marked when it was opened, with any key.
    fn is_marked(&self) -> bool;

    /// Writes the MACs that are missing, except for rows in doubt; then marks the store
    /// and uses the key. Works in bounded batches; after an interruption it starts
    /// again.
    fn adopt(&self, key: MacKey, doubts: Doubts) -> Answer<'_, ()>;

    /// Uses the key from now on.
    fn unlock(&self, key: MacKey);
}

/// The mark of a store, compared with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The store is empty, so it needs no mark.
    Empty,
    /// The store has rows but no mark.
    Missing,
    /// The store is marked with this key.
    Own,
    /// The store is marked with a different key.
    Foreign,
}

/// The key of an open store.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    key: OnceLock<MacKey>,
    found: OnceLock<FoundMark>,
    /// The newest epoch of a registry head that this process has read.
    seen_head: AtomicU64,
}

/// The mark of a store as it was found on opening.
#[derive(Debug)]
pub(crate) enum FoundMark {
    Empty,
    Unmarked,
    Marked(Vec<u8>),
}

impl FoundMark {
    /// From the rows of the `authentic` table.
    pub(crate) fn from_rows(mut marks: Vec<(i64, Vec<u8>)>, unmarked: FoundMark) -> FoundMark {
        // A missing head is noticed when the registry is read.
        marks.retain(|(row, _)| *row != HEAD);
        match <[(i64, Vec<u8>); 1]>::try_from(marks) {
            Ok([(MARK, mark)]) => FoundMark::Marked(mark),
            Err(none) if none.is_empty() => unmarked,
            // Processes write only two rows; any other content matches no key.
            _ => FoundMark::Marked(Vec::new()),
        }
    }
}

impl Keys {
    pub(crate) fn get(&self) -> Option<&MacKey> {
        self.key.get()
    }

    pub(crate) fn set(&self, key: MacKey) {
        // A second key is always the same one, because a store has one mark.
        let _ = self.key.set(key);
    }

    /// Records the mark found on opening.
    pub(crate) fn set_found_mark(&self, found: FoundMark) {
        // A store is opened once.
        let _ = self.found.set(found);
    }

    pub(crate) fn is_marked(&self) -> bool {
        matches!(self.found.get(), Some(FoundMark::Marked(_)))
    }

    pub(crate) fn mark(&self, key: &MacKey) -> Mark {
        match self.found.get() {
            Some(FoundMark::Empty) | None => Mark::Empty,
            Some(FoundMark::Unmarked) => Mark::Missing,
            Some(FoundMark::Marked(mark)) if key.mark().is(mark) => Mark::Own,
            Some(FoundMark::Marked(_)) => Mark::Foreign,
        }
    }

    /// The key to write with. Without it a marked store refuses writes, because readers
    /// would reject rows without a MAC.
    pub(crate) fn for_writing(&self) -> Result<Option<&MacKey>, StoreError> {
        let key = self.key.get();
        if key.is_none() && self.is_marked() {
            let why = "only a process with the `seal.key` of this store can write to it";
            return Err(StoreError::Unavailable(why.to_owned()));
        }
        Ok(key)
    }

    /// The newest epoch of a registry head that this process has read. A caller compares
    /// it with what it reads afterwards.
    pub(crate) fn seen_head(&self) -> u64 {
        self.seen_head.load(Ordering::Acquire)
    }

    pub(crate) fn see_head(&self, epoch: u64) {
        self.seen_head.fetch_max(epoch, Ordering::AcqRel);
    }

    pub(crate) fn is_message(&self, message: &MailboxMessage, mac: &[u8]) -> bool {
        self.get().is_none_or(|key| key.message(message).is(mac))
    }

    /// Whether an earlier version of Sluice marked the message as read.
    pub(crate) fn is_read_without_key(&self, run: RunId, id: MessageId, mac: &[u8]) -> bool {
        self.get().is_some_and(|key| key.read_message_without_key(run, id).is(mac))
    }

    pub(crate) fn is_remembered_output(
        &self,
        remembered_output: &RememberedOutput,
        mac: &[u8],
    ) -> bool {
        self.get().is_none_or(|key| key.remembered_output(remembered_output).is(mac))
    }

    pub(crate) fn is_slot(&self, slot: &Slot, mac: &[u8]) -> bool {
        self.get().is_none_or(|key| key.slot(slot).is(mac))
    }

    /// The MAC covers the hash, and the hash covers the text.
    pub(crate) fn is_entry(&self, entry: &Recorded, mac: &[u8]) -> bool {
        let Recorded { writer, seq, hash, text, .. } = entry;
        let is_own = |key: &MacKey| key.entry(*writer, *seq, *hash).is(mac);
        self.get().is_none_or(|key| is_own(key) && entry::hash(text) == *hash)
    }

    pub(crate) fn is_row(
        &self,
        (kind, name): (&str, &str),
        epoch: u64,
        body: Option<&str>,
        mac: &[u8],
    ) -> bool {
        self.get().is_none_or(|key| key.row(kind, name, epoch, body).is(mac))
    }

    /// Verifies a frame as it was read, before any of it is decoded.
    pub(crate) fn examined(&self, run: RunId, frame: Frame, mac: &[u8]) -> Examined {
        let place = frame_place(run, &frame);
        let is_authentic = self.get().is_none_or(|key| key.is_frame(place, &frame.body, mac));
        Examined { frame, is_authentic }
    }
}

/// The position of a frame in its journal, which its MAC covers.
fn frame_place(run: RunId, frame: &Frame) -> FramePlace<'_> {
    FramePlace { run, first: frame.first, count: frame.count, chain: &frame.chain }
}

/// The MAC of a frame whose body is replaced: the half over its position stays.
pub(crate) fn mac_with_body(
    keys: &Keys,
    place: FramePlace<'_>,
    body: &[u8],
    mut mac: Vec<u8>,
) -> Vec<u8> {
    if let (Some(key), Some(half)) = (keys.get(), mac.get_mut(16..FRAME_BYTES)) {
        half.copy_from_slice(&key.frame_body(place, body).0);
    }
    mac
}

pub(crate) fn frame_not_authentic(run: RunId, first: u64) -> String {
    format!(
        "event {first} of {run} is not authentic: no process with the key of this store wrote it"
    )
}

pub(crate) fn slot_not_authentic(schedule: &str, slot_ms: u64) -> String {
    format!("the slot {slot_ms} of the schedule {schedule:?} is not authentic")
}

/// The frames if all of them are authentic, else an error text.
pub(crate) fn authentic(run: RunId, found: Vec<Examined>) -> Result<Vec<Frame>, String> {
    let frame = |one: Examined| {
        if one.is_authentic {
            Ok(one.frame)
        } else {
            Err(frame_not_authentic(run, one.frame.first))
        }
    };
    found.into_iter().map(frame).collect()
}

/// The MACs of an append. The caller computes them, not the writer thread, which all
/// callers wait for.
#[derive(Debug, Default)]
pub(crate) struct AppendMacs {
    frame: Option<FrameMac>,
    snapshot: Option<Mac>,
    key: Option<Mac>,
    messages: Vec<Mac>,
    read: Vec<Mac>,
    outputs: Vec<Mac>,
}

impl AppendMacs {
    pub(crate) fn new(keys: &Keys, append: &Append) -> Result<AppendMacs, StoreError> {
        let Some(key) = keys.for_writing()? else { return Ok(AppendMacs::default()) };
        let chain = &append.chain[..];
        let place =
            FramePlace { run: append.run, first: append.after + 1, count: append.count, chain };
        let callers = append.create.as_ref().and_then(|create| create.key.as_ref());
        Ok(AppendMacs {
            frame: (append.count > 0).then(|| key.frame(place, &append.body)),
            snapshot: key.snapshot_of(append),
            key: callers.map(|callers| key.key_of(append.run, callers)),
            messages: append.messages.iter().map(|message| key.message(message)).collect(),
            read: append.read.iter().map(|read| key.read_message(append.run, read)).collect(),
            outputs: append
                .remembered_outputs
                .iter()
                .map(|remembered_output| key.remembered_output(remembered_output))
                .collect(),
        })
    }

    pub(crate) fn frame(&self) -> &[u8] {
        self.frame.as_ref().map_or(&[], |mac| &mac.0)
    }

    pub(crate) fn snapshot(&self) -> &[u8] {
        bytes(self.snapshot.as_ref())
    }

    pub(crate) fn key(&self) -> &[u8] {
        bytes(self.key.as_ref())
    }

    pub(crate) fn message(&self, at: usize) -> &[u8] {
        bytes(self.messages.get(at))
    }

    /// The MAC of a message that the append marks as read.
    pub(crate) fn read_message(&self, at: usize) -> &[u8] {
        bytes(self.read.get(at))
    }

    pub(crate) fn output(&self, at: usize) -> &[u8] {
        bytes(self.outputs.get(at))
    }
}

/// The column value: empty without a key.
pub(crate) fn bytes(mac: Option<&Mac>) -> &[u8] {
    mac.map_or(&[], |mac| &mac.0)
}

/// The tables whose rows have MACs. Snapshots have MACs too, but are not adopted: they
/// are made again from the journal.
pub(crate) const TABLES: [Table; 7] = [
    Table::Frame,
    Table::Message,
    Table::Key,
    Table::Registry,
    Table::Entry,
    Table::Slot,
    Table::RememberedOutput,
];

/// The MAC that a row should have, or `None` if rows of this table, or rows in doubt,
/// get none.
pub(crate) fn row_mac(
    key: &MacKey,
    doubts: &Doubts,
    table: Table,
    row: &[Cell],
) -> Option<Vec<u8>> {
    let row = NamedRow { table, row };
    let mac = match table {
        Table::Frame => {
            let run = RunId(row.id("run")?);
            let count = u32::try_from(row.number("count")?).ok()?;
            let chain = row.bytes("chain")?;
            let place = FramePlace { run, first: row.number("first")?, count, chain };
            let is_in_doubt = doubts.runs.contains(&run);
            let whole = || key.frame(place, row.bytes("body").unwrap_or_default()).0.to_vec();
            return (!is_in_doubt).then(whole);
        }
        Table::Message => {
            let (run, name) = (RunId(row.id("run")?), row.text("key")?.to_owned());
            match row.bytes("body") {
                Some(body) => key.message(&MailboxMessage { run, key: name, body: body.to_vec() }),
                // A read message is kept only so that its key stays unique.
                None => key.read_message(run, &ReadMessage { id: row.number("id")?, key: name }),
            }
        }
        Table::Key => {
            let fingerprint = Hash(row.bytes("fingerprint")?.try_into().ok()?);
            let (run, expires) = (RunId(row.id("run")?), row.number("expires_at")?);
            key.key(row.text("key")?, run, fingerprint, expires)
        }
        Table::Registry => {
            let epoch = row.number("epoch")?;
            key.row(row.text("kind")?, row.text("name")?, epoch, row.text("body"))
        }
        Table::Entry => {
            let (writer, seq) = (NodeId(row.id("writer")?), row.number("seq")?);
            if doubts.entries.get(&writer).is_some_and(|from| seq >= *from) {
                return None;
            }
            key.entry(writer, seq, Hash(row.bytes("hash")?.try_into().ok()?))
        }
        Table::Slot => key.slot(&Slot {
            schedule: row.text("schedule")?.to_owned(),
            slot_ms: row.number("at")?,
            count: row.number("count")?,
            outcome: row.text("fate")?.to_owned(),
            why: row.text("why").map(str::to_owned),
            run: row.id("run").map(RunId),
            at_ms: row.number("noted_at")?,
        }),
        Table::RememberedOutput => key.remembered_output(&RememberedOutput {
            agent: row.text("agent")?.to_owned(),
            run: RunId(row.id("run")?),
            at_ms: row.number("at")?,
            body: row.bytes("body")?.to_vec(),
        }),
        _ => return None,
    };
    Some(mac.0.to_vec())
}

/// A row with access to its cells by column name.
pub(crate) struct NamedRow<'a> {
    pub(crate) table: Table,
    pub(crate) row: &'a [Cell],
}

impl<'a> NamedRow<'a> {
    pub(crate) fn cell(&self, name: &str) -> Option<&'a Cell> {
        let at = self.table.columns().iter().position(|(column, _)| *column == name)?;
        self.row.get(at)
    }

    pub(crate) fn id(&self, name: &str) -> Option<u128> {
        if let Some(Cell::Id(id)) = self.cell(name) { Some(*id) } else { None }
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let Some(Cell::Int(number)) = self.cell(name) else { return None };
        Some(u64::try_from(*number).unwrap_or(0))
    }

    pub(crate) fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        if let Some(Cell::Bytes(bytes)) = self.cell(name) { Some(bytes) } else { None }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        if let Some(Cell::Text(text)) = self.cell(name) { Some(text) } else { None }
    }
}
