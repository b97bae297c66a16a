//! Loads runs from the store by folding their journals.

use crate::definition::{Definitions, Stored};
use crate::error::LoadError;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::chain::{self, HASH_BYTES};
use sluice_core::journal::envelope::Subject;
use sluice_core::journal::event::RunStarted;
use sluice_core::journal::wire::{self, Decoded, WireError};
use sluice_core::port::store::{Frame, Loaded, Store, StoreError};
use sluice_core::run::definition::Definition;
use sluice_core::run::recount::Recount;
use sluice_core::run::snapshot;
use sluice_core::run::state::Run;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run folded from the store.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) run: Run,
    /// Events after the newest snapshot, and their size.
    pub(crate) tail_events: u64,
    pub(crate) tail_bytes: usize,
    pub(crate) snapshot_bytes: usize,
    /// Changes of counters by the events, if they are counted.
    pub(crate) counts: Option<Recount>,
}

/// Loads a run from its newest snapshot and the events after it.
pub(crate) async fn load(
    store: &dyn Store,
    definitions: &Definitions,
    id: RunId,
) -> Result<Folded, LoadError> {
    let loaded = readable(id, store.load(id).await)?;
    let loaded = loaded.ok_or(LoadError::NoRun(id))?;
    let Loaded { snapshot, frames, has_foreign_snapshot } = loaded;
    if has_foreign_snapshot {
        tracing::error!(run = %id, "the snapshot is not authentic and is ignored: the whole journal is read");
    }
    if let Some((version, bytes)) = snapshot {
        if let Some((_, started)) = snapshot::started(&bytes) {
            let stored = definition(store, definitions, id, &started).await?;
            if let Some(run) = snapshot::decode(&bytes, Arc::clone(&stored.definition))
                && run.version == version
            {
                let snapshot_bytes = bytes.len();
                let folded =
                    Folded { run, tail_events: 0, tail_bytes: 0, snapshot_bytes, counts: None };
                return fold(store, folded, &frames, u64::MAX).await;
            }
        }
        // A snapshot in another format is ignored: the journal has everything.
        return replay(store, definitions, id, u64::MAX).await;
    }
    begin(store, definitions, id, &frames, u64::MAX, None).await
}

/// Folds the whole journal up to and including the event `upto`.
pub(crate) async fn replay(
    store: &dyn Store,
    definitions: &Definitions,
    id: RunId,
    upto: u64,
) -> Result<Folded, LoadError> {
    replay_counting(store, definitions, id, upto, None).await
}

/// Like `replay`; changes of counters are added to `counts`.
pub(crate) async fn replay_counting(
    store: &dyn Store,
    definitions: &Definitions,
    id: RunId,
    upto: u64,
    counts: Option<Recount>,
) -> Result<Folded, LoadError> {
    const PAGE_BYTES: usize = 4 * 1024 * 1024;
    let first = readable(id, store.frames(id, 0, PAGE_BYTES).await)?;
    if first.is_empty() {
        return Err(LoadError::NoRun(id));
    }
    let mut folded = begin(store, definitions, id, &until(first, upto), upto, counts).await?;
    while folded.run.version < upto {
        let page = readable(id, store.frames(id, folded.run.version, PAGE_BYTES).await)?;
        if page.is_empty() {
            break;
        }
        let before = folded.run.version;
        folded = fold(store, folded, &until(page, upto), upto).await?;
        if folded.run.version == before {
            break;
        }
    }
    Ok(folded)
}

/// Frames that start no later than an event.
fn until(frames: Vec<Frame>, upto: u64) -> Vec<Frame> {
    frames.into_iter().filter(|frame| frame.first <= upto).collect()
}

async fn begin(
    store: &dyn Store,
    definitions: &Definitions,
    id: RunId,
    frames: &[Frame],
    upto: u64,
    counts: Option<Recount>,
) -> Result<Folded, LoadError> {
    let poison = |reason: String| LoadError::Poison { run: id, reason };
    let first = frames.first().ok_or_else(|| poison("its journal is empty".to_owned()))?;
    let blobs = blobs(store, id, &first.body).await?;
    let mut opened = wire::open(&first.body).map_err(|error| poison(error.to_string()))?;
    let started = opened.started(&blobs).map_err(|error| poison(error.to_string()))?;
    let stored = definition(store, definitions, id, &started).await?;
    let run = Run::new(id, Arc::clone(&stored.definition), Arc::new(started));
    let mut folded = Folded { run, tail_events: 0, tail_bytes: 0, snapshot_bytes: 0, counts };
    let decoded = opened.decode(Some(&stored.definition.plan), &blobs);
    folded.add(first, &decoded.map_err(|error| poison(error.to_string()))?, upto)?;
    fold(store, folded, &frames[1..], upto).await
}

/// Folds frames into a run, up to and including the event `upto`.
async fn fold(
    store: &dyn Store,
    mut folded: Folded,
    frames: &[Frame],
    upto: u64,
) -> Result<Folded, LoadError> {
    let id = folded.run.id;
    for frame in frames {
        let blobs = blobs(store, id, &frame.body).await?;
        let plan = Arc::clone(&folded.run.definition);
        let decoded = wire::decode(&frame.body, Some(&plan.plan), &blobs)
            .map_err(|error| LoadError::Poison { run: id, reason: error.to_string() })?;
        folded.add(frame, &decoded, upto)?;
    }
    Ok(folded)
}

