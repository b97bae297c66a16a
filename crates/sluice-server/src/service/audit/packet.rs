//! The packet of a run: everything that is needed to verify it offline.

use crate::refused::{Failure, NOT_SEALED, RUN_UNREADABLE, Refused, ServiceResult};
use crate::service::Service;
use serde_json::Value;
use sluice_core::canonical;
use sluice_core::evidence::leaf::{self, LeafOwner};
use sluice_core::evidence::packet::Packet;
use sluice_core::evidence::verify::needs;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::wire;
use sluice_core::port::ledger::SealRow;
use sluice_core::port::store::{Frame, Store};
use sluice_govern::policy;
use sluice_govern::registry::{PolicySet, policy_files};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of frames per query.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Seals per query; each may hold megabytes of leaves.
const PAGE: u64 = 16;

/// Builds the packet of a run. Also returns how many policy sets are missing from it.
pub async fn packet(service: &Service, run: RunId) -> ServiceResult<(Packet, usize)> {
    service.engine.seal().await?;
    let store = &*service.store;
    let frames = frames(store, run).await?;
    let Some(row) = covering(store, run).await? else {
        let message = format!("no seal covers {run}");
        let remedy = "records of an older Sluice have no hashes; a run is sealed with its next \
                      event";
        return Err(Refused::new(NOT_SEALED, message, remedy).into());
    };
    let values = values(store, &frames).await?;
    let packet =
        Packet::gather(run, &frames, &row, |hash| values.get(&hash).cloned()).map_err(broken)?;
    // A packet that its reader would refuse is useless.
    let lacking = packet.verify(&[]).map_err(broken)?.len();
    Ok((packet, lacking))
}

/// The stored records do not make a valid packet.
fn broken(error: impl std::fmt::Display) -> Failure {
    let message = format!("no packet can be made of the run: {error}");
    Refused::new(RUN_UNREADABLE, message, "`sluice audit verify` lists what is broken").into()
}

/// The newest seal.
pub async fn newest(store: &dyn Store) -> ServiceResult<Option<SealRow>> {
    let Some((number, _)) = store.unsealed(1).await?.last else { return Ok(None) };
    Ok(store.seals(number, 1).await?.into_iter().next())
}

async fn frames(store: &dyn Store, run: RunId) -> ServiceResult<Vec<Frame>> {
    let mut frames: Vec<Frame> = Vec::new();
    loop {
        let after = frames.last().map_or(0, |last| last.first + u64::from(last.count) - 1);
        let page = store.frames(run, after, PAGE_BYTES).await?;
        if page.is_empty() {
            return Ok(frames);
        }
        frames.extend(page);
    }
}

/// The newest seal that covers a run.
async fn covering(store: &dyn Store, run: RunId) -> ServiceResult<Option<SealRow>> {
    let Some(newest) = newest(store).await? else { return Ok(None) };
    let covers = |row: &SealRow| {
        let leaves = leaf::decode(&row.leaves).unwrap_or_default();
        leaves.binary_search_by_key(&LeafOwner::Run(run), |leaf| leaf.of).is_ok()
    };
    let mut upto = newest.number;
    while upto > 0 {
        let from = upto.saturating_sub(PAGE - 1).max(1);
        let page = store.seals(from, usize::try_from(PAGE).unwrap_or(1)).await?;
        let found = page.into_iter().rev().find(|row| row.number <= upto && covers(row));
        if found.is_some() {
            return Ok(found);
        }
        upto = from - 1;
    }
    Ok(None)
}

/// Everything that the events of a run refer to by hash, as far as the store has it.
async fn values(store: &dyn Store, frames: &[Frame]) -> ServiceResult<BTreeMap<Hash, String>> {
    let mut values = BTreeMap::new();
    let mut sets = BTreeSet::new();
    for frame in frames {
        for hash in needs(frame).map_err(broken)? {
            if let Some(body) = store.blob(hash).await? {
                values.insert(hash, String::from_utf8(body).map_err(broken)?);
            }
        }
        for event in wire::raw(&frame.body).map_err(broken)?.events {
            if event.kind == "governance.decided" {
                sets.extend(referenced_sets(event.payload));
            }
        }
    }
    values.extend(policies(store, sets).await?);
    Ok(values)
}

/// The policy sets that a decision refers to.
fn referenced_sets(payload: &str) -> Vec<Hash> {
    let decision: Value = serde_json::from_str(payload).unwrap_or_default();
    let named = [&decision["policyHash"], &decision["shadow"]["policyHash"]];
    named.into_iter().filter_map(|hash| Hash::parse(hash.as_str()?)).collect()
}

/// Policy sets by hash: the default set, and those of every epoch, newest first.
async fn policies(
    store: &dyn Store,
    mut wanted: BTreeSet<Hash>,
) -> ServiceResult<BTreeMap<Hash, String>> {
    let mut found = BTreeMap::new();
    let mut collect = |files: &[(String, String)], wanted: &mut BTreeSet<Hash>| {
        let text = canonical::to_string(&files);
        let hash = Hash::of(text.as_bytes());
        if wanted.remove(&hash) {
            found.insert(hash, text);
        }
    };
    let (name, text) = policy::DEFAULT;
    collect(&[(name.to_owned(), text.to_owned())], &mut wanted);
    let mut at = None;
    while !wanted.is_empty() {
        let rows = store.registry(at).await?;
        for set in [PolicySet::Active, PolicySet::Shadow] {
            collect(&policy_files(&rows.rows, set).unwrap_or_default(), &mut wanted);
        }
        if rows.epoch == 0 {
            break;
        }
        at = Some(rows.epoch - 1);
    }
    Ok(found)
}
