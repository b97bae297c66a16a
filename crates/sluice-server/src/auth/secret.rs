//! The secrets of tokens and sessions: made, hashed, never kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use sluice_core::evidence::hex;
use sluice_core::port::Entropy;

/// What every token begins with, so that scanners for leaked secrets know it.
pub const PREFIX: &str = "slk_";
/// Random bytes in a secret.
const BYTES: usize = 32;
/// Characters after the prefix.
const CHARS: usize = 43;

/// A SHA-256.
pub type Digest = [u8; 32];

/// A new secret: 256 bits of chance.
pub fn make(entropy: &mut dyn Entropy) -> String {
    let bytes: Vec<u8> = (0..BYTES / 8).flat_map(|_| entropy.bits().to_be_bytes()).collect();
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// A new id of a token: `tok_…`.
pub fn id(entropy: &mut dyn Entropy) -> String {
    format!("tok_{:016x}", entropy.bits())
}

/// The hash of a secret, if the text can be one.
pub fn digest(secret: &str) -> Option<Digest> {
    let rest = secret.strip_prefix(PREFIX)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let whole = rest.len() == CHARS && rest.bytes().all(fits);
    whole.then(|| Sha256::digest(secret.as_bytes()).into())
}

/// A hash as rows keep it.
pub fn shown(digest: &Digest) -> String {
    hex::to_string(digest)
}

/// What a console must send with every change, beside its cookie: known to
/// pages of ours only, since others cannot read the answer that tells it.
pub fn csrf(session: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"sluice csrf ");
    hash.update(session.as_bytes());
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
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
    fn a_secret_is_recognised_and_nothing_else_is() {
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
