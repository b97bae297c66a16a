//! Every bound of what an engine does, in one place.

/// Most bytes of one call's answer that are kept back before they are journalled;
/// the adapter waits beyond that.
pub const KEPT_BYTES_MAX: usize = 256 * 1024;
/// Of one call, whatever the number of streams.
pub const KEPT_BYTES_MIN: usize = 4 * 1024;
/// Most bytes kept back in the whole process, until streams have the least each.
pub const KEPT_BYTES_ALL: usize = 64 * 1024 * 1024;
/// What a picture or sound counts for beside its address.
pub const MEDIA_BYTES: usize = 256;

/// Most frames of a run that are kept for those who follow it.
pub const TAIL_FRAMES_MAX: usize = 256;
/// Most bytes of frames that are kept for those who follow a run.
pub const TAIL_BYTES_MAX: usize = 1024 * 1024;
/// About how many bytes of frames a reader takes from the store at once.
pub const PAGE_BYTES: usize = 1024 * 1024;
/// How often a reader looks by itself at a run that nobody here works on.
pub const LOOK_AWAY_MS: u64 = 250;
/// How often a reader looks by itself at a run that this process works on.
pub const LOOK_HERE_MS: u64 = 5000;

/// Most frames of all runs that are kept for those who follow them all.
pub const FEED_FRAMES_MAX: usize = 4096;
/// Most bytes of envelopes that are kept for them.
pub const FEED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most frames that one of them is given at once.
pub const FEED_BATCH_MAX: usize = 256;
/// Most runs whose names are remembered for them.
pub const FEED_RUNS_MAX: usize = 8192;
/// How often what other processes have appended is looked for, if nobody tells.
pub const FEED_LOOK_MS: u64 = 250;

/// Most runs whose journals a walk along values reads.
pub const TRACED_RUNS_MAX: usize = 200;
/// Most crossings that a walk along values finds.
pub const CROSSINGS_MAX: usize = 20_000;
/// Newest slots of a schedule that a look at it takes into account.
pub const SCHEDULE_SLOTS_SEEN: usize = 1000;
/// Most slots of a schedule that wait for earlier runs to end.
pub const SCHEDULE_QUEUE_MAX: usize = 50;
/// Most times that a start is resolved because the registry changes meanwhile.
pub const RESOLVE_TRIES_MAX: u32 = 16;
