//! References to secrets. Sluice stores, shows and exports the reference, never the
//! secret.
//!
//! Rows name a secret that the operator declares (`secret:NAME`). Variables and files
//! are only for the operator: a row that names one works only if the operator wrote the
//! row on the machine of the data directory.
//!
//! INVARIANT: no error message repeats an invalid reference, because it may be the
//! secret.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest reference, in bytes.
const REFERENCE_BYTES_MAX: usize = 4096;
/// Longest name of a declared secret, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// A reference to a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SecretRef {
    /// An environment variable of the process: `env:NAME`.
    Env(String),
    /// A file: `file:PATH`.
    File(String),
    /// A secret that the operator declares under `[secrets.NAME]`: `secret:NAME`.
    Named(String),
}

impl SecretRef {
    /// Whether it names a variable or file of the machine, which only the operator may
    /// do.
    pub const fn is_of_machine(&self) -> bool {
        matches!(self, SecretRef::Env(_) | SecretRef::File(_))
    }

    /// Whether a text is a valid name of a declared secret.
    pub fn is_name(text: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
    }
}

/// The error for a text that is not a reference to a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadReference {
    /// Not a reference; it may be a secret itself.
    #[error(
        "this is not a reference to a secret: write `secret:NAME`, or `env:NAME` or `file:PATH` as the operator; the secret itself does not belong here"
    )]
    NotOne,
    /// Not a valid variable name.
    #[error("`env:` is followed by the name of a variable: letters, digits and `_`")]
    Name,
    /// Not a valid path.
    #[error("`file:` is followed by a path")]
    Path,
    /// Not a valid name of a declared secret.
    #[error("`secret:` is followed by the name of a declared secret: letters, digits, `_` and `-`")]
    Declared,
}

impl FromStr for SecretRef {
    type Err = BadReference;

    fn from_str(text: &str) -> Result<SecretRef, BadReference> {
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(BadReference::NotOne);
        }
        if let Some(name) = text.strip_prefix("env:") {
            let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let begins = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
            let fits = letters && begins;
            return if fits {
                Ok(SecretRef::Env(name.to_owned()))
            } else {
                Err(BadReference::Name)
            };
        }
        if let Some(path) = text.strip_prefix("file:") {
            let fits = !path.trim().is_empty() && !path.contains(char::is_control);
            return if fits {
                Ok(SecretRef::File(path.to_owned()))
            } else {
                Err(BadReference::Path)
            };
        }
        if let Some(name) = text.strip_prefix("secret:") {
            return if SecretRef::is_name(name) {
                Ok(SecretRef::Named(name.to_owned()))
            } else {
                Err(BadReference::Declared)
            };
        }
        Err(BadReference::NotOne)
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "env:{name}"),
            SecretRef::File(path) => write!(f, "file:{path}"),
            SecretRef::Named(name) => write!(f, "secret:{name}"),
        }
    }
}

impl TryFrom<String> for SecretRef {
    type Error = BadReference;

    fn try_from(text: String) -> Result<SecretRef, BadReference> {
        text.parse()
    }
}

impl From<SecretRef> for String {
    fn from(reference: SecretRef) -> String {
        reference.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_reads_as_it_was_written() {
        let of_machine = ["env:HOOK_SECRET", "env:_x1", "file:/run/secrets/hook", "file:a b"];
        for text in of_machine.into_iter().chain(["secret:openai", "secret:A-1_b"]) {
            let read = text.parse::<SecretRef>().expect(text);
            assert_eq!(read.to_string(), text);
            assert_eq!(read.is_of_machine(), of_machine.contains(&text), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_and_not_repeated() {
        let words = [
            "",
            "hunter2hunter2",
            "vault:x",
            "ENV:X",
            "env:",
            "env:1X",
            "env:A B",
            "file:",
            "file: ",
            "file:\n",
            "secret:",
            "secret:hunter2.hunter2",
            "secret:../x",
        ];
        for text in words {
            let told = text.parse::<SecretRef>().expect_err(text).to_string();
            assert!(!told.contains("hunter2") && !told.contains("vault"), "{told}");
        }
        let read: Result<SecretRef, _> = serde_json::from_value("hunter2hunter2".into());
        assert!(!read.expect_err("it is a secret").to_string().contains("hunter2"));
    }
}
