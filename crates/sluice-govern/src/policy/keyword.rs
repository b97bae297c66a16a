//! Keywords of policy annotations, and suggestions for misspelt ones.

use serde::Serialize;

/// Effect of a matching forbid: `@action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consequence {
    /// Blocks the action.
    Block,
    /// Requires an approval.
    RequireApproval,
    /// Warns.
    Warn,
    /// Only records the match.
    Log,
}

/// How strictly a forbid is enforced: `@enforcement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// Enforced.
    Hard,
    /// Only warns.
    Soft,
    /// Only recorded.
    Audit,
}

/// Subject of a policy: `@category`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Access of agents to gateways.
    TrustBoundary,
    /// Budgets.
    Budget,
    /// Starting runs.
    RunCreation,
    /// Deploying agents on gateways.
    Deployment,
    /// Actions of agents.
    Guardrail,
    /// Changes of registry rows.
    ConfigChange,
}

/// An enum with a fixed keyword for each value.
pub(super) trait Keyword: Copy + 'static {
    /// All keywords with their values.
    const ALL: &'static [(&'static str, Self)];

    /// Parses a keyword, or returns an error with a suggestion.
    fn read(word: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == word);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            unknown(word, &names)
        })
    }
}

impl Keyword for Consequence {
    const ALL: &'static [(&'static str, Consequence)] = &[
        ("block", Consequence::Block),
        ("require_approval", Consequence::RequireApproval),
        ("warn", Consequence::Warn),
        ("log", Consequence::Log),
    ];
}

impl Keyword for Enforcement {
    const ALL: &'static [(&'static str, Enforcement)] =
        &[("hard", Enforcement::Hard), ("soft", Enforcement::Soft), ("audit", Enforcement::Audit)];
}

impl Keyword for Category {
    const ALL: &'static [(&'static str, Category)] = &[
        ("trust_boundary", Category::TrustBoundary),
        ("budget", Category::Budget),
        ("run_creation", Category::RunCreation),
        ("deployment", Category::Deployment),
        ("guardrail", Category::Guardrail),
        ("config_change", Category::ConfigChange),
    ];
}

impl Consequence {
    /// The keyword in policies and decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Consequence::Block => "block",
            Consequence::RequireApproval => "require_approval",
            Consequence::Warn => "warn",
            Consequence::Log => "log",
        }
    }
}

impl Enforcement {
    /// The keyword in policies and decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Enforcement::Hard => "hard",
            Enforcement::Soft => "soft",
            Enforcement::Audit => "audit",
        }
    }
}

/// `"warm" is not one of block, warn; did you mean "warn"?`
pub(super) fn unknown(word: &str, names: &[&str]) -> String {
    // A long word is far from every keyword, and costs no more than a short one.
    let word: String = word.chars().take(40).collect();
    let nearest = names.iter().map(|name| (strsim::levenshtein(&word, name), *name)).min();
    let all = names.join(", ");
    match nearest {
        Some((distance, name)) if distance <= 1 + name.len() / 4 => {
            format!("\"{word}\" is not one of {all}; did you mean \"{name}\"?")
        }
        _ => format!("\"{word}\" is not one of {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_and_written_the_same() {
        for (name, meaning) in Consequence::ALL {
            assert_eq!(Consequence::read(name).unwrap().as_str(), *name);
            assert_eq!(meaning.as_str(), *name);
        }
        for (name, _) in Enforcement::ALL {
            assert_eq!(Enforcement::read(name).unwrap().as_str(), *name);
        }
    }

    #[test]
    fn a_misspelt_word_is_answered_with_the_nearest() {
        assert_eq!(
            Consequence::read("require_aproval").unwrap_err(),
            "\"require_aproval\" is not one of block, require_approval, warn, log; \
             did you mean \"require_approval\"?"
        );
        assert_eq!(
            Enforcement::read("ignored").unwrap_err(),
            "\"ignored\" is not one of hard, soft, audit"
        );
        assert!(Category::read(&"x".repeat(1_000_000)).is_err());
    }
}
