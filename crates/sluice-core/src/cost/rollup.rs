//! Sums counters up into rows.

use super::HOUR_MS;
use super::name::{Part, Spend};
use crate::choices::choices;
use crate::limits::COST_ROWS_MAX;
use crate::money::Money;
use crate::port::ledger::Count;
use sluice_govern::account::Civil;
use std::collections::BTreeMap;

choices! {
    /// The length of time that a row covers, in UTC.
    pub enum Bucket, "a span of time" {
        /// From a full hour to the next.
        Hour = "hour",
        /// From midnight to midnight.
        Day = "day",
        /// A week from Sunday, as for budgets.
        Week = "week",
        /// A calendar month.
        Month = "month",
    }
}

choices! {
    /// How rows are grouped, besides time.
    pub enum By, "a grouping of costs" {
        /// A row for each agent that was dispatched to.
        Agent = "agent",
        /// A row for each workflow of the runs.
        Workflow = "workflow",
        /// A row for each model that answered.
        Model = "model",
    }
}

impl Bucket {
    /// The start of the bucket that contains a time.
    pub fn start_ms(self, at_ms: u64) -> u64 {
        const DAY_MS: u64 = 24 * HOUR_MS;
        let (day, civil) = (at_ms / DAY_MS, Civil::at(at_ms));
        match self {
            Bucket::Hour => at_ms / HOUR_MS * HOUR_MS,
            Bucket::Day => day * DAY_MS,
            // The first days of 1970 belong to a week that began before it.
            Bucket::Week => day.saturating_sub(u64::from(civil.days_since_sunday)) * DAY_MS,
            Bucket::Month => (day + 1 - u64::from(civil.day)) * DAY_MS,
        }
    }
}

/// The cost of one group in one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The start of the bucket, in milliseconds since 1970.
    pub start_ms: u64,
    /// The agent, if rows are grouped by agent.
    pub agent: Option<String>,
    /// The workflow, if rows are grouped by workflow.
    pub workflow: Option<String>,
    /// The model, if rows are grouped by model.
    pub model: Option<String>,
    /// The sum of what the dispatches were charged.
    pub cost: Money,
    /// The sum over the prompts of these dispatches.
    pub input_tokens: u64,
    /// The sum over the answers of these dispatches.
    pub output_tokens: u64,
    /// Dispatches with a cost.
    pub steps: u64,
}

/// There are more rows than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {COST_ROWS_MAX} rows")]
pub struct TooMany;

/// Sums up counters one by one.
#[derive(Debug, Clone)]
pub struct Rollup {
    bucket: Bucket,
    by: Vec<By>,
    rows: BTreeMap<RollupKey, Sums>,
}

type RollupKey = (u64, Option<String>, Option<String>, Option<String>);

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    cost: u64,
    input: u64,
    output: u64,
    steps: u64,
}

impl Rollup {
    /// An empty sum.
    pub fn new(bucket: Bucket, by: &[By]) -> Rollup {
        Rollup { bucket, by: by.to_vec(), rows: BTreeMap::new() }
    }

    /// Adds a counter; ignores counters that do not count costs.
    pub fn add(&mut self, counter: &Count) -> Result<(), TooMany> {
        let Some(spend) = Spend::parse(&counter.name) else { return Ok(()) };
        let named = |by: By, word: &str| self.by.contains(&by).then(|| word.to_owned());
        let key = (
            self.bucket.start_ms(spend.hour_ms),
            named(By::Agent, &spend.agent),
            named(By::Workflow, &spend.workflow),
            named(By::Model, &spend.model),
        );
        if self.rows.len() >= COST_ROWS_MAX && !self.rows.contains_key(&key) {
            return Err(TooMany);
        }
        let sums = self.rows.entry(key).or_default();
        let sum = match spend.part {
            Part::Cost => &mut sums.cost,
            Part::Input => &mut sums.input,
            Part::Output => &mut sums.output,
            Part::Steps => &mut sums.steps,
        };
        *sum = sum.saturating_add(u64::try_from(counter.count).unwrap_or(0));
        Ok(())
    }

    /// The rows, by time, then by group.
    pub fn rows(self) -> Vec<Row> {
        let row = |(key, sums): (RollupKey, Sums)| {
            let (start_ms, agent, workflow, model) = key;
            let cost = Money::from_micro_cents(sums.cost);
            let (input_tokens, output_tokens) = (sums.input, sums.output);
            Row {
                start_ms,
                agent,
                workflow,
                model,
                cost,
                input_tokens,
                output_tokens,
                steps: sums.steps,
            }
        };
        self.rows.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Of, names};

