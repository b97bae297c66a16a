//! The naming rules.

use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::read::{DocumentReader, PathPart};
use crate::limits::{EDGE_ID_CHARS_MAX, NAME_CHARS_MAX};
use crate::span::{Span, Spanned};
use crate::visible::hides;
use sluice_govern::flow_label::{CHARS_MAX, is_name};
use std::collections::BTreeSet;

/// Names with a meaning in expressions, which no step may have.
pub(crate) const RESERVED: &[&str] = &[
    "args", "outputs", "item", "index", "value", "and", "or", "not", "in", "true", "false", "null",
];

/// Checks a workflow's name: kebab-case.
pub(crate) fn kebab(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    let rule =
        ("in kebab-case", "lower-case letters, digits and single dashes, a letter first", '-');
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && !name.contains("--")
        && name.bytes().all(|b| b == b'-' || b.is_ascii_lowercase() || b.is_ascii_digit());
    check(name, span, fits, rule, cx);
}

/// Checks the id of a step or the name of an argument or output: snake_case.
pub(crate) fn identifier(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    let rule = ("in snake_case", "lower-case letters, digits and underscores, a letter first", '_');
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit());
    check(name, span, fits, rule, cx);
}

/// Checks a step's id: an identifier that is not reserved.
pub(crate) fn step_id(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    identifier(name, span, cx);
    if RESERVED.contains(&name) {
        let message = format!("`{name}` already means something in expressions");
        let problem = Problem::new(Code::ReservedName, span, message);
        cx.add(problem.with_hint(format!("call the step `{name}_step`, for example")));
    }
}

/// Checks the name of an input or output: any name that a path can contain.
pub(crate) fn field(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    let rule = ("a name", "letters, digits and `_ . -`, a letter or `_` first", '_');
    check(name, span, has_field_letters(name), rule, cx);
}

/// Whether the name of an input or output is valid.
pub(crate) fn is_field(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX && has_field_letters(name)
}

fn has_field_letters(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// Checks the name of a flow label.
pub(crate) fn flow_label(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    let rule = ("a label", "lower-case letters, digits and `_ . -`, a letter first", '_');
    if name.is_ascii() && name.len() > CHARS_MAX {
        let message = format!("the label has {} characters; the limit is {CHARS_MAX}", name.len());
        cx.add(Problem::new(Code::BadName, span, message));
    } else {
        check(name, span, is_name(name), rule, cx);
    }
}

/// Checks the id of a lens or node, which a program often generates.
pub(crate) fn lens_id(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    let rule = ("an id", "letters, digits and `_ . : -`, a letter or digit first", '_');
    let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(&b));
    check(name, span, fits, rule, cx);
}

/// Checks the id of an edge: any printable text.
pub(crate) fn edge_id(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    let message = if name.trim().is_empty() {
        "the id of an edge is empty".to_owned()
    } else if name.chars().count() > EDGE_ID_CHARS_MAX {
        let count = name.chars().count();
        format!("the id of an edge has {count} characters; the limit is {EDGE_ID_CHARS_MAX}")
    } else if let Some(odd) = name.chars().find(|c| c.is_control() || hides(*c)) {
        format!(
            "the id of an edge has a character that cannot be printed: U+{:04X}",
            u32::from(odd)
        )
    } else {
        return;
    };
    cx.add(Problem::new(Code::BadName, span, message));
}

/// Checks the name of a model, in the spelling of its provider.
pub(crate) fn model(name: &str, span: Span, cx: &mut DocumentReader<'_, '_>) {
    let rule = ("a model", "letters, digits and `_ . : / @ + -`, a letter or digit first", '-');
    let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:/@+-".contains(&b));
    check(name, span, fits, rule, cx);
}

fn check(
    name: &str,
    span: Span,
    fits: bool,
    (what, rule, joint): (&str, &str, char),
    cx: &mut DocumentReader<'_, '_>,
) {
    if !fits {
        let shown = crate::visible::shorten(name);
        let message = match name.chars().find(|c| !c.is_ascii()) {
            // A letter that only looks like another would make two ids look the
            // same.
            Some(odd) => {
                format!("`{shown}` has a character outside ASCII: U+{:04X}", u32::from(odd))
            }
            None => format!("`{shown}` is not {what}"),
        };
        let likely = likely(name, joint);
        let hint = likely.map_or(format!("names are {rule}"), |name| format!("write `{name}`"));
        cx.add(Problem::new(Code::BadName, span, message).with_hint(hint));
    } else if name.len() > NAME_CHARS_MAX {
        let message =
            format!("the name has {} characters; the limit is {NAME_CHARS_MAX}", name.len());
        cx.add(Problem::new(Code::BadName, span, message));
    }
}

/// The name that the author probably meant, in the right case.
fn likely(name: &str, joint: char) -> Option<String> {
    if !name.is_ascii() || name.len() > NAME_CHARS_MAX {
        return None;
    }
    let mut likely = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            let new_word = letter.is_ascii_uppercase()
                && likely.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
            if new_word {
                likely.push(joint);
            }
            likely.push(letter.to_ascii_lowercase());
        } else if !likely.is_empty() && !likely.ends_with(joint) {
            likely.push(joint);
        }
    }
    let likely = likely.trim_end_matches(joint);
    likely.starts_with(|c: char| c.is_ascii_lowercase()).then(|| likely.to_owned())
}

/// Reports names that a list declares twice.
pub(crate) fn unique<'a>(
    what: &str,
    names: impl Iterator<Item = &'a Spanned<String>>,
    cx: &mut DocumentReader<'_, '_>,
) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name.value.as_str()) {
            let message = format!("the {what} `{}` is declared twice", name.value);
            let problem = Problem::new(Code::DuplicateName, name.span, message);
            cx.within(PathPart::Index(index), |cx| cx.add(problem));
        }
    }
}
