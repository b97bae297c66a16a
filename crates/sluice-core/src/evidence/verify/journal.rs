//! Verifies the events of one run.

use super::rows::FORGED;
use super::{Head, Place, Trouble, Verifier};
use crate::evidence::elision::{Elision, Left};
use crate::hash::Hash;
use crate::id::RunId;
use crate::journal::chain::{Chain, HASH_BYTES, Link, START, residue};
use crate::journal::wire::{self, CommitmentKind, RawEvent, RawFrame, WireError};
use crate::port::store::{Examined, Frame};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// The state of a run's chain.
#[derive(Debug)]
pub(super) struct Journal {
    link: Link,
    /// Whether an event had a hash: from then on, every event must.
    hashed: bool,
    /// Sealed heads that are not reached yet.
    heads: VecDeque<Head>,
    /// Events that audit entries refer to.
    referred: BTreeMap<u64, (Hash, Place)>,
    /// Elisions by audit entry that are not reached yet.
    elided: VecDeque<Elision>,
    /// The stand-ins found so far for the first of them.
    left: Left,
    broken: bool,
}

type Wrong = (u64, Trouble, String);

/// The hashes of all blobs that are needed to verify a frame: values moved out of events, and
/// the pinned definitions.
pub fn needs(frame: &Frame) -> Result<Vec<Hash>, WireError> {
    let mut hashes = wire::blobs_of(frame)?;
    for event in wire::raw(&frame.body)?.events {
        hashes.extend(pinned(&event));
    }
    hashes.sort_unstable();
    hashes.dedup();
    Ok(hashes)
}

/// The definitions that the first event of a run names.
pub(in crate::evidence) fn pinned(event: &RawEvent<'_>) -> Vec<Hash> {
    #[derive(Deserialize)]
    struct Started<'a> {
        #[serde(borrow)]
        definition: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        children: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    }
    if event.kind != "run.started" {
        return Vec::new();
    }
    let Ok(started) = serde_json::from_str::<Started<'_>>(event.payload) else {
        return Vec::new();
    };
    let named = started.definition.into_iter().chain(started.children.into_values());
    named.filter_map(|text| Hash::parse(&text)).collect()
}

impl Verifier {
    /// Verifies a run's next frame. `blobs` has at least those that [`needs`] lists, as far
    /// as the store has them.
    pub fn frame(&mut self, run: RunId, examined: &Examined, blobs: &BTreeMap<Hash, Vec<u8>>) {
        let Examined { frame, is_authentic } = examined;
        if self.journal.as_ref().is_none_or(|journal| journal.link.run != run) {
            self.end_run();
            self.begin_run(run);
        }
        let Some(mut journal) = self.journal.take() else { return };
        let forged = || (frame.first, Trouble::Forged, FORGED.to_owned());
        if !journal.broken
            && let Err((event, trouble, detail)) = self
                .check_frame(&mut journal, frame, blobs)
                .and_then(|()| if *is_authentic { Ok(()) } else { Err(forged()) })
        {
            journal.broken = true;
            self.report.add(Place::Event(run, event), trouble, detail);
        }
        self.journal = Some(journal);
    }

    /// Reports that the frames of a run after an event cannot be read.
    pub fn unreadable(&mut self, run: RunId, reason: &str) {
        if self.journal.as_ref().is_none_or(|journal| journal.link.run != run) {
            self.end_run();
            self.begin_run(run);
        }
        let Some(journal) = &mut self.journal else { return };
        if !journal.broken {
            journal.broken = true;
            let place = Place::Event(run, journal.link.next);
            self.report.add(place, Trouble::Damaged, reason);
        }
    }

    fn begin_run(&mut self, run: RunId) {
        self.report.runs += 1;
        let heads = self.heads.remove(&run).unwrap_or_default().into();
        let referred = self.referred.remove(&run).unwrap_or_default();
        let referred = referred.into_iter().map(|(event, hash, by)| (event, (hash, by))).collect();
        let link = Link { run, next: 1, tip: START };
        let mut elided = self.elided.remove(&run).unwrap_or_default();
        elided.sort_unstable_by_key(|elision| elision.first);
        let (elided, left) = (elided.into(), Left::default());
        let (hashed, broken) = (false, false);
        self.journal = Some(Journal { link, hashed, heads, referred, elided, left, broken });
    }

    /// Called after the last frame of the run.
    pub(super) fn end_run(&mut self) {
        let Some(journal) = self.journal.take() else { return };
        if journal.broken {
            return;
        }
        self.report.whole += 1;
        let found = self.report.count();
        self.check_end(journal);
        if self.report.count() > found {
            self.report.whole -= 1;
        }
    }

    fn check_end(&mut self, journal: Journal) {
        let Link { run, next, .. } = journal.link;
        if let Some((_, _, seal)) = journal.heads.front() {
            let detail = format!("seal {seal} covers it");
            self.report.add(Place::Event(run, next), Trouble::Missing, detail);
        } else if let Some((_, (_, by))) = journal.referred.first_key_value() {
            let detail = format!("{by} refers to it, or to a later one");
            self.report.add(Place::Event(run, next), Trouble::Missing, detail);
        } else if let Some(found) = journal.left.end() {
            let detail = "the remainder of its range does not match the audit entry".to_owned();
            self.report.add(Place::Event(run, found.first), Trouble::Changed, detail);
        }
    }

