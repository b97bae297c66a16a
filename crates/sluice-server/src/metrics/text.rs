//! The Prometheus text format, version 0.0.4.

use super::histogram::{BOUNDS_US, Histogram};
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy)]
pub(super) enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Starts a metric; its samples follow.
    pub(super) fn head(&mut self, name: &str, kind: MetricType, about: &str) {
        let kind = match kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }

    /// A counter without labels, with its sample.
    pub(super) fn counter(&mut self, name: &str, about: &str, count: u64) {
        self.head(name, MetricType::Counter, about);
        self.count(name, &[], count);
    }

    /// A sample with an integer.
    pub(super) fn count(&mut self, name: &str, labels: &[(&str, &str)], count: u64) {
        self.begin(name, labels);
        let _ = writeln!(self.0, " {count}");
    }

    /// A sample with a float.
    pub(super) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.begin(name, labels);
        let _ = writeln!(self.0, " {value}");
    }

    /// A histogram of durations, in seconds.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        about: &str,
        all: &[(&[(&str, &str)], &Histogram)],
    ) {
        self.head(name, MetricType::Histogram, about);
        for (labels, histogram) in all {
            let (upto, sum_us) = histogram.read();
            let bounds = BOUNDS_US.iter().map(|us| (*us as f64 / 1e6).to_string());
            let bounds = bounds.chain(["+Inf".to_owned()]);
            for (bound, count) in bounds.zip(upto) {
                self.bucket(name, labels, &bound, count);
            }
            self.line(&format!("{name}_sum"), labels, sum_us as f64 / 1e6);
            self.count(&format!("{name}_count"), labels, upto[upto.len() - 1]);
        }
    }

    /// A histogram of sizes by powers of two, with their sum.
    pub(super) fn sizes(&mut self, name: &str, labels: &[(&str, &str)], by: &[u64], sum: u64) {
        let mut upto = 0;
        for (power, count) in by.iter().enumerate() {
            upto += count;
            self.bucket(name, labels, &(1u64 << power).to_string(), upto);
        }
        self.bucket(name, labels, "+Inf", upto);
        self.count(&format!("{name}_sum"), labels, sum);
        self.count(&format!("{name}_count"), labels, upto);
    }

    fn bucket(&mut self, name: &str, labels: &[(&str, &str)], bound: &str, count: u64) {
        let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound)]).collect();
        self.count(&format!("{name}_bucket"), &labels, count);
    }

    fn begin(&mut self, name: &str, labels: &[(&str, &str)]) {
        self.0.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"");
            for letter in value.chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    letter => self.0.push(letter),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
    }

    /// The complete text.
    pub(super) fn finish(self) -> String {
        self.0
    }
}
