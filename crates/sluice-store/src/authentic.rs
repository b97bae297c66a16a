//! The key of a store, and the MACs it makes and compares.
//!
//! A store is opened without a key and given one afterwards, since the key may
//! depend on what is in it. From then on everything that decides something is
//! written with a MAC and used only with one. A store in which everything has MACs
//! is marked: a process without the key may read it, and cannot write to it.

use crate::transfer::table::{Cell, Table};
use sluice_core::evidence::entry;
use sluice_core::evidence::mac::{Doubts, FRAME_BYTES, FrameMac, FramePlace, Mac, MacKey};
use sluice_core::port::ledger::Recorded;
use sluice_core::port::memo::Memo;
use sluice_core::port::slots::Slot;
use sluice_core::port::store::{
    Answer, Append, Examined, Frame, Hash, Letter, NodeId, Store, StoreError,
};
use sluice_core::run::id::RunId;
use std::sync::OnceLock;

/// A store that authenticates what it holds, once it has a key.
pub trait Keyed: Store {
    /// Whether everything in it had MACs when it was opened, and of which key.
    fn marked(&self, key: &MacKey) -> Mark;

    /// Whether everything in it had MACs of some key when it was opened.
    fn is_marked(&self) -> bool;

    /// Makes MACs for everything that has none of this key, but for what is in doubt;
    /// then marks the store, and uses the key. In batches of bounded size; cut off, it
    /// begins again.
    fn adopt(&self, key: MacKey, doubts: Doubts) -> Answer<'_, ()>;

    /// Uses the key from now on.
    fn unlock(&self, key: MacKey);
}

/// Whether everything in a store has MACs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// There is nothing in it that could have one.
    Empty,
    /// Nothing says so.
    Missing,
    /// Of this key.
    Own,
    /// Of another key.
    Foreign,
}

/// The key of an open store.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    key: OnceLock<MacKey>,
    found: OnceLock<Condition>,
}

/// What a store was found to be when it was opened.
#[derive(Debug)]
pub(crate) enum Condition {
    Empty,
    Unmarked,
    Marked(Vec<u8>),
}

impl Condition {
    /// What the numbers and marks of a store say of it.
    pub(crate) fn of(marks: Vec<(i64, Vec<u8>)>, unmarked: Condition) -> Condition {
        match <[(i64, Vec<u8>); 1]>::try_from(marks) {
            Ok([(1, mark)]) => Condition::Marked(mark),
            Err(none) if none.is_empty() => unmarked,
            // No process writes a second one, or under another number: no key fits.
            _ => Condition::Marked(Vec::new()),
        }
    }
}

impl Keys {
    pub(crate) fn get(&self) -> Option<&MacKey> {
        self.key.get()
    }

    pub(crate) fn set(&self, key: MacKey) {
        // A second one is the same: a store has one mark.
        let _ = self.key.set(key);
    }

    /// Notes what the store was found to be.
    pub(crate) fn found(&self, found: Condition) {
        // A store is opened once.
        let _ = self.found.set(found);
    }

    pub(crate) fn is_marked(&self) -> bool {
        matches!(self.found.get(), Some(Condition::Marked(_)))
    }

    pub(crate) fn mark(&self, key: &MacKey) -> Mark {
        match self.found.get() {
            Some(Condition::Empty) | None => Mark::Empty,
            Some(Condition::Unmarked) => Mark::Missing,
            Some(Condition::Marked(mark)) if key.mark().is(mark) => Mark::Own,
            Some(Condition::Marked(_)) => Mark::Foreign,
        }
    }

    /// The key to write with. Without one nothing may be written to a marked store:
    /// it would not be used.
    pub(crate) fn for_writing(&self) -> Result<Option<&MacKey>, StoreError> {
        let key = self.key.get();
        if key.is_none() && self.is_marked() {
            let why = "only a process with the `seal.key` of this store can write to it";
            return Err(StoreError::Unavailable(why.to_owned()));
        }
        Ok(key)
    }

    pub(crate) fn is_letter(&self, letter: &Letter, mac: &[u8]) -> bool {
        self.get().is_none_or(|key| key.letter(letter).is(mac))
    }

    pub(crate) fn is_memo(&self, memo: &Memo, mac: &[u8]) -> bool {
        self.get().is_none_or(|key| key.memo(memo).is(mac))
    }

