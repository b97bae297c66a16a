//! The tables of a transfer: the target's columns, and the order in which both sides
//! are read.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// 16 bytes.
    Id,
    Int,
    /// 32 bits.
    Small,
    Flag,
    Bytes,
    /// A text from outside Sluice, encoded for the target (`Text`).
    Text,
    /// A text of Sluice, or JSON, stored unchanged.
    Plain,
}

/// A value of a row, the same for both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    None,
    Id(u128),
    /// A number of either size.
    Int(i64),
    Flag(bool),
    Bytes(Vec<u8>),
    /// A text of either type.
    Text(String),
}

impl Cell {
    /// Approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Cell::None | Cell::Id(_) | Cell::Int(_) | Cell::Flag(_) => 16,
            Cell::Bytes(bytes) => 16 + bytes.len(),
            Cell::Text(text) => 16 + text.len(),
        }
    }

    /// Encodes the cell so that different rows have different encodings.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let (tag, number, bytes): (u8, u128, &[u8]) = match self {
            Cell::None => (0, 0, &[]),
            Cell::Id(id) => (1, *id, &[]),
            Cell::Int(number) => (2, u128::from(number.cast_unsigned()), &[]),
            Cell::Flag(flag) => (3, u128::from(*flag), &[]),
            Cell::Bytes(bytes) => (4, bytes.len() as u128, bytes),
            Cell::Text(text) => (5, text.len() as u128, text.as_bytes()),
        };
        out.push(tag);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(bytes);
    }

    /// A short form for error messages.
    pub(crate) fn short_text(&self) -> String {
        match self {
            Cell::None => "none".to_owned(),
            Cell::Id(id) => format!("{id:032x}"),
            Cell::Int(number) => number.to_string(),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Bytes(bytes) => {
                bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect::<String>()
            }
            Cell::Text(text) => format!("{:?}", text.chars().take(80).collect::<String>()),
        }
    }
}

pub(crate) type Cells = Vec<Cell>;

/// A table of the target, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Run,
    /// Frames, with their positions and stream deltas.
    Frame,
    Snapshot,
    Blob,
    /// Messages, including read ones.
    Message,
    /// Plain counters.
    Counter,
    /// Counters over windows.
    Window,
    /// Idempotency keys.
    Key,
    /// Registry rows, with their history.
    Registry,
    /// Audit entries.
    Entry,
    /// Ends of the entry chains.
    Chain,
    Seal,
    /// Schedule slots.
    Slot,
    /// Provenance edges between runs.
    ProvenanceEdge,
    RememberedOutput,
    /// Feed positions of webhooks.
    Webhook,
    /// Webhook deliveries.
    Delivery,
    /// The mark of the MAC key.
    Authentic,
    /// The last positions.
    Position,
}

pub(crate) type Column = (&'static str, ColumnType);

impl Table {
    /// All tables, in the order of copying. Leases are excluded: no node is alive, and
    /// a lease that has not expired would make one appear alive in the target.
    pub(crate) const ALL: [Table; 19] = [
        Table::Run,
        Table::Frame,
        Table::Snapshot,
        Table::Blob,
        Table::Message,
        Table::Counter,
        Table::Window,
        Table::Key,
        Table::Registry,
        Table::Entry,
        Table::Chain,
        Table::Seal,
        Table::Slot,
        Table::ProvenanceEdge,
        Table::RememberedOutput,
        Table::Webhook,
        Table::Delivery,
        Table::Authentic,
        Table::Position,
    ];

    /// Name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Window => "window",
            other => other.target(),
        }
    }

    /// Name of the target's table.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Table::Run => "run",
            Table::Frame => "frame",
            Table::Snapshot => "snapshot",
            Table::Blob => "blob",
            Table::Message => "letter",
            Table::Counter | Table::Window => "counter",
            Table::Key => "key",
            Table::Registry => "registry",
            Table::Entry => "entry",
            Table::Chain => "chain",
            Table::Seal => "seal",
            Table::Slot => "slot",
            Table::ProvenanceEdge => "taking",
            Table::RememberedOutput => "memo",
            Table::Webhook => "webhook",
            Table::Delivery => "delivery",
            Table::Authentic => "authentic",
            Table::Position => "position",
        }
    }

    /// Indices of the key columns, which order the rows on both sides. Tables with a
    /// position use it, because it is the order of the source's pages.
    pub(crate) fn key(self) -> &'static [usize] {
        match self {
            Table::Frame => &[3],
            Table::Entry => &[2],
            Table::Message
            | Table::Counter
            | Table::Window
            | Table::Slot
            | Table::ProvenanceEdge
            | Table::RememberedOutput
            | Table::Delivery => &[0, 1],
            Table::Registry => &[0, 1, 2],
            Table::Run
            | Table::Snapshot
            | Table::Blob
            | Table::Key
            | Table::Chain
            | Table::Seal
            | Table::Webhook
            | Table::Authentic
            | Table::Position => &[0],
        }
    }

    /// The target's columns, in the order of a row.
    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Table::Run => RUN,
            Table::Frame => FRAME,
            Table::Snapshot => SNAPSHOT,
            Table::Blob => &[("hash", ColumnType::Bytes), ("body", ColumnType::Bytes)],
            Table::Message => LETTER,
            Table::Counter | Table::Window => COUNTER,
            Table::Key => KEY,
            Table::Registry => REGISTRY,
            Table::Entry => ENTRY,
            Table::Chain => {
                &[("writer", ColumnType::Id), ("seq", ColumnType::Int), ("hash", ColumnType::Bytes)]
            }
            Table::Seal => SEAL,
            Table::Slot => SLOT,
            Table::ProvenanceEdge => {
                &[("source", ColumnType::Id), ("taker", ColumnType::Id), ("count", ColumnType::Int)]
            }
            Table::RememberedOutput => REMEMBERED_OUTPUT,
            Table::Webhook => {
                &[("name", ColumnType::Text), ("place", ColumnType::Int), ("last", ColumnType::Int)]
            }
            Table::Delivery => DELIVERY,
            Table::Authentic => &[("one", ColumnType::Small), ("mark", ColumnType::Bytes)],
            Table::Position => POSITION,
        }
    }

    /// The key of a row.
    pub(crate) fn key_of(self, row: &[Cell]) -> Cells {
        self.key().iter().filter_map(|at| row.get(*at)).cloned().collect()
    }
}

