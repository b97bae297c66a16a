//! What of a store from before MACs is not to be given any.

use super::verify;
use crate::refused::Done;
use sluice_core::evidence::key::PublicKey;
use sluice_core::evidence::mac::Doubts;
use sluice_core::evidence::verify::{Place, Verifier};
use sluice_core::port::store::{Store, StoreError};

/// Holds journals and audit entries against the hashes, chains and seals they have. What
/// does not fit is named in the log and in doubt; more findings than a report holds are
/// an error.
pub async fn find(store: &dyn Store, keys: Vec<PublicKey>) -> Done<Doubts> {
    let report = verify::read(store, Verifier::new(keys).evidence()).await?;
    let mut doubts = Doubts::default();
    for finding in report.findings {
        tracing::error!(%finding, "what does not fit its hashes is not adopted");
        match finding.place {
            Place::Seal(_) | Place::Row { .. } => {}
            Place::Entry(writer, seq) => {
                let first = doubts.entries.entry(writer).or_insert(seq);
                *first = seq.min(*first);
            }
            Place::Event(run, _) => _ = doubts.runs.insert(run),
        }
    }
    if report.more > 0 {
        let why = "more of it does not fit its hashes than can be told apart";
        return Err(StoreError::Corrupt(why.to_owned()).into());
    }
    Ok(doubts)
}
