//! The feed over all journals.

use super::{MemoryState, MemoryStore};
use crate::limits::FEED_FRAMES_MAX;
use sluice_core::port::feed::{Feed, Placed};
use sluice_core::port::store::Answer;

impl Feed for MemoryStore {
    fn feed(&self, after: u64, bytes_max: usize) -> Answer<'_, Vec<Placed>> {
        Box::pin(async move { Ok(self.read(|state, _| state.feed(after, bytes_max))) })
    }

    fn feed_end(&self) -> Answer<'_, u64> {
        Box::pin(async move { Ok(self.read(|state, _| state.order.len() as u64)) })
    }
}

impl MemoryState {
    fn feed(&self, after: u64, bytes_max: usize) -> Vec<Placed> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        let rest = super::seal::tail(&self.order, after).take(FEED_FRAMES_MAX);
        for (ordered, place) in rest.zip(after.saturating_add(1)..) {
            let record = self.runs.get(&ordered.run).expect("what has a frame was created");
            let frame = record.frames[ordered.frame].clone();
            bytes += frame.body.len() + frame.beside.len();
            if bytes > bytes_max && !page.is_empty() {
                break;
            }
            page.push(Placed { place, run: ordered.run, frame, is_authentic: true });
        }
        page
    }
}
