//! All secrets that this process has read, for redaction in logs and answers.
//!
//! One set per process, because a component that logs or answers does not know which component
//! read a key. Each variable, file or setting is a source. Only a newer value of the same
//! source replaces a value: reading one secret never drops another.
//!
//! INVARIANT: a secret that is in use stays known, and so does the newest value of every
//! source.

use super::Secret;
use super::scrub::{Scrub, TooMany};
use crate::limits::{SCRUBBED_BYTES_MIN, SECRET_VALUES_MAX, SECRETS_BYTES_MAX, SECRETS_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

static PROCESS: LazyLock<KnownSecrets> = LazyLock::new(KnownSecrets::default);

/// The registry that all adapters and loggers of this process share.
pub fn process() -> &'static KnownSecrets {
    &PROCESS
}

/// A set of known secrets.
#[derive(Debug, Default)]
pub struct KnownSecrets {
    held: Mutex<KnownState>,
}

#[derive(Debug, Default)]
struct KnownState {
    /// Values by source, the newest last.
    sources: BTreeMap<String, VecDeque<Secret>>,
    count: usize,
    bytes: usize,
    /// Built when it is next needed.
    scrub: Option<Arc<Scrub>>,
}

impl KnownSecrets {
    /// Adds the value of a source.
    pub fn note(&self, source: &str, secret: &Secret) -> Result<(), TooMany> {
        let length = secret.expose().len();
        if length < SCRUBBED_BYTES_MIN {
            return Ok(());
        }
        let mut held = self.held();
        if let Some(values) = held.sources.get_mut(source) {
            if values.back() == Some(secret) {
                return Ok(());
            }
            if let Some(at) = values.iter().position(|value| value == secret) {
                let again = values.remove(at);
                values.extend(again);
                return Ok(());
            }
        }
        held.forget_old(source);
        if held.count >= SECRETS_MAX || held.bytes + length > SECRETS_BYTES_MAX {
            return Err(TooMany);
        }
        held.count += 1;
        held.bytes += length;
        held.sources.entry(source.to_owned()).or_default().push_back(secret.clone());
        held.scrub = None;
        Ok(())
    }

    /// The redactor for all known secrets.
    pub fn scrub(&self) -> Arc<Scrub> {
        let mut held = self.held();
        if let Some(scrub) = &held.scrub {
            return Arc::clone(scrub);
        }
        let secrets = held.sources.values().flatten();
        let scrub =
            Scrub::new(secrets).expect("the limits of known secrets are within those of Scrub");
        let scrub = Arc::new(scrub);
        held.scrub = Some(Arc::clone(&scrub));
        scrub
    }

    fn held(&self) -> MutexGuard<'_, KnownState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownState {
    /// Drops the oldest unused value of a source that has too many.
    fn forget_old(&mut self, source: &str) {
        let Some(values) = self.sources.get_mut(source) else { return };
        if values.len() < SECRET_VALUES_MAX {
            return;
        }
        let Some(at) = values.iter().position(|value| !value.is_shared()) else { return };
        if let Some(old) = values.remove(at) {
            self.count -= 1;
            self.bytes -= old.expose().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: impl Into<String>) -> Secret {
        Secret::new(text)
    }

    #[test]
    fn reading_one_secret_never_drops_another() {
        let known = KnownSecrets::default();
        known.note("env:KEY", &secret("first-secret")).unwrap();
        known.note("env:PIN", &secret("short")).unwrap();
        assert_eq!(known.scrub().text("first-secret short"), "[redacted] short");
        // A source with a different value each time.
        for n in 0..3 * SECRETS_MAX {
            known.note("file:/uuid", &secret(format!("secret-{n:08}"))).unwrap();
        }
        let scrub = known.scrub();
        let newest = format!("secret-{:08}", 3 * SECRETS_MAX - 1);
        assert_eq!(scrub.text(&format!("first-secret {newest}")), "[redacted] [redacted]");
        assert_eq!(scrub.text("secret-00000000"), "secret-00000000");
    }

    #[test]
    fn a_secret_that_is_in_use_stays_known_however_often_it_is_changed() {
        let known = KnownSecrets::default();
        let in_use = secret("key-in-use-1");
        known.note("file:/key", &in_use).unwrap();
        known.note("file:/key", &secret("key-not-used")).unwrap();
        for n in 0..2 * SECRET_VALUES_MAX {
            known.note("file:/key", &secret(format!("rotated-{n:08}"))).unwrap();
        }
        let text = "key-in-use-1 key-not-used rotated-00000031";
        assert_eq!(known.scrub().text(text), "[redacted] key-not-used [redacted]");
        drop(in_use);
        for n in 0..SECRET_VALUES_MAX {
            known.note("file:/key", &secret(format!("again-{n:08}"))).unwrap();
        }
        assert_eq!(known.scrub().text("key-in-use-1"), "key-in-use-1");
    }

    #[test]
    fn a_value_that_comes_back_is_the_newest_again() {
        let known = KnownSecrets::default();
        let old = secret("value-number-old");
        known.note("env:A", &old).unwrap();
        drop(old);
        for n in 0..SECRET_VALUES_MAX - 1 {
            known.note("env:A", &secret(format!("value-{n:08}"))).unwrap();
        }
        known.note("env:A", &secret("value-number-old")).unwrap();
        known.note("env:A", &secret("value-number-new")).unwrap();
        let text = "value-number-old value-00000000";
        assert_eq!(known.scrub().text(text), "[redacted] value-00000000");
    }

    #[test]
    fn a_secret_that_cannot_be_redacted_is_not_kept() {
        let known = KnownSecrets::default();
        for n in 0..SECRETS_MAX {
            known.note(&format!("env:A{n}"), &secret(format!("secret-{n:08}"))).unwrap();
        }
        assert!(known.note("env:B", &secret("one-too-many")).is_err());
        assert!(known.note("env:A0", &secret("secret-00000000")).is_ok());
        let long = KnownSecrets::default();
        assert!(long.note("file:/a", &secret("x".repeat(SECRETS_BYTES_MAX + 1))).is_err());
    }

    #[test]
    fn reading_a_secret_makes_it_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "known-from-a-file\n").unwrap();
        let reference = format!("file:{}", path.display()).parse().unwrap();
        Secret::read(&reference).unwrap();
        assert_eq!(process().scrub().text("x known-from-a-file"), "x [redacted]");
    }
}
