//! Tokens of dispatches: each authorises the result of one dispatch.
//!
//! A token is a keyed hash of the dispatch's identity, so nothing needs to be stored to verify
//! it.
//!
//! INVARIANT: a token covers gateway, run, step and dispatch number. If any of these differs,
//! the token is not valid.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use sluice_core::id::RunId;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// Prefix of every token, for scanners that look for leaked secrets.
const PREFIX: &str = "sld_";

/// Identity of a dispatch, as its token covers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatched<'a> {
    /// Gateway that the dispatch was sent to.
    pub gateway: &'a str,
    /// Run of the step.
    pub run: RunId,
    /// Step id; `step[3]` for an instance.
    pub step: &'a str,
    /// Number of the step's dispatch.
    pub dispatch_no: u32,
}

/// Key that creates and verifies tokens.
#[derive(Clone)]
pub struct DispatchKey([u8; 32]);

impl DispatchKey {
    /// Wraps 256 secret random bits.
    pub fn new(key: [u8; 32]) -> DispatchKey {
        DispatchKey(key)
    }

    /// Creates the token of a dispatch.
    pub fn token(&self, of: Dispatched<'_>) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        // Each part is preceded by its length, so that no two dispatches have the same
        // encoding.
        let number = of.dispatch_no.to_string();
        for part in [of.gateway, &of.run.to_string(), of.step, &number] {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            mac.update(&length.to_be_bytes());
            mac.update(part.as_bytes());
        }
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }

    /// Verifies a token in constant time.
    pub fn knows(&self, token: &str, of: Dispatched<'_>) -> bool {
        self.token(of).as_bytes().ct_eq(token.as_bytes()).into()
    }
}

impl fmt::Debug for DispatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DispatchKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_for_one_dispatch_and_one_key() {
        let key = DispatchKey::new([7; 32]);
        let of = Dispatched { gateway: "g", run: RunId(1), step: "a", dispatch_no: 2 };
        let token = key.token(of);
        assert!(token.starts_with("sld_") && key.knows(&token, of));
        let others = [
            Dispatched { gateway: "ga", ..of },
            Dispatched { run: RunId(2), ..of },
            Dispatched { step: "a[0]", ..of },
            Dispatched { dispatch_no: 1, ..of },
            Dispatched { gateway: "", step: "ga", ..of },
        ];
        for other in others {
            assert!(!key.knows(&token, other), "{other:?}");
        }
        assert!(!DispatchKey::new([8; 32]).knows(&token, of));
        for wrong in ["", "sld_", &token[..token.len() - 1], &format!("{token}A")] {
            assert!(!key.knows(wrong, of));
        }
    }
}
