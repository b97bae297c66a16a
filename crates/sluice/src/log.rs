//! What a server says of itself while it runs, on standard error.
//!
//! INVARIANT: no secret and no text of a prompt or an answer is logged: messages
//! carry ids, codes and figures.

use crate::config::{self, setting::Name};
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
    let log = fmt().with_max_level(level).with_writer(std::io::stderr).with_target(true);
    // A second beginning would find the first one: nobody does so.
    let _ = match config.text(Name::LogFormat) {
        Some("json") => log.json().try_init(),
        _ => log.with_ansi(false).try_init(),
    };
}
