//! Policy files as rows.

use super::{Kind, Row};
use crate::choice::choices;
use serde::{Deserialize, Serialize};

/// Prefix of the names of shadow files.
const SHADOW_PREFIX: &str = "shadow/";

/// A policy file. The name of the row is the file name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// The set it belongs to.
    #[serde(default)]
    pub set: PolicySet,
    /// The policies.
    pub text: String,
}

choices! {
    /// Which of the two sets of policies a file belongs to.
    #[derive(Default)]
    pub enum PolicySet, "a set of policies" {
        /// The set that decides.
        #[default]
        Active = "active",
        /// A set that is evaluated and recorded, but never enforced.
        Shadow = "shadow",
    }
}

impl PolicySet {
    /// The name of the row that holds a file of this set.
    pub fn row(self, file: &str) -> String {
        match self {
            PolicySet::Active => file.to_owned(),
            PolicySet::Shadow => format!("{SHADOW_PREFIX}{file}"),
        }
    }
}

/// Names and texts of the files of a set, sorted by name. An unreadable row is an
/// error: the set would not be complete without it.
pub fn policy_files(rows: &[Row], set: PolicySet) -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    for row in rows.iter().filter(|row| row.kind == Kind::Policy) {
        let file: PolicyFile = serde_json::from_value(row.body.clone())
            .map_err(|error| format!("the policy `{}` cannot be read: {error}", row.name))?;
        if file.set == set {
            let name = row.name.strip_prefix(SHADOW_PREFIX).unwrap_or(&row.name);
            files.push((name.to_owned(), file.text));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(name: &str, body: serde_json::Value) -> Row {
        Row { kind: Kind::Policy, name: name.to_owned(), body }
    }

    #[test]
    fn each_set_has_its_own_files() {
        let rows = [
            row("b.cedar", json!({"text": "two", "set": "active"})),
            row("a.cedar", json!({"text": "one"})),
            row(&PolicySet::Shadow.row("a.cedar"), json!({"text": "three", "set": "shadow"})),
        ];
        let named = |set| policy_files(&rows, set).unwrap();
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(named(PolicySet::Active), [pair("a.cedar", "one"), pair("b.cedar", "two")]);
        assert_eq!(named(PolicySet::Shadow), [pair("a.cedar", "three")]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_left_out() {
        let rows = [row("a.cedar", json!({"text": 3}))];
        assert!(policy_files(&rows, PolicySet::Active).unwrap_err().contains("a.cedar"));
    }
}
