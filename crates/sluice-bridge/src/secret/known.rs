//! Every secret that this process has read: what is taken out of logs and answers.
//!
//! A set of its own, since whoever logs or answers knows nothing of whoever read a
//! key. The newest are kept, up to the bound on what is looked for.

use super::Secret;
use super::scrub::Scrub;
use crate::limits::{SCRUBBED_BYTES_MIN, SCRUBBED_MAX};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

static PROCESS: LazyLock<Known> = LazyLock::new(Known::default);

/// The secrets of this process.
pub fn process() -> &'static Known {
    &PROCESS
}

/// Secrets that are known.
#[derive(Debug, Default)]
pub struct Known {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    secrets: VecDeque<Secret>,
    /// Made when it is next asked for.
    scrub: Option<Arc<Scrub>>,
}

impl Known {
    /// Keeps one, to be looked for from now on.
    pub fn note(&self, secret: &Secret) {
        if secret.expose().len() < SCRUBBED_BYTES_MIN {
            return;
        }
        let mut held = self.held();
        if held.secrets.contains(secret) {
            return;
        }
        if held.secrets.len() >= SCRUBBED_MAX {
            held.secrets.pop_front();
        }
        held.secrets.push_back(secret.clone());
        held.scrub = None;
    }

    /// What looks for all of them.
    pub fn scrub(&self) -> Arc<Scrub> {
        let mut held = self.held();
        if let Some(scrub) = &held.scrub {
            return Arc::clone(scrub);
        }
        let scrub = Scrub::new(&held.secrets).expect("no more are kept than can be looked for");
        let scrub = Arc::new(scrub);
        held.scrub = Some(Arc::clone(&scrub));
        scrub
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_looked_for_and_the_newest_are_kept() {
        let known = Known::default();
        known.note(&Secret::new("first-secret"));
        known.note(&Secret::new("short"));
        assert_eq!(known.scrub().text("first-secret short"), "[redacted] short");
        for n in 0..SCRUBBED_MAX {
            known.note(&Secret::new(format!("secret-{n:08}")));
            known.note(&Secret::new(format!("secret-{n:08}")));
        }
        let scrub = known.scrub();
        assert_eq!(scrub.text("first-secret secret-00000999"), "first-secret [redacted]");
        assert_eq!(scrub.text("secret-00000000"), "[redacted]");
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
