//! Signatures of requests, for outbound and inbound webhooks alike.
//!
//! `Sluice-Signature: v1=hex(HMAC-SHA-256(secret, timestamp + "." + body))`, with the
//! timestamp in seconds in `Sluice-Timestamp`. The timestamp is signed, so that an old
//! request can be detected; the body is signed as received, before it is parsed.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use sluice_bridge::secret::Secret;
use sluice_core::hash::Hash;
use subtle::ConstantTimeEq as _;

/// The header with the time of signing, in seconds since 1970.
pub(crate) const TIMESTAMP: &str = "sluice-timestamp";
/// The header with the signature.
pub(crate) const SIGNATURE: &str = "sluice-signature";
/// The header with the id of a delivery: the same for each attempt.
pub const DELIVERY: &str = "sluice-delivery";

/// Prefix of a signature: the version of the algorithm.
const VERSION: &str = "v1=";

/// Signs a body at a time.
pub fn sign(secret: &Secret, timestamp: &str, body: &[u8]) -> String {
    format!("{VERSION}{}", mac(secret, timestamp, body))
}

/// Verifies a signature of a body at a time, in constant time. Several signatures may be
/// given, separated by commas: while a secret is rotated, the sender signs with both.
pub fn is_signed(secret: &Secret, timestamp: &str, body: &[u8], signature: &str) -> bool {
    let right = sign(secret, timestamp, body);
    let given = signature.split(',').take(super::limits::SIGNATURES_MAX);
    given
        .fold(false, |found, one| found | bool::from(one.trim().as_bytes().ct_eq(right.as_bytes())))
}

fn mac(secret: &Secret, timestamp: &str, body: &[u8]) -> Hash {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes())
        .expect("HMAC takes keys of any length");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    Hash(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_the_guide_says() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret-of-the-hook
        let secret = Secret::new("secret-of-the-hook");
        let signature = sign(&secret, "1700000000", br#"{"a":1}"#);
        assert_eq!(
            signature,
            "v1=2ed71134a77d3a0a07f27e652ca3ed59ee953d80c0c7c5ccb491abb093c40180"
        );
    }

    #[test]
    fn only_the_right_secret_time_and_body_are_signed() {
        let secret = Secret::new("secret-of-the-hook");
        let right = sign(&secret, "1700000000", b"body");
        assert!(is_signed(&secret, "1700000000", b"body", &right));
        let both = format!("v1=00, {right}");
        assert!(is_signed(&secret, "1700000000", b"body", &both));
        assert!(!is_signed(&secret, "1700000001", b"body", &right));
        assert!(!is_signed(&secret, "1700000000", b"body ", &right));
        assert!(!is_signed(&Secret::new("another"), "1700000000", b"body", &right));
        // The boundary between time and body is signed as well.
        assert!(!is_signed(&secret, "170000000", b"0.body", &right));
        for wrong in [
            "",
            "v1=",
            &right[3..],
            &right[..20],
            &right.to_uppercase(),
            &right.replace("v1", "v0"),
        ] {
            assert!(!is_signed(&secret, "1700000000", b"body", wrong), "{wrong}");
        }
        let late = format!("{}{right}", "v1=00,".repeat(crate::limits::SIGNATURES_MAX));
        assert!(!is_signed(&secret, "1700000000", b"body", &late));
    }
}
