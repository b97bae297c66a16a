//! What goes into a command and comes out of it.

use super::outcome::Stop;
use crate::limits::{LOG_LINE_BYTES_MAX, READ_BYTES_MAX, SILENCE_MS, STDERR_TAIL_BYTES_MAX};
use sluice_core::port::adapter::{Call, Closed, Emission};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::sleep;

/// Turns true when the command has ended.
pub(super) type End = watch::Receiver<bool>;

/// Our ends of a command's pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Stdout,
    pub(super) stderr: Stderr,
}

/// Opens the gate and hands over standard input. A command need not read it.
pub(super) async fn feed(stdin: Option<ChildStdin>, text: &str, mut end: End) -> Result<(), Stop> {
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
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Stop::Broken(error)),
        _ => Ok(()),
    }
}

/// Standard output: emitted as it comes, and kept.
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
    pub(super) async fn read(&mut self, call: &dyn Call, mut end: End) -> Result<(), Stop> {
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut bytes = 0;
        loop {
            let count = read(&mut self.pipe, &mut buffer, &mut end).await?;
            bytes += count;
            if bytes > self.bytes_max {
                return Err(Stop::TooLong { what: "standard output", bytes_max: self.bytes_max });
            }
            let text = match count {
                0 => self.decoder.finish(),
                _ => self.decoder.push(&buffer[..count]),
            };
            if !text.is_empty() {
                self.text.push_str(&text);
                call.emit(Emission::Text(text)).await.map_err(|Closed| Stop::Closed)?;
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// All that came, exactly, but for bytes that are no UTF-8.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Standard error: logged line by line, and its end kept.
pub(super) struct Stderr {
    pipe: ChildStderr,
    bytes_max: usize,
    line: Vec<u8>,
    tail: Vec<u8>,
    /// Whether something came before the tail.
    cut: bool,
}

impl Stderr {
    pub(super) fn new(pipe: ChildStderr, bytes_max: usize) -> Stderr {
        Stderr { pipe, bytes_max, line: Vec::new(), tail: Vec::new(), cut: false }
    }

    /// Reads to the end.
    pub(super) async fn read(&mut self, call: &dyn Call, mut end: End) -> Result<(), Stop> {
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut bytes = 0;
        loop {
            let count = read(&mut self.pipe, &mut buffer, &mut end).await?;
            bytes += count;
            if bytes > self.bytes_max {
                return Err(Stop::TooLong { what: "standard error", bytes_max: self.bytes_max });
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

    async fn log(&mut self, call: &dyn Call) -> Result<(), Stop> {
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end_matches(['\n', '\r']).to_owned();
        self.line.clear();
        call.emit(Emission::Log(line)).await.map_err(|Closed| Stop::Closed)
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let over = self.tail.len().saturating_sub(STDERR_TAIL_BYTES_MAX);
        self.tail.drain(..over);
        self.cut |= over > 0;
    }

    /// The last lines, whole unless there is only one.
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

/// Reads what is there; nothing means that nothing more comes. The pipe of a
/// command that has ended closes, unless somebody who left its group holds it.
async fn read(
    pipe: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
    end: &mut End,
) -> Result<usize, Stop> {
    let silence = async {
        let _ = end.wait_for(|ended| *ended).await;
        sleep(Duration::from_millis(SILENCE_MS)).await;
    };
    tokio::select! {
        biased;
        count = pipe.read(buffer) => count.map_err(Stop::Broken),
        () = silence => Ok(0),
    }
}

/// Bytes to text, piece by piece. Bytes that are no UTF-8 are replaced.
#[derive(Default)]
pub(super) struct Decoder {
    /// The beginning of a character whose rest has not come yet.
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

/// How many bytes there are before a last character that is only begun.
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

    /// What the decoder makes of the pieces, one by one.
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
