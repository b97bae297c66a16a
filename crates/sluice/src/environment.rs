//! Every environment variable that this program reads by itself and that is no
//! setting; those are read in `config`. (`NO_COLOR` and its kin are read by the
//! library that writes colours.)

use jiff::tz::TimeZone;

/// `USER`: in whose name things are done, unless `--as` says.
pub(crate) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.trim().is_empty())
}

/// `TZ`, else `/etc/localtime`: the zone that times are shown in. UTC where neither
/// names one that can be read.
pub(crate) fn time_zone() -> TimeZone {
    let named = std::env::var("TZ").ok();
    zone(named.as_deref()).unwrap_or(TimeZone::UTC)
}

fn zone(named: Option<&str>) -> Option<TimeZone> {
    let file = |path: &str| TimeZone::tzif(path, &std::fs::read(path).ok()?).ok();
    match named.map(|name| name.strip_prefix(':').unwrap_or(name)) {
        None => file("/etc/localtime"),
        Some("") => None,
        Some(path) if path.starts_with('/') => file(path),
        Some(name) => TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::moment_in;

    #[test]
    fn a_time_zone_is_named_in_any_of_the_usual_ways() {
        let shown = |name| zone(Some(name)).map(|zone| moment_in(1_793_404_800_000, &zone));
        for name in ["Europe/Berlin", ":Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"] {
            assert_eq!(shown(name).as_deref(), Some("2026-10-31 01:00:00+01:00"), "{name}");
        }
        assert_eq!(shown("UTC").as_deref(), Some("2026-10-31 00:00:00Z"));
        for unreadable in ["", "Europe/Nowhere", "/no/such/file"] {
            assert_eq!(shown(unreadable), None, "{unreadable}");
        }
    }
}
