//! The five functions of the expression language.

use super::effort::effort;
use super::{ExprNode, Search};
use crate::path::Path;
use crate::pattern::Pattern;
use crate::span::Fault;
use crate::suggest::suggest;
use serde_json::Value;
use std::ops::Range;

/// Each function with the number of its arguments.
const FUNCTIONS: [(&str, usize); 5] =
    [("contains", 2), ("starts_with", 2), ("matches", 2), ("exists", 1), ("lower", 1)];

/// Rejects a call of an unknown function.
pub(super) fn check_name(path: &Path, range: Range<usize>) -> Result<(), Fault> {
    let name = path.as_str();
    if FUNCTIONS.iter().any(|(function, _)| *function == name) {
        return Ok(());
    }
    let names = FUNCTIONS.map(|(function, _)| function);
    if !path.rest().is_empty() {
        return Err(Fault::new(range, format!("`{name}` is not a function"))
            .with_hint(format!("values have no methods; the functions are {}", names.join(", "))));
    }
    let hint = match suggest(name, names) {
        Some(function) => format!("did you mean `{function}`?"),
        None => format!("the functions are {}", names.join(", ")),
    };
    Err(Fault::new(range, format!("unknown function `{name}`")).with_hint(hint))
}

/// Builds the call of the function `name` at `range`; [`check_name`] has accepted the name.
pub(super) fn call(
    name: &str,
    arguments: Vec<(ExprNode, Range<usize>)>,
    range: Range<usize>,
) -> Result<ExprNode, Fault> {
    let takes = FUNCTIONS.iter().find(|(function, _)| *function == name);
    let takes = takes.map_or(0, |(_, takes)| *takes);
    if arguments.len() != takes {
        let plural = if takes == 1 { "" } else { "s" };
        return Err(Fault::new(
            range,
            format!("`{name}` takes {takes} argument{plural}, found {}", arguments.len()),
        ));
    }
    let mut arguments = arguments.into_iter();
    let mut argument = || arguments.next().expect("the arguments were counted");
    let (first, first_range) = argument();
    if name == "lower" {
        return Ok(ExprNode::Lower(Box::new(first)));
    }
    if name == "exists" {
        return match first {
            ExprNode::Path(index) => Ok(ExprNode::Exists(index)),
            _ => Err(Fault::new(first_range, "`exists` takes a path")
                .with_hint("for example `exists(init.outputs.report)`")),
        };
    }
    let (second, second_range) = argument();
    if name == "matches" {
        return matches(first, second, second_range);
    }
    let pair = Box::new([first, second]);
    Ok(match name {
        "contains" => ExprNode::Contains(pair),
        _ => ExprNode::StartsWith(pair),
    })
}

fn matches(text: ExprNode, pattern: ExprNode, range: Range<usize>) -> Result<ExprNode, Fault> {
    let ExprNode::Literal(Value::String(source)) = pattern else {
        return Err(Fault::new(range, "the pattern of `matches` must be a string literal")
            .with_hint("patterns are checked before the run starts"));
    };
    match Pattern::new(&source) {
        Ok(pattern) => {
            let search = Search { effort: effort(pattern.as_str()), pattern };
            Ok(ExprNode::Matches(Box::new(text), Box::new(search)))
        }
        Err(fault) => Err(Fault { span: crate::span::Span::new(range.start, range.end), ..fault }),
    }
}
