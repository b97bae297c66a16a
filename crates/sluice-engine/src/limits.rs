//! Bounds of what an engine does at once.

/// Most runs whose journals a walk along values reads.
pub const PROVENANCE_RUNS_MAX: usize = 200;
/// Most links that a walk along values finds.
pub const PROVENANCE_LINKS_MAX: usize = 20_000;
