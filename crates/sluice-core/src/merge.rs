//! Merges several values for one input.

use crate::choices::choices;
use crate::value::text;
use serde_json::{Map, Value};

choices! {
    /// How several values for one label are merged.
    #[derive(Default)]
    pub enum Strategy, "a merge strategy" {
        /// The last value is used.
        #[default]
        LastWriteWins = "last_write_wins",
        /// Their texts, joined with a blank line.
        Concat = "concat",
        /// A JSON array of the values.
        Array = "array",
        /// A JSON object of the values, with the labels of their sources as keys.
        JsonObject = "json_object",
    }
}

impl Strategy {
    /// Applies the strategy, also to a single value: an array stays an array if only one of
    /// several sources completed.
    ///
    /// If two sources have the same label, the later one is used (`json_object`).
    fn combine(self, values: &[(&str, &Value)]) -> Option<Value> {
        let (_, last) = values.last()?;
        Some(match self {
            Strategy::LastWriteWins => (*last).clone(),
            Strategy::Concat => {
                let texts: Vec<_> = values.iter().map(|(_, value)| text(value)).collect();
                Value::String(texts.join("\n\n"))
            }
            Strategy::Array => values.iter().map(|(_, value)| (*value).clone()).collect(),
            Strategy::JsonObject => {
                let entry =
                    |(label, value): &(&str, &Value)| ((*label).to_owned(), (*value).clone());
                Value::Object(values.iter().map(entry).collect::<Map<_, _>>())
            }
        })
    }
}

/// The strategy for one label: that of the first edge, else of the target, else the default.
pub fn choose(first_edge: Option<Strategy>, target: Option<Strategy>) -> Strategy {
    first_edge.or(target).unwrap_or_default()
}

/// Merges values, each with the label of its source; `None` if there are none.
///
/// `sources` is the number of wired sources, with or without a value: a single source needs no
/// merging, and an array stays an array if only one of several sources completed.
pub fn merge(strategy: Strategy, sources: usize, values: &[(&str, &Value)]) -> Option<Value> {
    let strategy = if sources == 1 { Strategy::LastWriteWins } else { strategy };
    strategy.combine(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice as _;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};
    use serde_json::json;

    #[test]
    fn each_strategy_makes_one_value_of_several() {
        let values = [json!("first"), json!({"a": 1}), json!(null), json!(4)];
        let labels = ["one", "two", "three", "four"];
        let pairs: Vec<_> = labels.into_iter().zip(&values).collect();
        for (strategy, expected) in [
            (Strategy::LastWriteWins, json!(4)),
            (Strategy::Concat, json!("first\n\n{\"a\":1}\n\n\n\n4")),
            (Strategy::Array, json!(["first", {"a": 1}, null, 4])),
            (
                Strategy::JsonObject,
                json!({"one": "first", "two": {"a": 1}, "three": null, "four": 4}),
            ),
        ] {
            assert_eq!(merge(strategy, pairs.len(), &pairs), Some(expected), "{strategy}");
        }
    }

    #[test]
    fn one_value_is_not_merged_and_none_is_none() {
        let value = json!(7);
        for (_, strategy) in Strategy::WORDS {
            assert_eq!(merge(*strategy, 1, &[("a", &value)]), Some(json!(7)));
            assert_eq!(merge(*strategy, 0, &[]), None);
            assert_eq!(strategy.combine(&[]), None);
        }
    }

    #[test]
    fn combining_keeps_the_shape_for_a_single_value_too() {
        let value = json!(7);
        for (strategy, expected) in [
            (Strategy::LastWriteWins, json!(7)),
            (Strategy::Concat, json!("7")),
            (Strategy::Array, json!([7])),
            (Strategy::JsonObject, json!({"a": 7})),
        ] {
            assert_eq!(strategy.combine(&[("a", &value)]), Some(expected));
        }
    }

    #[test]
    fn of_two_sources_with_one_label_the_later_counts() {
        let (first, second) = (json!(1), json!(2));
        let merged = merge(Strategy::JsonObject, 2, &[("a", &first), ("a", &second)]);
        assert_eq!(merged, Some(json!({"a": 2})));
    }

    #[test]
    fn the_first_edge_chooses_then_the_target_then_the_default() {
        use Strategy::{Array, Concat, LastWriteWins};
        assert_eq!(choose(Some(Array), Some(Concat)), Array);
        assert_eq!(choose(None, Some(Concat)), Concat);
        assert_eq!(choose(None, None), LastWriteWins);
    }

    proptest! {
        #[test]
        fn arrays_keep_length_and_order(numbers in prop::collection::vec(any::<i64>(), 2..9)) {
            let values: Vec<Value> = numbers.iter().copied().map(Value::from).collect();
            let pairs: Vec<_> = values.iter().map(|value| ("s", value)).collect();
            prop_assert_eq!(merge(Strategy::Array, pairs.len(), &pairs), Some(Value::Array(values.clone())));
        }

        #[test]
        fn concatenation_is_a_join(texts in prop::collection::vec(".{0,5}", 2..9)) {
            let values: Vec<Value> = texts.iter().cloned().map(Value::from).collect();
            let pairs: Vec<_> = values.iter().map(|value| ("s", value)).collect();
            prop_assert_eq!(merge(Strategy::Concat, pairs.len(), &pairs), Some(texts.join("\n\n").into()));
        }

        #[test]
        fn one_value_is_itself_under_every_strategy(text in ".{0,5}", at in 0usize..4) {
            let value = Value::from(text);
            prop_assert_eq!(merge(Strategy::WORDS[at].1, 1, &[("s", &value)]), Some(value.clone()));
        }
    }
}
