//! What happened to a run, event by event.
//!
//! The journal is the one truth: state is its fold, the live stream its tail.

pub mod event;
pub mod envelope {
    #![allow(missing_docs, reason = "x")]
    pub fn timestamp(ms: u64) -> String {
        ms.to_string()
    }
}
