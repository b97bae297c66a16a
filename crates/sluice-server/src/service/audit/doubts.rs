//! What of a store from before MACs is not to be given any.

use super::verify;
use crate::refused::{Done, Failure};
use sluice_core::evidence::key::PublicKey;
use sluice_core::evidence::mac::Doubts;
use sluice_core::evidence::verify::{Place, Verifier};
use sluice_core::port::store::{Filter, Store, StoreError};

/// Runs listed at once.
const PAGE: usize = 1000;

/// Holds everything against the hashes, chains and seals it has. What does not fit is
/// named in the log and in doubt; more findings than a report holds are an error.
pub async fn find(store: &dyn Store, keys: Vec<PublicKey>) -> Done<Doubts> {
    let mut verifier = Verifier::new(keys);
    verify::ledger(store, &mut verifier).await?;
    let mut doubts = Doubts::default();
    let mut filter = Filter { limit: PAGE, ..Filter::default() };
    loop {
        let rows = store.list(filter.clone()).await?;
        let Some(last) = rows.last() else { break };
        filter.before = Some(last.run);
        for row in &rows {
            match verify::journal(store, row.run, &mut verifier).await {
                Err(Failure::Store(StoreError::Corrupt(reason))) => {
                    tracing::error!(run = %row.run, reason, "a run is not adopted");
                    doubts.runs.insert(row.run);
                }
                read => read?,
            }
        }
    }
    let report = verifier.finish();
    for finding in &report.findings {
        tracing::error!(%finding, "what does not fit its hashes is not adopted");
        match finding.place {
            Place::Seal(_) => {}
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
