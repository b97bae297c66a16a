//! Draws problems for people: the code, the position, the line, the remedy.

use crate::client::ApiProblem;
use crate::problem::{DOCUMENT_UNREADABLE, Unreadable};
use crate::refused;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use clap::builder::styling::AnsiColor;
use sluice_core::code::Severity;
use sluice_core::diagnostic::Diagnostic;
use sluice_core::flow::FlowFinding;
use sluice_core::span::Span;
use sluice_core::visible;
use sluice_server::pages;
use sluice_server::refused::Refused;
use std::borrow::Cow;
use std::ops::Range;

/// Longest excerpt of a line, in characters.
const WINDOW_CHARS: usize = 160;
/// How much of it precedes the marked position.
const BEFORE_CHARS: usize = 60;
/// Longest path next to the mark, in characters.
const PATH_CHARS_MAX: usize = 80;

/// Draws a problem in the text of `file`.
pub(crate) fn diagnostic(file: &str, text: &str, problem: &Diagnostic) -> String {
    // A failure of a run ends the command, so it is drawn as an error.
    let level = match problem.code.severity() {
        Severity::Warning => Level::WARNING,
        _ => Level::ERROR,
    };
    let mut group = Group::with_title(
        level.primary_title(visible::brief(&problem.message)).id(problem.code.as_str()),
    );
    let mut gutter = 0;
    if let Some(shown) = Excerpt::cut(text, problem.span) {
        let label = visible::clipped(&problem.path, PATH_CHARS_MAX);
        let mark = AnnotationKind::Primary.span(shown.mark).label(label);
        let snippet = Snippet::source(shown.line).line_start(problem.line as usize);
        group = group.element(snippet.annotation(mark));
        gutter = problem.line.to_string().len();
    }
    // Without a hint, the advice of the code's page is shown.
    let help = match &problem.hint {
        Some(hint) => Some(visible::brief(hint)),
        None => pages::remedy(problem.code.as_str()).map(Cow::Owned),
    };
    if let Some(help) = help {
        group = group.element(Level::HELP.message(help));
    }
    let place = format!("{}:{}:{}", visible::line(place_name(file)), problem.line, problem.column);
    placed(&render(group), gutter, &place)
}

/// Draws a finding about the flow of data, with the way of each label under it.
pub(crate) fn flow_finding(text: &str, found: &FlowFinding) -> String {
    let mut drawn = diagnostic(&found.document, text, &found.diagnostic);
    for way in &found.ways {
        drawn.push_str(&format!("\n   {}:", visible::brief(&way.label)));
        for hop in &way.hops {
            let place = format!("{}:{}", visible::line(place_name(&hop.document)), hop.line);
            drawn.push_str(&format!("\n     {place}  {}", visible::brief(&hop.what)));
        }
    }
    drawn
}

/// Adds the position under the title. The renderer would count the column within the excerpt,
/// not within the line.
fn placed(drawn: &str, gutter: usize, place: &str) -> String {
    let arrow = AnsiColor::BrightBlue.on_default().bold();
    let (title, rest) = drawn.split_once('\n').unwrap_or((drawn, ""));
    format!("{title}\n{:gutter$}{arrow}-->{arrow:#} {place}\n{rest}", "")
}

pub(crate) fn unreadable(file: &Unreadable) -> String {
    let message = file.message();
    let cause = format!("caused by: {}", file.cause);
    let remedy = file.remedy();
    let title = Level::ERROR.primary_title(visible::brief(&message)).id(DOCUMENT_UNREADABLE);
    render(
        title
            .element(Level::NOTE.message(visible::brief(&cause)))
            .element(Level::HELP.message(visible::brief(&remedy))),
    )
}

/// Draws the error that ended a command.
pub(crate) fn failure(failure: &anyhow::Error) -> String {
    match (failure.downcast_ref::<ApiProblem>(), refused::in_error(failure)) {
        (Some(found), _) => problem(found),
        (None, Some(found)) => refused(found),
        (None, None) => error(failure),
    }
}

/// A refusal of the command line itself.
pub(crate) fn refused(refused: &Refused) -> String {
    no(refused.code, &refused.message, &refused.notes, &refused.remedy)
}

/// A problem that the API reports.
fn problem(problem: &ApiProblem) -> String {
    let code = visible::brief(&problem.code);
    no(&code, &problem.message, &problem.notes, &problem.remedy)
}

