//! Classifies a provider's errors.
//!
//! The class decides what the run does next: retry, wait, or involve a person. The provider's
//! message is shown, truncated.

use crate::limits::{COMPLAINT_BYTES_MAX, RETRY_AFTER_MS_MAX};
use crate::outbound::error::{OutboundError, peer_at};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use sluice_core::port::adapter::{CallError, CallErrorCode};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn error(code: CallErrorCode, message: impl Into<String>) -> CallError {
    CallError { code, message: message.into(), retry_after_ms: None }
}

pub(super) fn provider(message: String) -> CallError {
    error(CallErrorCode::ProviderError, message)
}

/// The provider or the adapter rejects the request.
pub(super) fn invalid(message: impl Into<String>) -> CallError {
    error(CallErrorCode::InvalidRequest, message)
}

/// A request that got no response, or an incomplete one.
pub(super) fn of_outbound(trouble: &OutboundError, url: &str) -> CallError {
    let code = match trouble {
        OutboundError::Refused(_) => CallErrorCode::InvalidRequest,
        OutboundError::Late => CallErrorCode::Timeout,
        OutboundError::Unreachable(_) | OutboundError::Broken | OutboundError::TooLong(_) => {
            CallErrorCode::ProviderError
        }
    };
    error(code, format!("{} {trouble}", peer_at("the provider", url)))
}

/// A response with a status other than 200.
pub(super) fn of_status(status: u16, headers: &HeaderMap, body: &[u8], url: &str) -> CallError {
    let said: Option<Value> = serde_json::from_slice(body).ok();
    let complaint = said.as_ref().map(first_of);
    let code = complaint.and_then(|said| specific_code(status, said)).unwrap_or(match status {
        401 | 403 => CallErrorCode::Auth,
        408 | 504 => CallErrorCode::Timeout,
        429 | 529 => CallErrorCode::RateLimit,
        400..=499 => CallErrorCode::InvalidRequest,
        _ => CallErrorCode::ProviderError,
    });
    let text = complaint.and_then(message).map(str::to_owned);
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let hint = match status {
        300..400 => "; check the base URL",
        404 | 405 if complaint.and_then(message).is_none() => "; check the base URL",
        _ => "",
    };
    let text = one_line(&text);
    let detail = if text.is_empty() { String::new() } else { format!(": {text}") };
    let wait = retry_after(headers).or_else(|| complaint.and_then(retry_delay));
    CallError {
        code,
        message: format!("{} answered {status}{detail}{hint}", peer_at("the provider", url)),
        retry_after_ms: wait.map(|ms| ms.min(RETRY_AFTER_MS_MAX)),
    }
}

/// An error within a stream, if the event is one.
pub(super) fn in_stream(said: &Value) -> Option<CallError> {
    let said = first_of(said);
    let complaint = said.get("error").filter(|complaint| !complaint.is_null())?;
    let kind = ["type", "status", "code"].iter().find_map(|name| complaint.get(name)?.as_str());
    let number = complaint.get("code").and_then(Value::as_u64);
    let status = match kind.unwrap_or_default() {
        "overloaded_error" | "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => {
            429
        }
        "authentication_error" | "permission_error" | "UNAUTHENTICATED" | "PERMISSION_DENIED" => {
            401
        }
        "invalid_request_error"
        | "not_found_error"
        | "request_too_large"
        | "INVALID_ARGUMENT"
        | "NOT_FOUND" => 400,
        "timeout_error" | "DEADLINE_EXCEEDED" => 504,
        _ => number.and_then(|number| u16::try_from(number).ok()).unwrap_or(500),
    };
    let mut error = of_status(status, &HeaderMap::new(), said.to_string().as_bytes(), "");
    let text = one_line(message(said).unwrap_or("no reason given"));
    error.message = format!("the provider aborted: {text}");
    Some(error)
}

/// Gemini wraps stream errors in a list.
fn first_of(said: &Value) -> &Value {
    said.get(0).unwrap_or(said)
}

/// Cases where the status alone is not specific enough.
fn specific_code(status: u16, said: &Value) -> Option<CallErrorCode> {
    let complaint = said.get("error")?;
    let is = |name: &str, word: &str| complaint.get(name).and_then(Value::as_str) == Some(word);
    if is("type", "overloaded_error") {
        return Some(CallErrorCode::RateLimit);
    }
    if is("code", "content_filter") || is("code", "content_policy_violation") {
        return Some(CallErrorCode::ContentFilter);
    }
    let reasons = complaint.get("details").and_then(Value::as_array).into_iter().flatten();
    let mut reasons = reasons.filter_map(|detail| detail.get("reason")?.as_str());
    (status == 400 && reasons.any(|reason| reason == "API_KEY_INVALID"))
        .then_some(CallErrorCode::Auth)
}

/// The human-readable message.
fn message(said: &Value) -> Option<&str> {
    let places = ["/error/message", "/error", "/message", "/detail"];
    places.iter().find_map(|place| said.pointer(place)?.as_str())
}

/// Untrusted text as one line of bounded length.
pub(super) fn one_line(text: &str) -> String {
    let text = text.trim();
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(COMPLAINT_BYTES_MAX)
        .collect();
    let end = clean.floor_char_boundary(COMPLAINT_BYTES_MAX);
    clean[..end].trim_end().trim_end_matches('.').to_owned()
}

/// The provider's `Retry-After`: milliseconds, seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str, scale: f64| {
        let value: f64 = text.parse().ok()?;
        let ms = (value * scale).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is in range"
        )]
        (ms >= 0.0 && ms.is_finite()).then_some(ms.min(1e15) as u64)
    };
    if let Some(ms) = text("retry-after-ms").and_then(|text| number(text, 1.0)) {
        return Some(ms);
    }
    let value = text(RETRY_AFTER.as_str())?;
    number(value, 1_000.0).or_else(|| {
        // Relative to the provider's own clock, if it sends a `Date`.
        let now = text(DATE.as_str()).and_then(date).unwrap_or_else(now_ms);
        Some(u64::try_from(date(value)?.saturating_sub(now)).unwrap_or(0))
    })
}

fn date(text: &str) -> Option<i64> {
    let at = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(at.timestamp().as_millisecond())
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Gemini's retry delay in the body: `"retryDelay": "34.07s"`.
fn retry_delay(said: &Value) -> Option<u64> {
    let details = said.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    (0.0..1e9).contains(&seconds).then(|| (seconds * 1_000.0).ceil() as u64)
}

#[cfg(test)]
mod tests;
