//! The lines of a definition, and the difference between two definitions.

use sluice_server::service::tools::DefinitionShown;

/// Most lines of each definition that are compared; beyond them all lines count as changed.
const LINES_MAX: usize = 2000;

/// Description and schema, line by line.
pub(super) fn text(one: &DefinitionShown) -> Vec<String> {
    let mut lines: Vec<String> =
        one.description.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    let schema = one.input_schema.clone().unwrap_or_default();
    let schema = serde_json::to_string_pretty(&schema).unwrap_or_default();
    lines.extend(schema.lines().map(str::to_owned));
    lines
}

/// The lines of both definitions that differ: `-` before accepted ones, `+` before new ones.
pub(super) fn lines(accepted: &DefinitionShown, now: &DefinitionShown) -> Vec<String> {
    let (old, new) = (text(accepted), text(now));
    let (old, new) = (old.as_slice(), new.as_slice());
    if old.len() > LINES_MAX || new.len() > LINES_MAX {
        return removed(old).chain(added(new)).collect();
    }
    let common = common_lengths(old, new);
    let (mut at_old, mut at_new, mut found) = (0, 0, Vec::new());
    while at_old < old.len() || at_new < new.len() {
        let same = old.get(at_old).is_some() && old.get(at_old) == new.get(at_new);
        if same {
            (at_old, at_new) = (at_old + 1, at_new + 1);
        } else if at_old < old.len()
            && (at_new == new.len() || common[at_old + 1][at_new] >= common[at_old][at_new + 1])
        {
            found.extend(removed(&old[at_old..=at_old]));
            at_old += 1;
        } else {
            found.extend(added(&new[at_new..=at_new]));
            at_new += 1;
        }
    }
    found
}

fn removed(lines: &[String]) -> impl Iterator<Item = String> {
    lines.iter().map(|line| format!("- {line}"))
}

fn added(lines: &[String]) -> impl Iterator<Item = String> {
    lines.iter().map(|line| format!("+ {line}"))
}

/// The length of the longest common subsequence of the rest after each pair of lines.
fn common_lengths(old: &[String], new: &[String]) -> Vec<Vec<u16>> {
    let mut lengths = vec![vec![0; new.len() + 1]; old.len() + 1];
    for (at_old, line) in old.iter().enumerate().rev() {
        for (at_new, other) in new.iter().enumerate().rev() {
            lengths[at_old][at_new] = match line == other {
                true => lengths[at_old + 1][at_new + 1] + 1,
                false => lengths[at_old + 1][at_new].max(lengths[at_old][at_new + 1]),
            };
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn definition(description: &str, schema: Value) -> DefinitionShown {
        let (digest, description) = ("00".to_owned(), Some(description.to_owned()));
        DefinitionShown { digest, description, input_schema: Some(schema) }
    }

    #[test]
    fn only_lines_that_differ_are_shown() {
        let old = definition("Sends a mail.\nTo one person.", json!({"type": "object"}));
        let new = definition(
            "Sends a mail.\nTo all.\nTo one person.",
            json!({"type": "object", "required": ["bcc"]}),
        );
        let expected = [
            "+ To all.",
            "-   \"type\": \"object\"",
            "+   \"type\": \"object\",",
            "+   \"required\": [",
            "+     \"bcc\"",
            "+   ]",
        ];
        assert_eq!(lines(&old, &new), expected);
        assert_eq!(lines(&new, &old).len(), 6);
        assert!(lines(&old, &old).is_empty());
        let other = definition("Pays.", json!({"type": "object"}));
        assert_eq!(lines(&old, &other), ["- Sends a mail.", "- To one person.", "+ Pays."]);
    }

    #[test]
    fn long_definitions_are_shown_as_a_whole() {
        let long = "a line\n".repeat(LINES_MAX + 1);
        let (old, new) = (definition(&long, json!({})), definition("short", json!({})));
        assert_eq!(lines(&old, &new).len(), text(&old).len() + text(&new).len());
    }
}
