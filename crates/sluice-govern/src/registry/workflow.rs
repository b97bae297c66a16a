//! Versions of workflows as rows. A version never changes.

use serde::{Deserialize, Serialize};

/// A version of a workflow. The name of the row is `name@version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowVersion {
    /// The format according to its file name: `lobsterx` or `lens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The document.
    pub text: String,
}

impl WorkflowVersion {
    /// The name of the row.
    pub fn row(name: &str, version: u64) -> String {
        format!("{name}@{version}")
    }

    /// The workflow and version in the name of a row.
    pub fn split(row: &str) -> Option<(&str, u64)> {
        let (name, version) = row.rsplit_once('@')?;
        Some((name, version.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rows_name_is_a_workflow_and_a_version() {
        assert_eq!(WorkflowVersion::split(&WorkflowVersion::row("pay", 3)), Some(("pay", 3)));
        assert_eq!(WorkflowVersion::split("pay"), None);
        assert_eq!(WorkflowVersion::split("pay@x"), None);
    }
}
