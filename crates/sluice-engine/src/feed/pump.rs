//! Along the store's order of appends, once for all readers.

use super::Fed;
use super::about::About;
use super::ring::Ring;
use crate::engine::Inner;
use crate::error::LoadError;
use crate::limits::{FEED_LOOK_MS, PAGE_BYTES};
use crate::load::{blobs, blobs_of, first_event, shown_definition};
use sluice_core::journal::envelope::{Subject, envelopes};
use sluice_core::journal::wire;
use sluice_core::port::feed::Placed;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Reads as long as somebody wants to know.
pub(super) async fn pump(engine: Arc<Inner>) {
    let feed = &engine.feed;
    let mut place = None;
    loop {
        {
            let mut pumping = feed.pumping();
            if feed.readers.load(Ordering::Acquire) == 0 {
                *feed.ring() = Ring::default();
                *pumping = false;
                return;
            }
        }
        match go_on(&engine, &mut place).await {
            Ok(Went::On) => continue,
            Ok(Went::Nowhere) => {}
            Err(error) => tracing::warn!(%error, "the feed cannot be read yet"),
        }
        let patience = Duration::from_millis(FEED_LOOK_MS);
        // What this process appends is told at once; what others do, mostly.
        let _ = tokio::time::timeout(patience, feed.fresh.notified()).await;
    }
}

/// Whether there was something.
enum Went {
    On,
    Nowhere,
}

async fn go_on(engine: &Arc<Inner>, place: &mut Option<u64>) -> Result<Went, LoadError> {
    let feed = &engine.feed;
    let from = match *place {
        Some(place) => place,
        None => {
            let end = engine.store.feed_end().await?;
            *feed.ring() = Ring::beginning(end);
            *place.insert(end)
        }
    };
    let placed = engine.store.feed(from, PAGE_BYTES).await?;
    let Some(last) = placed.last() else { return Ok(Went::Nowhere) };
    let end = last.place;
    let fed = show(engine, placed).await?;
    feed.ring().push(fed, end);
    *place = Some(end);
    feed.end.send_replace(end);
    Ok(Went::On)
}

/// Frames as readers see them, without those that cannot be read.
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
                tracing::warn!(%run, place, reason, "a frame is left out of the feed");
            }
            Err(LoadError::NoRun(_)) => {
                tracing::warn!(%run, place, "a frame without a journal is left out of the feed");
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
    let known = engine.feed.abouts().get(run);
    let about = match known {
        Some(about) => about,
        None => {
            // A run that begins says here what it is.
            let started = if frame.first == 1 {
                let blobs = blobs(store, run, &frame.body).await?;
                wire::started(&frame.body, &blobs).map_err(|error| poison(error.to_string()))?
            } else {
                first_event(store, run).await?
            };
            let about = About {
                workflow: started.workflow.into(),
                registered: started.source.is_registered(),
                definition_hash: started.definition_hash.into(),
                trace_id: started.trace_id.into(),
                definition: started.definition,
            };
            engine.feed.abouts().keep(run, about.clone());
            about
        }
    };
    let blobs = blobs_of(store, run, &frame).await?;
    let definition = shown_definition(store, &engine.definitions, about.definition).await?;
    let subject = Subject {
        run,
        workflow: &about.workflow,
        registered: about.registered,
        definition_hash: &about.definition_hash,
        trace_id: &about.trace_id,
        graph: definition.as_ref().map(|definition| &definition.plan.graph),
    };
    let seen = envelopes(subject, &frame, &blobs);
    let seen = seen.map_err(|error| poison(error.to_string()))?;
    let seen = seen.into_iter().map(Arc::new).collect();
    Ok(Fed { place, run, workflow: about.workflow, seen })
}
