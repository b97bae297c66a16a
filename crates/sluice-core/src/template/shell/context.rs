//! Follows the quoting of a shell command, to know how a variable would be read.
//!
//! A stack follows the quoting of POSIX `sh`. It fails closed: where shells disagree, or where
//! a full parser would be needed, [`Context::lost`] is set and every later reference is
//! rejected.
//!
//! Some syntax matters only because a shell other than a POSIX one may be installed as `sh`.
//! Such shells evaluate text as arithmetic, and arithmetic can run commands: `((…))`, `$[…]`,
//! `[[ … ]]` and `name[…]`.

mod heredoc;

use crate::limits::SHELL_DEPTH_MAX;
use heredoc::Heredoc;

/// How a reference must be written at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferenceQuoting {
    /// It needs its own quotes.
    Plain,
    /// It is inside quotes already.
    Quoted,
    /// The shell would not read it as data.
    Refused(QuotingRefusal),
}

/// Why a reference is rejected at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuotingRefusal {
    /// The position: `inside …`.
    pub(super) place: &'static str,
    /// What to do instead.
    pub(super) hint: &'static str,
}

/// The quoting at the end of the text read so far.
#[derive(Debug)]
pub(super) struct Context {
    /// Innermost last; never empty.
    stack: Vec<Frame>,
    /// Whether the last character was a backslash that escapes the next one.
    escaped: bool,
    /// The last character that was not such a backslash.
    last: u8,
    /// Whether the quoting is unknown from here on.
    lost: bool,
}

#[derive(Debug)]
enum Frame {
    /// Commands and their words.
    Plain(Words),
    Single,
    Double,
    Backquote,
    Comment,
    /// `$(( ))` or `(( ))`, with the number of open parentheses.
    Arithmetic(usize),
    /// `${ }` of the shell itself.
    Brace,
    Heredoc(Heredoc),
}

/// The words of a command list.
#[derive(Debug, Default)]
struct Words {
    /// Open parentheses of a `$( )`; 0 at the top level.
    parentheses: usize,
    /// The word so far, with quoted parts as `"`.
    word: Vec<u8>,
    /// Whether `[[` is open.
    test: bool,
    /// Here-documents whose text begins after the next line break.
    pending: Vec<Heredoc>,
}

impl Context {
    pub(super) fn new() -> Context {
        let stack = vec![Frame::Plain(Words::default())];
        Context { stack, escaped: false, last: b'\n', lost: false }
    }

    /// Reads literal text.
    pub(super) fn read(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        // Every special character is ASCII, so bytes are enough.
        while let Some((&byte, after)) = rest.split_first() {
            if byte == b'\n' && self.breaks_inside() {
                self.lost = true;
            }
            if self.lost {
                return;
            }
            let used = match self.escaped {
                true => self.read_escaped(byte),
                false => self.read_byte(byte, after),
            };
            if !self.escaped {
                self.last = rest[used - 1];
            }
            // Functions that walk the whole stack are fast while it is small.
            self.lost |= self.stack.len() > SHELL_DEPTH_MAX;
            rest = &rest[used..];
        }
    }

    /// Reads a reference and returns how to write it.
    pub(super) fn reference(&mut self) -> ReferenceQuoting {
        let place = match self.refusal() {
            Some(refusal) => ReferenceQuoting::Refused(refusal),
            None => match self.top() {
                Frame::Plain(_) => ReferenceQuoting::Plain,
                _ => ReferenceQuoting::Quoted,
            },
        };
        self.escaped = false;
        self.last = b'"';
        match self.top() {
            Frame::Plain(words) => words.word.push(b'"'),
            Frame::Heredoc(heredoc) => heredoc.spoil_line(),
            _ => {}
        }
        place
    }

