//! What a server says of itself while it runs, on standard error.
//!
//! INVARIANT: no secret and no text of a prompt or an answer is logged: messages
//! carry ids, codes and figures. Where one holds a secret all the same, it is taken out.

use crate::config::{self, setting::Name};
use sluice_bridge::secret::known;
use std::io::{self, Write};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// Begins to log, as the settings say.
pub(crate) fn begin() {
    let config = config::get();
    let level = match config.text(Name::LogLevel) {
        Some("error") => LevelFilter::ERROR,
        Some("warn") => LevelFilter::WARN,
        Some("debug") => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    let log = fmt().with_max_level(level).with_writer(|| Clean(io::stderr())).with_target(true);
    // A second beginning would find the first one: nobody does so.
    let _ = match config.text(Name::LogFormat) {
        Some("json") => log.json().try_init(),
        _ => log.with_ansi(false).try_init(),
    };
}

/// Where lines go, without secrets that were read. A line is written at once, so
/// none is split.
struct Clean<W>(W);

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let clean = known::process().scrub().bytes(line);
        self.0.write_all(clean.as_deref().unwrap_or(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_bridge::secret::Secret;

    #[test]
    fn a_secret_that_was_read_is_taken_out_of_a_line() {
        known::process().note(&Secret::new("logged-hunter2"));
        let mut lines = Vec::new();
        Clean(&mut lines).write_all(b"sent logged-hunter2 to them\n").unwrap();
        Clean(&mut lines).write_all(b"and nothing else\n").unwrap();
        let text = String::from_utf8(lines).unwrap();
        assert_eq!(text, "sent [redacted] to them\nand nothing else\n");
    }
}
