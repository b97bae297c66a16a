//! Parser for server-sent events: returns the joined `data` lines of each event.
//!
//! INVARIANT: at most one event is buffered, and no event is longer than a message may be.

use crate::limits::MCP_MESSAGE_BYTES_MAX;

/// An event exceeds the limit of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventTooLong;

#[derive(Debug, Default)]
pub(super) struct EventParser {
    line: Vec<u8>,
    data: Vec<u8>,
    /// The last byte was a carriage return; a line feed after it belongs to the same line
    /// end.
    after_return: bool,
}

impl EventParser {
    /// Parses bytes; returns the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, EventTooLong> {
        let mut events = Vec::new();
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_line(&mut events),
                other => self.line.push(*other),
            }
            if self.line.len() + self.data.len() > MCP_MESSAGE_BYTES_MAX {
                return Err(EventTooLong);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self, events: &mut Vec<Vec<u8>>) {
        if self.line.is_empty() {
            let mut data = std::mem::take(&mut self.data);
            // Each data line ended with a line feed; the last one does not belong
            // to the data.
            data.pop();
            if !data.is_empty() {
                events.push(data);
            }
            return;
        }
        let line = std::mem::take(&mut self.line);
        if let Some(value) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.data.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(text: &str, piece: usize) -> Vec<String> {
        let mut reading = EventParser::default();
        let pieces = text.as_bytes().chunks(piece);
        let all = pieces.flat_map(|piece| reading.push(piece).unwrap());
        all.map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn data_is_joined_and_everything_else_left_out() {
        let text = ": hello\nid: 1\nevent: message\ndata: a\ndata:b\n\ndata:\n\n\ndata: c\r\n\r\ndata: d\r\rdata: lost";
        for piece in [1, 2, 3, 7, 100] {
            assert_eq!(events(text, piece), ["a\nb", "c", "d"], "{piece}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut reading = EventParser::default();
        let part = vec![b'x'; 1024 * 1024];
        let ended = (0..10).map(|_| reading.push(&part)).find(Result::is_err);
        assert_eq!(ended, Some(Err(EventTooLong)));
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(text in "(data: ?|[a\r\n:])*", piece in 1usize..5) {
            prop_assert_eq!(events(&text, piece), events(&text, text.len().max(1)));
        }
    }
}