fn no(code: &str, message: &str, notes: &[String], remedy: &str) -> String {
    let title = Level::ERROR.primary_title(visible::brief(message)).id(code);
    let mut group = Group::with_title(title);
    for note in notes {
        group = group.element(Level::NOTE.message(visible::brief(note)));
    }
    render(group.element(Level::HELP.message(visible::brief(remedy))))
}

/// An error without a code, with the chain of its causes.
fn error(error: &anyhow::Error) -> String {
    let message = error.to_string();
    let mut group = Group::with_title(Level::ERROR.primary_title(visible::brief(&message)));
    for cause in error.chain().skip(1) {
        let cause = format!("caused by: {cause}");
        group = group.element(Level::NOTE.message(visible::brief(&cause).into_owned()));
    }
    render(group)
}

pub(crate) fn place_name(file: &str) -> &str {
    if file == "-" { "<stdin>" } else { file }
}

fn render(group: Group<'_>) -> String {
    // The excerpt is cut already.
    Renderer::styled().term_width(2 * WINDOW_CHARS).render(&[group])
}

/// The part of a line that is drawn, and the marked range of its bytes.
#[derive(Debug, PartialEq)]
struct Excerpt {
    line: String,
    mark: Range<usize>,
}

impl Excerpt {
    /// Cuts an excerpt out of the line that `span` begins in; none for a problem of the whole
    /// document. Reads no more text than it shows.
    fn cut(text: &str, span: Span) -> Option<Excerpt> {
        if span == Span::default() {
            return None;
        }
        let start = text.floor_char_boundary(span.start as usize);
        let end = text.floor_char_boundary((span.end as usize).max(start));
        let before = before(&text[..start]);
        let after = after(&text[start..]);
        let marked = end.saturating_sub(start).min(after.len());

        let (before_chars, after_chars) = (before.chars().count(), after.chars().count());
        let after_shown = after_chars.min(WINDOW_CHARS - before_chars.min(BEFORE_CHARS));
        let before_shown = before_chars.min(WINDOW_CHARS - after_shown);
        let mut line = String::new();
        if before_shown < before_chars {
            line.push('…');
        }
        line.extend(before.chars().skip(before_chars - before_shown).map(visible::substitute));
        let from = line.len();
        let mut to = from;
        for (at, c) in after.char_indices().take(after_shown) {
            line.push(visible::substitute(c));
            if at < marked {
                to = line.len();
            }
        }
        if after_shown < after_chars {
            line.push('…');
        }
        Some(Excerpt { line, mark: from..to })
    }
}

/// The text before a position in its line, one character longer than the excerpt.
fn before(text: &str) -> &str {
    let line = text.char_indices().rev().take_while(|(_, c)| *c != '\n');
    let first = line.take(WINDOW_CHARS + 1).last();
    &text[first.map_or(text.len(), |(at, _)| at)..]
}

/// The text from a position on in its line, one character longer than the excerpt.
fn after(text: &str) -> &str {
    let mut line = text.char_indices().take_while(|(_, c)| *c != '\n');
    match line.nth(WINDOW_CHARS) {
        Some((at, c)) => &text[..at + c.len_utf8()],
        None => text.lines().next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, range: Range<usize>) -> String {
        let shown = Excerpt::cut(text, Span::new(range.start, range.end)).unwrap();
        format!("{} => {}", shown.line, &shown.line[shown.mark])
    }

    #[test]
    fn a_mark_stays_on_its_characters() {
        assert_eq!(shown("é: \u{1b}x\nnext", 4..6), "é: ␛x => ␛x");
        assert_eq!(shown("one\r\ntwo\r\n", 5..8), "two => two");
        assert_eq!(shown("a: |\n  b\n  c\n", 3..10), "a: | => |", "only the first line of a range");
    }

    #[test]
    fn a_long_line_becomes_a_window() {
        let text = format!("{}bad{}", "x".repeat(500), "y".repeat(500));
        let shown = Excerpt::cut(&text, Span::new(500, 503)).unwrap();
        assert_eq!(shown.line.chars().count(), WINDOW_CHARS + 2);
        assert_eq!(&shown.line[shown.mark.clone()], "bad");
        let all = Excerpt::cut(&text, Span::new(0, 1003)).unwrap();
        assert_eq!(all.line.chars().count(), WINDOW_CHARS + 1);
    }

    #[test]
    fn a_range_past_the_end_is_the_end() {
        assert_eq!(shown("abc", 3..9), "abc => ");
        assert_eq!(shown("aé", 2..9), "aé => é");
    }
}
