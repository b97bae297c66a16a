//! Streaming parser for server-sent events.
//!
//! A chunk may end anywhere: within a line, a character, or a CR LF pair. Invalid UTF-8 is
//! replaced, as the format requires.
//!
//! INVARIANT: the chunking of a stream never changes its events. Lines and events are bounded.
//! An event that is not ended by an empty line is dropped.

use crate::limits::{EVENT_BYTES_MAX, EVENT_LINE_BYTES_MAX};

const MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SseEvent {
    /// Value of `event:`; empty if there is none.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// The stream exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadStream {
    #[error("its stream has a line over {EVENT_LINE_BYTES_MAX} bytes")]
    Line,
    #[error("its stream has an event over {EVENT_BYTES_MAX} bytes")]
    Event,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits {
    /// In bytes.
    pub(crate) line: usize,
    /// In bytes.
    pub(crate) event: usize,
}

#[derive(Debug)]
pub(crate) struct SseReader {
    limits: StreamLimits,
    line: Vec<u8>,
    /// Whether the last byte was a carriage return; its line feed may follow.
    returned: bool,
    /// Whether no line has ended yet: the first may begin with a byte order mark.
    first: bool,
    event: SseEvent,
    says: bool,
}

impl SseReader {
    pub(crate) fn new() -> SseReader {
        SseReader::within(StreamLimits { line: EVENT_LINE_BYTES_MAX, event: EVENT_BYTES_MAX })
    }

    /// A parser with other limits.
    pub(crate) fn within(limits: StreamLimits) -> SseReader {
        let (line, event) = (Vec::new(), SseEvent::default());
        SseReader { limits, line, returned: false, first: true, event, says: false }
    }

    /// Parses a chunk; returns the events that it completes.
    pub(crate) fn push(&mut self, mut part: &[u8]) -> Result<Vec<SseEvent>, BadStream> {
        let mut events = Vec::new();
        if self.returned && !part.is_empty() {
            self.returned = false;
            part = part.strip_prefix(b"\n").unwrap_or(part);
        }
        while let Some(end) = part.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.grow(&part[..end])?;
            self.end_line(&mut events)?;
            let returned = part[end] == b'\r';
            part = &part[end + 1..];
            match (returned, part.is_empty()) {
                (true, true) => self.returned = true,
                (true, false) => part = part.strip_prefix(b"\n").unwrap_or(part),
                (false, _) => {}
            }
        }
        self.grow(part)?;
        Ok(events)
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), BadStream> {
        if self.line.len() + bytes.len() > self.limits.line {
            return Err(BadStream::Line);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), BadStream> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first) && line.starts_with(MARK) {
            line.drain(..MARK.len());
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.says) {
                events.push(event);
            }
        } else {
            self.field(&line)?;
        }
        // The buffer is reused, unless it grew for one long line.
        line.clear();
        if line.capacity() <= 64 * 1024 {
            self.line = line;
        }
        Ok(())
    }

    fn field(&mut self, line: &[u8]) -> Result<(), BadStream> {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if self.event.data.len() + value.len() + 1 > self.limits.event {
                    return Err(BadStream::Event);
                }
                if std::mem::replace(&mut self.says, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            // Comments, ids and unknown fields.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
