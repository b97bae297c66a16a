//! The environment variables that are not settings, which `config` reads. (`NO_COLOR` and the
//! like are read by the library that writes colours.)

use jiff::tz::TimeZone;

/// `USER`: the principal of commands without `--as`.
pub(crate) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.trim().is_empty())
}

/// `TZ`, else `/etc/localtime`: the zone of printed times; UTC if neither is readable.
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

/// `TERM`: whether the terminal has no cursor control.
pub(crate) fn terminal_is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind == "dumb")
}

/// `OTEL_EXPORTER_OTLP_ENDPOINT`: where traces are sent, unless `otel.endpoint` is set.
pub(crate) fn otel_endpoint() -> Option<String> {
    variable("OTEL_EXPORTER_OTLP_ENDPOINT")
}

/// `OTEL_EXPORTER_OTLP_HEADERS`: headers of these requests, `name=value` separated by commas.
pub(crate) fn otel_headers() -> Option<String> {
    variable("OTEL_EXPORTER_OTLP_HEADERS")
}

/// `OTEL_SERVICE_NAME`: the service name of the traces.
pub(crate) fn otel_service() -> Option<String> {
    variable("OTEL_SERVICE_NAME")
}

fn variable(name: &str) -> Option<String> {
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