    /// 2026-11-15, a Sunday, at midnight.
    const SUNDAY_MS: u64 = 1_794_700_800_000;
    const DAY_MS: u64 = 24 * HOUR_MS;

    fn counters(now_ms: u64, agent: &str, model: &str, counts: [i64; 4]) -> Vec<Count> {
        let of = Of { agent, workflow: "review", model };
        let named = names(now_ms, of).into_iter().zip(counts);
        named.map(|(name, count)| Count { name: name.whole(), count }).collect()
    }

    fn rolled(bucket: Bucket, by: &[By], counters: &[Count]) -> Vec<String> {
        let mut rollup = Rollup::new(bucket, by);
        for counter in counters {
            rollup.add(counter).unwrap();
        }
        let word = |word: Option<String>| word.unwrap_or_else(|| "-".to_owned());
        let shown = |row: Row| {
            let start = (row.start_ms as i128 - i128::from(SUNDAY_MS)) / i128::from(HOUR_MS);
            format!(
                "{start:+}h {} {} {}: ${} {}+{} of {}",
                word(row.agent),
                word(row.workflow),
                word(row.model),
                row.cost,
                row.input_tokens,
                row.output_tokens,
                row.steps
            )
        };
        rollup.rows().into_iter().map(shown).collect()
    }

    fn some() -> Vec<Count> {
        [
            counters(SUNDAY_MS, "ada", "m", [1_000_000, 10, 20, 1]),
            counters(SUNDAY_MS + 90 * 60_000, "ada", "n", [2_000_000, 1, 2, 2]),
            counters(SUNDAY_MS + DAY_MS, "bob", "m", [4_000_000, 0, 0, 1]),
            counters(SUNDAY_MS - 1, "bob", "m", [8_000_000, 5, 5, 1]),
            vec![Count { name: "held:x".to_owned(), count: 7 }],
        ]
        .concat()
    }

    #[test]
    fn counters_become_rows_by_time_and_whatever_is_asked_for() {
        let some = some();
        assert_eq!(
            rolled(Bucket::Day, &[], &some),
            [
                "-24h - - -: $0.08 5+5 of 1",
                "+0h - - -: $0.03 11+22 of 3",
                "+24h - - -: $0.04 0+0 of 1"
            ]
        );
        assert_eq!(
            rolled(Bucket::Month, &[By::Agent], &some),
            ["-336h ada - -: $0.03 11+22 of 3", "-336h bob - -: $0.12 5+5 of 2"]
        );
        assert_eq!(
            rolled(Bucket::Week, &[By::Model, By::Workflow], &some),
            [
                "-168h - review m: $0.08 5+5 of 1",
                "+0h - review m: $0.05 10+20 of 2",
                "+0h - review n: $0.02 1+2 of 2",
            ]
        );
        assert_eq!(rolled(Bucket::Hour, &[By::Agent], &some).len(), 4);
        assert_eq!(rolled(Bucket::Hour, &[By::Agent], &[]), [""; 0]);
    }

    #[test]
    fn buckets_begin_where_calendars_say() {
        let start = |bucket: Bucket, at_ms: u64| bucket.start_ms(at_ms);
        assert_eq!(start(Bucket::Week, SUNDAY_MS - 1), SUNDAY_MS - 7 * DAY_MS);
        assert_eq!(start(Bucket::Month, SUNDAY_MS), SUNDAY_MS - 14 * DAY_MS);
        assert_eq!(start(Bucket::Month, SUNDAY_MS - 14 * DAY_MS), SUNDAY_MS - 14 * DAY_MS);
        for bucket in [Bucket::Hour, Bucket::Day, Bucket::Week, Bucket::Month] {
            assert_eq!(start(bucket, 0), 0);
            let begun = start(bucket, SUNDAY_MS + 12_345);
            assert_eq!(start(bucket, begun), begun);
        }
    }

    #[test]
    fn more_rows_than_are_answered_are_refused() {
        let mut rollup = Rollup::new(Bucket::Hour, &[]);
        for hour in 0..COST_ROWS_MAX as u64 {
            let counter = counters(hour * HOUR_MS, "a", "m", [1, 0, 0, 0]).swap_remove(0);
            assert_eq!(rollup.add(&counter), Ok(()));
            assert_eq!(rollup.add(&counter), Ok(()));
        }
        let one_more = counters(COST_ROWS_MAX as u64 * HOUR_MS, "a", "m", [1, 0, 0, 0]);
        assert_eq!(rollup.add(&one_more[0]), Err(TooMany));
    }
}
