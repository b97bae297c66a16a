//! Ed25519 keys that sign seals (RFC 8032).
//!
//! Keys are created outside the core, which has no random source. The owner of the key can
//! seal; the verifier chooses the keys that it trusts.

use crate::hex;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use std::fmt;

/// Signs with Ed25519, and never prints its secret.
#[derive(Clone)]
pub struct Signer(SigningKey);

impl Signer {
    /// Creates a key from 32 secret random bytes.
    pub fn new(secret: &[u8; 32]) -> Signer {
        Signer(SigningKey::from_bytes(secret))
    }

    /// The public key that verifies its signatures.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub(super) fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.0.sign(text).to_bytes()
    }
}

/// Prints the public key only.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.public())
    }
}

/// A public key that verifies signatures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<PublicKey> {
        hex::parse(text).map(PublicKey)
    }

    /// Whether this key signed the text.
    pub(super) fn signed(&self, text: &[u8], signature: &[u8; 64]) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.0) else { return false };
        key.verify_strict(text, &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::to_string(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test of RFC 8032, section 7.1.
    #[test]
    fn a_known_signature_comes_out() {
        let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let signer = Signer::new(&hex::parse(secret).unwrap());
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(signer.public().to_string(), public);
        assert_eq!(format!("{signer:?}"), format!("Signer({public})"));
        let signature = signer.sign(b"");
        assert_eq!(
            hex::to_string(&signature),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        );
        assert!(signer.public().signed(b"", &signature));
        assert!(!signer.public().signed(b"x", &signature));
    }
}
