//! The task that reads appends in store order, once for all feed readers.

use super::Fed;
use super::ring::FeedRing;
use super::run_info::RunInfo;
use crate::engine::Inner;
use crate::error::LoadError;
use crate::limits::{FEED_POLL_MS, PAGE_BYTES};
use crate::load::{blobs, blobs_of, first_event, shown_definition};
use sluice_core::journal::envelope::{Subject, envelopes};
use sluice_core::journal::wire;
use sluice_core::port::feed::Placed;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Fills the ring while there are readers.
pub(super) async fn pump(engine: Arc<Inner>) {
    let feed = &engine.feed;
    let mut place = None;
    loop {
        {
            let mut pumping = feed.pumping();
            if feed.readers.load(Ordering::Acquire) == 0 {
                *feed.ring() = FeedRing::default();
                *pumping = false;
                return;
            }
        }
        match advance(&engine, &mut place).await {
            Ok(Advanced::Yes) => continue,
            Ok(Advanced::No) => {}
            Err(error) => tracing::warn!(%error, "the feed cannot be read yet"),
        }
        let patience = Duration::from_millis(FEED_POLL_MS);
        // Local appends notify at once; those of other nodes may not notify at all.
        let _ = tokio::time::timeout(patience, feed.fresh.notified()).await;
    }
}

/// Whether new appends were read.
enum Advanced {
    Yes,
    No,
}

async fn advance(engine: &Arc<Inner>, place: &mut Option<u64>) -> Result<Advanced, LoadError> {
    let feed = &engine.feed;
    let from = match *place {
        Some(place) => place,
        None => {
            let end = engine.store.feed_end().await?;
            *feed.ring() = FeedRing::beginning(end);
            *place.insert(end)
        }
    };
    let placed = engine.store.feed(from, PAGE_BYTES).await?;
    let Some(last) = placed.last() else { return Ok(Advanced::No) };
    let end = last.place;
    let fed = show(engine, placed).await?;
    feed.ring().push(fed, end);
    *place = Some(end);
    feed.end.send_replace(end);
    Ok(Advanced::Yes)
}

/// Builds envelopes of frames; frames that cannot be read are skipped.
pub(super) async fn show(
    engine: &Arc<Inner>,
    placed: Vec<Placed>,
) -> Result<Vec<Arc<Fed>>, LoadError> {
    let mut shown = Vec::with_capacity(placed.len());
    for placed in placed {
        let (place, run) = (placed.place, placed.run);
        match show_one(engine, placed).await {
            Ok(fed) => shown.push(Arc::new(fed)),
            Err(LoadError::Poison { reason, .. }) => {
                tracing::warn!(%run, place, reason, "an unreadable frame is skipped in the feed");
            }
            Err(LoadError::NoRun(_)) => {
                tracing::warn!(%run, place, "a frame without a journal is skipped in the feed");
            }
            Err(error @ LoadError::Store(_)) => return Err(error),
        }
    }
    Ok(shown)
}

async fn show_one(engine: &Arc<Inner>, placed: Placed) -> Result<Fed, LoadError> {
    let Placed { place, run, frame, is_authentic } = placed;
    if !is_authentic {
        let reason = format!("event {} is not authentic", frame.first);
        return Err(LoadError::Poison { run, reason });
    }
    let poison = |reason: String| LoadError::Poison { run, reason };
    let store = &*engine.store;
    let known = engine.feed.run_infos().get(run);
    let info = match known {
        Some(info) => info,
        None => {
            // The first frame of a run contains these details itself.
            let started = if frame.first == 1 {
                let blobs = blobs(store, run, &frame.body).await?;
                wire::started(&frame.body, &blobs).map_err(|error| poison(error.to_string()))?
            } else {
                first_event(store, run).await?
            };
            let info = RunInfo {
                workflow: started.workflow.into(),
                registered: started.source.is_registered(),
                definition_hash: started.definition_hash.into(),
                trace_id: started.trace_id.into(),
                definition: started.definition,
            };
            engine.feed.run_infos().keep(run, info.clone());
            info
        }
    };
    let blobs = blobs_of(store, run, &frame).await?;
    let definition = shown_definition(store, &engine.definitions, info.definition).await?;
    let subject = Subject {
        run,
        workflow: &info.workflow,
        registered: info.registered,
        definition_hash: &info.definition_hash,
        trace_id: &info.trace_id,
        graph: definition.as_ref().map(|definition| &definition.plan.graph),
    };
    let seen = envelopes(subject, &frame, &blobs);
    let seen = seen.map_err(|error| poison(error.to_string()))?;
    let seen = seen.into_iter().map(Arc::new).collect();
    Ok(Fed { place, run, workflow: info.workflow, seen })
}
