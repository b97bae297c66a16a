//! Verifies everything in a store against its hashes, MACs and seals.
//!
//! Pure, and fed piece by piece, in this order: seals kept on another machine, the rows of the
//! store as [`Inspect`](crate::port::inspect::Inspect) lists them ([`Verifier::row`]), the
//! frames of each run, starting with the first ([`Verifier::frame`]), and the folded state of
//! the run ([`Verifier::folded`]), the counters that follow from all journals
//! ([`Verifier::counted`]), then [`Verifier::finish`]. Memory grows with the runs and the
//! sealed heads, not with the journals.
//!
//! Each finding names the place of the problem. For one run, one writer and the chain of seals
//! only the first problem is reported, since later ones follow from it.

mod chain;
mod folded;
mod journal;
mod rows;
mod starts;
#[cfg(test)]
mod tests;

use super::elision::Elision;
use super::entry::START;
use super::key::PublicKey;
use super::leaf::{self, Leaf, LeafOwner};
use super::merkle;
use super::seal::Seal;
use crate::choices::choices;
use crate::hash::Hash;
use crate::id::RunId;
use crate::limits::FINDINGS_MAX;
use crate::port::inspect::Stored;
use crate::port::ledger::SealRow;
use crate::port::store::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use journal::needs;
pub(super) use journal::pinned;

/// A problem in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The place of the problem.
    pub place: Place,
    /// The kind of problem.
    pub trouble: Trouble,
    /// A description for people.
    pub detail: String,
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A seal, by its number.
    Seal(u64),
    /// An audit entry, by writer and `seq`.
    Entry(NodeId, u64),
    /// An event of a run, by its id.
    Event(RunId, u64),
    /// Any other row of the store.
    Row {
        /// As the store names it.
        table: &'static str,
        /// The values of the row's primary key.
        key: String,
    },
}

choices! {
    /// The kind of a problem.
    pub enum Trouble, "a kind of problem" {
        /// It differs from what was written.
        Changed = "changed",
        /// It was written and is not in the store.
        Missing = "missing",
        /// It is not at the position where it was written.
        Reordered = "reordered",
        /// Its payload was erased without an audit entry.
        Erased = "erased",
        /// No trusted key signed it.
        Unsigned = "unsigned",
        /// It has no valid MAC of the store's key.
        Forged = "forged",
        /// No audit entry shows where it came from.
        Inserted = "inserted",
        /// It cannot be read, or the store's structure is damaged.
        Damaged = "damaged",
        /// Two different seals with its number were signed.
        Forked = "forked",
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Seal(number) => write!(f, "seal {number}"),
            Place::Entry(writer, seq) => write!(f, "entry {seq} of {writer}"),
            Place::Event(run, event) => write!(f, "event {event} of {run}"),
            Place::Row { table, key } => write!(f, "row {key} of {table}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}: {}", self.place, self.trouble, self.detail)
    }
}

/// The scope and the findings of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Verified seals.
    pub seals: u64,
    /// Verified audit entries.
    pub entries: u64,
    /// Verified runs.
    pub runs: u64,
    /// Runs without a finding.
    pub whole: u64,
    /// Verified events.
    pub events: u64,
    /// Events of versions without hashes, which cannot be verified.
    pub unhashed: u64,
    /// Events whose payloads were erased with an audit entry.
    pub erased: u64,
    /// Stream deltas that were elided with an audit entry.
    pub elided: u64,
    /// Whether counters were not compared because a run cannot be folded.
    pub uncounted: bool,
    /// The findings, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// The number of findings beyond the limit.
    pub more: u64,
}

impl Report {
    /// Whether there is no finding.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn count(&self) -> u64 {
        self.findings.len() as u64 + self.more
    }

    fn add(&mut self, place: Place, trouble: Trouble, detail: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { place, trouble, detail: detail.into() });
        } else {
            self.more += 1;
        }
    }
}

/// What is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerifiedPart {
    Everything,
    /// Seals, audit entries and journals.
    Evidence,
    Run(RunId),
}

impl VerifiedPart {
    fn has_run(self, run: RunId) -> bool {
        !matches!(self, VerifiedPart::Run(only) if only != run)
    }

    fn has(self, row: &Stored) -> bool {
        match (self, row) {
            (VerifiedPart::Everything, _) | (_, Stored::Seal { .. } | Stored::Entry(_)) => true,
            (_, Stored::Run(row)) => self.has_run(row.run),
            (_, Stored::Frame(frame)) => self.has_run(frame.run),
            _ => false,
        }
    }
}

/// A sealed head: number, hash, and the number of the seal.
type Head = (u64, Hash, u64);

/// A verification in progress.
#[derive(Debug)]
pub struct Verifier {
    report: Report,
    /// Trusted keys; if none were given, the keys that seals name.
    keys: BTreeSet<PublicKey>,
    /// Kept seals that the store has not shown yet, by number.
    kept: BTreeMap<u64, Vec<Seal>>,
    /// Numbers for which two different seals were kept.
    forked: BTreeSet<u64>,
    /// The last verified seal: number and hash.
    seal: (u64, Hash),
    seals_broken: bool,
    /// Whether all entries were fed, and whether one of them is wrong or missing.
    entries_ended: bool,
    entries_broken: bool,
    scope: VerifiedPart,
    rows: rows::RowVerifier,
    heads: BTreeMap<RunId, Vec<Head>>,
    writers: BTreeMap<NodeId, chain::WriterChain>,
    /// Erased payloads by audit entry, with the hashes of what remains.
    erased: BTreeMap<(RunId, u64), Hash>,
    /// Elided stream deltas by audit entry.
    elided: BTreeMap<RunId, Vec<Elision>>,
    /// Events that audit entries refer to, with their hashes and the entries.
    referred: BTreeMap<RunId, Vec<(u64, Hash, Place)>>,
    journal: Option<journal::Journal>,
}

