//! Limits of the engine.

/// Most buffered bytes of one stream; the adapter waits beyond that.
pub(crate) const BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Buffer of one stream, however many streams there are.
pub(crate) const BUFFER_BYTES_MIN: usize = 4 * 1024;
/// Most buffered bytes of all streams, as long as each has its minimum.
pub(crate) const BUFFER_BYTES_ALL: usize = 64 * 1024 * 1024;
/// Bytes that a media part is charged in addition to its URL.
pub(crate) const MEDIA_BYTES: usize = 256;

/// Most frames in the tail of a followed run.
pub(crate) const TAIL_FRAMES_MAX: usize = 256;
/// Most bytes of frames in the tail of a followed run.
pub(crate) const TAIL_BYTES_MAX: usize = 1024 * 1024;
/// Approximate page size of reads from the store, in bytes.
pub const PAGE_BYTES: usize = 1024 * 1024;
/// Poll interval of a reader for a run that this process has not loaded.
pub(crate) const POLL_REMOTE_MS: u64 = 250;
/// Poll interval of a reader for a run that this process has loaded.
pub(crate) const POLL_LOCAL_MS: u64 = 5000;

/// Most frames in the ring of the feed.
pub const FEED_FRAMES_MAX: usize = 4096;
/// Most bytes of envelopes in the ring of the feed.
pub(crate) const FEED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most frames in one page of a feed reader.
pub(crate) const FEED_BATCH_MAX: usize = 256;
/// Most runs in the feed's cache of run details.
pub(crate) const FEED_RUNS_MAX: usize = 8192;
/// Poll interval of the feed for appends of other processes.
pub(crate) const FEED_POLL_MS: u64 = 250;

/// Most runs whose journals a provenance query reads.
pub(crate) const TRACED_RUNS_MAX: usize = 200;
/// Most value flows that a provenance query returns.
pub(crate) const VALUE_FLOWS_MAX: usize = 20_000;
/// Newest slots that a check of a schedule reads.
pub(crate) const SCHEDULE_SLOTS_SEEN: usize = 1000;
/// Most slots of a schedule that wait for earlier runs to end.
pub(crate) const SCHEDULE_QUEUE_MAX: usize = 50;
/// Most attempts to resolve a start while the registry changes.
pub const RESOLVE_TRIES_MAX: u32 = 16;
