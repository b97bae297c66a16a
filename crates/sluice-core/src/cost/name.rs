//! The names of the counters: `spend|HOUR|AGENT|WORKFLOW|MODEL|PART`.
//!
//! The hour has a fixed width, so that the names of a period are adjacent.

use super::HOUR_MS;
use crate::choices::choices;
use sluice_govern::account::CounterName;
use std::borrow::Cow;
use std::sync::Arc;

/// The prefix of all names.
const KIND: &str = "spend|";
/// Digits of the hour since 1970: enough for eleven thousand years.
const HOUR_DIGITS: usize = 8;

/// What a cost is attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Of<'a> {
    /// The agent; empty if there is none.
    pub agent: &'a str,
    /// The workflow of the run.
    pub workflow: &'a str,
    /// The model; empty if it is unknown.
    pub model: &'a str,
}

choices! {
    /// The counted quantity, in the order of the names.
    pub enum Part, "a counted quantity" {
        /// Cost in micro-cents.
        Cost = "cost",
        /// Input tokens.
        Input = "in",
        /// Output tokens.
        Output = "out",
        /// Dispatches with a cost.
        Steps = "steps",
    }
}

/// The names of the counters of an hour, one for each part.
pub fn names(now_ms: u64, of: Of<'_>) -> [CounterName; 4] {
    let mut begin = hour(now_ms / HOUR_MS);
    for word in [of.agent, of.workflow, of.model] {
        begin.push('|');
        begin.push_str(&escaped(word));
    }
    begin.push('|');
    let begin: Arc<str> = begin.into();
    Part::ALL.map(|part| CounterName::part(&begin, part.as_str()))
}

/// The range of counter names of all hours that overlap a period, whose end is exclusive.
pub fn range(since_ms: u64, until_ms: u64) -> (String, String) {
    (hour(since_ms / HOUR_MS), hour(until_ms.div_ceil(HOUR_MS)))
}

/// Whether a counter counts costs.
pub fn is_spend(counter: &CounterName) -> bool {
    counter.starts_with(KIND)
}

fn hour(number: u64) -> String {
    format!("{KIND}{number:0HOUR_DIGITS$}")
}

/// A parsed counter name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spend<'a> {
    /// The start of the hour.
    pub(crate) hour_ms: u64,
    /// The agent that the dispatch was sent to.
    pub agent: Cow<'a, str>,
    /// The workflow of the run.
    pub workflow: Cow<'a, str>,
    /// The model.
    pub model: Cow<'a, str>,
    /// The counted quantity.
    pub part: Part,
}

impl Spend<'_> {
    /// Parses a name; `None` for other counters.
    pub fn parse(name: &str) -> Option<Spend<'_>> {
        let mut words = name.strip_prefix(KIND)?.split('|');
        let hour = words.next()?;
        let [agent, workflow, model] = [words.next()?, words.next()?, words.next()?].map(read);
        let part = words.next()?;
        let part = Part::parse(part)?;
        let whole = words.next().is_none() && hour.bytes().all(|byte| byte.is_ascii_digit());
        let hour_ms = hour.parse::<u64>().ok().filter(|_| whole)?.checked_mul(HOUR_MS)?;
        Some(Spend { hour_ms, agent, workflow, model, part })
    }
}

fn escaped(word: &str) -> Cow<'_, str> {
    if word.contains(['|', '%']) {
        return Cow::Owned(word.replace('%', "%25").replace('|', "%7C"));
    }
    Cow::Borrowed(word)
}

fn read(word: &str) -> Cow<'_, str> {
    if word.contains('%') {
        return Cow::Owned(word.replace("%7C", "|").replace("%25", "%"));
    }
    Cow::Borrowed(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_says_when_and_whose() {
        let of = Of { agent: "ada", workflow: "review", model: "m-1" };
        let [cost, _, _, steps] = names(1_794_700_800_001, of);
        assert_eq!(cost, "spend|00498528|ada|review|m-1|cost");
        assert_eq!(steps, "spend|00498528|ada|review|m-1|steps");
        for other in ["", "spend|", "held:a", "spend|x|a|w|m|cost", "spend|1|a|w|m|cents"] {
            assert_eq!(Spend::parse(other), None, "{other}");
        }
        assert_eq!(Spend::parse(&format!("{cost}|more")), None);
        assert!(
            is_spend(&cost) && is_spend(&cost.whole().into()) && !is_spend(&"held:spend|".into())
        );
    }

    #[test]
    fn a_range_holds_the_hours_of_its_span_and_no_other() {
        let of = Of { agent: "~", workflow: "", model: "" };
        let lies = |now_ms: u64, since_ms: u64, until_ms: u64| {
            let (after, before) = range(since_ms, until_ms);
            names(now_ms, of)
                .iter()
                .map(CounterName::whole)
                .all(|name| after < name && name < before)
        };
        let two = 2 * HOUR_MS;
        assert!(lies(two, two, two + 1) && lies(two, two + 5, two + HOUR_MS));
        assert!(!lies(two, two + HOUR_MS, two + 2 * HOUR_MS));
        assert!(!lies(two, 0, two) && !lies(two, two, two));
    }

    proptest! {
        #[test]
        fn what_is_named_is_read_back(agent: String, workflow: String, model: String, now_ms in 0..u64::MAX / 4) {
            let of = Of { agent: &agent, workflow: &workflow, model: &model };
            for (name, part) in names(now_ms, of).into_iter().zip(Part::ALL) {
                let name = name.whole();
                let read = Spend::parse(&name).expect("it is one");
                prop_assert_eq!((&*read.agent, &*read.workflow, &*read.model), (&*agent, &*workflow, &*model));
                prop_assert_eq!((read.part, read.hour_ms), (part, now_ms / HOUR_MS * HOUR_MS));
            }
        }
    }
}
