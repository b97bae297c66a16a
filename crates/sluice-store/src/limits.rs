//! All limits of the stores.

/// Largest number of runs in one claim.
pub const CLAIM_MAX: usize = 1000;
/// Largest number of messages in one read; the next read returns the rest.
pub(crate) const MESSAGES_MAX: usize = 1000;
/// Largest number of audit entries in one read.
pub(crate) const ENTRIES_MAX: usize = 10_000;
/// Largest number of counters in one read.
pub(crate) const COUNTERS_MAX: usize = 10_000;
/// Largest number of feed frames in one read.
pub const FEED_FRAMES_MAX: usize = 4096;
/// Largest number of seals in one read.
pub const SEALS_MAX: usize = 1000;
/// Largest number of frames, and of entries, that one seal covers; the next seal covers
/// the rest.
pub(crate) const SEAL_ROWS_MAX: usize = 1_000_000;

/// Capacity of the write queue of a SQLite store; further callers wait.
pub(crate) const WRITES_WAITING_MAX: usize = 2048;
/// Largest number of writes in one transaction.
pub(crate) const BATCH_WRITES_MAX: usize = 1024;
/// A transaction accepts no further write once it holds this many bytes.
pub(crate) const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest single write in bytes, well below SQLite's limit for a row.
pub(crate) const WRITE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Capacity of the read queue; further callers wait.
pub(crate) const READS_WAITING_MAX: usize = 256;
/// Number of reader connections.
pub const READERS: usize = 2;
/// Number of runs and counters that the writer caches between transactions.
pub(crate) const CACHED_MAX: usize = 16_384;
/// How long a connection waits for the transaction of another process, in milliseconds.
pub(crate) const BUSY_MS: u64 = 5_000;
/// How often the writer checks for changes by other processes while a caller waits for
/// them, in milliseconds. It is also the shortest patience.
pub const POLL_MS: u64 = 25;
/// How often the writer checks that its open files are still those of the data
/// directory, in milliseconds.
pub(crate) const DIRECTORY_CHECK_MS: u64 = 100;
/// Free disk space that a store needs to be ready, in bytes.
pub(crate) const FREE_BYTES_MIN: usize = 256 * 1024;
/// How long the writer waits for readers before it truncates the write-ahead log after
/// an erasure, in milliseconds; it retries later.
pub(crate) const TRUNCATE_LOG_MS: u64 = 250;
/// Idle time after which the writer checkpoints the write-ahead log, in milliseconds.
pub const IDLE_MS: u64 = 200;
/// The writer checkpoints the write-ahead log once it has this many pages, even under
/// load.
pub(crate) const LOG_PAGES_MAX: i64 = 4_096;
/// SQLite truncates a larger write-ahead log to this size, in bytes.
pub(crate) const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How often a database on a read-only file system is copied again because another
/// process wrote to it during the copy.
pub(crate) const COPY_TRIES_MAX: usize = 3;
/// Every n-th frame of a run gets a row in the index.
pub(crate) const FRAMES_PER_MARK: u64 = 64;

/// Number of frames whose run heads the writer caches for sealing.
pub(crate) const RECENT_HEADS_MAX: usize = 65_536;

/// How long a transfer waits for other processes to close its source, in milliseconds.
pub(crate) const TRANSFER_LOCK_MS: u64 = 1_000;
/// A transfer batch accepts no further row once it holds this many bytes.
pub(crate) const TRANSFER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest number of rows in a transfer batch.
pub(crate) const TRANSFER_ROWS_MAX: usize = 4096;
/// Page size of the comparison after a transfer, in rows.
pub(crate) const TRANSFER_PAGE_ROWS: usize = 4096;

/// Largest number of rows that get their MACs in one transaction when a store adopts a
/// key.
pub(crate) const ADOPT_ROWS_MAX: usize = 4096;
/// Such a transaction reads no further row once it has read this many bytes.
pub(crate) const ADOPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows that a verification reads before it yields to the writer on the same thread.
pub(crate) const INSPECT_ROWS_AT_ONCE: usize = 64;
/// Longest pause of a verification between two statements, in milliseconds.
pub(crate) const INSPECT_IDLE_MS: u64 = 600_000;

/// PostgreSQL connections in the pool, in addition to those of the writer and the
/// listener.
pub(crate) const POOL: usize = 4;
/// Connect timeout in milliseconds, unless the database URL sets one.
pub(crate) const CONNECT_MS_MAX: u64 = 5_000;
/// Response timeout of a database in milliseconds. After it the connection is closed.
pub(crate) const RESPONSE_MS_MAX: u64 = 30_000;
/// Shortest timeout for a lease renewal in milliseconds; otherwise a third of the
/// lease.
pub(crate) const RENEW_MS_MIN: u64 = 1_000;
/// Idle timeout of a transaction in milliseconds: a stalled node loses its transaction
/// and the row locks.
pub(crate) const IDLE_TRANSACTION_MS_MAX: u64 = 2_000;
/// How long a statement waits for a row lock, in milliseconds.
pub(crate) const LOCK_MS_MAX: u64 = 15_000;
/// Idle time before the first TCP keepalive probe, in seconds.
pub(crate) const KEEPALIVE_S: u64 = 10;
/// How often a transaction is retried after a conflict.
pub(crate) const RETRIES_MAX: usize = 16;
/// Prepared statements cached per connection.
pub(crate) const PREPARED_MAX: usize = 256;
/// Capacity of the queue of notifications from other nodes. Further ones are dropped: a
/// queued notification already causes a read.
pub(crate) const NOTICES_MAX: usize = 64;
/// Delay before the listener reconnects, in milliseconds.
pub(crate) const RECONNECT_MS: u64 = 500;
/// Expired leases and keys deleted in one pass.
pub(crate) const PURGED_MAX: usize = 1000;
/// Interval between two such passes, in milliseconds.
pub(crate) const PURGE_MS: u64 = 10_000;
/// Frames of a run fetched per query.
pub(crate) const FRAMES_AT_ONCE: usize = 256;
/// Frames and entries fetched per query when sealing.
pub(crate) const SEAL_ROWS_AT_ONCE: usize = 10_000;
