//! Secrets: read where they are kept, and kept out of everything else.
//!
//! A row or a setting holds a `SecretRef`. `keyring` says which secret that is, for
//! which organisation and for which hosts; here it is read into a `Secret`, for as
//! long as it is needed. `known` keeps what was read, `scrub` takes it out of texts
//! that leave: a provider may well repeat what it was sent.
//!
//! INVARIANT: no secret is shown by formatting it, and no message here holds one.
//! INVARIANT: what cannot be looked for in texts is not read.

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

/// Why a secret cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSecret {
    /// The variable is not set.
    #[error("the variable `{0}` is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("the file `{0}` cannot be read: {1}")]
    Unreadable(String, io::ErrorKind),
    /// The file is one of Sluice's own, or of the system.
    #[error("the file `{0}` is in Sluice's data directory or a system directory, and is not read")]
    Closed(String),
    /// There is nothing in it.
    #[error("`{0}` holds nothing")]
    Empty(SecretRef),
    /// There is too much in it.
    #[error("`{0}` holds more than {SECRET_BYTES_MAX} bytes")]
    TooLong(SecretRef),
    /// It is not text.
    #[error("`{0}` does not hold UTF-8")]
    NoText(SecretRef),
    /// More secrets than can be taken out of texts.
    #[error("`{0}` is not read: more than {SECRETS_MAX} secrets, or too long ones, are in use")]
    TooMany(SecretRef),
    /// The operator declares no such secret for the organisation.
    #[error(
        "there is no secret `{0}` for this organisation: the operator declares it under \
         `[secrets.{0}]` in sluice.toml"
    )]
    NotDeclared(String),
    /// A declared secret cannot be read. Why is for the operator to see.
    #[error("the secret `{0}` cannot be read: `sluice doctor` on the server's machine says why")]
    NotReadable(String),
    /// The operator has not opened the secret to this host.
    #[error("the secret `{name}` may not be sent to `{host}`: its `hosts` do not list it")]
    NotForHost {
        /// The secret.
        name: String,
        /// The host, with its port.
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

/// A secret in memory. Whatever holds one keeps it from being forgotten.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    bytes: Arc<Wiped>,
}

#[derive(PartialEq, Eq)]
struct Wiped(Vec<u8>);

impl Secret {
    /// Keeps a text as a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret { bytes: Arc::new(Wiped(text.into().into_bytes())) }
    }

    /// Reads a variable or a file that the operator names outside of the registry.
    /// From then on it is known, and taken out of what leaves.
    pub fn read(reference: &SecretRef) -> Result<Secret, NoSecret> {
        Secret::read_beside(reference, &[])
    }

    /// The same, unless it is a file in one of these directories.
    fn read_beside(reference: &SecretRef, closed: &[PathBuf]) -> Result<Secret, NoSecret> {
        let environment =
            |name: &str| std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes);
        let secret = Secret::read_in(reference, environment, closed)?;
        known::process()
            .note(&reference.to_string(), &secret)
            .map_err(|_| NoSecret::TooMany(reference.clone()))?;
        Ok(secret)
    }

    /// The same, with another environment. The line break that editors put at the end
    /// of a file is not part of the secret.
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

    /// The secret itself. The caller takes care of where it goes.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.bytes.0).expect("a secret is checked to be text when it is made")
    }

    /// Whether something beside this holds it.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.bytes) > 1
    }
}

/// As far as safe code can: copies that growing or moving left behind stay.
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
