//! Checks everything a store holds against its hashes, MACs and seals.
//!
//! Pure, and fed piece by piece, in this order: seals kept on another machine,
//! the rows of the store as [`Inspect`](crate::port::inspect::Inspect) shows them
//! ([`Verifier::row`]), the frames of each run from the first on
//! ([`Verifier::frame`]) and what they fold to ([`Verifier::folded`]), the counters
//! that the journals come to ([`Verifier::counted`]), then [`Verifier::finish`].
//! Memory grows with the runs and the heads under the seals, not with the journals.
//!
//! What is found is named by its place. Of one run, one writer and the seals
//! only the first thing wrong is named: what comes after it follows from it.

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
use crate::id::RunId;
use crate::limits::FINDINGS_MAX;
use crate::port::inspect::Stored;
use crate::port::ledger::SealRow;
use crate::port::store::{Hash, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use journal::needs;
pub(super) use journal::pinned;

/// Something is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What is wrong there.
    pub trouble: Trouble,
    /// In words.
    pub detail: String,
}

/// Where something was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A seal, by its number.
    Seal(u64),
    /// An audit entry, by writer and `seq`.
    Entry(NodeId, u64),
    /// An event, by run and id.
    Event(RunId, u64),
    /// Any other row of the store.
    Row {
        /// Its table.
        table: &'static str,
        /// Its key.
        key: String,
    },
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It is not what was written.
    Changed,
    /// It is not there.
    Missing,
    /// It is not where it was written.
    Reordered,
    /// Its payload is gone, and no audit entry says so.
    Erased,
    /// No key that is believed signed it.
    Unsigned,
    /// It has no MAC that a process with the key of the store made.
    Forged,
    /// Nothing says who wrote it.
    Inserted,
    /// It cannot be read, or the store's own structure is not whole.
    Damaged,
    /// Two different ones of its number were signed.
    Forked,
}

impl Trouble {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Trouble::Changed => "changed",
            Trouble::Missing => "missing",
            Trouble::Reordered => "reordered",
            Trouble::Erased => "erased",
            Trouble::Unsigned => "unsigned",
            Trouble::Forged => "forged",
            Trouble::Inserted => "inserted",
            Trouble::Damaged => "damaged",
            Trouble::Forked => "forked",
        }
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
        write!(f, "{} is {}: {}", self.place, self.trouble.as_str(), self.detail)
    }
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Seals.
    pub seals: u64,
    /// Audit entries.
    pub entries: u64,
    /// Runs.
    pub runs: u64,
    /// Runs of them in which nothing is wrong.
    pub whole: u64,
    /// Events.
    pub events: u64,
    /// Events older than hashes: nothing can be said of them.
    pub unhashed: u64,
    /// Events whose payloads were erased, as the audit says.
    pub erased: u64,
    /// Parts of answers that were elided, as the audit says.
    pub elided: u64,
    /// Whether counters were left out, since a run cannot be folded.
    pub uncounted: bool,
    /// What is wrong, in the order it was found.
    pub findings: Vec<Finding>,
    /// Findings beyond the bound.
    pub more: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many things are wrong.
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

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Everything,
    /// Seals, audit entries and journals.
    Evidence,
    /// One run.
    Run(RunId),
}

impl Scope {
    fn has_run(self, run: RunId) -> bool {
        !matches!(self, Scope::Run(only) if only != run)
    }

    fn has(self, row: &Stored) -> bool {
        match (self, row) {
            (Scope::Everything, _) | (_, Stored::Seal { .. } | Stored::Entry(_)) => true,
            (_, Stored::Run(row)) => self.has_run(row.run),
            (_, Stored::Frame(frame)) => self.has_run(frame.run),
            _ => false,
        }
    }
}

/// A head under a seal: number, hash, and the seal.
type Head = (u64, Hash, u64);

