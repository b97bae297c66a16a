//! Verifies everything in a store with its hashes, MACs, chains and seals.

use crate::refused::{Failure, ServiceResult};
use serde_json::{Value, json};
use sluice_core::evidence::verify::{Finding, Place, Report, Verifier, needs};
use sluice_core::id::RunId;
use sluice_core::port::inspect::StoredRun;
use sluice_core::port::store::{Store, StoreError};
use sluice_core::run::recount::Recount;
use sluice_engine::error::LoadError;
use sluice_engine::examine::Examiner;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of frames per query.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Passes the whole content of a store to a verifier. A record that cannot be read is a
/// finding, and does not stop the verification.
pub async fn read(store: &dyn Store, verifier: Verifier) -> ServiceResult<Report> {
    let mut verifier = rows(store, verifier).await?;
    let (examiner, mut counts) = (Examiner::default(), Recount::default());
    for row in verifier.runs() {
        journal(store, row.run, &mut verifier).await?;
        fold(store, &row, &examiner, &mut counts, &mut verifier).await?;
    }
    verifier.counted(&counts);
    Ok(verifier.finish())
}

/// Passes the rows of one consistent snapshot to the verifier.
async fn rows(store: &dyn Store, verifier: Verifier) -> ServiceResult<Verifier> {
    let shared = Arc::new(Mutex::new(Some(verifier)));
    let shown = Arc::clone(&shared);
    let each = move |row| {
        let mut verifier = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verifier) = verifier.as_mut() {
            verifier.row(row);
        }
    };
    store.inspect(Box::new(each)).await?;
    let verifier = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(verifier.expect("the verifier is taken only once"))
}

async fn journal(store: &dyn Store, run: RunId, verifier: &mut Verifier) -> ServiceResult<()> {
    let mut after = 0;
    loop {
        let frames = match store.examine(run, after, PAGE_BYTES).await {
            Err(StoreError::Corrupt(reason)) => {
                verifier.unreadable(run, &reason);
                return Ok(());
            }
            read => read?,
        };
        let Some(last) = frames.last().map(|one| &one.frame) else { return Ok(()) };
        // A frame that claims to end before its start must not cause an endless loop.
        after = (last.first + u64::from(last.count)).saturating_sub(1).max(after + 1);
        for examined in &frames {
            let mut blobs = BTreeMap::new();
            for hash in needs(&examined.frame).unwrap_or_default() {
                match store.blob(hash).await {
                    // The verifier reports missing blobs.
                    Err(StoreError::Corrupt(_)) => {}
                    blob => blobs.extend(blob?.map(|body| (hash, body))),
                }
            }
            verifier.frame(run, examined, &blobs);
        }
    }
}

async fn fold(
    store: &dyn Store,
    row: &StoredRun,
    examiner: &Examiner,
    counts: &mut Recount,
    verifier: &mut Verifier,
) -> ServiceResult<()> {
    match examiner.fold(store, row.run, row.version, counts).await {
        Ok(run) => verifier.folded(row, Ok(&run)),
        Err(LoadError::Store(error)) => return Err(Failure::Store(error)),
        Err(error) => verifier.folded(row, Err(&error.to_string())),
    }
    Ok(())
}

/// The report as a JSON object.
pub fn object(report: &Report) -> Value {
    let findings: Vec<Value> = report.findings.iter().map(finding).collect();
    json!({
        "ok": report.is_clean(),
        "seals": report.seals,
        "entries": report.entries,
        "runs": report.runs,
        "runs_whole": report.whole,
        "events": report.events,
        "unhashed": report.unhashed,
        "erased": report.erased,
        "elided": report.elided,
        "counters_compared": !report.uncounted,
        "findings": findings,
        "more": report.more,
    })
}

fn finding(finding: &Finding) -> Value {
    let place = match &finding.place {
        Place::Seal(number) => json!({"seal": number}),
        Place::Entry(writer, seq) => json!({"writer": writer.to_string(), "seq": seq}),
        Place::Event(run, event) => json!({"run_id": run.to_string(), "event_id": event}),
        Place::Row { table, key } => json!({"table": table, "key": key}),
    };
    json!({"place": place, "trouble": finding.trouble.as_str(), "detail": finding.detail})
}
