//! Keywords of policy annotations, and suggestions for misspelt ones.

use crate::choice::{Choice, choices, find};

choices! {
    /// Effect of a matching forbid: `@action`.
    pub enum Consequence, "an action of a policy" {
        /// Blocks the action.
        Block = "block",
        /// The action waits until enough people approve.
        RequireApproval = "require_approval",
        /// The action proceeds; the decision records a warning.
        Warn = "warn",
        /// Only records the match.
        Log = "log",
    }
}

choices! {
    /// How strictly a forbid is enforced: `@enforcement`.
    pub enum Enforcement, "an enforcement" {
        /// Enforced.
        Hard = "hard",
        /// Only warns.
        Soft = "soft",
        /// Only recorded.
        Audit = "audit",
    }
}

choices! {
    /// Subject of a policy: `@category`.
    pub enum Category, "a category of policies" {
        /// Access of agents to gateways.
        TrustBoundary = "trust_boundary",
        /// Applies when a budget would stop the action.
        Budget = "budget",
        /// Starting runs.
        RunCreation = "run_creation",
        /// Deploying agents on gateways.
        Deployment = "deployment",
        /// Actions of agents.
        Guardrail = "guardrail",
        /// Changes of registry rows.
        ConfigChange = "config_change",
    }
}

/// Parses a keyword, or returns an error with a suggestion.
pub(super) fn read<T: Choice>(word: &str) -> Result<T, String> {
    find(word).ok_or_else(|| unknown(word, T::NAMES))
}

/// `"warm" is not one of block, warn; did you mean "warn"?`
pub(super) fn unknown(word: &str, names: &[&str]) -> String {
    // A long word is far from every keyword, and costs no more than a short one.
    let word: String = word.chars().take(40).collect();
    let all = names.join(", ");
    match nearest(&word, names) {
        Some(name) => format!("\"{word}\" is not one of {all}; did you mean \"{name}\"?"),
        None => format!("\"{word}\" is not one of {all}"),
    }
}

/// The name that a misspelt one most likely means.
pub(super) fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let distances = names.iter().map(|name| (strsim::levenshtein(word, name), *name));
    let (distance, name) = distances.min()?;
    (distance <= 1 + name.len() / 4).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_answered_with_the_nearest() {
        assert_eq!(
            read::<Consequence>("require_aproval").unwrap_err(),
            "\"require_aproval\" is not one of block, require_approval, warn, log; \
             did you mean \"require_approval\"?"
        );
        assert_eq!(
            read::<Enforcement>("ignored").unwrap_err(),
            "\"ignored\" is not one of hard, soft, audit"
        );
        assert!(read::<Category>(&"x".repeat(1_000_000)).is_err());
    }
}
