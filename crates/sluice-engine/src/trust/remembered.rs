//! Cache of the last outputs of agents: outputs of this node at once, those of other
//! nodes as of the last sweep.

use super::{GovernanceCache, lock};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Most outputs per agent. A profile loads fewer.
const REMEMBERED_MAX: usize = 32;

/// Remembered outputs by agent, newest first.
#[derive(Default)]
pub(super) struct RememberedOutputs {
    cache: Mutex<OutputCache>,
}

#[derive(Default)]
struct OutputCache {
    by_agent: BTreeMap<String, Arc<[RememberedOutput]>>,
    /// Counts the appends of this process.
    written: u64,
}

impl RememberedOutputs {
    pub(super) fn outputs(&self, agent: &str) -> Arc<[RememberedOutput]> {
        lock(&self.cache).by_agent.get(agent).cloned().unwrap_or_default()
    }

    /// Adds the outputs of a durable append.
    pub(super) fn learn(&self, remembered_outputs: &[RememberedOutput]) {
        if remembered_outputs.is_empty() {
            return;
        }
        let mut cache = lock(&self.cache);
        cache.written += 1;
        for remembered_output in remembered_outputs {
            let before = cache.by_agent.get(&remembered_output.agent).cloned().unwrap_or_default();
            let after = std::iter::once(remembered_output)
                .chain(before.iter())
                .take(REMEMBERED_MAX)
                .cloned();
            cache.by_agent.insert(remembered_output.agent.clone(), after.collect());
        }
    }

    /// Replaces the cache by what the store returned, unless this process has appended
    /// since: the answer may lack that, and the next refresh has both.
    fn replace(&self, remembered_outputs: Vec<RememberedOutput>, written: u64) {
        let mut by_agent: BTreeMap<String, Vec<RememberedOutput>> = BTreeMap::new();
        for remembered_output in remembered_outputs {
            by_agent.entry(remembered_output.agent.clone()).or_default().push(remembered_output);
        }
        let mut cache = lock(&self.cache);
        if cache.written == written {
            cache.by_agent = by_agent
                .into_iter()
                .map(|(agent, remembered_outputs)| (agent, remembered_outputs.into()))
                .collect();
        }
    }
}

impl GovernanceCache {
    /// Reads the last outputs of the agents that a profile refers to.
    pub(crate) async fn refresh_remembered(&self, store: &dyn Store) -> Result<(), StoreError> {
        let agents: Vec<String> = self.rules().fabric.remembered.iter().cloned().collect();
        if agents.is_empty() {
            return Ok(());
        }
        let written = lock(&self.remembered.cache).written;
        let remembered_outputs = store.remembered_outputs(agents).await?;
        self.remembered.replace(remembered_outputs, written);
        Ok(())
    }

    /// Adds the outputs of a durable append.
    pub(crate) fn remember(&self, remembered_outputs: &[RememberedOutput]) {
        self.remembered.learn(remembered_outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::id::RunId;

    fn remembered_output(text: &str) -> RememberedOutput {
        RememberedOutput { agent: "a".to_owned(), run: RunId(1), at_ms: 0, body: text.into() }
    }

    fn bodies(remembered: &RememberedOutputs) -> Vec<String> {
        let cache = remembered.outputs("a");
        cache
            .iter()
            .map(|remembered_output| String::from_utf8_lossy(&remembered_output.body).into_owned())
            .collect()
    }

    #[test]
    fn a_local_append_is_not_lost_to_an_older_refresh() {
        let remembered = RememberedOutputs::default();
        remembered.learn(&[remembered_output("one"), remembered_output("two")]);
        assert_eq!(bodies(&remembered), ["two", "one"]);
        remembered.replace(vec![remembered_output("old")], 0);
        assert_eq!(bodies(&remembered), ["two", "one"], "the refresh began before the append");
        remembered.replace(vec![remembered_output("theirs"), remembered_output("two")], 1);
        assert_eq!(bodies(&remembered), ["theirs", "two"]);
        remembered.replace(Vec::new(), 1);
        assert_eq!(bodies(&remembered), Vec::<String>::new(), "erased outputs are gone");
    }

    #[test]
    fn the_number_of_outputs_is_bounded() {
        let remembered = RememberedOutputs::default();
        (0..50).for_each(|number| remembered.learn(&[remembered_output(&number.to_string())]));
        assert_eq!(remembered.outputs("a").len(), REMEMBERED_MAX);
        assert_eq!(bodies(&remembered)[0], "49");
    }
}
