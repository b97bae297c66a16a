//! The log of a server, on standard error.
//!
//! INVARIANT: no secret and no text of a prompt or an answer is logged: messages carry ids,
//! codes and figures. A known secret is redacted in any case.

mod fold;

use crate::config::{self, setting::Name};
use fold::{Fold, INTERVAL};
use sluice_bridge::secret::known;
use std::io::{self, Stderr, Write};
use std::sync::Arc;
use std::time::Instant;
use tracing::Metadata;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::{MakeWriter, OptionalWriter};

/// Starts logging as configured.
pub(crate) fn begin() {
    let config = config::get();
    let level = match config.text(Name::LogLevel) {
        Some("error") => LevelFilter::ERROR,
        Some("warn") => LevelFilter::WARN,
        Some("debug") => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    let fold = Arc::new(Fold::default());
    let log =
        fmt().with_max_level(level).with_writer(LogWriter(Arc::clone(&fold))).with_target(true);
    // Only fails if logging was started before.
    let _ = match config.text(Name::LogFormat) {
        Some("json") => log.json().try_init(),
        _ => log.with_ansi(false).try_init(),
    };
    // Without this thread only the counts of omitted lines are missing.
    let _ = std::thread::Builder::new().name("log".to_owned()).spawn(move || count(&fold));
}

/// Logs how many lines were omitted in each interval.
fn count(fold: &Fold) {
    loop {
        std::thread::sleep(INTERVAL);
        for omitted in fold.ended(Instant::now()) {
            let (lines, of) = (omitted.lines, omitted.target);
            tracing::warn!(lines, of, "more lines like one above were left out");
        }
    }
}

/// Writes lines that are not omitted.
struct LogWriter(Arc<Fold>);

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = OptionalWriter<RedactingWriter<Stderr>>;

    fn make_writer(&'a self) -> Self::Writer {
        OptionalWriter::some(RedactingWriter(io::stderr()))
    }

    fn make_writer_for(&'a self, line: &Metadata<'_>) -> Self::Writer {
        if self.0.writes(line, Instant::now()) {
            self.make_writer()
        } else {
            OptionalWriter::none()
        }
    }
}

/// Redacts known secrets. Each line is one write, so no secret is split.
struct RedactingWriter<W>(W);

impl<W: Write> Write for RedactingWriter<W> {
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
    use super::fold::Omitted;
    use super::*;
    use sluice_bridge::secret::Secret;
    use tracing::level_filters::LevelFilter as Level;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    #[test]
    fn a_secret_that_was_read_is_taken_out_of_a_line() {
        known::process().note("env:LOGGED", &Secret::new("logged-hunter2")).unwrap();
        let mut lines = Vec::new();
        RedactingWriter(&mut lines).write_all(b"sent logged-hunter2 to them\n").unwrap();
        RedactingWriter(&mut lines).write_all(b"and nothing else\n").unwrap();
        let text = String::from_utf8(lines).unwrap();
        assert_eq!(text, "sent [redacted] to them\nand nothing else\n");
    }

    struct CountingLayer(Arc<Fold>, Arc<std::sync::Mutex<Vec<bool>>>);

    impl<S: tracing::Subscriber> Layer<S> for CountingLayer {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            let written = self.0.writes(event.metadata(), Instant::now());
            self.1.lock().unwrap().push(written);
        }
    }

    #[test]
    fn a_line_that_comes_two_hundred_times_is_written_ten_times_and_counted() {
        let (fold, seen) = (Arc::new(Fold::default()), Arc::default());
        let counting =
            CountingLayer(Arc::clone(&fold), Arc::clone(&seen)).with_filter(Level::DEBUG);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(counting), || {
            for _ in 0..200 {
                tracing::error!("the disk is full");
            }
            tracing::error!("something else");
            for _ in 0..20 {
                tracing::debug!("wanted in full");
            }
        });
        let written = seen.lock().unwrap().iter().filter(|written| **written).count();
        assert_eq!(written, 10 + 1 + 20);
        assert_eq!(fold.ended(Instant::now()), []);
        let target = module_path!().to_owned();
        assert_eq!(fold.ended(Instant::now() + INTERVAL), [Omitted { lines: 190, target }]);
        assert_eq!(fold.ended(Instant::now() + INTERVAL), []);
    }
}
