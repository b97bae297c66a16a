//! Inbound webhooks: verifies signed requests and maps their bodies to arguments of a run.
//!
//! INVARIANT: the body is not parsed before its signature is verified. A request starts at
//! most one run: a repeated request has the same idempotency key.

use crate::limits::HOOK_WINDOW_S;
use crate::signature::is_signed;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use sluice_bridge::secret::Secret;
use sluice_core::hash::Hash;
use sluice_core::path::{Path, Segment};
use std::collections::BTreeMap;

/// Why a request is refused. The sender is not told more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    /// The timestamp is missing or not a number.
    #[error("the request has no valid `Sluice-Timestamp` header")]
    NoTime,
    /// The request was signed too long ago, or in the future.
    #[error("the request was not signed within the last {HOOK_WINDOW_S} seconds")]
    NotNow,
    /// The signature is not valid.
    #[error("the request is not signed with the secret of the webhook")]
    Wrong,
}

/// Checks what needs no secret: the timestamp, and that there is a signature.
pub fn plausible(timestamp: &str, signature: &str, now_ms: u64) -> Result<(), NotSigned> {
    // Only plain digits: two spellings of one time would be two different requests.
    if timestamp.is_empty() || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotSigned::NoTime);
    }
    let at: u64 = timestamp.parse().map_err(|_| NotSigned::NoTime)?;
    if signature.is_empty() {
        return Err(NotSigned::Wrong);
    }
    if (now_ms / 1000).abs_diff(at) > HOOK_WINDOW_S {
        return Err(NotSigned::NotNow);
    }
    Ok(())
}

/// Verifies the signature over the timestamp and the unparsed body.
pub fn verify(
    secret: &Secret,
    timestamp: &str,
    body: &[u8],
    signature: &str,
    now_ms: u64,
) -> Result<(), NotSigned> {
    plausible(timestamp, signature, now_ms)?;
    if is_signed(secret, timestamp, body, signature) { Ok(()) } else { Err(NotSigned::Wrong) }
}

/// The idempotency key of the run. A repeated request has the same key, so it starts no
/// second run.
pub fn key(hook: &str, timestamp: &str, body: &[u8]) -> String {
    let mut digest = Sha256::new();
    digest.update(timestamp.as_bytes());
    digest.update(b".");
    digest.update(body);
    format!("hook:{hook}:{}", Hash(digest.finalize().into()))
}

/// The principal that starts the runs of an inbound webhook.
pub fn principal(hook: &str) -> String {
    format!("hook:{hook}")
}

/// The arguments of the run: each is read from its path in the body, `$` for the whole
/// body. A missing value is omitted; the workflow decides whether the argument is required.
pub fn args(body: &Value, paths: &BTreeMap<String, String>) -> Map<String, Value> {
    let mut args = Map::new();
    for (name, path) in paths {
        if let Some(value) = value_at(body, path) {
            args.insert(name.clone(), value.clone());
        }
    }
    args
}

fn value_at<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
    if path == "$" {
        return Some(body);
    }
    let path = Path::parse(path).ok()?;
    let first = body.as_object()?.get(path.head())?;
    path.rest().iter().try_fold(first, |value, segment| match (segment, value) {
        (Segment::Index(index), Value::Array(list)) => list.get(*index),
        (Segment::Index(index), Value::Object(map)) => map.get(&index.to_string()),
        (Segment::Key(key), Value::Object(map)) => map.get(key),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