    fn refusal(&self) -> Option<QuotingRefusal> {
        let refusal = |place, hint| Some(QuotingRefusal { place, hint });
        let aside = "assign it to a variable first (`v=${…}`) and use that";
        // A variable would not help: bash also evaluates its content.
        let number = "compute with `expr`, which takes its arguments as data";
        if self.lost {
            return refusal(
                "after quoting that is too complex",
                "simplify the command before it, or assign it to a variable first",
            );
        }
        if self.escaped {
            return refusal("after a backslash", "remove the backslash; `$${` is a literal `${`");
        }
        for frame in &self.stack {
            match frame {
                Frame::Brace => return refusal("inside a parameter expansion", aside),
                Frame::Plain(words) if words.test => {
                    return refusal("inside `[[ ]]`", "use `[ ]` or `case`");
                }
                Frame::Plain(words) if words.in_subscript() => {
                    return refusal("inside a subscript", number);
                }
                _ => {}
            }
        }
        match self.stack.last() {
            Some(Frame::Single) => {
                refusal("inside single quotes", "use double quotes, or no quotes at all")
            }
            Some(Frame::Backquote) => refusal("inside back-quotes", "use `$( )`"),
            Some(Frame::Arithmetic(_)) => {
                refusal("inside arithmetic, which may evaluate text as code", number)
            }
            Some(Frame::Heredoc(heredoc)) if heredoc.quoted => refusal(
                "inside a here-document with a quoted end mark",
                "remove the quotes from the end mark",
            ),
            _ => None,
        }
    }

    fn top(&mut self) -> &mut Frame {
        self.stack.last_mut().expect("the first frame is never closed")
    }

    fn pop(&mut self) {
        self.stack.pop();
    }

    /// Whether a line break is inside a construct in a here-document, or before its text
    /// begins: shells differ in what they read then.
    fn breaks_inside(&self) -> bool {
        // A comment ends with its command, and here-documents that begin on the same
        // line follow each other.
        let innermost = match self.stack.last() {
            Some(Frame::Comment) => 2,
            Some(Frame::Heredoc(_)) => {
                let heredocs = self.stack.iter().rev();
                heredocs.take_while(|frame| matches!(frame, Frame::Heredoc(_))).count()
            }
            _ => 1,
        };
        let outer = self.stack.len().saturating_sub(innermost);
        self.stack[..outer].iter().any(|frame| match frame {
            Frame::Heredoc(_) => true,
            Frame::Plain(words) => !words.pending.is_empty(),
            _ => false,
        })
    }

    /// The character after a backslash opens and closes nothing.
    fn read_escaped(&mut self, byte: u8) -> usize {
        self.escaped = false;
        // The shell joins the lines first, which may create a new operator.
        self.lost = byte == b'\n' && matches!(self.last, b'$' | b'(' | b'<');
        match self.top() {
            Frame::Plain(words) if byte != b'\n' => words.word.push(b'"'),
            Frame::Heredoc(heredoc) => {
                heredoc.line.push(byte);
                if byte == b'\n' {
                    heredoc.continue_line();
                }
            }
            _ => {}
        }
        1
    }

    /// Reads one byte and possibly some that follow; returns how many.
    fn read_byte(&mut self, byte: u8, after: &[u8]) -> usize {
        match self.top() {
            Frame::Plain(_) => return self.read_plain(byte, after),
            Frame::Heredoc(_) => return self.read_heredoc(byte, after),
            Frame::Double => match byte {
                b'"' => self.pop(),
                _ => return self.read_expansion(byte, after),
            },
            Frame::Single => {
                if byte == b'\'' {
                    self.pop();
                }
            }
            Frame::Backquote => match byte {
                b'`' => self.pop(),
                b'\\' => self.escaped = true,
                _ => {}
            },
            Frame::Comment => {
                if byte == b'\n' {
                    self.pop();
                    return self.read_plain(byte, after);
                }
            }
            Frame::Arithmetic(open) => match byte {
                b'(' => *open += 1,
                b')' if *open == 1 => self.pop(),
                b')' => *open -= 1,
                // It may be a subshell after all, in which these characters are
                // special.
                b'\'' | b'"' | b'`' | b'\\' | b'\n' | b';' => self.lost = true,
                _ => {}
            },
            Frame::Brace => return self.read_brace(byte, after),
        }
        1
    }

    /// Reads a byte inside double quotes and here-documents.
    fn read_expansion(&mut self, byte: u8, after: &[u8]) -> usize {
        match (byte, after) {
            (b'\\', _) => self.escaped = true,
            (b'`', _) => self.stack.push(Frame::Backquote),
            (b'$', [b'(', b'(', ..]) => {
                self.stack.push(Frame::Arithmetic(2));
                return 3;
            }
            (b'$', [b'(', ..]) => {
                let words = Words { parentheses: 1, ..Words::default() };
                self.stack.push(Frame::Plain(words));
                return 2;
            }
            (b'$', [b'{', ..]) => {
                self.stack.push(Frame::Brace);
                return 2;
            }
            (b'$', [b'[', ..]) => self.lost = true,
            _ => {}
        }
        1
    }

