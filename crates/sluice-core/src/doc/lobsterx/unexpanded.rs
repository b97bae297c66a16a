//! Finds text in a command that looks like a reference but is not one.
//!
//! Only `${…}` is replaced. Other products write `{{ … }}`; expressions and `stdin` write
//! `$item` and `$id.stdout`. In a command such text is not replaced, and a shell would expand
//! it to nothing.

use super::declared_names::DeclaredNames;
use super::step::StepDraft;
use crate::doc::leaf::Table;
use crate::path::{Path, Segment};
use std::ops::Range;

/// Names that other products use for values of steps, runs or items.
const OTHERS: [&str; 8] =
    ["args", "item", "index", "steps", "inputs", "input", "outputs", "variables"];

/// Text in a command that is not replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unexpanded {
    pub(super) range: Range<usize>,
    /// The reference to write instead.
    pub(super) reference: String,
}

/// Finds all such text in a command.
pub(super) fn find(
    command: &str,
    draft: &StepDraft<'_>,
    known: &DeclaredNames<'_>,
) -> Vec<Unexpanded> {
    let mut found = braces(command, draft, known);
    found.extend(sigils(command, draft, known));
    found.sort_by_key(|one| one.range.start);
    found
}

/// `{{ path }}`, if the path begins with a known name.
fn braces(command: &str, draft: &StepDraft<'_>, known: &DeclaredNames<'_>) -> Vec<Unexpanded> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = command[from..].find("{{").map(|at| from + at) {
        let Some(length) = command[open..].find("}}") else { break };
        let end = open + length + 2;
        from = open + 2;
        let inner = command[open + 2..end - 2].trim();
        let Ok(path) = Path::parse(inner) else { continue };
        from = end;
        if is_known(path.head(), draft, known) {
            let reference =
                format!("${{{}}}", sluice_path(inner.trim_start_matches('$'), &path, known));
            found.push(Unexpanded { range: open..end, reference });
        }
    }
    found
}

fn is_known(head: &str, draft: &StepDraft<'_>, known: &DeclaredNames<'_>) -> bool {
    OTHERS.contains(&head)
        || known.steps.contains_key(head)
        || known.args.contains(head)
        || known.variables.contains(head)
        || draft.doc.inputs.iter().flat_map(Table::names).any(|name| name == head)
}

/// The path in Sluice's notation: `steps.a.x` becomes `a.x`, `inputs.x` an argument.
fn sluice_path(text: &str, path: &Path, known: &DeclaredNames<'_>) -> String {
    let below = text.split_once('.').map_or("", |(_, below)| below);
    let first = match path.rest().first() {
        Some(Segment::Key(key)) => key.as_str(),
        _ => "",
    };
    match path.head() {
        "steps" if known.steps.contains_key(first) => below.to_owned(),
        "inputs" | "input" | "variables" if known.args.contains(first) => format!("args.{below}"),
        _ => text.to_owned(),
    }
}

/// `$item`, `$args.x` and `$id.stdout`.
fn sigils(command: &str, draft: &StepDraft<'_>, known: &DeclaredNames<'_>) -> Vec<Unexpanded> {
    let mut found = Vec::new();
    for (at, _) in command.match_indices('$') {
        let quoted = command[..at].ends_with(['$', '\\']);
        let rest = &command[at + 1..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        let text = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        let (head, below) = text.split_once('.').unwrap_or((text, ""));
        let below = below.split('.').next().unwrap_or_default();
        let is_reference = match head {
            "item" | "index" => draft.doc.for_each.is_some(),
            "args" => known.args.contains(below),
            head => {
                let value = matches!(below, "stdout" | "json" | "outputs" | "approved");
                value && known.steps.contains_key(head)
            }
        };
        if is_reference && !quoted && !is_set(command, head, draft) {
            let range = at..at + 1 + text.len();
            found.push(Unexpanded { range, reference: format!("${{{text}}}") });
        }
    }
    found
}

/// Whether the command or its environment sets a shell variable of that name.
fn is_set(command: &str, name: &str, draft: &StepDraft<'_>) -> bool {
    let by_itself = |(at, _): (usize, &str)| {
        let before = command[..at].trim_end_matches(' ');
        let starts = !command[..at].ends_with(|c: char| c.is_alphanumeric() || "_$-.".contains(c));
        let assigned = command[at + name.len()..].starts_with('=');
        let looped = before.ends_with("for") || before.ends_with("read") || before.ends_with("-r");
        starts && (assigned || looped)
    };
    command.match_indices(name).any(by_itself)
        || draft.doc.env.iter().flat_map(Table::names).any(|one| one == name)
}
