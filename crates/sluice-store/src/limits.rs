//! Every bound of the stores, in one place.

/// Runs a list answers with where the caller names no number.
pub const LIST_DEFAULT: usize = 100;
/// Most runs a list answers with.
pub const LIST_MAX: usize = 1000;
/// Most runs taken by one claim.
pub const CLAIM_MAX: usize = 1000;
/// Most letters answered at once; the rest comes when these are read.
pub const LETTERS_MAX: usize = 1000;
/// Most entries answered at once.
pub const ENTRIES_MAX: usize = 10_000;
/// Most counters answered at once.
pub const COUNTERS_MAX: usize = 10_000;
/// Most frames of the feed answered at once.
pub const FEED_FRAMES_MAX: usize = 4096;
/// Most seals answered at once.
pub const SEALS_MAX: usize = 1000;
/// Most frames, and most entries, that one seal passes; the rest is left to the next.
pub const SEAL_ROWS_MAX: usize = 1_000_000;

/// Answers of each agent that are remembered; older ones go.
pub const MEMOS_KEPT_MAX: usize = 32;

/// Most writes that wait for the writer of a SQLite store; others wait for a place.
pub const WRITES_WAITING_MAX: usize = 2048;
/// Most writes in one transaction.
pub const BATCH_WRITES_MAX: usize = 1024;
/// A transaction takes no further write once it holds so many bytes.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest single write, in bytes, well below what SQLite can hold in a row.
pub const WRITE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Reads that wait for a reader; others wait for a place.
pub const READS_WAITING_MAX: usize = 256;
/// Connections that only read.
pub const READERS: usize = 2;
/// Runs and counters the writer remembers between transactions.
pub const REMEMBERED_MAX: usize = 16_384;
/// How long a connection waits for another process's transaction, in milliseconds.
pub const BUSY_MS: u64 = 5_000;
/// How often the writer looks for changes by other processes while someone waits
/// for them, in milliseconds. Shorter patience is taken as this.
pub const LOOK_MS: u64 = 25;
/// How often the writer looks whether its files are still those of the directory, in
/// milliseconds.
pub const HOME_LOOK_MS: u64 = 100;
/// What must fit on the disk for a store to be ready, in bytes.
pub const ROOM_BYTES: usize = 256 * 1024;
/// How long the log waits for readers before it is emptied after an erasure, in
/// milliseconds; it is tried again.
pub const EMPTY_LOG_MS: u64 = 250;
/// After so long without a write the log is folded into the database, in milliseconds.
pub const IDLE_MS: u64 = 200;
/// The log is folded into the database once it has so many pages, busy or not.
pub const LOG_PAGES_MAX: i64 = 4_096;
/// A log that a slow reader made larger than this is cut back to it, in bytes.
pub const LOG_BYTES_KEPT: u64 = 64 * 1024 * 1024;
/// How often a database on a read-only file system is copied anew because another
/// process wrote to it meanwhile.
pub const COPY_TRIES_MAX: usize = 3;
/// Every so many frames of a run, one is put into the index.
pub const FRAMES_PER_MARK: u64 = 64;

/// Deliveries that are over, and are kept of a webhook.
pub const DELIVERIES_KEPT: usize = 1000;

/// Most frames of which the writer remembers where their runs stand.
pub const FRESH_HEADS_MAX: usize = 65_536;

/// How long a transfer waits for others to let go of its source, in milliseconds.
pub const TRANSFER_HOLD_MS: u64 = 1_000;
/// A batch of a transfer takes no further row once it holds so many bytes.
pub const TRANSFER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most rows in a batch of a transfer.
pub const TRANSFER_ROWS_MAX: usize = 4096;
/// Rows that are asked for at once to be compared after a transfer.
pub const TRANSFER_PAGE_ROWS: usize = 4096;

/// Most rows that get their MACs in one transaction, where a store is given a key.
pub const ADOPT_ROWS_MAX: usize = 4096;
/// Such a transaction takes no further row once it has read so many bytes.
pub const ADOPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows that a verification reads before it lets the writer of the same thread work.
pub const INSPECT_ROWS_AT_ONCE: usize = 64;
/// How long a verification may stand still between two statements, in milliseconds.
pub const INSPECT_IDLE_MS: u64 = 600_000;

/// Connections to a PostgreSQL database beside the writer's and the listener's.
pub const POOL: usize = 4;
/// How long a connection to a database may take, in milliseconds, where its URL
/// says nothing of it.
pub const CONNECT_MS_MAX: u64 = 5_000;
/// How long a database may take for an answer, in milliseconds. After that the
/// connection is given up.
pub const ANSWER_MS_MAX: u64 = 30_000;
/// How long a lease may take to be renewed, in milliseconds, where a third of it is
/// less.
pub const RENEW_MS_MIN: u64 = 1_000;
/// How long a transaction may stand still, in milliseconds: a node that does not
/// go on loses it, and the rows that it holds.
pub const STANDSTILL_MS_MAX: u64 = 2_000;
/// How long a statement waits for a row that another transaction holds, in
/// milliseconds.
pub const LOCK_MS_MAX: u64 = 15_000;
/// After so long in silence a connection is asked whether it is there, in seconds.
pub const KEEPALIVE_S: u64 = 10;
/// How often a transaction is performed again because another was in its way.
pub const AGAIN_MAX: usize = 16;
/// Statements that are kept prepared on a connection.
pub const PREPARED_MAX: usize = 256;
/// Notices of other nodes that wait to be taken; one more says nothing new.
pub const NOTICES_MAX: usize = 64;
/// How long a lost connection for notices stays away before it is tried again, in
/// milliseconds.
pub const RECONNECT_MS: u64 = 500;
/// Leases and keys whose time is over that are forgotten at once.
pub const FORGOTTEN_MAX: usize = 1000;
/// How often a node forgets some, in milliseconds.
pub const FORGET_MS: u64 = 10_000;
/// Frames of a run that are asked for at once.
pub const FRAMES_AT_ONCE: usize = 256;
/// Frames and entries that are asked for at once to be sealed.
pub const SEAL_ROWS_AT_ONCE: usize = 10_000;
