//! Finds records of an old store that must not receive MACs.

use super::verify;
use crate::refused::ServiceResult;
use sluice_core::evidence::key::PublicKey;
use sluice_core::evidence::mac::Doubts;
use sluice_core::evidence::verify::{Place, Verifier};
use sluice_core::port::store::{Store, StoreError};

/// Verifies journals and audit entries with their hashes, chains and seals. What does not
/// match is logged and returned as doubtful. More findings than a report holds are an
/// error.
pub async fn find(store: &dyn Store, keys: Vec<PublicKey>) -> ServiceResult<Doubts> {
    let report = verify::read(store, Verifier::new(keys).evidence()).await?;
    let mut doubts = Doubts::default();
    for finding in report.findings {
        tracing::error!(%finding, "a record that does not match its hashes is not adopted");
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
        let why = "more records do not match their hashes than a report can list";
        return Err(StoreError::Corrupt(why.to_owned()).into());
    }
    Ok(doubts)
}