const RUN: &[Column] = &[
    ("id", ColumnType::Id),
    ("workflow", ColumnType::Text),
    ("release", ColumnType::Int),
    ("initiator", ColumnType::Text),
    ("status", ColumnType::Plain),
    ("started_at", ColumnType::Int),
    ("ended_at", ColumnType::Int),
    ("parent", ColumnType::Id),
    ("fingerprint", ColumnType::Bytes),
    ("owner", ColumnType::Id),
    ("epoch", ColumnType::Int),
    ("due_at", ColumnType::Int),
    ("asks", ColumnType::Flag),
    ("version", ColumnType::Int),
];

const FRAME: &[Column] = &[
    ("run", ColumnType::Id),
    ("first", ColumnType::Int),
    ("count", ColumnType::Small),
    ("place", ColumnType::Int),
    ("chain", ColumnType::Bytes),
    ("body", ColumnType::Bytes),
    ("beside", ColumnType::Bytes),
    ("mac", ColumnType::Bytes),
];

const SNAPSHOT: &[Column] = &[
    ("run", ColumnType::Id),
    ("version", ColumnType::Int),
    ("body", ColumnType::Bytes),
    ("mac", ColumnType::Bytes),
];

const LETTER: &[Column] = &[
    ("run", ColumnType::Id),
    ("key", ColumnType::Text),
    ("id", ColumnType::Int),
    ("body", ColumnType::Bytes),
    ("mac", ColumnType::Bytes),
];

const COUNTER: &[Column] = &[
    ("name", ColumnType::Text),
    ("span", ColumnType::Int),
    ("count", ColumnType::Int),
    ("slices", ColumnType::Bytes),
];

const KEY: &[Column] = &[
    ("key", ColumnType::Text),
    ("run", ColumnType::Id),
    ("fingerprint", ColumnType::Bytes),
    ("expires_at", ColumnType::Int),
    ("mac", ColumnType::Bytes),
];

const REGISTRY: &[Column] = &[
    ("kind", ColumnType::Plain),
    ("name", ColumnType::Text),
    ("epoch", ColumnType::Int),
    ("body", ColumnType::Plain),
    ("mac", ColumnType::Bytes),
];

const ENTRY: &[Column] = &[
    ("writer", ColumnType::Id),
    ("seq", ColumnType::Int),
    ("place", ColumnType::Int),
    ("hash", ColumnType::Bytes),
    ("text", ColumnType::Plain),
    ("mac", ColumnType::Bytes),
];

const SEAL: &[Column] = &[
    ("number", ColumnType::Int),
    ("hash", ColumnType::Bytes),
    ("frames", ColumnType::Int),
    ("entries", ColumnType::Int),
    ("text", ColumnType::Plain),
    ("leaves", ColumnType::Bytes),
];

const SLOT: &[Column] = &[
    ("schedule", ColumnType::Text),
    ("at", ColumnType::Int),
    ("count", ColumnType::Int),
    ("fate", ColumnType::Text),
    ("why", ColumnType::Text),
    ("run", ColumnType::Id),
    ("noted_at", ColumnType::Int),
    ("mac", ColumnType::Bytes),
];

const REMEMBERED_OUTPUT: &[Column] = &[
    ("agent", ColumnType::Text),
    ("place", ColumnType::Int),
    ("run", ColumnType::Id),
    ("at", ColumnType::Int),
    ("body", ColumnType::Bytes),
    ("mac", ColumnType::Bytes),
];

const DELIVERY: &[Column] = &[
    ("webhook", ColumnType::Text),
    ("number", ColumnType::Int),
    ("run", ColumnType::Id),
    ("event", ColumnType::Int),
    ("kind", ColumnType::Text),
    ("tries", ColumnType::Int),
    ("status", ColumnType::Small),
    ("error", ColumnType::Text),
    ("at", ColumnType::Int),
    ("next_at", ColumnType::Int),
];

const POSITION: &[Column] = &[
    ("one", ColumnType::Small),
    ("frames", ColumnType::Int),
    ("entries", ColumnType::Int),
    ("letters", ColumnType::Int),
    ("memos", ColumnType::Int),
];
