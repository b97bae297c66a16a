//! What is carried over, table by table: the target's columns, and the order in
//! which both sides are read.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An id of 16 bytes.
    Id,
    /// A number.
    Int,
    /// A number that needs no more than 32 bits.
    Small,
    /// Yes or no.
    Flag,
    /// Bytes.
    Bytes,
    /// A text of somebody else's choosing, written as the target's own writes do.
    Text,
    /// A text of ours, or JSON: written as it is.
    Plain,
}

/// A value of a row, the same from either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Nothing.
    None,
    /// An id.
    Id(u128),
    /// A number, of either size.
    Int(i64),
    /// Yes or no.
    Flag(bool),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A text, of either kind.
    Text(String),
}

impl Cell {
    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Cell::None | Cell::Id(_) | Cell::Int(_) | Cell::Flag(_) => 16,
            Cell::Bytes(bytes) => 16 + bytes.len(),
            Cell::Text(text) => 16 + text.len(),
        }
    }

    /// Writes it so that no two rows are written alike.
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

    /// As an error shows it, short.
    pub(crate) fn shown(&self) -> String {
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

/// A row.
pub(crate) type Row = Vec<Cell>;

/// One of the tables of the target, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Runs, with their heads.
    Run,
    /// Frames, with their places and what stands beside them.
    Frame,
    /// Snapshots.
    Snapshot,
    /// Blobs.
    Blob,
    /// Letters, those that were read too.
    Letter,
    /// Plain counters.
    Counter,
    /// Counters over windows.
    Window,
    /// Callers' keys.
    Key,
    /// Rows of the registry, with their history.
    Registry,
    /// Entries of the audit.
    Entry,
    /// Where the chains of entries end.
    Chain,
    /// Seals.
    Seal,
    /// Slots of schedules.
    Slot,
    /// Which runs took values from which.
    Taking,
    /// What agents answered.
    Memo,
    /// How far webhooks have come.
    Webhook,
    /// What is sent to webhooks.
    Delivery,
    /// Which key everything is authenticated with.
    Authentic,
    /// The last places.
    Position,
}

/// A column of the target.
pub(crate) type Column = (&'static str, Kind);

impl Table {
    /// Every table, in the order of copying. The leases of nodes are not among them:
    /// none is alive, and one that had not run out yet would seem so elsewhere.
    pub(crate) const ALL: [Table; 19] = [
        Table::Run,
        Table::Frame,
        Table::Snapshot,
        Table::Blob,
        Table::Letter,
        Table::Counter,
        Table::Window,
        Table::Key,
        Table::Registry,
        Table::Entry,
        Table::Chain,
        Table::Seal,
        Table::Slot,
        Table::Taking,
        Table::Memo,
        Table::Webhook,
        Table::Delivery,
        Table::Authentic,
        Table::Position,
    ];

    /// What it is called where people are told of it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Window => "window",
            other => other.target(),
        }
    }

    /// The target's table.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Table::Run => "run",
            Table::Frame => "frame",
            Table::Snapshot => "snapshot",
            Table::Blob => "blob",
            Table::Letter => "letter",
            Table::Counter | Table::Window => "counter",
            Table::Key => "key",
            Table::Registry => "registry",
            Table::Entry => "entry",
            Table::Chain => "chain",
            Table::Seal => "seal",
            Table::Slot => "slot",
            Table::Taking => "taking",
            Table::Memo => "memo",
            Table::Webhook => "webhook",
            Table::Delivery => "delivery",
            Table::Authentic => "authentic",
            Table::Position => "position",
        }
    }

    /// Which columns tell rows apart and order them, on both sides alike. Where there
    /// is a place, that is the order in which the source has them on its pages.
    pub(crate) fn key(self) -> &'static [usize] {
        match self {
            Table::Frame => &[3],
            Table::Entry => &[2],
            Table::Letter
            | Table::Counter
            | Table::Window
            | Table::Slot
            | Table::Taking
            | Table::Memo
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
            Table::Blob => &[("hash", Kind::Bytes), ("body", Kind::Bytes)],
            Table::Letter => LETTER,
            Table::Counter | Table::Window => COUNTER,
            Table::Key => KEY,
            Table::Registry => REGISTRY,
            Table::Entry => ENTRY,
            Table::Chain => &[("writer", Kind::Id), ("seq", Kind::Int), ("hash", Kind::Bytes)],
            Table::Seal => SEAL,
            Table::Slot => SLOT,
            Table::Taking => &[("source", Kind::Id), ("taker", Kind::Id), ("count", Kind::Int)],
            Table::Memo => MEMO,
            Table::Webhook => &[("name", Kind::Text), ("place", Kind::Int), ("last", Kind::Int)],
            Table::Delivery => DELIVERY,
            Table::Authentic => &[("one", Kind::Small), ("mark", Kind::Bytes)],
            Table::Position => POSITION,
        }
    }

    /// What tells a row of it apart.
    pub(crate) fn key_of(self, row: &[Cell]) -> Row {
        self.key().iter().filter_map(|at| row.get(*at)).cloned().collect()
    }
}

