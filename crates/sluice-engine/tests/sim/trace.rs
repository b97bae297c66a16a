//! The engine's log while a seed is played: `SIM_TRACE=1`.

use std::fmt::{self, Write as _};
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Prints every log record with its virtual time.
pub(crate) struct Printer {
    pub(crate) began: Instant,
}

impl Printer {
    /// Whether tracing is enabled.
    pub(crate) fn is_wanted() -> bool {
        std::env::var_os("SIM_TRACE").is_some()
    }
}

struct LogLine(String);

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("memory takes it");
    }
}

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("sluice")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine(String::new());
        event.record(&mut line);
        let at_ms = self.began.elapsed().as_millis();
        println!("@{at_ms} {}{}", event.metadata().target(), line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
