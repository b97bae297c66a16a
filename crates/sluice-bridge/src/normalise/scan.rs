//! Finds the JSON objects and lists of a text in one pass.
//!
//! JSON needs one byte of look-ahead, and a nested value is parsed like a top-level one. So
//! when parsing fails at a byte, every value that is open there fails too, and the search
//! continues at that byte instead of after the first bracket: no byte is examined more than
//! twice.

use std::ops::Range;

/// An object or list in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundValue {
    pub(super) range: Range<usize>,
    /// Nesting depth, at least 1.
    pub(super) depth: usize,
}

/// The outermost objects and lists of a text, in order.
pub(super) fn values(text: &str) -> Values<'_> {
    Values { bytes: text.as_bytes(), at: 0 }
}

pub(super) struct Values<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Iterator for Values<'_> {
    type Item = FoundValue;

    fn next(&mut self) -> Option<FoundValue> {
        loop {
            let open = |byte: &u8| matches!(byte, b'{' | b'[');
            let start = self.at + self.bytes[self.at..].iter().position(open)?;
            let mut parser =
                ValueParser { bytes: self.bytes, at: start, open: Vec::new(), depth: 0 };
            let complete = parser.value().is_some();
            self.at = parser.at;
            if complete {
                return Some(FoundValue { range: start..parser.at, depth: parser.depth });
            }
        }
    }
}

/// Parser of one value. Methods return `None` at the byte where parsing fails.
struct ValueParser<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Open brackets, on an explicit stack instead of recursion: nesting costs one byte per
    /// level.
    open: Vec<u8>,
    depth: usize,
}

impl ValueParser<'_> {
    /// Parses the value at the current position.
    fn value(&mut self) -> Option<()> {
        loop {
            // A value begins.
            match self.peek()? {
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    self.open.push(bracket);
                    self.depth = self.depth.max(self.open.len());
                    self.space();
                    if self.peek()? != closing(bracket) {
                        self.key()?;
                        continue;
                    }
                }
                b'"' => self.string()?,
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            // A value has ended, or an empty bracket is about to.
            if self.close()? {
                return Some(());
            }
        }
    }

    /// Parses closing brackets and the comma after them. Returns whether all are closed.
    fn close(&mut self) -> Option<bool> {
        while let Some(bracket) = self.open.last() {
            let closing = closing(*bracket);
            self.space();
            match self.peek()? {
                b',' => {
                    self.at += 1;
                    self.space();
                    self.key()?;
                    return Some(false);
                }
                byte if byte == closing => {
                    self.at += 1;
                    self.open.pop();
                }
                _ => return None,
            }
        }
        Some(true)
    }

    /// Parses the key of an object's next value; list items have none.
    fn key(&mut self) -> Option<()> {
        if self.open.last() == Some(&b'{') {
            self.string()?;
            self.space();
            self.accept(|byte| byte == b':')?;
            self.space();
        }
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        self.accept(|byte| byte == b'"')?;
        loop {
            match self.accept(|byte| byte >= b' ')? {
                b'"' => return Some(()),
                b'\\' => {
                    let escape = self.accept(|byte| b"\"\\/bfnrtu".contains(&byte))?;
                    let digits = if escape == b'u' { 4 } else { 0 };
                    for _ in 0..digits {
                        self.accept(|byte| byte.is_ascii_hexdigit())?;
                    }
                }
                _ => {}
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        word.iter().try_for_each(|letter| self.accept(|byte| byte == *letter).map(drop))
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.accept(|byte| byte == b'-');
        if self.accept(|byte| byte == b'0').is_none() {
            self.digits()?;
        }
        if self.accept(|byte| byte == b'.').is_some() {
            self.digits()?;
        }
        if self.accept(|byte| matches!(byte, b'e' | b'E')).is_some() {
            let _ = self.accept(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        self.accept(|byte| byte.is_ascii_digit())?;
        while self.accept(|byte| byte.is_ascii_digit()).is_some() {}
        Some(())
    }

    fn space(&mut self) {
        while self.accept(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).is_some() {}
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Consumes the next byte if it is accepted.
    fn accept(&mut self, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        let byte = self.peek().filter(|byte| wanted(*byte))?;
        self.at += 1;
        Some(byte)
    }
}

fn closing(bracket: u8) -> u8 {
    if bracket == b'{' { b'}' } else { b']' }
}
