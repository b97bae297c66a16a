//! The end of a run's hash chain, where the next events are linked.

use super::state::Run;
use crate::journal::chain::Link;

impl Link {
    /// The end of the chain before the last `count` events of a run, which have no hash
    /// yet.
    pub fn before(run: &Run, count: u32) -> Link {
        Link { run: run.id, next: run.version + 1 - u64::from(count), tip: run.tip }
    }
}
