//! Attacks made side by side, and what came of them.

use super::act::{Attack, Form};
use super::left_out::{self, LEFT_OUT};
use super::outcome::Outcome;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Attacks that are made at once.
const WORKERS: usize = 2;

/// What came of each attack.
pub(super) struct Tally(Vec<(Attack, Outcome)>);

impl Tally {
    /// Makes all attacks. Each worker has a store of its own.
    pub(super) fn of<A>(attacks: &[Attack], worker: impl Fn() -> A + Sync) -> Tally
    where
        A: FnMut(&Attack) -> Outcome,
    {
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    let mut make = worker();
                    while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = make(attack);
                        outcomes.lock().unwrap().push((attack.clone(), outcome));
                    }
                });
            }
        });
        Tally(outcomes.into_inner().unwrap())
    }

    fn count(&self, is: impl Fn(&Attack, &Outcome) -> bool) -> usize {
        self.0.iter().filter(|(attack, outcome)| is(attack, outcome)).count()
    }

    /// Fails where an attack was neither found nor refused and is not on the list of what
    /// is left out.
    #[expect(clippy::print_stdout, reason = "figures for people, shown with `--nocapture`")]
    pub(super) fn check(&self, name: &str, form: Form) {
        let is_missed = |outcome: &Outcome| matches!(outcome, Outcome::Missed(_));
        let found = self.count(|_, outcome| *outcome == Outcome::Found);
        let refused = self.count(|_, outcome| *outcome == Outcome::Refused);
        let impossible = self.count(|_, outcome| *outcome == Outcome::Impossible);
        let mended = self.count(|_, outcome| *outcome == Outcome::Mended);
        let left = |attack: &Attack, outcome: &Outcome| {
            is_missed(outcome) && left_out::of(attack).is_some()
        };
        let left = self.count(left);
        let made = self.0.len() - impossible;
        println!(
            "{name}, {form:?}: {made} attacks, {found} found, {refused} refused, {mended} mended by \
             the server, {left} left out; {impossible} are not possible"
        );
        if form == Form::Full {
            println!("{name}: found, though it is left out: {:?}", self.unneeded());
        }
        let mut missed: Vec<String> = self
            .0
            .iter()
            .filter(|(attack, outcome)| is_missed(outcome) && left_out::of(attack).is_none())
            .map(|(attack, outcome)| format!("{attack}: {outcome:?}"))
            .collect();
        missed.sort();
        assert!(missed.is_empty(), "{name}: not found:\n{}", missed.join("\n"));
    }

    /// Entries of the list that no attack needs.
    pub(super) fn unneeded(&self) -> Vec<String> {
        let needs = |one: &&left_out::LeftOut| {
            !self
                .0
                .iter()
                .any(|(attack, outcome)| one.has(attack) && matches!(outcome, Outcome::Missed(_)))
        };
        let all = LEFT_OUT.iter().filter(needs);
        all.map(|one| format!("{}: {}", one.table, one.what)).collect()
    }
}
