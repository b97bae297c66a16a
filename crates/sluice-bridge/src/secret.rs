//! Secrets: read from where they are stored, and redacted everywhere else.
//!
//! A row or a setting contains a `SecretRef`. `keyring` decides which secret it means, for
//! which organisation and hosts; this module reads it into a `Secret` for as long as it is
//! needed. `known` remembers every secret that was read, and `scrub` redacts them in outgoing
//! texts, because a provider may repeat what it received.
//!
//! INVARIANT: formatting a secret does not show it, and no message contains one.
//! INVARIANT: a secret that cannot be redacted is not read.

mod encodings;
mod file;
pub mod hosts;
pub mod keyring;
pub mod known;
pub mod scrub;
#[cfg(test)]
mod tests;

use crate::limits::{SECRET_BYTES_MAX, SECRETS_MAX};
use sluice_core::secret::SecretRef;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why cannot read a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSecret {
    /// The variable is not set.
    #[error("the variable `{0}` is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("the file `{0}` cannot be read: {1}")]
    Unreadable(String, io::ErrorKind),
    /// The file is in a directory that rows must not read.
    #[error("the file `{0}` is in Sluice's data directory or a system directory, and is not read")]
    Closed(String),
    /// The value is empty.
    #[error("`{0}` is empty")]
    Empty(SecretRef),
    /// The value is too long.
    #[error("`{0}` exceeds {SECRET_BYTES_MAX} bytes")]
    TooLong(SecretRef),
    /// The value is not text.
    #[error("`{0}` is not valid UTF-8")]
    NoText(SecretRef),
    /// More secrets than can be redacted.
    #[error("`{0}` is not read: more than {SECRETS_MAX} secrets, or too long ones, are in use")]
    TooMany(SecretRef),
    /// The operator declares no such secret for the organisation.
    #[error(
        "there is no secret `{0}` for this organisation: the operator declares it under \
         `[secrets.{0}]` in sluice.toml"
    )]
    NotDeclared(String),
    /// A declared secret cannot be read. The reason is only for the operator.
    #[error("the secret `{0}` cannot be read: `sluice doctor` on the server's machine says why")]
    NotReadable(String),
    /// The operator did not list the host for this secret.
    #[error("the secret `{name}` may not be sent to `{host}`: its `hosts` do not list it")]
    NotForHost {
        /// Name of the secret.
        name: String,
        /// Host with port.
        host: String,
    },
    /// A variable or file in a row that the operator did not write.
    #[error(
        "`{0}` is not read: only the operator's own rows name variables and files. Declare it \
         under `[secrets.NAME]` in sluice.toml and write `secret:NAME`, or apply the row again \
         on the server's machine"
    )]
    NotOfOperator(SecretRef),
}

/// A secret in memory. While a clone exists, the secret stays known and is redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    bytes: Arc<Wiped>,
}

#[derive(PartialEq, Eq)]
struct Wiped(Vec<u8>);

impl Secret {
    /// Wraps a text as a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret { bytes: Arc::new(Wiped(text.into().into_bytes())) }
    }

    /// Reads a variable or a file that the operator names outside of the registry. From
    /// then on the secret is known and redacted.
    pub fn read(reference: &SecretRef) -> Result<Secret, NoSecret> {
        Secret::read_outside(reference, &[])
    }

    /// Reads a variable or file, unless the file is in one of the closed directories.
    fn read_outside(reference: &SecretRef, closed: &[PathBuf]) -> Result<Secret, NoSecret> {
        let environment =
            |name: &str| std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes);
        let secret = Secret::read_in(reference, environment, closed)?;
        known::process()
            .note(&reference.to_string(), &secret)
            .map_err(|_| NoSecret::TooMany(reference.clone()))?;
        Ok(secret)
    }

    /// Reads with the given environment. Trailing line breaks, which editors add, are
    /// removed.
    fn read_in(
        reference: &SecretRef,
        environment: impl Fn(&str) -> Option<Vec<u8>>,
        closed: &[PathBuf],
    ) -> Result<Secret, NoSecret> {
        let mut bytes = match reference {
            SecretRef::Env(name) => {
                environment(name).ok_or_else(|| NoSecret::Unset(name.clone()))?
            }
            SecretRef::File(path) => file::read(path, closed)?,
            SecretRef::Named(name) => return Err(NoSecret::NotDeclared(name.clone())),
        };
        if bytes.len() > SECRET_BYTES_MAX {
            return Err(NoSecret::TooLong(reference.clone()));
        }
        while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            bytes.pop();
        }
        if bytes.is_empty() {
            return Err(NoSecret::Empty(reference.clone()));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Secret::new(text)),
            Err(_) => Err(NoSecret::NoText(reference.clone())),
        }
    }

    /// The secret itself. The caller is responsible for where it goes.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.bytes.0).expect("a secret is checked to be text when it is made")
    }

    /// Whether another clone exists.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.bytes) > 1
    }
}

/// Best effort in safe code: copies from reallocations remain.
impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.fill(0);
        std::hint::black_box(&self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(scrub::REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(scrub::REDACTED)
    }
}
