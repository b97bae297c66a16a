//! What agents answered last, as this process knows it: what it wrote itself at
//! once, what others wrote as of the last sweep.

use super::{Trust, held};
use sluice_core::port::memo::Memo;
use sluice_core::port::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Answers of each agent that are remembered here. A profile loads fewer.
const REMEMBERED_MAX: usize = 32;

/// Answers by agent, newest first.
#[derive(Default)]
pub(super) struct Recall {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_agent: BTreeMap<String, Arc<[Memo]>>,
    /// Grows with everything this process wrote.
    written: u64,
}

impl Recall {
    pub(super) fn of(&self, agent: &str) -> Arc<[Memo]> {
        held(&self.known).by_agent.get(agent).cloned().unwrap_or_default()
    }

    /// Notes what an append has made durable.
    pub(super) fn learn(&self, memos: &[Memo]) {
        if memos.is_empty() {
            return;
        }
        let mut known = held(&self.known);
        known.written += 1;
        for memo in memos {
            let before = known.by_agent.get(&memo.agent).cloned().unwrap_or_default();
            let after = std::iter::once(memo).chain(before.iter()).take(REMEMBERED_MAX).cloned();
            known.by_agent.insert(memo.agent.clone(), after.collect());
        }
    }

    /// Takes over what the store has, unless something was written meanwhile: that
    /// may not be in it, and the next look finds both.
    fn replace(&self, memos: Vec<Memo>, written: u64) {
        let mut by_agent: BTreeMap<String, Vec<Memo>> = BTreeMap::new();
        for memo in memos {
            by_agent.entry(memo.agent.clone()).or_default().push(memo);
        }
        let mut known = held(&self.known);
        if known.written == written {
            known.by_agent =
                by_agent.into_iter().map(|(agent, memos)| (agent, memos.into())).collect();
        }
    }
}

impl Trust {
    /// Asks the store what agents answered last, those that some profile names.
    pub(crate) async fn look_back(&self, store: &dyn Store) -> Result<(), StoreError> {
        let agents: Vec<String> = self.rules().fabric.remembered.iter().cloned().collect();
        if agents.is_empty() {
            return Ok(());
        }
        let written = held(&self.recall.known).written;
        let memos = store.memos(agents).await?;
        self.recall.replace(memos, written);
        Ok(())
    }

    /// An append is durable: what it said is remembered.
    pub(crate) fn remember(&self, memos: &[Memo]) {
        self.recall.learn(memos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::run::id::RunId;

    fn memo(text: &str) -> Memo {
        Memo { agent: "a".to_owned(), run: RunId(1), at_ms: 0, body: text.into() }
    }

    fn told(recall: &Recall) -> Vec<String> {
        let known = recall.of("a");
        known.iter().map(|memo| String::from_utf8_lossy(&memo.body).into_owned()).collect()
    }

    #[test]
    fn what_was_written_here_is_not_lost_to_an_older_look() {
        let recall = Recall::default();
        recall.learn(&[memo("one"), memo("two")]);
        assert_eq!(told(&recall), ["two", "one"]);
        recall.replace(vec![memo("old")], 0);
        assert_eq!(told(&recall), ["two", "one"], "the look began before it was written");
        recall.replace(vec![memo("theirs"), memo("two")], 1);
        assert_eq!(told(&recall), ["theirs", "two"]);
        recall.replace(Vec::new(), 1);
        assert_eq!(told(&recall), Vec::<String>::new(), "what was erased is gone");
    }

    #[test]
    fn only_so_many_are_remembered() {
        let recall = Recall::default();
        (0..50).for_each(|number| recall.learn(&[memo(&number.to_string())]));
        assert_eq!(recall.of("a").len(), REMEMBERED_MAX);
        assert_eq!(told(&recall)[0], "49");
    }
}