    fn check_frame(
        &mut self,
        journal: &mut Journal,
        frame: &Frame,
        blobs: &BTreeMap<Hash, Vec<u8>>,
    ) -> Result<(), Wrong> {
        let next = journal.link.next;
        let changed = |why: String| Err((next, Trouble::Changed, why));
        if frame.first > next {
            let why = format!("event {} follows", frame.first);
            return Err((next, Trouble::Missing, why));
        }
        if frame.first < next {
            return Err((frame.first, Trouble::Reordered, "it occurs twice".to_owned()));
        }
        let raw = match wire::whole(frame) {
            Ok(raw) => raw,
            Err(error @ WireError::MissingDelta(event)) => {
                return Err((event, Trouble::Missing, error.to_string()));
            }
            Err(error) => return changed(error.to_string()),
        };
        if raw.events.len() != frame.count as usize {
            return changed(format!("its frame holds {} events", raw.events.len()));
        }
        if raw.version > 1 {
            self.check_hashed(journal, &raw, &frame.chain, blobs)
        } else if journal.hashed || !frame.chain.is_empty() {
            changed("its frame has no hashes although earlier frames have them".to_owned())
        } else {
            self.report.unhashed += raw.events.len() as u64;
            self.report.events += raw.events.len() as u64;
            for event in &raw.events {
                self.check_content(journal, journal.link.next, event, blobs)?;
                journal.link.next += 1;
            }
            Ok(())
        }
    }

    fn check_hashed(
        &mut self,
        journal: &mut Journal,
        raw: &RawFrame<'_>,
        chain: &[u8],
        blobs: &BTreeMap<Hash, Vec<u8>>,
    ) -> Result<(), Wrong> {
        journal.hashed = true;
        let first = journal.link.next;
        let (hashes, rest) = chain.as_chunks::<HASH_BYTES>();
        if hashes.len() != raw.events.len() || !rest.is_empty() {
            let why = format!("its frame has {} hashes", hashes.len());
            return Err((first, Trouble::Changed, why));
        }
        for ((id, event), kept) in (first..).zip(&raw.events).zip(hashes) {
            self.report.events += 1;
            let changed = |why: String| Err((id, Trouble::Changed, why));
            let Some(committed) = event.commitment() else {
                return changed("it has no commitment".to_owned());
            };
            let hash = Chain::new(&mut journal.link).add(event.kind, raw.at_ms, committed);
            if hash.0 != *kept {
                return changed("it does not match its hash".to_owned());
            }
            while let Some((_, sealed, seal)) = journal.heads.pop_front_if(|head| head.0 <= id) {
                if sealed != hash {
                    return changed(format!(
                        "seal {seal} covers another hash at this or an earlier event"
                    ));
                }
            }
            if let Some((referred, by)) = journal.referred.remove(&id)
                && referred != hash
            {
                return changed(format!("{by} refers to another hash"));
            }
            self.check_content(journal, id, event, blobs)?;
        }
        Ok(())
    }

    /// Checks what the hash of an event does not cover by itself.
    fn check_content(
        &mut self,
        journal: &mut Journal,
        id: u64,
        event: &RawEvent<'_>,
        blobs: &BTreeMap<Hash, Vec<u8>>,
    ) -> Result<(), Wrong> {
        if matches!(event.commitment_kind, CommitmentKind::Elided(_)) {
            journal.check_elided(id, event.payload)?;
            self.report.elided += 1;
        } else if event.commitment_kind.is_erased() {
            match self.erased.get(&(journal.link.run, id)) {
                None => return Err((id, Trouble::Erased, "no audit entry says so".to_owned())),
                Some(left) if *left != residue(event.payload.as_bytes()) => {
                    let why = "its remainder does not match the audit entry".to_owned();
                    return Err((id, Trouble::Changed, why));
                }
                Some(_) => self.report.erased += 1,
            }
        }
        let moved: BTreeMap<String, String> =
            event.blobs.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let moved = moved.values().filter_map(|text| Hash::parse(text));
        for hash in moved.chain(pinned(event)) {
            match blobs.get(&hash) {
                None => {
                    return Err((
                        id,
                        Trouble::Missing,
                        format!("what it refers to, {hash}, is not there"),
                    ));
                }
                Some(body) if Hash::of(body) != hash => {
                    let why = format!("what it refers to as {hash} is something else");
                    return Err((id, Trouble::Changed, why));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl Journal {
    /// Checks that an elided event is in a range of an audit entry. At the end of the
    /// range, checks the hash of its stand-ins.
    fn check_elided(&mut self, id: u64, stand_in: &str) -> Result<(), Wrong> {
        let Some(range) = self.elided.front().filter(|range| range.first <= id) else {
            return Err((id, Trouble::Erased, "no audit entry says so".to_owned()));
        };
        self.left.add(id, stand_in);
        if id >= range.last {
            let found = std::mem::take(&mut self.left).end();
            if found.as_ref() != Some(range) {
                let why = "the remainder of its range does not match the audit entry".to_owned();
                return Err((id, Trouble::Changed, why));
            }
            self.elided.pop_front();
        }
        Ok(())
    }
}
