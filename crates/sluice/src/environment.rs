//! Every environment variable that this program reads by itself and that is no
//! setting; those are read in `config`. (`NO_COLOR` and its kin are read by the
//! library that writes colours.)

/// `USER`: in whose name things are done, unless `--as` says.
pub(crate) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.trim().is_empty())
}

/// `TERM`: whether the terminal can do no more than print.
pub(crate) fn terminal_is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind == "dumb")
}

/// `OTEL_EXPORTER_OTLP_ENDPOINT`: where traces are sent, unless `otel.endpoint` says.
pub(crate) fn otel_endpoint() -> Option<String> {
    said("OTEL_EXPORTER_OTLP_ENDPOINT")
}

/// `OTEL_EXPORTER_OTLP_HEADERS`: what is sent along, `name=value` by commas.
pub(crate) fn otel_headers() -> Option<String> {
    said("OTEL_EXPORTER_OTLP_HEADERS")
}

/// `OTEL_SERVICE_NAME`: as whose traces they are sent.
pub(crate) fn otel_service() -> Option<String> {
    said("OTEL_SERVICE_NAME")
}

fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