impl Folded {
    /// Folds one frame, up to and including the event `upto`.
    fn add(&mut self, frame: &Frame, decoded: &Decoded, upto: u64) -> Result<(), LoadError> {
        let poison = |reason: String| Err(LoadError::Poison { run: self.run.id, reason });
        let expected = self.run.version + 1;
        if frame.first != expected {
            return poison(format!("event {expected} is missing, {} follows", frame.first));
        }
        let count = frame.count as usize;
        let hashed = [0, count * HASH_BYTES].contains(&frame.chain.len());
        if decoded.events.len() != count || !hashed {
            return poison(format!("frame {} is incomplete", frame.first));
        }
        let wanted = usize::try_from(upto.saturating_sub(frame.first - 1)).unwrap_or(usize::MAX);
        for event in decoded.events.iter().take(wanted) {
            match &mut self.counts {
                Some(counts) => counts.fold(&mut self.run, event, decoded.at_ms),
                None => self.run.evolve(event, decoded.at_ms),
            }
        }
        let held = wanted.min(count) * HASH_BYTES;
        if let Some(tip) = chain::tip(frame.chain.get(..held).unwrap_or_default()) {
            self.run.tip = tip;
        }
        self.tail_events += u64::from(frame.count);
        self.tail_bytes += frame.body.len();
        Ok(())
    }
}

/// A corrupt record does not heal: the run is quarantined instead of retried.
fn readable<T>(id: RunId, answer: Result<T, StoreError>) -> Result<T, LoadError> {
    answer.map_err(|error| match error {
        StoreError::Corrupt(reason) => LoadError::Poison { run: id, reason },
        StoreError::Unavailable(_) | StoreError::Unknown(_) => error.into(),
    })
}

/// The details of a run that its envelopes carry.
pub(crate) fn subject(run: &Run) -> Subject<'_> {
    Subject {
        run: run.id,
        workflow: &run.started.workflow,
        registered: run.started.source.is_registered(),
        definition_hash: &run.started.definition_hash,
        trace_id: &run.started.trace_id,
        graph: Some(&run.definition.plan.graph),
    }
}

/// The definition that is needed to show a run's events; `None` if it cannot be read, in
/// which case the events are shown without it.
pub(crate) async fn shown_definition(
    store: &dyn Store,
    definitions: &Definitions,
    hash: Option<Hash>,
) -> Result<Option<Arc<Definition>>, LoadError> {
    let Some(hash) = hash else { return Ok(None) };
    let found = stored(store, definitions, hash).await?;
    Ok(found.ok().map(|stored| stored.definition))
}

pub(crate) async fn first_event(store: &dyn Store, id: RunId) -> Result<RunStarted, LoadError> {
    let frames = readable(id, store.frames(id, 0, 1).await)?;
    let first = frames.first().ok_or(LoadError::NoRun(id))?;
    let blobs = blobs(store, id, &first.body).await?;
    let poison = |reason: String| LoadError::Poison { run: id, reason };
    wire::started(&first.body, &blobs).map_err(|error| poison(error.to_string()))
}

/// Loads the blobs that a frame refers to, as far as the fold needs them.
pub(crate) async fn blobs(
    store: &dyn Store,
    id: RunId,
    body: &[u8],
) -> Result<BTreeMap<Hash, Vec<u8>>, LoadError> {
    fetch(store, id, wire::blobs(body)).await
}

/// Loads the blobs that a frame and its streamed parts refer to.
pub(crate) async fn blobs_of(
    store: &dyn Store,
    id: RunId,
    frame: &Frame,
) -> Result<BTreeMap<Hash, Vec<u8>>, LoadError> {
    fetch(store, id, wire::blobs_of(frame)).await
}

async fn fetch(
    store: &dyn Store,
    id: RunId,
    hashes: Result<Vec<Hash>, WireError>,
) -> Result<BTreeMap<Hash, Vec<u8>>, LoadError> {
    let poison = |reason: String| LoadError::Poison { run: id, reason };
    let mut found = BTreeMap::new();
    for hash in hashes.map_err(|error| poison(error.to_string()))? {
        let blob = readable(id, store.blob(hash).await)?;
        found.insert(hash, blob.ok_or_else(|| poison(format!("blob {hash} is missing")))?);
    }
    Ok(found)
}

async fn definition(
    store: &dyn Store,
    definitions: &Definitions,
    id: RunId,
    started: &RunStarted,
) -> Result<Stored, LoadError> {
    let poison = |reason: String| LoadError::Poison { run: id, reason };
    let hash = started.definition.ok_or_else(|| poison("no definition is named".to_owned()))?;
    stored(store, definitions, hash).await?.map_err(poison)
}

/// Loads a definition by the hash of its stored form; the inner error says why it cannot
/// be used.
pub(crate) async fn stored(
    store: &dyn Store,
    definitions: &Definitions,
    hash: Hash,
) -> Result<Result<Stored, String>, LoadError> {
    if let Some(stored) = definitions.get(hash) {
        return Ok(Ok(stored));
    }
    let body = match store.blob(hash).await {
        Ok(Some(body)) => body,
        Ok(None) => return Ok(Err(format!("definition {hash} is missing"))),
        Err(StoreError::Corrupt(reason)) => return Ok(Err(reason)),
        Err(error) => return Err(error.into()),
    };
    let stored = Stored::read(hash, body);
    if let Ok(stored) = &stored {
        definitions.keep(stored);
    }
    Ok(stored)
}
