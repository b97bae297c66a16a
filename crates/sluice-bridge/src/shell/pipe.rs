//! Standard input, output and error of a command.

use super::outcome::StopCause;
use crate::limits::{LOG_LINE_BYTES_MAX, READ_BYTES_MAX, SILENCE_MS, STDERR_TAIL_BYTES_MAX};
use sluice_core::port::adapter::{Call, Closed, Emission};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::sleep;

/// Turns true when the command has ended.
pub(super) type EndSignal = watch::Receiver<bool>;

pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Stdout,
    pub(super) stderr: Stderr,
}

/// Releases the barrier and writes standard input. A command need not read it.
pub(super) async fn feed(
    stdin: Option<ChildStdin>,
    text: &str,
    mut end: EndSignal,
) -> Result<(), StopCause> {
    let Some(mut stdin) = stdin else {
        return Ok(());
    };
    let written = async {
        stdin.write_all(b"go\n").await?;
        stdin.write_all(text.as_bytes()).await?;
        stdin.shutdown().await
    };
    let written = tokio::select! {
        biased;
        written = written => written,
        _ = end.wait_for(|ended| *ended) => Ok(()),
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(StopCause::Broken(error)),
        _ => Ok(()),
    }
}

/// Standard output: emitted as it arrives, and stored.
pub(super) struct Stdout {
    pipe: ChildStdout,
    bytes_max: usize,
    decoder: Decoder,
    text: String,
}

impl Stdout {
    pub(super) fn new(pipe: ChildStdout, bytes_max: usize) -> Stdout {
        Stdout { pipe, bytes_max, decoder: Decoder::default(), text: String::new() }
    }

    /// Reads to the end.
    pub(super) async fn read(
        &mut self,
        call: &dyn Call,
        mut end: EndSignal,
    ) -> Result<(), StopCause> {
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut bytes = 0;
        loop {
            let count = read(&mut self.pipe, &mut buffer, &mut end).await?;
            bytes += count;
            if bytes > self.bytes_max {
                return Err(StopCause::TooLong {
                    what: "standard output",
                    bytes_max: self.bytes_max,
                });
            }
            let text = match count {
                0 => self.decoder.finish(),
                _ => self.decoder.push(&buffer[..count]),
            };
            if !text.is_empty() {
                self.text.push_str(&text);
                call.emit(Emission::Text(text)).await.map_err(|Closed| StopCause::Closed)?;
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// The whole output; invalid UTF-8 is replaced.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Standard error: logged line by line; its tail is stored.
pub(super) struct Stderr {
    pipe: ChildStderr,
    bytes_max: usize,
    line: Vec<u8>,
    tail: Vec<u8>,
    /// Whether output before the tail was dropped.
    cut: bool,
}

impl Stderr {
    pub(super) fn new(pipe: ChildStderr, bytes_max: usize) -> Stderr {
        Stderr { pipe, bytes_max, line: Vec::new(), tail: Vec::new(), cut: false }
    }

    /// Reads to the end.
    pub(super) async fn read(
        &mut self,
        call: &dyn Call,
        mut end: EndSignal,
    ) -> Result<(), StopCause> {
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut bytes = 0;
        loop {
            let count = read(&mut self.pipe, &mut buffer, &mut end).await?;
            bytes += count;
            if bytes > self.bytes_max {
                return Err(StopCause::TooLong {
                    what: "standard error",
                    bytes_max: self.bytes_max,
                });
            }
            if count == 0 {
                return if self.line.is_empty() { Ok(()) } else { self.log(call).await };
            }
            self.remember(&buffer[..count]);
            for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(piece);
                if piece.ends_with(b"\n") || self.line.len() >= LOG_LINE_BYTES_MAX {
                    self.log(call).await?;
                }
            }
        }
    }

    async fn log(&mut self, call: &dyn Call) -> Result<(), StopCause> {
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end_matches(['\n', '\r']).to_owned();
        self.line.clear();
        call.emit(Emission::Log(line)).await.map_err(|Closed| StopCause::Closed)
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let over = self.tail.len().saturating_sub(STDERR_TAIL_BYTES_MAX);
        self.tail.drain(..over);
        self.cut |= over > 0;
    }

    /// The last complete lines, or the end of a single long one.
    pub(super) fn tail(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let text = text.trim_end();
        let whole = match text.split_once('\n') {
            Some((_, rest)) if self.cut => rest,
            _ => text,
        };
        whole.to_owned()
    }
}

/// Reads available bytes; 0 means the end. The pipe of an ended command closes, unless a
/// process that left the group holds it open; then the read ends after a silence.
async fn read(
    pipe: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
    end: &mut EndSignal,
) -> Result<usize, StopCause> {
    let silence = async {
        let _ = end.wait_for(|ended| *ended).await;
        sleep(Duration::from_millis(SILENCE_MS)).await;
    };
    tokio::select! {
        biased;
        count = pipe.read(buffer) => count.map_err(StopCause::Broken),
        () = silence => Ok(0),
    }
}

/// Decodes UTF-8 incrementally and replaces invalid bytes.
#[derive(Default)]
pub(super) struct Decoder {
    /// Start of an incomplete character.
    pending: Vec<u8>,
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let complete = complete(&self.pending);
        let text = String::from_utf8_lossy(&self.pending[..complete]).into_owned();
        self.pending.drain(..complete);
        text
    }

    pub(super) fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        text
    }
}

/// Length without an incomplete last character.
fn complete(bytes: &[u8]) -> usize {
    let Some(last) = bytes.utf8_chunks().last() else {
        return 0;
    };
    let rest = last.invalid();
    let begun = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    if begun { bytes.len() - rest.len() } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes the pieces one by one.
    fn decoded(pieces: &[Vec<u8>]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut texts: Vec<String> = pieces.iter().map(|piece| decoder.push(piece)).collect();
        texts.push(decoder.finish());
        texts
    }

    #[test]
    fn a_character_waits_for_its_rest() {
        let euro = "€".as_bytes();
        assert_eq!(decoded(&[euro[..1].to_vec(), euro[1..].to_vec()]), ["", "€", ""]);
        assert_eq!(decoded(&[euro[..2].to_vec()]), ["", "\u{fffd}"]);
        assert_eq!(decoded(&[euro[..2].to_vec(), b"a".to_vec()]), ["", "\u{fffd}a", ""]);
        assert_eq!(decoded(&[vec![0xff], vec![0x80]]), ["\u{fffd}", "\u{fffd}", ""]);
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            pieces in prop::collection::vec(
                prop::collection::vec(
                    prop_oneof![any::<u8>(), Just(0xe2), Just(0x82), Just(0xac), Just(0xf0), Just(0x9f)],
                    0..6,
                ),
                0..8,
            ),
        ) {
            let whole = String::from_utf8_lossy(&pieces.concat()).into_owned();
            prop_assert_eq!(decoded(&pieces).concat(), whole);
        }
    }
}
