//! Distributed tracing of runs: W3C trace context and span ids.
//!
//! The id of a span is derived from its subject, so every process computes the same one: a node
//! can name the parent span of a request that another node reports later, after it has
//! recovered the run.

use crate::id::RunId;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A W3C `traceparent`: the remote span that caused something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace id: 32 hexadecimal digits, not all zero.
    pub trace_id: String,
    /// The id of the parent span: 16 hexadecimal digits, not all zero.
    pub span_id: String,
}

impl TraceParent {
    /// Parses a header; `None` if it is not valid.
    pub fn parse(header: &str) -> Option<TraceParent> {
        let mut parts = header.split('-');
        let (version, trace_id, span_id) = (parts.next()?, parts.next()?, parts.next()?);
        let flags = parts.next()?;
        let known = is_hex(version, 2) && version != "ff";
        // Later versions may have more parts; the first has four.
        let whole = is_hex(flags, 2) && (version != "00" || parts.next().is_none());
        let ids = is_id(trace_id, 32) && is_id(span_id, 16);
        let (trace_id, span_id) = (trace_id.to_owned(), span_id.to_owned());
        (known && whole && ids).then_some(TraceParent { trace_id, span_id })
    }
}

/// The header, with the sampled flag.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace_id, self.span_id)
    }
}

/// Whether a text is a valid trace id.
pub fn is_trace_id(text: &str) -> bool {
    is_id(text, 32)
}

/// Whether a text is a valid span id.
pub fn is_span_id(text: &str) -> bool {
    is_id(text, 16)
}

/// The span id of one dispatch of a step.
pub fn step_span(run: RunId, step: &str, dispatch_no: u32) -> String {
    span("step", run, step, dispatch_no)
}

/// The span id of the call that the dispatch makes.
pub fn call_span(run: RunId, step: &str, dispatch_no: u32) -> String {
    span("call", run, step, dispatch_no)
}

fn span(kind: &str, run: RunId, step: &str, dispatch_no: u32) -> String {
    let hash = Sha256::digest(format!("{kind} {run} {dispatch_no} {step}"));
    let bits = hash.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    // Zero is not a valid span id.
    format!("{:016x}", bits.max(1))
}

fn is_hex(text: &str, length: usize) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == length && text.bytes().all(digit)
}

fn is_id(text: &str, length: usize) -> bool {
    is_hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_header_is_read_and_written_back() {
        let header = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let parsed = TraceParent::parse(&header).unwrap();
        assert_eq!(parsed.to_string(), header);
        let later = format!("01-{TRACE}-00f067aa0ba902b7-00-more");
        assert_eq!(TraceParent::parse(&later), Some(parsed));
    }

    #[test]
    fn what_makes_no_sense_is_not_taken() {
        let zeros = (&"0".repeat(32), &"0".repeat(16));
        for header in [
            "",
            "00",
            &format!("00-{TRACE}"),
            &format!("00-{TRACE}-00f067aa0ba902b7"),
            &format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            &format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            &format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            &format!("00-{}-00f067aa0ba902b7-01", zeros.0),
            &format!("00-{TRACE}-{}-01", zeros.1),
            &format!("00-{TRACE}-00f067aa0ba902b-01"),
            &format!("0-{TRACE}-00f067aa0ba902b7-01"),
        ] {
            assert_eq!(TraceParent::parse(header), None, "{header}");
        }
    }

    #[test]
    fn spans_are_told_apart_by_all_they_are_about() {
        let (one, two) = (RunId(1), RunId(2));
        let spans = [
            step_span(one, "a", 1),
            step_span(one, "a", 2),
            step_span(one, "b", 1),
            step_span(two, "a", 1),
            call_span(one, "a", 1),
        ];
        for (at, span) in spans.iter().enumerate() {
            assert!(is_span_id(span), "{span}");
            assert!(!spans[..at].contains(span), "{span}");
        }
        assert_eq!(step_span(one, "a", 1), spans[0]);
    }
}
