//! Secrets: read where they are kept, and kept out of everything else.
//!
//! A row or a setting holds a `SecretRef`; here it becomes a `Secret`, for as long
//! as it is needed. `Scrub` takes known secrets out of texts that leave: an error
//! of somebody elsewhere may well repeat what it was sent.
//!
//! INVARIANT: no secret is shown by formatting it, and no message here holds one.

pub mod known;
pub mod scrub;
#[cfg(test)]
mod tests;

use crate::limits::SECRET_BYTES_MAX;
use sluice_core::secret::SecretRef;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};

/// Why a secret cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSecret {
    /// Nobody set the variable.
    #[error("the variable `{0}` is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("the file `{0}` cannot be read: {1}")]
    Unreadable(String, io::ErrorKind),
    /// There is nothing in it.
    #[error("`{0}` holds nothing")]
    Empty(SecretRef),
    /// There is too much in it.
    #[error("`{0}` holds more than {SECRET_BYTES_MAX} bytes")]
    TooLong(SecretRef),
    /// It is no text.
    #[error("`{0}` does not hold UTF-8")]
    NoText(SecretRef),
}

/// A secret in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    bytes: Vec<u8>,
}

impl Secret {
    /// Keeps a text as a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret { bytes: text.into().into_bytes() }
    }

    /// Reads it where it is kept. What ends a line at its end is not part of it:
    /// editors put it there. From then on it is known, and taken out of what leaves.
    pub fn read(reference: &SecretRef) -> Result<Secret, NoSecret> {
        let secret = Secret::read_in(reference, |name| {
            std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes)
        })?;
        known::process().note(&secret);
        Ok(secret)
    }

    /// The same, with another environment.
    pub fn read_in(
        reference: &SecretRef,
        environment: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Secret, NoSecret> {
        let bytes = match reference {
            SecretRef::Env(name) => {
                environment(name).ok_or_else(|| NoSecret::Unset(name.clone()))?
            }
            SecretRef::File(path) => {
                read_file(path).map_err(|error| NoSecret::Unreadable(path.clone(), error.kind()))?
            }
        };
        let mut secret = Secret { bytes };
        if secret.bytes.len() > SECRET_BYTES_MAX {
            return Err(NoSecret::TooLong(reference.clone()));
        }
        while secret.bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            secret.bytes.pop();
        }
        if secret.bytes.is_empty() {
            return Err(NoSecret::Empty(reference.clone()));
        }
        if std::str::from_utf8(&secret.bytes).is_err() {
            return Err(NoSecret::NoText(reference.clone()));
        }
        Ok(secret)
    }

    /// The secret itself. Whoever asks takes care of where it goes.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("a secret is checked to be text when it is made")
    }
}

/// A file and no more of it than a secret may have. A pipe or a device, which
/// could keep the reader waiting, is none.
fn read_file(path: &str) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(SECRET_BYTES_MAX + 1).expect("the bound is small");
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// As far as safe code can: copies that growing or moving left behind stay.
impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.fill(0);
        std::hint::black_box(&self.bytes);
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
