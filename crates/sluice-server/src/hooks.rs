//! Doors through which somebody elsewhere starts runs: whether a request may pass,
//! and what its run is given.
//!
//! INVARIANT: nothing of a body is looked at before its signature is found right.
//! A request starts one run at most: what comes again has the same key.

use crate::limits::HOOK_WINDOW_S;
use crate::signature::is_signed;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use sluice_bridge::secret::Secret;
use sluice_core::path::{Path, Segment};
use sluice_core::port::store::Hash;
use std::collections::BTreeMap;

/// Why a request may not pass. Whoever sent it is told no more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    /// There is no time that can be read.
    #[error("the request does not say when it was signed")]
    NoTime,
    /// It was signed too long ago, or in the future.
    #[error("the request was not signed within the last {HOOK_WINDOW_S} seconds")]
    NotNow,
    /// The signature is not the right one.
    #[error("the request is not signed with the hook's secret")]
    Wrong,
}

/// Checks what can be checked of a request without the secret: when it was signed,
/// and that something is given as a signature.
pub fn plausible(timestamp: &str, signature: &str, now_ms: u64) -> Result<(), NotSigned> {
    // Only plain digits: of two ways to write a time, one would pass as new.
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

/// Checks a request's signature over its time and its body as it came.
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

/// The key under which a request's run is started. A request that is sent again
/// has the same, and so starts nothing.
pub fn key(hook: &str, timestamp: &str, body: &[u8]) -> String {
    let mut digest = Sha256::new();
    digest.update(timestamp.as_bytes());
    digest.update(b".");
    digest.update(body);
    format!("hook:{hook}:{}", Hash(digest.finalize().into()))
}

/// In whose name a hook starts runs.
pub fn principal(hook: &str) -> String {
    format!("hook:{hook}")
}

/// What a run is given: arguments by name, each from its path in the body, `$` for
/// all of it. What is not there is left out: whether it is needed is the
/// workflow's to say.
pub fn args(body: &Value, paths: &BTreeMap<String, String>) -> Map<String, Value> {
    let mut args = Map::new();
    for (name, path) in paths {
        if let Some(value) = at(body, path) {
            args.insert(name.clone(), value.clone());
        }
    }
    args
}

fn at<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
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
