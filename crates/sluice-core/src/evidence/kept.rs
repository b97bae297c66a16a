//! Compares seals that were kept outside the store with the store at start-up.
//!
//! A process appends each seal that it makes to a file. The store must contain the last of
//! them; otherwise an older copy of the store has replaced it. Only the end of the file is
//! compared, so that an accepted rollback is not reported at each start;
//! [`Verifier::kept`](super::verify::Verifier::kept) compares the whole file.

use super::key::PublicKey;
use super::seal::Seal;
use crate::port::ledger::SealRow;

/// The store does not match the kept seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollback {
    /// The store ends before the kept seal.
    Older,
    /// The store has a different seal with that number.
    Other,
}

/// Parses a line that is a seal by one of these keys.
pub fn read(line: &str, keys: &[PublicKey]) -> Option<Seal> {
    Seal::parse(line).filter(|seal| keys.contains(&seal.key) && seal.is_signed())
}

/// The newest of the kept seals: the last line, or a seal that follows it in the chain. If two
/// processes seal shortly after each other, the later one may append its line first.
pub fn newest(kept: &[Seal]) -> Option<&Seal> {
    let mut newest = kept.last()?;
    for _ in kept {
        let hash = newest.hash();
        match kept.iter().find(|seal| seal.prev == hash) {
            Some(next) => newest = next,
            None => break,
        }
    }
    Some(newest)
}

/// Compares a kept seal with the store's first seal from that number on.
pub fn compare(kept: &Seal, found: Option<&SealRow>) -> Result<(), Rollback> {
    match found {
        Some(row) if row.number == kept.number && row.text == kept.text() => Ok(()),
        Some(_) => Err(Rollback::Other),
        None => Err(Rollback::Older),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_store::{FakeStore, WRITER, signer, stranger};
    use super::*;

    /// Seals 1 to 4 of one history, and 3 to 4 of another that begins like it.
    fn forked() -> (FakeStore, FakeStore) {
        let mut one = FakeStore::new();
        let mut other = one.clone();
        for (store, what) in [(&mut one, "agent_changed"), (&mut other, "token_changed")] {
            for _ in 0..2 {
                store.record(WRITER, what);
                store.seal();
            }
        }
        (one, other)
    }

    fn seals(store: &FakeStore) -> Vec<Seal> {
        store.seals.iter().map(|row| Seal::parse(&row.text).unwrap()).collect()
    }

    #[test]
    fn the_last_line_counts_and_what_follows_it_in_its_chain() {
        let (one, other) = forked();
        let (one, other) = (seals(&one), seals(&other));
        assert_eq!(newest(&[]), None);
        assert_eq!(newest(&one), one.last());
        // Two processes appended their lines in the other order.
        let swapped = [one[0].clone(), one[1].clone(), one[3].clone(), one[2].clone()];
        assert_eq!(newest(&swapped), Some(&one[3]));
        // After a rollback to seal 2 that was accepted, the store goes on from there.
        let accepted = [one.clone(), vec![other[2].clone()]].concat();
        assert_eq!(newest(&accepted), Some(&other[2]));
    }

    #[test]
    fn a_store_that_is_older_or_another_is_told_apart_from_its_own() {
        let (one, other) = forked();
        let kept = seals(&one);
        let found = |store: &FakeStore| store.seals.iter().find(|row| row.number >= 3).cloned();
        assert_eq!(compare(&kept[2], found(&one).as_ref()), Ok(()));
        assert_eq!(compare(&kept[2], found(&other).as_ref()), Err(Rollback::Other));
        assert_eq!(compare(&kept[2], None), Err(Rollback::Older));
        assert_eq!(compare(&kept[2], one.seals.last()), Err(Rollback::Other), "3 is missing");
    }

    #[test]
    fn lines_by_another_key_or_without_a_signature_do_not_count() {
        let line = FakeStore::new().seals[0].text.clone();
        let keys = [signer().public()];
        assert!(read(&line, &keys).is_some());
        assert!(read(&line, &[stranger()]).is_none());
        assert!(read(&line.replacen("\"leaves\":", "\"leaves\":1", 1), &keys).is_none());
        assert!(read("rubbish", &keys).is_none());
    }
}