    /// Reads a byte inside `${ }`. If the expansion itself is quoted, quotes inside it
    /// differ between shells.
    fn read_brace(&mut self, byte: u8, after: &[u8]) -> usize {
        match byte {
            b'}' => self.pop(),
            b'\'' | b'"' => self.lost = true,
            _ => return self.read_expansion(byte, after),
        }
        1
    }

    fn read_plain(&mut self, byte: u8, after: &[u8]) -> usize {
        let Frame::Plain(words) = self.top() else {
            return 1;
        };
        match (byte, after) {
            (b'\'' | b'"', _) => {
                // Only some shells interpret escapes in `$'…'`.
                let dollar = byte == b'\'' && words.word.last() == Some(&b'$');
                words.word.push(b'"');
                self.lost = dollar;
                self.stack.push(match byte {
                    b'"' => Frame::Double,
                    _ => Frame::Single,
                });
            }
            (b'\\', _) => self.escaped = true,
            (b'`' | b'$', _) => {
                words.word.push(byte);
                return self.read_expansion(byte, after);
            }
            (b'#', _) if words.word.is_empty() => self.stack.push(Frame::Comment),
            (b'(', [b'(', ..]) => {
                words.end_word();
                self.stack.push(Frame::Arithmetic(2));
                return 2;
            }
            (b'<', [b'<', b'<', ..]) => {
                words.end_word();
                return 3;
            }
            (b'<', [b'<', rest @ ..]) => {
                words.end_word();
                let Some((heredoc, used)) = heredoc::open(rest) else {
                    self.lost = true;
                    return 1;
                };
                words.pending.push(heredoc);
                return 2 + used;
            }
            (b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')', _) => {
                self.end_word(byte);
            }
            _ => words.word.push(byte),
        }
        1
    }

    /// Reads a byte that ends a word.
    fn end_word(&mut self, byte: u8) {
        let Frame::Plain(words) = self.top() else {
            return;
        };
        let word = words.end_word();
        let substitution = words.parentheses > 0;
        // The `)` of its patterns would look like the end of the substitution.
        let case = substitution && word == b"case";
        match byte {
            b'(' if substitution => words.parentheses += 1,
            b')' if words.parentheses == 1 => {
                let unread = !words.pending.is_empty();
                self.pop();
                self.lost = unread;
            }
            b')' if substitution => words.parentheses -= 1,
            b'\n' => {
                let pending = std::mem::take(&mut words.pending);
                self.stack.extend(pending.into_iter().rev().map(Frame::Heredoc));
            }
            _ => {}
        }
        self.lost |= case;
    }

    fn read_heredoc(&mut self, byte: u8, after: &[u8]) -> usize {
        let Frame::Heredoc(heredoc) = self.top() else {
            return 1;
        };
        if byte == b'\n' {
            match heredoc.end_line() {
                heredoc::HeredocLine::Text => {}
                heredoc::HeredocLine::Mark => self.pop(),
                heredoc::HeredocLine::Unclear => self.lost = true,
            }
            return 1;
        }
        heredoc.line.push(byte);
        if heredoc.quoted {
            return 1;
        }
        // An expansion that opens leaves its `$` or back-quote in the line, which no
        // end mark contains, so the line is not mistaken for the mark.
        self.read_expansion(byte, after)
    }
}

impl Words {
    /// Ends and returns the word, and tracks `[[` and `]]`.
    fn end_word(&mut self) -> Vec<u8> {
        let word = std::mem::take(&mut self.word);
        match word.as_slice() {
            b"[[" => self.test = true,
            b"]]" => self.test = false,
            _ => {}
        }
        word
    }

    /// Whether the word so far is `name[` with an open subscript.
    fn in_subscript(&self) -> bool {
        let Some(open) = self.word.iter().position(|byte| *byte == b'[') else {
            return false;
        };
        let (name, rest) = self.word.split_at(open);
        let named = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        named && !name.is_empty() && !rest.contains(&b']')
    }
}
