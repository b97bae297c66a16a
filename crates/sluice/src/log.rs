//! What a server says of itself while it runs, on standard error.
//!
//! INVARIANT: no secret and no text of a prompt or an answer is logged: messages
//! carry ids, codes and figures. Where one holds a secret all the same, it is taken out.

use crate::config::{self, setting::Name};
use sluice_bridge::secret::known;
use std::io::{self, Stderr, Write};
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

/// Standard error, without secrets that were read. A line is written at once, so
/// none is split.
struct Clean(Stderr);

impl Write for Clean {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let clean = known::process().scrub().bytes(line);
        self.0.write_all(clean.as_deref().unwrap_or(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
