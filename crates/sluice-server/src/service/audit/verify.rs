//! Everything that is stored, held against its hashes, chains and seals.

use crate::refused::Done;
use serde_json::{Value, json};
use sluice_core::evidence::verify::{Finding, Place, Report, Verifier, needs};
use sluice_core::port::store::{Filter, Frame, Store};
use sluice_core::run::id::RunId;
use std::collections::BTreeMap;

/// Rows read at once.
const PAGE: usize = 1000;
/// Bytes of frames read at once.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Shows a verifier everything: of one run, or of all.
pub async fn read(store: &dyn Store, only: Option<RunId>, verifier: &mut Verifier) -> Done<()> {
    ledger(store, verifier).await?;
    match only {
        Some(run) => journal(store, run, verifier).await,
        None => journals(store, verifier).await,
    }
}

pub(super) async fn ledger(store: &dyn Store, verifier: &mut Verifier) -> Done<()> {
    let mut from = 1;
    loop {
        let page = store.seals(from, PAGE).await?;
        let Some(last) = page.last() else { break };
        from = last.number + 1;
        page.iter().for_each(|row| verifier.seal(row));
    }
    let mut after = 0;
    loop {
        let page = store.entries(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.place;
        page.iter().for_each(|row| verifier.entry(row));
    }
}

async fn journals(store: &dyn Store, verifier: &mut Verifier) -> Done<()> {
    let mut filter = Filter { limit: PAGE, ..Filter::default() };
    loop {
        let rows = store.list(filter.clone()).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        filter.before = Some(last.run);
        for row in &rows {
            journal(store, row.run, verifier).await?;
        }
    }
}

pub(super) async fn journal(store: &dyn Store, run: RunId, verifier: &mut Verifier) -> Done<()> {
    let mut after = 0;
    loop {
        let frames = store.examine(run, after, PAGE_BYTES).await?;
        let frames: Vec<Frame> = frames.into_iter().map(|one| one.frame).collect();
        let Some(last) = frames.last() else { return Ok(()) };
        // One that claims to end before it began must not be read for ever.
        after = (last.first + u64::from(last.count)).saturating_sub(1).max(after + 1);
        for frame in &frames {
            let mut blobs = BTreeMap::new();
            for hash in needs(frame).unwrap_or_default() {
                let blob = store.blob(hash).await?;
                blobs.extend(blob.map(|body| (hash, body)));
            }
            verifier.frame(run, frame, &blobs);
        }
    }
}

/// What was found, for programs.
pub fn object(report: &Report) -> Value {
    let findings: Vec<Value> = report.findings.iter().map(finding).collect();
    json!({
        "ok": report.is_clean(),
        "seals": report.seals,
        "entries": report.entries,
        "runs": report.runs,
        "events": report.events,
        "unhashed": report.unhashed,
        "erased": report.erased,
        "elided": report.elided,
        "findings": findings,
        "more": report.more,
    })
}

fn finding(finding: &Finding) -> Value {
    let place = match finding.place {
        Place::Seal(number) => json!({"seal": number}),
        Place::Entry(writer, seq) => json!({"writer": writer.to_string(), "seq": seq}),
        Place::Event(run, event) => json!({"run_id": run.to_string(), "event_id": event}),
    };
    json!({"place": place, "trouble": finding.trouble.as_str(), "detail": finding.detail})
}
