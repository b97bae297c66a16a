//! Shared by the fuzz targets: a server in memory, a wire that answers from the input, a fake
//! `Call`.

pub mod call;
pub mod server;
pub mod wire;

use std::sync::Once;

/// The key that providers and tool servers receive. It must never come back.
pub const KEY: &str = "sk-fuzz-5f2c91d07b3e48a6";
/// A variable of the machine that no request may read.
pub const CANARY: &str = "canary-c41b7a90e6d2f835";
/// The secret that signs an inbound webhook.
pub const HOOK_SECRET: &str = "hook-88d1e3f7a2c94b60";

/// Sets the variables with the secrets, once.
pub fn set_secrets() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let all = [("FUZZ_KEY", KEY), ("FUZZ_CANARY", CANARY), ("FUZZ_HOOK", HOOK_SECRET)];
        for (name, value) in all {
            // SAFETY: the process has one thread until the first input was tried.
            unsafe { std::env::set_var(name, value) };
        }
    });
}

/// The first line, and the rest.
pub fn split_line(bytes: &[u8]) -> (&str, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 1..]));
    (std::str::from_utf8(line).unwrap_or_default(), rest)
}

/// Replaces `@KEY@` in an input with the key, and `@A@` and `@B@` with its halves.
pub fn with_key(bytes: &[u8]) -> Vec<u8> {
    let (first, second) = KEY.split_at(KEY.len() / 2);
    let with = replaced(bytes, "@KEY@", KEY);
    replaced(&replaced(&with, "@A@", first), "@B@", second)
}

/// Replaces a text in an input.
pub fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(from.as_bytes()) {
            out.extend_from_slice(to.as_bytes());
            rest = after;
        } else {
            out.push(rest[0]);
            rest = &rest[1..];
        }
    }
    out
}

/// Runs a future on this thread's runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime of one thread can be made");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}