const RUN: &[Column] = &[
    ("id", Kind::Id),
    ("workflow", Kind::Text),
    ("release", Kind::Int),
    ("initiator", Kind::Text),
    ("status", Kind::Plain),
    ("started_at", Kind::Int),
    ("ended_at", Kind::Int),
    ("parent", Kind::Id),
    ("fingerprint", Kind::Bytes),
    ("owner", Kind::Id),
    ("epoch", Kind::Int),
    ("due_at", Kind::Int),
    ("asks", Kind::Flag),
    ("version", Kind::Int),
];

const FRAME: &[Column] = &[
    ("run", Kind::Id),
    ("first", Kind::Int),
    ("count", Kind::Small),
    ("place", Kind::Int),
    ("chain", Kind::Bytes),
    ("body", Kind::Bytes),
    ("beside", Kind::Bytes),
    ("mac", Kind::Bytes),
];

const SNAPSHOT: &[Column] =
    &[("run", Kind::Id), ("version", Kind::Int), ("body", Kind::Bytes), ("mac", Kind::Bytes)];

const LETTER: &[Column] = &[
    ("run", Kind::Id),
    ("key", Kind::Text),
    ("id", Kind::Int),
    ("body", Kind::Bytes),
    ("mac", Kind::Bytes),
];

const COUNTER: &[Column] =
    &[("name", Kind::Text), ("span", Kind::Int), ("count", Kind::Int), ("slices", Kind::Bytes)];

const KEY: &[Column] = &[
    ("key", Kind::Text),
    ("run", Kind::Id),
    ("fingerprint", Kind::Bytes),
    ("expires_at", Kind::Int),
    ("mac", Kind::Bytes),
];

const REGISTRY: &[Column] = &[
    ("kind", Kind::Plain),
    ("name", Kind::Text),
    ("epoch", Kind::Int),
    ("body", Kind::Plain),
    ("mac", Kind::Bytes),
];

const ENTRY: &[Column] = &[
    ("writer", Kind::Id),
    ("seq", Kind::Int),
    ("place", Kind::Int),
    ("hash", Kind::Bytes),
    ("text", Kind::Plain),
    ("mac", Kind::Bytes),
];

const SEAL: &[Column] = &[
    ("number", Kind::Int),
    ("hash", Kind::Bytes),
    ("frames", Kind::Int),
    ("entries", Kind::Int),
    ("text", Kind::Plain),
    ("leaves", Kind::Bytes),
];

const SLOT: &[Column] = &[
    ("schedule", Kind::Text),
    ("at", Kind::Int),
    ("count", Kind::Int),
    ("fate", Kind::Text),
    ("why", Kind::Text),
    ("run", Kind::Id),
    ("noted_at", Kind::Int),
    ("mac", Kind::Bytes),
];

const MEMO: &[Column] = &[
    ("agent", Kind::Text),
    ("place", Kind::Int),
    ("run", Kind::Id),
    ("at", Kind::Int),
    ("body", Kind::Bytes),
    ("mac", Kind::Bytes),
];

const DELIVERY: &[Column] = &[
    ("webhook", Kind::Text),
    ("number", Kind::Int),
    ("run", Kind::Id),
    ("event", Kind::Int),
    ("kind", Kind::Text),
    ("tries", Kind::Int),
    ("status", Kind::Small),
    ("error", Kind::Text),
    ("at", Kind::Int),
    ("next_at", Kind::Int),
];

const POSITION: &[Column] = &[
    ("one", Kind::Small),
    ("frames", Kind::Int),
    ("entries", Kind::Int),
    ("letters", Kind::Int),
    ("memos", Kind::Int),
];
