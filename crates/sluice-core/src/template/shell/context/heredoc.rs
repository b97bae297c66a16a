//! Here-documents: their end marks and lines.

/// A here-document that is open or about to begin.
#[derive(Debug)]
pub(super) struct Heredoc {
    mark: Vec<u8>,
    /// Whether the mark is quoted, which makes the whole text literal.
    pub(super) quoted: bool,
    /// Whether tabs before the mark are ignored (`<<-`).
    tabs: bool,
    /// The line so far.
    pub(super) line: Vec<u8>,
    /// Whether the line before ended with a backslash.
    continued: bool,
}

/// What a completed line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeredocLine {
    Text,
    Mark,
    /// The mark for some shells and text for others.
    Unclear,
}

/// Reads what follows `<<`: the mark and its length. `None` if the mark is not plain text, or
/// does not end within `text`.
pub(super) fn open(text: &[u8]) -> Option<(Heredoc, usize)> {
    let tabs = text.first() == Some(&b'-');
    let mut at = usize::from(tabs);
    while matches!(text.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    let mut mark = Vec::new();
    let mut quoted = false;
    loop {
        match *text.get(at)? {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
            b'$' | b'`' => return None,
            quote @ (b'\'' | b'"') => {
                let inner = &text[at + 1..];
                let length = inner.iter().position(|byte| *byte == quote)?;
                mark.extend_from_slice(&inner[..length]);
                at += length + 2;
                quoted = true;
            }
            b'\\' => {
                mark.push(*text.get(at + 1)?);
                at += 2;
                quoted = true;
            }
            byte => {
                mark.push(byte);
                at += 1;
            }
        }
    }
    // The shell reports a mark without a word as an error; shells differ on a mark with a
    // backslash or a line break.
    let plain = !mark.iter().any(|byte| matches!(byte, b'\\' | b'\n'));
    let heredoc = Heredoc { mark, quoted, tabs, line: Vec::new(), continued: false };
    (plain && (quoted || !heredoc.mark.is_empty())).then_some((heredoc, at))
}

impl Heredoc {
    /// Marks the line as longer than the text read, so that it is not mistaken for the end
    /// mark.
    pub(super) fn spoil_line(&mut self) {
        self.line.push(b'\n');
    }

    /// A backslash before a line break joins the lines.
    pub(super) fn continue_line(&mut self) {
        self.line.clear();
        self.continued = true;
    }

    /// Ends the line and classifies it.
    pub(super) fn end_line(&mut self) -> HeredocLine {
        let line = std::mem::take(&mut self.line);
        let continued = std::mem::take(&mut self.continued);
        let start = match self.tabs {
            true => line.iter().take_while(|byte| **byte == b'\t').count(),
            false => 0,
        };
        match (line[start..] == self.mark, continued) {
            (false, _) => HeredocLine::Text,
            (true, false) => HeredocLine::Mark,
            (true, true) => HeredocLine::Unclear,
        }
    }
}
