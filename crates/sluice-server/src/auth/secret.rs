//! The secrets of tokens and sessions: generated and hashed, never stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use sluice_core::hex;
use sluice_core::id::Entropy;

/// Prefix of every token, so that scanners for leaked secrets recognise it.
pub const PREFIX: &str = "slk_";
/// Random bytes in a secret.
const BYTES: usize = 32;
/// Characters after the prefix.
const CHARS: usize = 43;

/// A SHA-256 hash.
pub type Digest = [u8; 32];

/// A new secret of 256 random bits.
pub fn make(entropy: &mut dyn Entropy) -> String {
    let bytes: Vec<u8> = (0..BYTES / 8).flat_map(|_| entropy.bits().to_be_bytes()).collect();
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// A new token id: `tok_…`.
pub fn id(entropy: &mut dyn Entropy) -> String {
    format!("tok_{:016x}", entropy.bits())
}

/// The hash of a secret; `None` if the text does not have the form of one.
pub fn digest(secret: &str) -> Option<Digest> {
    let rest = secret.strip_prefix(PREFIX)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let whole = rest.len() == CHARS && rest.bytes().all(fits);
    whole.then(|| Sha256::digest(secret.as_bytes()).into())
}

/// A hash as stored in rows.
pub fn shown(digest: &Digest) -> String {
    hex::to_string(digest)
}

/// The CSRF token that the console sends with every change, besides its cookie. Pages of
/// other origins cannot read the response that contains it.
pub fn csrf(session: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"sluice csrf ");
    hash.update(session.as_bytes());
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

/// Compares two secrets in constant time.
pub fn same(a: &str, b: &str) -> bool {
    use subtle::ConstantTimeEq as _;
    a.len() == b.len() && bool::from(a.as_bytes().ct_eq(b.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(u64);

    impl Entropy for Count {
        fn bits(&mut self) -> u64 {
            self.0 += 1;
            self.0
        }
    }

    #[test]
    fn only_secrets_are_recognised() {
        let secret = make(&mut Count(0));
        assert_eq!(secret.len(), PREFIX.len() + CHARS);
        assert!(digest(&secret).is_some());
        for other in ["", "slk_", &secret[4..], &secret[..40], &format!("{secret}x")] {
            assert_eq!(digest(other), None, "{other}");
        }
        assert_eq!(digest(&format!("slk_{}", "é".repeat(21))), None);
        assert_ne!(csrf(&secret), csrf(&make(&mut Count(9))));
        assert!(same("ab", "ab") && !same("ab", "ac") && !same("ab", "abc"));
    }
}
