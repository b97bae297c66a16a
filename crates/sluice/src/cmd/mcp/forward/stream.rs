//! Bodies of answers, taken apart: one message, or a stream of events.

/// The part of a body that is not complete yet.
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// The data of an event whose end has not come.
    data: Vec<String>,
    shape: Shape,
}

#[derive(PartialEq, Eq)]
enum Shape {
    Whole,
    Events,
}

impl Lines {
    /// A body that is one message.
    pub(super) fn whole() -> Lines {
        Lines { buffer: Vec::new(), data: Vec::new(), shape: Shape::Whole }
    }

    /// A body that is a stream of events.
    pub(super) fn events() -> Lines {
        Lines { shape: Shape::Events, ..Lines::whole() }
    }

    /// Takes a piece; answers the messages that are complete, or none if too much
    /// waits for its end.
    pub(super) fn take(&mut self, piece: &[u8], bytes_max: usize) -> Option<Vec<String>> {
        self.buffer.extend_from_slice(piece);
        let mut messages = Vec::new();
        while self.shape == Shape::Events
            && let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n')
        {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() && !self.data.is_empty() {
                messages.push(std::mem::take(&mut self.data).join("\n"));
            } else if let Some(data) = line.strip_prefix("data:") {
                self.data.push(data.strip_prefix(' ').unwrap_or(data).to_owned());
            }
        }
        let waiting = self.buffer.len() + self.data.iter().map(String::len).sum::<usize>();
        (waiting <= bytes_max).then_some(messages)
    }

    /// The body is over. An event without its end does not count.
    pub(super) fn end(&mut self) -> Option<Vec<String>> {
        let rest = std::mem::take(&mut self.buffer);
        Some(match self.shape {
            Shape::Whole => vec![String::from_utf8_lossy(&rest).into_owned()],
            Shape::Events => Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_complete_with_their_empty_line() {
        let mut lines = Lines::events();
        assert_eq!(lines.take(b": hello\nid: 1\ndata: {\"a\"", 99), Some(vec![]));
        assert_eq!(lines.take(b":1}\r\n\r\ndata:x\n", 99), Some(vec!["{\"a\":1}".to_owned()]));
        assert_eq!(lines.take(b"data: y\n\n\n", 99), Some(vec!["x\ny".to_owned()]));
        assert_eq!(lines.take(b"data: cut off", 99), Some(vec![]));
        assert_eq!(lines.end(), Some(vec![]));
    }

    #[test]
    fn a_body_that_is_one_message_is_taken_whole_and_not_for_ever() {
        let mut lines = Lines::whole();
        assert_eq!(lines.take(b"{\n", 4), Some(vec![]));
        assert_eq!(lines.take(b"}", 4), Some(vec![]));
        assert_eq!(lines.end(), Some(vec!["{\n}".to_owned()]));
        assert_eq!(Lines::whole().take(b"12345", 4), None);
        assert_eq!(Lines::events().take(b"data: 12345\n", 4), None);
    }
}
