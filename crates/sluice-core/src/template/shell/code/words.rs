//! Splits a script roughly into simple commands and their words.

/// Replaces a reference in the text of a script.
pub(in super::super) const MARK: char = '\u{1}';

/// One simple command.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<ShellWord>,
    /// A reference in a here-document that the command reads.
    pub(super) stdin: Option<usize>,
}

/// A word without its quotes.
#[derive(Debug, Default, Clone)]
pub(super) struct ShellWord {
    /// Its text, with [`MARK`] for each reference.
    pub(super) text: String,
    /// The indexes of the references in it.
    references: Vec<usize>,
}

impl ShellWord {
    pub(super) fn first_reference(&self) -> Option<usize> {
        self.references.first().copied()
    }

    /// A reference in it, or one from which a shell variable in it was set.
    pub(super) fn reference(&self, tainted: &[(String, usize)]) -> Option<usize> {
        let through = || {
            let named = |name: &str| {
                let plain = self.text.match_indices('$').any(|(at, _)| {
                    let rest = self.text[at + 1..].trim_start_matches('{');
                    rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_name))
                });
                plain.then_some(())
            };
            tainted.iter().find(|(name, _)| named(name).is_some()).map(|(_, at)| *at)
        };
        self.first_reference().or_else(through)
    }

    /// The first reference, if it precedes this character or the word does not contain it.
    pub(super) fn reference_before(&self, character: char) -> Option<usize> {
        let end = self.text.find(character).unwrap_or(self.text.len());
        self.text[..end].contains(MARK).then(|| self.first_reference()).flatten()
    }

    /// The assigned name and the value, if the word is `NAME=VALUE`.
    pub(super) fn assignment(&self) -> Option<(String, &ShellWord)> {
        let (name, _) = self.text.split_once('=')?;
        let fits = !name.is_empty() && name.chars().all(is_name);
        fits.then(|| (name.to_owned(), self))
    }

    /// The last component of its path.
    pub(super) fn program(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a text contains this variable name.
pub(super) fn names(text: &str, name: &str) -> bool {
    text.split(|c| !is_name(c)).any(|word| word == name)
}

/// Splits a script into its simple commands, and the texts of its arithmetic.
pub(super) fn read(script: &str) -> (Vec<Command>, Vec<String>) {
    let text: Vec<char> = script.chars().collect();
    let mut reader = ShellParser { text, ..ShellParser::default() };
    reader.commands(None);
    (reader.commands, reader.arithmetic)
}

#[derive(Default)]
struct ShellParser {
    text: Vec<char>,
    at: usize,
    /// The number of references read so far.
    references: usize,
    commands: Vec<Command>,
    arithmetic: Vec<String>,
    depth: usize,
}

/// The maximum nesting depth.
const DEPTH_MAX: usize = 32;

impl ShellParser {
    fn next(&mut self) -> Option<char> {
        let next = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(next)
    }

    fn follows(&self, text: &str) -> bool {
        let mut here = self.text[self.at..].iter();
        text.chars().all(|c| here.next() == Some(&c))
    }

    /// Reads commands up to `close`, or to the end.
    fn commands(&mut self, close: Option<char>) {
        self.depth += 1;
        let (mut command, mut word, mut begun) = (Command::default(), ShellWord::default(), false);
        let mut marks: Vec<String> = Vec::new();
        while self.depth <= DEPTH_MAX {
            let next = self.next();
            let ends = next.is_none() || next == close;
            let c = next.unwrap_or('\n');
            if c == '#' && !begun {
                while self.text.get(self.at).is_some_and(|c| *c != '\n') {
                    self.skipped();
                }
                continue;
            }
            if ends || matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                if begun {
                    command.words.push(std::mem::take(&mut word));
                    begun = false;
                }
                match c {
                    '<' if !ends && self.follows("<") && !self.follows("<<") => {
                        self.at += 1;
                        marks.push(self.mark());
                    }
                    '<' | '>' if !ends => self.redirection(),
                    ' ' | '\t' if !ends => {}
                    _ => {
                        if c == '\n' {
                            for mark in std::mem::take(&mut marks) {
                                let held = self.heredoc(&mark);
                                command.stdin = command.stdin.or(held);
                            }
                        }
                        if marks.is_empty() || ends {
                            self.commands.push(std::mem::take(&mut command));
                        }
                    }
                }
                if ends {
                    break;
                }
                continue;
            }
            begun = true;
            self.part(c, &mut word);
        }
        self.depth -= 1;
    }

    fn part(&mut self, c: char, word: &mut ShellWord) {
        match c {
            '\'' => {
                while let Some(c) = self.next().filter(|c| *c != '\'') {
                    self.push(c, word);
                }
            }
            '"' => {
                while let Some(c) = self.next().filter(|c| *c != '"') {
                    self.expansion(c, word);
                }
            }
            _ => self.expansion(c, word),
        }
    }

    fn expansion(&mut self, c: char, word: &mut ShellWord) {
        match c {
            '\\' => {
                if let Some(c) = self.next().filter(|c| *c != '\n') {
                    self.push(c, word);
                }
            }
            '`' => {
                word.text.push('`');
                self.commands(Some('`'));
            }
            '$' if self.follows("((") => {
                let begin = self.at;
                while self.at < self.text.len() && !self.follows("))") {
                    self.at += 1;
                }
                self.arithmetic.push(self.text[begin..self.at].iter().collect());
                self.at = (self.at + 2).min(self.text.len());
                word.text.push('$');
            }
            '$' if self.follows("(") => {
                self.at += 1;
                word.text.push_str("$(");
                self.commands(Some(')'));
            }
            _ => self.push(c, word),
        }
    }

    fn push(&mut self, c: char, word: &mut ShellWord) {
        if c == MARK {
            word.references.push(self.references);
            self.references += 1;
        }
        word.text.push(c);
    }

    /// Skips a character that belongs to no word.
    fn skipped(&mut self) {
        if self.next() == Some(MARK) {
            self.references += 1;
        }
    }

    /// Skips the file after `<` or `>`, which is not an argument.
    fn redirection(&mut self) {
        while self.text.get(self.at).is_some_and(|c| matches!(c, ' ' | '\t' | '&' | '>' | '<')) {
            self.at += 1;
        }
        let mut file = ShellWord::default();
        let ends = |c: &char| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>');
        while let Some(c) = self.text.get(self.at).copied().filter(|c| !ends(c)) {
            self.at += 1;
            self.part(c, &mut file);
        }
    }

    /// The end mark of a here-document.
    fn mark(&mut self) -> String {
        let ends = |c: &char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | ')' | '<' | '>');
        let mut mark = String::new();
        while self.text.get(self.at).is_some_and(|c| matches!(c, ' ' | '\t' | '-')) {
            self.at += 1;
        }
        while let Some(c) = self.text.get(self.at).copied().filter(|c| !ends(c)) {
            self.at += 1;
            mark.extend(Some(c).filter(|c| !matches!(c, '\'' | '"' | '\\')));
        }
        mark
    }

    /// Skips the text of a here-document; returns a reference in it.
    fn heredoc(&mut self, mark: &str) -> Option<usize> {
        let mut held = None;
        while self.at < self.text.len() {
            let mut line = String::new();
            while let Some(c) = self.next().filter(|c| *c != '\n') {
                if c == MARK {
                    held = held.or(Some(self.references));
                    self.references += 1;
                }
                line.push(c);
            }
            if line.trim_start_matches('\t') == mark {
                break;
            }
        }
        held
    }
}