    pub(crate) fn is_slot(&self, slot: &Slot, mac: &[u8]) -> bool {
        self.get().is_none_or(|key| key.slot(slot).is(mac))
    }

    /// The MAC is over the hash, and the hash over the text.
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

    /// A frame as it was read, before a byte of it is decoded.
    pub(crate) fn examined(&self, run: RunId, frame: Frame, mac: &[u8]) -> Examined {
        let place = place_of(run, &frame);
        let is_authentic = self.get().is_none_or(|key| key.is_frame(place, &frame.body, mac));
        Examined { frame, is_authentic }
    }
}

/// Where a frame belongs.
pub(crate) fn place_of(run: RunId, frame: &Frame) -> FramePlace<'_> {
    FramePlace { run, first: frame.first, count: frame.count, chain: &frame.chain }
}

/// The MAC of a frame whose body is replaced: the half over its place stays.
pub(crate) fn renewed(
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

/// Why a run cannot be read.
pub(crate) fn foreign_frame(run: RunId, first: u64) -> String {
    format!(
        "event {first} of {run} is not authentic: no process with the key of this store wrote it there"
    )
}

/// Why a schedule cannot go on.
pub(crate) fn foreign_slot(schedule: &str, slot_ms: u64) -> String {
    format!("the slot {slot_ms} of the schedule {schedule:?} is not authentic")
}

/// The frames, if all of them are authentic; why not, else.
pub(crate) fn authentic(run: RunId, found: Vec<Examined>) -> Result<Vec<Frame>, String> {
    let frame = |one: Examined| {
        if one.is_authentic { Ok(one.frame) } else { Err(foreign_frame(run, one.frame.first)) }
    };
    found.into_iter().map(frame).collect()
}

/// The MACs of an append, made by the caller and not by the writer, for which
/// all callers wait.
#[derive(Debug, Default)]
pub(crate) struct AppendMacs {
    frame: Option<FrameMac>,
    snapshot: Option<Mac>,
    key: Option<Mac>,
    letters: Vec<Mac>,
    read: Vec<Mac>,
    memos: Vec<Mac>,
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
            letters: append.letters.iter().map(|letter| key.letter(letter)).collect(),
            read: append.read.iter().map(|id| key.read_letter(append.run, *id)).collect(),
            memos: append.memos.iter().map(|memo| key.memo(memo)).collect(),
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

    pub(crate) fn letter(&self, at: usize) -> &[u8] {
        bytes(self.letters.get(at))
    }

    /// Of a letter that the append has read.
    pub(crate) fn read(&self, at: usize) -> &[u8] {
        bytes(self.read.get(at))
    }

    pub(crate) fn memo(&self, at: usize) -> &[u8] {
        bytes(self.memos.get(at))
    }
}

/// As a column holds it; empty where there is no key.
pub(crate) fn bytes(mac: Option<&Mac>) -> &[u8] {
    mac.map_or(&[], |mac| &mac.0)
}

/// The tables whose rows have MACs and keep them. Snapshots have them too, but
/// are not worth adopting: journals have it all.
pub(crate) const TABLES: [Table; 7] = [
    Table::Frame,
    Table::Letter,
    Table::Key,
    Table::Registry,
    Table::Entry,
    Table::Slot,
    Table::Memo,
];

/// The MAC that a row of a table should have; none for one that gets none.
pub(crate) fn adopted(
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
        Table::Letter => {
            let (run, name) = (RunId(row.id("run")?), row.text("key")?.to_owned());
            match row.bytes("body") {
                Some(body) => key.letter(&Letter { run, key: name, body: body.to_vec() }),
                // One that was read is kept for its key alone.
                None => key.read_letter(run, row.number("id")?),
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
            fate: row.text("fate")?.to_owned(),
            why: row.text("why").map(str::to_owned),
            run: row.id("run").map(RunId),
            at_ms: row.number("noted_at")?,
        }),
        Table::Memo => key.memo(&Memo {
            agent: row.text("agent")?.to_owned(),
            run: RunId(row.id("run")?),
            at_ms: row.number("at")?,
            body: row.bytes("body")?.to_vec(),
        }),
        _ => return None,
    };
    Some(mac.0.to_vec())
}

/// A row whose cells are found by the names of their columns.
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
