//! Splits a response into messages: one message, or a stream of events.

/// The part of a body that is incomplete.
pub(super) struct MessageReader {
    buffer: Vec<u8>,
    /// The data of an incomplete event.
    data: Vec<String>,
    shape: MessageFormat,
}

#[derive(PartialEq, Eq)]
enum MessageFormat {
    Whole,
    Events,
}

impl MessageReader {
    /// A body that is one message.
    pub(super) fn whole() -> MessageReader {
        MessageReader { buffer: Vec::new(), data: Vec::new(), shape: MessageFormat::Whole }
    }

    /// A body that is a stream of events.
    pub(super) fn events() -> MessageReader {
        MessageReader { shape: MessageFormat::Events, ..MessageReader::whole() }
    }

    /// Adds a chunk. Returns complete messages; none if an incomplete one is too long.
    pub(super) fn feed(&mut self, piece: &[u8], bytes_max: usize) -> Option<Vec<String>> {
        self.buffer.extend_from_slice(piece);
        let mut messages = Vec::new();
        while self.shape == MessageFormat::Events
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

    /// Ends the body. An incomplete event is dropped.
    pub(super) fn end(&mut self) -> Option<Vec<String>> {
        let rest = std::mem::take(&mut self.buffer);
        Some(match self.shape {
            MessageFormat::Whole => vec![String::from_utf8_lossy(&rest).into_owned()],
            MessageFormat::Events => Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_complete_with_their_empty_line() {
        let mut lines = MessageReader::events();
        assert_eq!(lines.feed(b": hello\nid: 1\ndata: {\"a\"", 99), Some(vec![]));
        assert_eq!(lines.feed(b":1}\r\n\r\ndata:x\n", 99), Some(vec!["{\"a\":1}".to_owned()]));
        assert_eq!(lines.feed(b"data: y\n\n\n", 99), Some(vec!["x\ny".to_owned()]));
        assert_eq!(lines.feed(b"data: cut off", 99), Some(vec![]));
        assert_eq!(lines.end(), Some(vec![]));
    }

    #[test]
    fn a_body_that_is_one_message_is_taken_whole_and_not_for_ever() {
        let mut lines = MessageReader::whole();
        assert_eq!(lines.feed(b"{\n", 4), Some(vec![]));
        assert_eq!(lines.feed(b"}", 4), Some(vec![]));
        assert_eq!(lines.end(), Some(vec!["{\n}".to_owned()]));
        assert_eq!(MessageReader::whole().feed(b"12345", 4), None);
        assert_eq!(MessageReader::events().feed(b"data: 12345\n", 4), None);
    }
}
