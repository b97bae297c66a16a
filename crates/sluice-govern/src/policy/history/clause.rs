//! Takes the `temporal` clauses out of a policy, so that Cedar can read the rest.
//!
//! ```text
//! forbid (principal, action == Action::"use_tool", resource)
//! when temporal agent { count_within(1d, Action::"use_tool"::effective { label: "refunds" }) > 3 };
//! ```

use super::formula::Formula;
use super::parse::parse;
use crate::choice::choices;

choices! {
    /// The events that a clause is about: the word after `temporal`.
    pub enum HistoryScope, "a scope of history" {
        /// Events of the run.
        Run = "run",
        /// Events of the conversation of the agent, as far as it is in the run.
        Session = "session",
        /// Events of the agent in all runs.
        Agent = "agent",
    }
}

/// A clause of a policy.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenClause {
    pub(super) scope: HistoryScope,
    /// Whether it begins with `unless`.
    pub(super) unless: bool,
    pub(super) formula: Formula,
    /// Lines between the start of the policy and the clause.
    pub(super) line: usize,
}

/// A clause that is not valid: lines after the start of the policy, and the message.
pub(super) type ClauseError = (usize, String);

/// The text of the policy with blanks in place of the clauses, and the clauses; `None` if
/// it has none.
pub(super) fn take_out(policy: &str) -> Result<Option<(String, Vec<WrittenClause>)>, ClauseError> {
    if !policy.contains("temporal") {
        return Ok(None);
    }
    let mut scan = Scan { text: policy, at: 0, depth: 0 };
    let (mut rest, mut written) = (policy.to_owned(), Vec::new());
    while let Some(found) = scan.next_clause() {
        let line = |at: usize| policy[..at].matches('\n').count();
        let found = found.map_err(|(at, why)| (line(at), why))?;
        let body = &policy[found.body.clone()];
        let formula = parse(body).map_err(|(at, why)| (line(found.body.start + at), why))?;
        let whole = &policy[found.start..=found.body.end];
        let blank: String = whole.chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        // A blank for each byte keeps the positions of what follows.
        let blank = format!("{blank}{}", " ".repeat(whole.len() - blank.len()));
        rest.replace_range(found.start..=found.body.end, &blank);
        let (scope, unless) = (found.scope, found.unless);
        written.push(WrittenClause { scope, unless, formula, line: line(found.start) });
    }
    Ok((!written.is_empty()).then_some((rest, written)))
}

struct FoundClause {
    start: usize,
    body: std::ops::Range<usize>,
    scope: HistoryScope,
    unless: bool,
}

/// Reads the tokens of a policy that matter here.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Scan<'t> {
    fn next_clause(&mut self) -> Option<Result<FoundClause, (usize, String)>> {
        let mut before: Option<(usize, bool)> = None;
        while let Some((start, token)) = self.token() {
            match token {
                "when" | "unless" if self.depth == 0 => before = Some((start, token == "unless")),
                "temporal" => match before {
                    Some((begin, unless)) => return Some(self.clause(begin, unless)),
                    // An attribute or a name in an expression.
                    None if self.depth > 0 && !self.opens() => {}
                    None => {
                        let message = "`temporal` stands right after `when` or `unless`: \
                                       write a clause of its own";
                        return Some(Err((start, message.to_owned())));
                    }
                },
                _ => before = None,
            }
        }
        None
    }

    /// Whether a brace comes next.
    fn opens(&self) -> bool {
        self.text[self.at..].trim_start().starts_with('{')
    }

    fn clause(&mut self, start: usize, unless: bool) -> Result<FoundClause, (usize, String)> {
        let (mut at, mut token) = self.token().unwrap_or((self.text.len(), ""));
        let mut scope = HistoryScope::Run;
        if token != "{" {
            scope = super::super::keyword::read(token)
                .map_err(|why| (at, format!("temporal: {why}")))?;
            (at, token) = self.token().unwrap_or((self.text.len(), ""));
        }
        if token != "{" {
            return Err((at, "expected `{` after `temporal`".to_owned()));
        }
        let (begin, outside) = (self.at, self.depth - 1);
        while let Some((end, token)) = self.token() {
            if token == "}" && self.depth == outside {
                return Ok(FoundClause { start, body: begin..end, scope, unless });
            }
        }
        Err((start, "the clause has no closing `}`".to_owned()))
    }

    /// The next word, bracket, string or other character. Skips blanks and comments.
    fn token(&mut self) -> Option<(usize, &'t str)> {
        let text = self.text;
        loop {
            let rest = &text[self.at..];
            let first = rest.chars().next()?;
            let start = self.at;
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if first.is_whitespace() {
                self.at += first.len_utf8();
            } else if first == '"' {
                self.at += string_length(rest);
                return Some((start, ""));
            } else if first.is_ascii_alphanumeric() || first == '_' {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
                self.at += word.len();
                return Some((start, word));
            } else {
                self.at += first.len_utf8();
                self.bracket(first);
                return Some((start, &text[start..self.at]));
            }
        }
    }

    fn bracket(&mut self, bracket: char) {
        match bracket {
            '{' | '(' | '[' => self.depth += 1,
            '}' | ')' | ']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// The length of a string with its quotes; one that does not end takes the rest.
fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}
