//! Finds blobs that no other run refers to.

use super::erase::unreadable;
use crate::refused::ServiceResult;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::wire;
use sluice_core::port::store::{Filter, Store};
use std::collections::BTreeSet;

/// Bytes of frames per query.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Runs per query.
const PAGE: usize = 1000;

/// The blobs to which no run but `run` refers. The store keeps equal bytes only once, so
/// every journal has to be read; most erasures have no blobs.
pub(super) async fn unreferenced(
    store: &dyn Store,
    run: RunId,
    mut blobs: BTreeSet<Hash>,
) -> ServiceResult<Vec<Hash>> {
    let mut filter = Filter { limit: PAGE, ..Filter::default() };
    while !blobs.is_empty() {
        let rows = store.list(filter.clone()).await?;
        let Some(last) = rows.last() else { break };
        filter.before = Some(last.run);
        for other in rows.iter().map(|row| row.run).filter(|other| *other != run) {
            let mut after = 0;
            loop {
                // A reference keeps the blob even if its frame is not authentic.
                let frames = store.examine(other, after, PAGE_BYTES).await?;
                let Some(last) = frames.last() else { break };
                after = last.frame.first + u64::from(last.frame.count) - 1;
                for one in &frames {
                    for hash in wire::blobs_of(&one.frame).map_err(unreadable(other))? {
                        blobs.remove(&hash);
                    }
                }
            }
        }
    }
    Ok(blobs.into_iter().collect())
}
