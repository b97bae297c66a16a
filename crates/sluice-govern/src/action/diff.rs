//! The differences between two actions, for a person to review.

use crate::limits::{DIFFERENCE_DEPTH_MAX, DIFFERENCES_MAX};
use serde::Serialize;
use serde_json::Value;

/// A part that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The path: `constraints.tools_allow[1]`; empty for the whole action.
    pub path: String,
    /// The old value; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The differences in order. Lists are compared by index. Returns at most
/// [`DIFFERENCES_MAX`].
pub fn diff(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut found, &mut String::new(), 0, (Some(before), Some(after)));
    found
}

/// `depth` bounds the recursion: deeper values are compared as a whole.
fn compare(
    found: &mut Vec<Difference>,
    path: &mut String,
    depth: usize,
    pair: (Option<&Value>, Option<&Value>),
) {
    if pair.0 == pair.1 || found.len() >= DIFFERENCES_MAX {
        return;
    }
    let length = path.len();
    match pair {
        (Some(Value::Object(before)), Some(Value::Object(after)))
            if depth < DIFFERENCE_DEPTH_MAX =>
        {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                compare(found, path, depth + 1, (before.get(key), after.get(key)));
                path.truncate(length);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if depth < DIFFERENCE_DEPTH_MAX => {
            for at in 0..before.len().max(after.len()) {
                path.push_str(&format!("[{at}]"));
                compare(found, path, depth + 1, (before.get(at), after.get(at)));
                path.truncate(length);
            }
        }
        (before, after) => found.push(Difference {
            path: path.clone(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn each_part_that_changed_is_told_with_its_place() {
        let before = json!({"command": "ls", "tools": ["a", "b"], "env": {"A": "1"}, "cwd": null});
        let after =
            json!({"command": "rm", "tools": ["a"], "env": {"A": "1", "B": "2"}, "cwd": null});
        let seen: Vec<_> = diff(&before, &after)
            .into_iter()
            .map(|one| (one.path, one.before, one.after))
            .collect();
        assert_eq!(
            seen,
            [
                ("command".to_owned(), Some(json!("ls")), Some(json!("rm"))),
                ("tools[1]".to_owned(), Some(json!("b")), None),
                ("env.B".to_owned(), None, Some(json!("2"))),
            ]
        );
        assert_eq!(diff(&json!(1), &json!({})).len(), 1);
    }

    #[test]
    fn what_is_told_is_bounded() {
        let long: Vec<u32> = (0..10_000).collect();
        assert_eq!(diff(&json!(long), &json!([])).len(), DIFFERENCES_MAX);
        let deep = |leaf: u32| (0..120).fold(json!(leaf), |inner, _| json!([inner]));
        assert_eq!(diff(&deep(1), &deep(2)).len(), 1);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec(("[a-c]", inner), 0..3)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equal_values_do_not_differ_and_others_do(one in any_value(), other in any_value()) {
            prop_assert_eq!(diff(&one, &one), []);
            prop_assert_eq!(diff(&one, &other).is_empty(), one == other);
        }
    }
}
