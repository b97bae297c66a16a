//! Reads lines from a pipe, with a length limit.

use crate::limits::READ_BYTES_MAX;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Treatment of a line over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LongLine {
    /// It is an error.
    Refused,
    /// It is returned in pieces.
    Cut,
}

#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    pipe: R,
    bytes_max: usize,
    long: LongLine,
    buffer: Vec<u8>,
    /// Length of the prefix that has no line end.
    searched: usize,
    ended: bool,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    /// Fails at a line over the limit.
    pub(super) fn new(pipe: R, bytes_max: usize) -> BoundedLines<R> {
        BoundedLines {
            pipe,
            bytes_max,
            long: LongLine::Refused,
            buffer: Vec::new(),
            searched: 0,
            ended: false,
        }
    }

    /// Returns a line over the limit in pieces.
    pub(super) fn cutting(self) -> BoundedLines<R> {
        BoundedLines { long: LongLine::Cut, ..self }
    }

    /// Next line without its line end; `None` when the pipe is closed. Cancel-safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(at) = found {
                let mut line: Vec<u8> = self.buffer.drain(..=self.searched + at).collect();
                self.searched = 0;
                line.pop();
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            let over = self.buffer.len() > self.bytes_max;
            if over && self.long == LongLine::Refused {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if over || self.ended {
                self.searched = 0;
                let rest = std::mem::take(&mut self.buffer);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let mut part = vec![0; READ_BYTES_MAX];
            let count = self.pipe.read(&mut part).await?;
            self.buffer.extend_from_slice(&part[..count]);
            self.ended = count == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(mut lines: BoundedLines<&[u8]>) -> Result<Vec<String>, io::ErrorKind> {
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.map_err(|error| error.kind())? {
            all.push(String::from_utf8(line).unwrap());
        }
        Ok(all)
    }

    #[tokio::test]
    async fn lines_are_split_at_line_feeds() {
        let lines = BoundedLines::new(&b"a\n\nbc\nrest"[..], 100);
        assert_eq!(read(lines).await.unwrap(), ["a", "", "bc", "rest"]);
    }

    #[tokio::test]
    async fn a_line_over_the_bound_is_refused_or_cut() {
        let long = vec![b'x'; 3 * READ_BYTES_MAX];
        let refused = BoundedLines::new(&long[..], READ_BYTES_MAX);
        assert_eq!(read(refused).await, Err(io::ErrorKind::InvalidData));
        let cut = read(BoundedLines::new(&long[..], READ_BYTES_MAX).cutting()).await.unwrap();
        assert_eq!(cut.concat().len(), long.len());
        assert!(cut.iter().all(|part| part.len() <= 2 * READ_BYTES_MAX), "{}", cut.len());
    }
}