/// A verification under way.
#[derive(Debug)]
pub struct Verifier {
    report: Report,
    /// Keys that are believed; if none were given, those that seals name.
    keys: BTreeSet<PublicKey>,
    /// Kept seals that the store has not shown yet, by their number.
    kept: BTreeMap<u64, Vec<Seal>>,
    /// Numbers of which two different seals were kept.
    forked: BTreeSet<u64>,
    /// Where the chain of seals has come to.
    seal: (u64, Hash),
    seals_broken: bool,
    /// Whether every entry was shown, and whether one of them is wrong or missing.
    entries_ended: bool,
    entries_broken: bool,
    scope: Scope,
    rows: rows::RowVerifier,
    heads: BTreeMap<RunId, Vec<Head>>,
    writers: BTreeMap<NodeId, chain::WriterChain>,
    /// What entries say was erased, with the hashes of what is left.
    erased: BTreeMap<(RunId, u64), Hash>,
    /// Parts of answers that entries say were elided.
    elided: BTreeMap<RunId, Vec<Elision>>,
    /// Events that entries refer to: their hashes, and the entries.
    referred: BTreeMap<RunId, Vec<(u64, Hash, Place)>>,
    journal: Option<journal::Journal>,
}

impl Verifier {
    /// Believes seals by these keys; with none given, by whatever key they name,
    /// which shows changes but not who sealed.
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
            scope: Scope::Everything,
            rows: rows::RowVerifier::default(),
            heads: BTreeMap::new(),
            writers: BTreeMap::new(),
            erased: BTreeMap::new(),
            elided: BTreeMap::new(),
            referred: BTreeMap::new(),
            journal: None,
        }
    }

    /// Looks at one run only. Its frames alone need to be fed.
    #[must_use]
    pub fn only(mut self, run: RunId) -> Verifier {
        self.scope = Scope::Run(run);
        self
    }

    /// Looks at seals, audit entries and journals only.
    #[must_use]
    pub fn evidence(mut self) -> Verifier {
        self.scope = Scope::Evidence;
        self
    }

    /// A seal that was kept outside the store: the store must have it. The same seal
    /// may come again; another one of its number shows that the store was rolled back
    /// and written to from there.
    pub fn kept(&mut self, seal: Seal) {
        if !self.trusts(&seal) {
            self.report.add(
                Place::Seal(seal.number),
                Trouble::Unsigned,
                "of the seals kept elsewhere",
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

    /// Reports the first number of which two different seals were kept: later ones follow
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

    /// The store's next seal.
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
            return Err((next, trouble, "another one stands in its place"));
        }
        let changed = |why| Err((next, Trouble::Changed, why));
        let Some(seal) = Seal::parse(&row.text) else {
            return changed("it is not written as seals are");
        };
        if !self.trusts(&seal) {
            return Err((next, Trouble::Unsigned, "its signature is by no key that is believed"));
        }
        if seal.number != next {
            return Err((next, Trouble::Reordered, "its text is that of another seal"));
        }
        let kept = self.kept.remove(&next);
        if kept.is_some_and(|kept| !kept.contains(&seal)) {
            return changed("it is not the one that was kept elsewhere");
        }
        if seal.prev != self.seal.1 {
            return changed("it does not follow the seal before it");
        }
        let Some(leaves) = leaf::decode(&row.leaves) else {
            return changed("its leaves are not written as leaves are");
        };
        let root = merkle::root(&leaf::hashes(&leaves));
        if root != seal.root || leaves.len() as u64 != seal.leaves {
            return changed("its leaves are not those that were signed");
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

    /// Everything was fed. What never came is missing.
    pub fn finish(mut self) -> Report {
        self.report_fork();
        self.end_run();
        self.end_entries();
        if self.scope == Scope::Everything {
            self.end_rows();
            self.end_folded();
        }
        for (run, heads) in std::mem::take(&mut self.heads) {
            let seal = heads.first().map_or(0, |head| head.2);
            let detail = format!("seal {seal} covers this run, and there is no such run");
            self.report.add(Place::Event(run, 1), Trouble::Missing, detail);
        }
        for (number, _) in std::mem::take(&mut self.kept) {
            let detail = "it was kept elsewhere, and the store ends before it: was it rolled back?";
            self.report.add(Place::Seal(number), Trouble::Missing, detail);
        }
        self.report
    }
}
