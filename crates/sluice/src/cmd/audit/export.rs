//! `sluice audit export`: a run's packet.

use super::seal::newest;
use crate::Exit;
use crate::cli::audit::Export;
use crate::local::Local;
use crate::out::Out;
use anyhow::Context as _;
use serde_json::Value;
use sluice_core::canonical;
use sluice_core::evidence::leaf::{self, Whose};
use sluice_core::evidence::packet::Packet;
use sluice_core::evidence::verify::needs;
use sluice_core::journal::wire;
use sluice_core::port::ledger::SealRow;
use sluice_core::port::store::{Frame, Hash, Store};
use sluice_core::run::id::RunId;
use sluice_govern::policy;
use sluice_govern::registry::{PolicySet, policy_files};
use sluice_server::refused::{NOT_SEALED, Refused};
use sluice_server::service::find;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Bytes of frames read at once.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Seals read at once; each may hold megabytes of leaves.
const PAGE: u64 = 16;

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let run = find::run(&local, &args.run).await?.run;
    local.engine.seal().await?;
    let store = &*local.store;
    let frames = frames(store, run).await?;
    let Some(row) = covering(store, run).await? else {
        let message = format!("no seal covers {run}");
        let remedy = "what an older Sluice wrote has no hashes; a run goes under a seal with its \
                      next event";
        return Err(Refused::new(NOT_SEALED, message, remedy).into());
    };
    let values = values(store, &frames).await?;
    let packet = Packet::gather(run, &frames, &row, |hash| values.get(&hash).cloned())
        .with_context(|| format!("{run} makes no packet"))?;
    // A packet that its reader would refuse is of no use to anybody.
    let lacking = packet.verify(&[]).with_context(|| {
        format!("the packet of {run} does not hold; `sluice audit verify` says what is broken")
    })?;
    local.close().await;
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{run}.packet")));
    std::fs::write(&path, format!("{}\n", packet.text()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let (events, seal) = (packet.events.len(), packet.seal.number);
    out.print(&format!("{}: {run}, {events} events, under seal {seal}\n", path.display()))?;
    if !lacking.is_empty() {
        let count = lacking.len();
        out.note(&format!("{count} policy sets that decisions name are not in this store"))?;
    }
    Ok(Exit::Done)
}

async fn frames(store: &dyn Store, run: RunId) -> anyhow::Result<Vec<Frame>> {
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
async fn covering(store: &dyn Store, run: RunId) -> anyhow::Result<Option<SealRow>> {
    let Some(newest) = newest(store).await? else { return Ok(None) };
    let covers = |row: &SealRow| {
        let leaves = leaf::decode(&row.leaves).unwrap_or_default();
        leaves.binary_search_by_key(&Whose::Run(run), |leaf| leaf.of).is_ok()
    };
    let mut upto = newest.number;
    while upto > 0 {
        let from = upto.saturating_sub(PAGE - 1).max(1);
        let page = store.seals(from, usize::try_from(PAGE)?).await?;
        let found = page.into_iter().rev().find(|row| row.number <= upto && covers(row));
        if found.is_some() {
            return Ok(found);
        }
        upto = from - 1;
    }
    Ok(None)
}

/// Everything that the events of a run refer to by hash, as far as it is here.
async fn values(store: &dyn Store, frames: &[Frame]) -> anyhow::Result<BTreeMap<Hash, String>> {
    let mut values = BTreeMap::new();
    let mut sets = BTreeSet::new();
    for frame in frames {
        for hash in needs(frame)? {
            if let Some(body) = store.blob(hash).await? {
                values.insert(hash, String::from_utf8(body)?);
            }
        }
        for event in wire::raw(&frame.body)?.events {
            if event.kind == "governance.decided" {
                sets.extend(named(event.payload));
            }
        }
    }
    values.extend(policies(store, sets).await?);
    Ok(values)
}

/// The policy sets that a decision names.
fn named(payload: &str) -> Vec<Hash> {
    let decision: Value = serde_json::from_str(payload).unwrap_or_default();
    let named = [&decision["policyHash"], &decision["shadow"]["policyHash"]];
    named.into_iter().filter_map(|hash| Hash::parse(hash.as_str()?)).collect()
}

/// Policy sets by hash: the default one, and those of every epoch, newest first.
async fn policies(
    store: &dyn Store,
    mut wanted: BTreeSet<Hash>,
) -> anyhow::Result<BTreeMap<Hash, String>> {
    let mut found = BTreeMap::new();
    let mut take = |files: &[(String, String)], wanted: &mut BTreeSet<Hash>| {
        let text = canonical::to_string(&files);
        let hash = Hash::of(text.as_bytes());
        if wanted.remove(&hash) {
            found.insert(hash, text);
        }
    };
    let (name, text) = policy::DEFAULT;
    take(&[(name.to_owned(), text.to_owned())], &mut wanted);
    let mut at = None;
    while !wanted.is_empty() {
        let rows = store.registry(at).await?;
        for set in [PolicySet::Active, PolicySet::Shadow] {
            take(&policy_files(&rows.rows, set).unwrap_or_default(), &mut wanted);
        }
        if rows.epoch == 0 {
            break;
        }
        at = Some(rows.epoch - 1);
    }
    Ok(found)
}
