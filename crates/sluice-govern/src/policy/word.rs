//! The words of annotations, and what is meant by a misspelt one.

use serde::Serialize;

/// What a forbid does when it matches: `@action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consequence {
    /// It blocks.
    Block,
    /// A person must agree.
    RequireApproval,
    /// It warns.
    Warn,
    /// It is recorded.
    Log,
}

/// How much a forbid counts: `@enforcement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// Fully.
    Hard,
    /// It only warns.
    Soft,
    /// It is only recorded.
    Audit,
}

/// What a policy is about: `@category`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Who may reach what.
    TrustBoundary,
    /// Money.
    Budget,
    /// Runs that begin.
    RunCreation,
    /// Agents that are put on gateways.
    Deployment,
    /// What an agent may do.
    Guardrail,
    /// Rows that change.
    ConfigChange,
}

/// A set of words, each with what it means.
pub(super) trait Word: Copy + 'static {
    /// All of them.
    const ALL: &'static [(&'static str, Self)];

    /// Reads a word, or says what is wrong with it.
    fn read(word: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == word);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            unknown(word, &names)
        })
    }
}

impl Word for Consequence {
    const ALL: &'static [(&'static str, Consequence)] = &[
        ("block", Consequence::Block),
        ("require_approval", Consequence::RequireApproval),
        ("warn", Consequence::Warn),
        ("log", Consequence::Log),
    ];
}

impl Word for Enforcement {
    const ALL: &'static [(&'static str, Enforcement)] =
        &[("hard", Enforcement::Hard), ("soft", Enforcement::Soft), ("audit", Enforcement::Audit)];
}

impl Word for Category {
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
    /// The word in policies and decisions.
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
    /// The word in policies and decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Enforcement::Hard => "hard",
            Enforcement::Soft => "soft",
            Enforcement::Audit => "audit",
        }
    }
}

/// `"warm" is none of block, warn; is "warn" meant?`
pub(super) fn unknown(word: &str, names: &[&str]) -> String {
    let nearest = names.iter().map(|name| (distance(word, name), *name)).min();
    let all = names.join(", ");
    let word: String = word.chars().take(40).collect();
    match nearest {
        Some((distance, name)) if distance <= 1 + name.len() / 4 => {
            format!("\"{word}\" is none of {all}; is \"{name}\" meant?")
        }
        _ => format!("\"{word}\" is none of {all}"),
    }
}

/// How many letters to add, drop or change; a long word is far from everything.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let from: Vec<char> = from.chars().take(2 * to.len() + 2).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let change = before + usize::from(a != b);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
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
            "\"require_aproval\" is none of block, require_approval, warn, log; \
             is \"require_approval\" meant?"
        );
        assert_eq!(
            Enforcement::read("ignored").unwrap_err(),
            "\"ignored\" is none of hard, soft, audit"
        );
        assert_eq!(distance("kitten", "sitting"), 3);
        assert!(Category::read(&"x".repeat(1_000_000)).is_err());
    }
}