impl Verifier {
    /// Trusts seals by these keys. Without keys, the key that a seal names is trusted: that
    /// detects changes but does not prove which process sealed.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Verifier {
        Verifier {
            report: Report::default(),
            keys: keys.into_iter().collect(),
            kept: BTreeMap::new(),
            forked: BTreeSet::new(),
            seal: (0, START),
            seals_broken: false,
            entries_ended: false,
            entries_broken: false,
            scope: VerifiedPart::Everything,
            rows: rows::RowVerifier::default(),
            heads: BTreeMap::new(),
            writers: BTreeMap::new(),
            erased: BTreeMap::new(),
            elided: BTreeMap::new(),
            referred: BTreeMap::new(),
            journal: None,
        }
    }

    /// Verifies one run only; only its frames need to be fed.
    #[must_use]
    pub fn only(mut self, run: RunId) -> Verifier {
        self.scope = VerifiedPart::Run(run);
        self
    }

    /// Verifies seals, audit entries and journals only.
    #[must_use]
    pub fn evidence(mut self) -> Verifier {
        self.scope = VerifiedPart::Evidence;
        self
    }

    /// Adds a seal that was kept outside the store and that the store must contain. The
    /// same seal may be added again; a different seal with its number shows that the store
    /// was rolled back and then written to.
    pub fn kept(&mut self, seal: Seal) {
        if !self.trusts(&seal) {
            self.report.add(
                Place::Seal(seal.number),
                Trouble::Unsigned,
                "of the seals kept outside the store",
            );
            return;
        }
        let kept = self.kept.entry(seal.number).or_default();
        if kept.contains(&seal) {
            return;
        }
        if !kept.is_empty() {
            self.forked.insert(seal.number);
        }
        kept.push(seal);
    }

    /// Reports the first number for which two different seals were kept; later ones follow
    /// from it.
    fn report_fork(&mut self) {
        let forked = std::mem::take(&mut self.forked);
        let Some(first) = forked.first() else { return };
        let more = match forked.len() - 1 {
            0 => String::new(),
            more => format!(", and of {more} later numbers"),
        };
        let detail = format!(
            "two different seals of this number were kept{more}: the store was rolled back and \
             written to from there"
        );
        self.report.add(Place::Seal(*first), Trouble::Forked, detail);
    }

    fn trusts(&self, seal: &Seal) -> bool {
        seal.is_signed() && (self.keys.is_empty() || self.keys.contains(&seal.key))
    }

    /// Verifies the store's next seal.
    pub fn seal(&mut self, row: &SealRow) {
        self.report_fork();
        self.report.seals += 1;
        let next = self.seal.0 + 1;
        if let Err((number, trouble, detail)) = self.check_seal(row, next) {
            if !self.seals_broken {
                self.report.add(Place::Seal(number), trouble, detail);
            }
            self.seals_broken = true;
        }
        self.seal = (row.number, Hash::of(row.text.as_bytes()));
    }

    fn check_seal(&mut self, row: &SealRow, next: u64) -> Result<(), (u64, Trouble, &'static str)> {
        if row.number != next {
            let trouble = if row.number > next { Trouble::Missing } else { Trouble::Reordered };
            return Err((next, trouble, "another seal is in its position"));
        }
        let changed = |why| Err((next, Trouble::Changed, why));
        let Some(seal) = Seal::parse(&row.text) else {
            return changed("it is not in the canonical form of a seal");
        };
        if !self.trusts(&seal) {
            return Err((next, Trouble::Unsigned, "it is not signed by a trusted key"));
        }
        if seal.number != next {
            return Err((next, Trouble::Reordered, "its text belongs to another seal"));
        }
        let kept = self.kept.remove(&next);
        if kept.is_some_and(|kept| !kept.contains(&seal)) {
            return changed("it differs from the seal that was kept outside the store");
        }
        if seal.prev != self.seal.1 {
            return changed("it does not follow the seal before it");
        }
        let Some(leaves) = leaf::decode(&row.leaves) else {
            return changed("its leaves are not in canonical form");
        };
        let root = merkle::root(&leaf::hashes(&leaves));
        if root != seal.root || leaves.len() as u64 != seal.leaves {
            return changed("its leaves do not match the signed root");
        }
        self.remember(&leaves, next);
        Ok(())
    }

    fn remember(&mut self, leaves: &[Leaf], seal: u64) {
        for Leaf { of, number, hash } in leaves {
            let head = (*number, *hash, seal);
            self.note_head(*of, *number);
            match of {
                LeafOwner::Run(run) if self.scope.has_run(*run) => {
                    self.heads.entry(*run).or_default().push(head);
                }
                LeafOwner::Run(_) => {}
                LeafOwner::Writer(writer) => {
                    self.writers.entry(*writer).or_default().heads.push_back(head);
                }
            }
        }
    }

    /// Ends the verification: everything that was expected and not fed is missing.
    pub fn finish(mut self) -> Report {
        self.report_fork();
        self.end_run();
        self.end_entries();
        if self.scope == VerifiedPart::Everything {
            self.end_rows();
            self.end_folded();
        }
        for (run, heads) in std::mem::take(&mut self.heads) {
            let seal = heads.first().map_or(0, |head| head.2);
            let detail = format!("seal {seal} covers this run, and there is no such run");
            self.report.add(Place::Event(run, 1), Trouble::Missing, detail);
        }
        for (number, _) in std::mem::take(&mut self.kept) {
            let detail = "it was kept outside the store, and the store ends before it: was the store rolled back?";
            self.report.add(Place::Seal(number), Trouble::Missing, detail);
        }
        self.report
    }
}
